public import Foundation

extension BluetoothSIG {
    /// Wheel and crank of a bicycle (Cycling Speed and Cadence Service 1.0).
    public enum CyclingSpeedAndCadenceService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1816", "Cycling Speed and Cadence", tag: BluetoothSIG.tag,
            [Measurement.profile, Feature.profile, SensorLocation.profile, speedAndCadenceControlPoint])

        /// Revolutions so far. Speed and cadence come from the differences of two measurements.
        public struct Measurement: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A5B", "CSC Measurement", [.notify])

            /// The wheel's revolutions since it was set to zero.
            public struct Wheel: Hashable, Sendable {
                /// Revolutions, which begin again at 0 after 2³² - 1.
                public let revolutions: UInt32
                /// The time at which the last one ended in units of 1/1024 s, which begins again at 0 after 64 s.
                public let lastEvent: UInt16

                /// Creates the data of a wheel.
                public init(revolutions: UInt32, lastEvent: UInt16) {
                    self.revolutions = revolutions
                    self.lastEvent = lastEvent
                }
            }

            /// The crank's revolutions.
            public struct Crank: Hashable, Sendable {
                /// Revolutions, which begin again at 0 after 65 535.
                public let revolutions: UInt16
                /// The time at which the last one ended in units of 1/1024 s, which begins again at 0 after 64 s.
                public let lastEvent: UInt16

                /// Creates the data of a crank.
                public init(revolutions: UInt16, lastEvent: UInt16) {
                    self.revolutions = revolutions
                    self.lastEvent = lastEvent
                }
            }

            /// The wheel; `nil` if it is not in this measurement.
            public let wheel: Wheel?
            /// The crank; `nil` if it is not in this measurement.
            public let crank: Crank?

            /// Creates a measurement of its fields.
            public init(wheel: Wheel? = nil, crank: Crank? = nil) {
                self.wheel = wheel
                self.crank = crank
            }

            /// Turns of the wheel per second since an earlier measurement; `nil` if one of them has no wheel, or if no
            /// turn has ended between them.
            ///
            /// Both counters may have begun again once between the two.
            public func wheelRevolutionsPerSecond(since earlier: Measurement) -> Double? {
                guard let wheel, let before = earlier.wheel, wheel.lastEvent != before.lastEvent else { return nil }
                return Double(wheel.revolutions &- before.revolutions) * 1024
                    / Double(wheel.lastEvent &- before.lastEvent)
            }

            /// Turns of the crank per minute since an earlier measurement; `nil` if one of them has no crank, or if no
            /// turn has ended between them.
            public func cadence(since earlier: Measurement) -> Double? {
                guard let crank, let before = earlier.crank, crank.lastEvent != before.lastEvent else { return nil }
                return Double(crank.revolutions &- before.revolutions) * 1024 * 60
                    / Double(crank.lastEvent &- before.lastEvent)
            }

            public static func deserialize(_ data: Data) -> Measurement? {
                ValueReader.read(data) { reader in
                    let flags: UInt8 = try reader.next()
                    let wheel =
                        (flags & 0x01) == 0
                        ? nil : Wheel(revolutions: try reader.next(), lastEvent: try reader.next())
                    let crank =
                        (flags & 0x02) == 0
                        ? nil : Crank(revolutions: try reader.next(), lastEvent: try reader.next())
                    return Measurement(wheel: wheel, crank: crank)
                }
            }

            public func serialize() -> Data {
                .joined(
                    Data([(wheel == nil ? 0 : 0x01) | (crank == nil ? 0 : 0x02)]), wheel?.revolutions.serialize(),
                    wheel?.lastEvent.serialize(), crank?.revolutions.serialize(), crank?.lastEvent.serialize())
            }

            /// `"Wheel Revolutions"`, `"Wheel Event"`, `"Crank Revolutions"`, `"Crank Event"`; events in 1/1024 s.
            public var stringValue: [String: String] {
                var texts: [String: String] = [:]
                texts["Wheel Revolutions"] = wheel.map { "\($0.revolutions)" }
                texts["Wheel Event"] = wheel.map { "\($0.lastEvent)" }
                texts["Crank Revolutions"] = crank.map { "\($0.revolutions)" }
                texts["Crank Event"] = crank.map { "\($0.lastEvent)" }
                return texts
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let wheelCount: UInt32? = fields.optional("Wheel Revolutions", { $0.number($1) }),
                    let wheelEvent: UInt16? = fields.optional("Wheel Event", { $0.number($1) }),
                    let crankCount: UInt16? = fields.optional("Crank Revolutions", { $0.number($1) }),
                    let crankEvent: UInt16? = fields.optional("Crank Event", { $0.number($1) }),
                    (wheelCount == nil) == (wheelEvent == nil), (crankCount == nil) == (crankEvent == nil)
                else { return nil }
                wheel = wheelCount.flatMap { count in wheelEvent.map { Wheel(revolutions: count, lastEvent: $0) } }
                crank = crankCount.flatMap { count in crankEvent.map { Crank(revolutions: count, lastEvent: $0) } }
            }
        }

        /// The features of the sensor.
        public struct Feature: OptionSet, RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                "2A5C", "CSC Feature", [.read],
                texts: ["Wheel Revolutions", "Crank Revolutions", "Multiple Sensor Locations"])

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// It counts the wheel's revolutions.
            public static let wheelRevolutions = Feature(rawValue: 0x01)
            /// It counts the crank's revolutions.
            public static let crankRevolutions = Feature(rawValue: 0x02)
            /// The location of the sensor can be set.
            public static let multipleSensorLocations = Feature(rawValue: 0x04)
        }
    }

    /// A runner's steps (Running Speed and Cadence Service 1.0).
    public enum RunningSpeedAndCadenceService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1814", "Running Speed and Cadence", tag: BluetoothSIG.tag,
            [Measurement.profile, Feature.profile, SensorLocation.profile, speedAndCadenceControlPoint])

        /// The runner's present speed and cadence.
        public struct Measurement: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A53", "RSC Measurement", [.notify])

            /// The speed as transmitted, in units of 1/256 m/s.
            public let speedRaw: UInt16
            /// Steps of one leg per minute.
            public let cadence: UInt8
            /// The length of a stride in cm; `nil` if it is not in this measurement.
            public let strideLength: UInt16?
            /// The total distance in units of 0.1 m; `nil` if it is not in this measurement.
            public let totalDistanceRaw: UInt32?
            /// Whether the runner runs and does not walk. Valid only if ``Feature/walkingOrRunning`` is set.
            public let isRunning: Bool

            /// Creates a measurement of its fields.
            public init(
                speedRaw: UInt16, cadence: UInt8, strideLength: UInt16? = nil, totalDistanceRaw: UInt32? = nil,
                isRunning: Bool = false
            ) {
                (self.speedRaw, self.cadence, self.isRunning) = (speedRaw, cadence, isRunning)
                (self.strideLength, self.totalDistanceRaw) = (strideLength, totalDistanceRaw)
            }

            /// The speed in m/s, 0 to 255.996.
            public var speed: Double { Double(speedRaw) / 256 }
            /// The total distance in metres; `nil` if it is not in this measurement.
            public var totalDistance: Double? { totalDistanceRaw.map { Double($0) / 10 } }

            public static func deserialize(_ data: Data) -> Measurement? {
                ValueReader.read(data) { reader in
                    let flags: UInt8 = try reader.next()
                    return Measurement(
                        speedRaw: try reader.next(), cadence: try reader.next(),
                        strideLength: try reader.next(if: flags & 0x01 != 0),
                        totalDistanceRaw: try reader.next(if: flags & 0x02 != 0), isRunning: flags & 0x04 != 0)
                }
            }

            public func serialize() -> Data {
                let flags: UInt8 =
                    (strideLength == nil ? 0 : 0x01) | (totalDistanceRaw == nil ? 0 : 0x02) | (isRunning ? 0x04 : 0)
                return .joined(
                    flags.serialize(), speedRaw.serialize(), cadence.serialize(), strideLength?.serialize(),
                    totalDistanceRaw?.serialize())
            }

            /// `"Speed"` in m/s, `"Cadence"` in steps per minute, `"Running"`, and, where known, `"Stride Length"` in cm
            /// and `"Total Distance"` in m.
            public var stringValue: [String: String] {
                var texts = [
                    "Speed": String(format: "%.3f m/s", speed), "Cadence": "\(cadence) /min",
                    "Running": isRunning ? "Yes" : "No",
                ]
                texts["Stride Length"] = strideLength.map { "\($0) cm" }
                texts["Total Distance"] = totalDistance.map { String(format: "%.1f m", $0) }
                return texts
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let speed: UInt16 = fields.scaled("Speed", unit: "m/s", stepsPerUnit: 256),
                    let cadence: UInt8 = fields.number("Cadence", unit: "/min"),
                    let isRunning = fields.flag("Running"),
                    let stride: UInt16? = fields.optional("Stride Length", { $0.number($1, unit: "cm") }),
                    let distance: UInt32? = fields.optional(
                        "Total Distance", { $0.scaled($1, unit: "m", stepsPerUnit: 10) })
                else { return nil }
                self.init(
                    speedRaw: speed, cadence: cadence, strideLength: stride, totalDistanceRaw: distance,
                    isRunning: isRunning)
            }
        }

        /// The features of the sensor.
        public struct Feature: OptionSet, RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                "2A54", "RSC Feature", [.read],
                texts: [
                    "Stride Length", "Total Distance", "Walking or Running", "Calibration",
                    "Multiple Sensor Locations",
                ])

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// It measures the length of a stride.
            public static let strideLength = Feature(rawValue: 0x01)
            /// It measures the total distance.
            public static let totalDistance = Feature(rawValue: 0x02)
            /// It distinguishes walking from running.
            public static let walkingOrRunning = Feature(rawValue: 0x04)
            /// It can be calibrated.
            public static let calibration = Feature(rawValue: 0x08)
            /// The location of the sensor can be set.
            public static let multipleSensorLocations = Feature(rawValue: 0x10)
        }
    }

    /// Requests and their responses differ by procedure; the string form is the bytes.
    private static let speedAndCadenceControlPoint = CharacteristicProfile(
        uuid: "2A55", name: "SC Control Point", permissions: [.writeable], properties: [.write, .indicate])

    /// The place at which a sensor of speed or cadence is mounted.
    public enum SensorLocation: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
        /// Another place.
        case other = 0
        /// The top of a shoe.
        case topOfShoe = 1
        /// In a shoe.
        case inShoe = 2
        /// The hip.
        case hip = 3
        /// The front wheel.
        case frontWheel = 4
        /// The left crank.
        case leftCrank = 5
        /// The right crank.
        case rightCrank = 6
        /// The left pedal.
        case leftPedal = 7
        /// The right pedal.
        case rightPedal = 8
        /// The front hub.
        case frontHub = 9
        /// The rear dropout, the slot of the frame that holds the rear axle.
        case rearDropout = 10
        /// The chainstay, the tube between the bottom bracket and the rear axle.
        case chainstay = 11
        /// The rear wheel.
        case rearWheel = 12
        /// The rear hub.
        case rearHub = 13
        /// The chest.
        case chest = 14
        /// The spider, the part that connects the crank with the chain rings.
        case spider = 15
        /// The chain ring.
        case chainRing = 16
        public static let declaration = CharacteristicDeclaration(
            "2A5D", "Sensor Location", [.read],
            texts: [
                "Other", "Top of Shoe", "In Shoe", "Hip", "Front Wheel", "Left Crank", "Right Crank", "Left Pedal",
                "Right Pedal", "Front Hub", "Rear Dropout", "Chainstay", "Rear Wheel", "Rear Hub", "Chest", "Spider",
                "Chain Ring",
            ])
    }
}
