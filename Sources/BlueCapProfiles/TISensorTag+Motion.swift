extension TISensorTag {
    /// The accelerometer, a Kionix KXTJ9.
    public enum AccelerometerService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA10"), "TI Accelerometer", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile, UpdatePeriod.profile])

        /// The UUID as the earliest of the documents spells it.
        public static var UUID: String { uuid }

        /// The acceleration in g (9.81 m/s²), from -2 to 2 in steps of 1/64.
        public struct Data: SensorTagAxes {
            public static let declaration = axes("AA11", "Accelerometer Data", -64, -32, -96)
            public static let stepsPerUnit = 64.0

            /// A signed number for each axis.
            public typealias RawType = Int8
            public let xRaw, yRaw, zRaw: Int8

            public init(xRaw: Int8, yRaw: Int8, zRaw: Int8) {
                (self.xRaw, self.yRaw, self.zRaw) = (xRaw, yRaw, zRaw)
            }
        }

        /// Whether the accelerometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let declaration = switchOff("AA12", "Accelerometer Enabled")
        }

        /// The time between two measurements in units of 10 ms; one second at first.
        public struct UpdatePeriod: SensorTagPeriod {
            public static let declaration = period("AA13", "Accelerometer Update Period", 100)

            public let periodRaw: UInt8
            public init?(rawValue: UInt8) { periodRaw = rawValue }
        }
    }

    /// The magnetometer, a Freescale MAG3110.
    public enum MagnetometerService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA30"), "TI Magnetometer", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile, UpdatePeriod.profile])

        /// The magnetic flux density in µT, from -1000 to 1000 in steps of 2000/65536.
        public struct Data: SensorTagAxes {
            public static let declaration = axes("AA31", "Magnetometer Data", -2183, 1916, 1255)
            public static let stepsPerUnit = 65536.0 / 2000

            /// A signed number for each axis.
            public typealias RawType = Int16
            public let xRaw, yRaw, zRaw: Int16

            public init(xRaw: Int16, yRaw: Int16, zRaw: Int16) {
                (self.xRaw, self.yRaw, self.zRaw) = (xRaw, yRaw, zRaw)
            }
        }

        /// Whether the magnetometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let declaration = switchOff("AA32", "Magnetometer Enabled")
        }

        /// The time between two measurements in units of 10 ms; two seconds at first.
        public struct UpdatePeriod: SensorTagPeriod {
            public static let declaration = period("AA33", "Magnetometer Update Period", 200)

            public let periodRaw: UInt8
            public init?(rawValue: UInt8) { periodRaw = rawValue }
        }
    }

    /// The gyroscope, an InvenSense IMU-3000.
    public enum GyroscopeService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA50"), "TI Gyroscope", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile])

        /// The rate of rotation in degrees per second, from -250 to 250 in steps of 500/65536.
        public struct Data: SensorTagAxes {
            public static let declaration = axes("AA51", "Gyroscope Data", -24, -219, -23)
            public static let stepsPerUnit = 65536.0 / 500

            /// A signed number for each axis.
            public typealias RawType = Int16
            public let xRaw, yRaw, zRaw: Int16

            public init(xRaw: Int16, yRaw: Int16, zRaw: Int16) {
                (self.xRaw, self.yRaw, self.zRaw) = (xRaw, yRaw, zRaw)
            }
        }

        /// The axes about which the gyroscope measures: one bit each, x the lowest.
        public enum Enabled: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
            /// The gyroscope is off.
            case no = 0
            /// About x only.
            case xAxis = 1
            /// About y only.
            case yAxis = 2
            /// About x and y.
            case xyAxis = 3
            /// About z only.
            case zAxis = 4
            /// About x and z.
            case xzAxis = 5
            /// About y and z.
            case yzAxis = 6
            /// About all three axes.
            case xyzAxis = 7
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA52"), "Gyroscope Enabled", [.read, .write], initialValue: Enabled.no.serialize(),
                texts: ["No", "XAxis", "YAxis", "XYAxis", "ZAxis", "XZAxis", "YZAxis", "XYZAxis"])
        }
    }

    /// The two keys.
    public enum KeyPressedService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "FFE0", "TI Key Pressed", tag: TISensorTag.tag, [State.profile])

        /// The keys that are down: one bit each, the right one the lowest.
        public enum State: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
            /// Neither key is down.
            case none = 0
            /// The right key is down.
            case buttonOne = 1
            /// The left key is down.
            case buttonTwo = 2
            /// Both keys are down.
            case both = 3
            public static let declaration = CharacteristicDeclaration(
                "FFE1", "Key Pressed", [.notify], initialValue: State.none.serialize(),
                texts: ["None", "Button One", "Button Two", "Both"])
        }

        /// The keys' state, under the name that the other services use.
        public typealias Data = State
    }

    /// The self-test of the SensorTag.
    public enum SensorTagTestService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA60"), "TI Sensor Tag Test", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile])

        /// The sensors that passed the test: one bit each.
        public struct Data: OptionSet, RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA61"), "Test Data", [.read], initialValue: Data(rawValue: 0x3F).serialize(),
                texts: ["Thermometer", "Hygrometer", "Magnetometer", "Accelerometer", "Gyroscope", "Barometer"])

            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// The infrared thermometer passed.
            public static let thermometer = Data(rawValue: 0x01)
            /// The hygrometer passed.
            public static let hygrometer = Data(rawValue: 0x02)
            /// The magnetometer passed.
            public static let magnetometer = Data(rawValue: 0x04)
            /// The accelerometer passed.
            public static let accelerometer = Data(rawValue: 0x08)
            /// The gyroscope passed.
            public static let gyroscope = Data(rawValue: 0x10)
            /// The barometer passed.
            public static let barometer = Data(rawValue: 0x20)
        }

        /// Whether the SensorTag is in test mode.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let declaration = switchOff("AA62", "Test Enabled")
        }
    }
}
