public import Foundation

extension BluetoothSIG {
    /// A runner's steps (Running Speed and Cadence Service 1.0).
    public enum RunningSpeedAndCadenceService: ServiceConfigurable {
        public static let uuid = "1814"
        public static let name = "Running Speed and Cadence"
        public static let tag = BluetoothSIG.tag

        /// How fast the runner is now.
        public struct Measurement: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A53"
            public static let name = "RSC Measurement"
            public static let properties: CBCharacteristicProperties = [.notify]
            public static let stringValues: [String] = []

            /// The speed on the air, in units of 1/256 m/s.
            public let speedRaw: UInt16
            /// Steps of one leg per minute.
            public let cadence: UInt8
            /// The length of a stride in cm; `nil` when it is not in this measurement.
            public let strideLength: UInt16?
            /// The way so far in units of 0.1 m; `nil` when it is not in this measurement.
            public let totalDistanceRaw: UInt32?
            /// Whether the runner runs and does not walk. Means nothing where ``Feature/walkingOrRunning`` is not set.
            public let isRunning: Bool

            public init(
                speedRaw: UInt16, cadence: UInt8, strideLength: UInt16? = nil, totalDistanceRaw: UInt32? = nil,
                isRunning: Bool = false
            ) {
                self.speedRaw = speedRaw
                self.cadence = cadence
                self.strideLength = strideLength
                self.totalDistanceRaw = totalDistanceRaw
                self.isRunning = isRunning
            }

            /// The speed in m/s, 0 to 255.996.
            public var speed: Double { Double(speedRaw) / 256 }
            /// The way so far in metres; `nil` when it is not in this measurement.
            public var totalDistance: Double? { totalDistanceRaw.map { Double($0) / 10 } }

            public static func deserialize(_ data: Data) -> Measurement? {
                var reader = ValueReader(data)
                guard let flags: UInt8 = reader.next(), let speed: UInt16 = reader.next(),
                    let cadence: UInt8 = reader.next()
                else { return nil }
                var stride: UInt16?
                if flags & 0x01 != 0 {
                    stride = reader.next()
                    guard stride != nil else { return nil }
                }
                var distance: UInt32?
                if flags & 0x02 != 0 {
                    distance = reader.next()
                    guard distance != nil else { return nil }
                }
                guard reader.isAtEnd else { return nil }
                return Measurement(
                    speedRaw: speed, cadence: cadence, strideLength: stride, totalDistanceRaw: distance,
                    isRunning: flags & 0x04 != 0)
            }

            public func serialize() -> Data {
                let flags: UInt8 =
                    (strideLength == nil ? 0 : 0x01) | (totalDistanceRaw == nil ? 0 : 0x02) | (isRunning ? 0x04 : 0)
                return flags.serialize() + speedRaw.serialize() + cadence.serialize()
                    + (strideLength?.serialize() ?? Data()) + (totalDistanceRaw?.serialize() ?? Data())
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

        /// What the sensor can do.
        public struct Feature: OptionSet, RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
        {
            public static let uuid = "2A54"
            public static let name = "RSC Feature"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues = [
                "Stride Length", "Total Distance", "Walking or Running", "Calibration", "Multiple Sensor Locations",
            ]

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// It measures the length of a stride.
            public static let strideLength = Feature(rawValue: 0x01)
            /// It measures the way so far.
            public static let totalDistance = Feature(rawValue: 0x02)
            /// It tells walking from running.
            public static let walkingOrRunning = Feature(rawValue: 0x04)
            /// It can be calibrated.
            public static let calibration = Feature(rawValue: 0x08)
            /// It can be told where it is worn.
            public static let multipleSensorLocations = Feature(rawValue: 0x10)
        }
    }
}
