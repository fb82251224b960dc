public import Foundation

extension TISensorTag {
    /// The accelerometer, a Kionix KXTJ9.
    public enum AccelerometerService: ServiceConfigurable {
        public static let uuid = "F000AA10-0451-4000-B000-000000000000"
        public static let name = "TI Accelerometer"
        public static let tag = TISensorTag.tag
        /// The UUID as the earliest of the documents spells it.
        public static var UUID: String { uuid }

        /// The acceleration in g (9.81 m/s²), from -2 to 2 in steps of 1/64.
        public struct Data: SensorTagAxes {
            public static let uuid = "F000AA11-0451-4000-B000-000000000000"
            public static let name = "Accelerometer Data"
            public static let stepsPerUnit = 64.0
            public static let initialValue: Foundation.Data? = Data(xRaw: -64, yRaw: -32, zRaw: -96).serialize()

            /// A signed number for each axis.
            public typealias RawType = Int8
            public let xRaw: Int8
            public let yRaw: Int8
            public let zRaw: Int8

            public init(xRaw: Int8, yRaw: Int8, zRaw: Int8) {
                self.xRaw = xRaw
                self.yRaw = yRaw
                self.zRaw = zRaw
            }
        }

        /// Whether the accelerometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let uuid = "F000AA12-0451-4000-B000-000000000000"
            public static let name = "Accelerometer Enabled"
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
        }

        /// The time between two measurements in units of 10 ms; one second at first.
        public struct UpdatePeriod: SensorTagPeriod {
            public static let uuid = "F000AA13-0451-4000-B000-000000000000"
            public static let name = "Accelerometer Update Period"
            public static let initialValue: Foundation.Data? = UInt8(100).serialize()

            public let periodRaw: UInt8
            public init?(rawValue: UInt8) { periodRaw = rawValue }
        }
    }

    /// The magnetometer, a Freescale MAG3110.
    public enum MagnetometerService: ServiceConfigurable {
        public static let uuid = "F000AA30-0451-4000-B000-000000000000"
        public static let name = "TI Magnetometer"
        public static let tag = TISensorTag.tag

        /// The magnetic flux density in µT, from -1000 to 1000 in steps of 2000/65536.
        public struct Data: SensorTagAxes {
            public static let uuid = "F000AA31-0451-4000-B000-000000000000"
            public static let name = "Magnetometer Data"
            public static let stepsPerUnit = 65536.0 / 2000
            public static let initialValue: Foundation.Data? = Data(xRaw: -2183, yRaw: 1916, zRaw: 1255).serialize()

            /// A signed number for each axis.
            public typealias RawType = Int16
            public let xRaw: Int16
            public let yRaw: Int16
            public let zRaw: Int16

            public init(xRaw: Int16, yRaw: Int16, zRaw: Int16) {
                self.xRaw = xRaw
                self.yRaw = yRaw
                self.zRaw = zRaw
            }
        }

        /// Whether the magnetometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let uuid = "F000AA32-0451-4000-B000-000000000000"
            public static let name = "Magnetometer Enabled"
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
        }

        /// The time between two measurements in units of 10 ms; two seconds at first.
        public struct UpdatePeriod: SensorTagPeriod {
            public static let uuid = "F000AA33-0451-4000-B000-000000000000"
            public static let name = "Magnetometer Update Period"
            public static let initialValue: Foundation.Data? = UInt8(200).serialize()

            public let periodRaw: UInt8
            public init?(rawValue: UInt8) { periodRaw = rawValue }
        }
    }

    /// The gyroscope, an InvenSense IMU-3000.
    public enum GyroscopeService: ServiceConfigurable {
        public static let uuid = "F000AA50-0451-4000-B000-000000000000"
        public static let name = "TI Gyroscope"
        public static let tag = TISensorTag.tag

        /// The rate of rotation in degrees per second, from -250 to 250 in steps of 500/65536.
        public struct Data: SensorTagAxes {
            public static let uuid = "F000AA51-0451-4000-B000-000000000000"
            public static let name = "Gyroscope Data"
            public static let stepsPerUnit = 65536.0 / 500
            public static let initialValue: Foundation.Data? = Data(xRaw: -24, yRaw: -219, zRaw: -23).serialize()

            /// A signed number for each axis.
            public typealias RawType = Int16
            public let xRaw: Int16
            public let yRaw: Int16
            public let zRaw: Int16

            public init(xRaw: Int16, yRaw: Int16, zRaw: Int16) {
                self.xRaw = xRaw
                self.yRaw = yRaw
                self.zRaw = zRaw
            }
        }

        /// About which axes the gyroscope measures: one bit each, x the lowest.
        public enum Enabled: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
            case no = 0
            case xAxis = 1
            case yAxis = 2
            case xyAxis = 3
            case zAxis = 4
            case xzAxis = 5
            case yzAxis = 6
            case xyzAxis = 7
            public static let uuid = "F000AA52-0451-4000-B000-000000000000"
            public static let name = "Gyroscope Enabled"
            public static let properties: CBCharacteristicProperties = [.read, .write]
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
            public static let stringValues = [
                "No", "XAxis", "YAxis", "XYAxis", "ZAxis", "XZAxis", "YZAxis", "XYZAxis",
            ]
        }
    }
}
