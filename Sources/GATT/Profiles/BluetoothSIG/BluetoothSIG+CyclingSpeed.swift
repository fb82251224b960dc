public import Foundation

extension BluetoothSIG {
    /// Wheel and crank of a bicycle (Cycling Speed and Cadence Service 1.0).
    public enum CyclingSpeedAndCadenceService: ServiceConfigurable {
        public static let uuid = "1816"
        public static let name = "Cycling Speed and Cadence"
        public static let tag = BluetoothSIG.tag

        /// Revolutions so far. Speed and cadence come from the differences of two measurements.
        public struct Measurement: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A5B"
            public static let name = "CSC Measurement"
            public static let properties: CBCharacteristicProperties = [.notify]
            public static let stringValues: [String] = []

            /// The wheel's revolutions since it was set to zero.
            public struct Wheel: Hashable, Sendable {
                /// Revolutions, which begin again at 0 after 2³² - 1.
                public let revolutions: UInt32
                /// When the last one ended in units of 1/1024 s, which begins again at 0 after 64 s.
                public let lastEvent: UInt16

                public init(revolutions: UInt32, lastEvent: UInt16) {
                    self.revolutions = revolutions
                    self.lastEvent = lastEvent
                }
            }

            /// The crank's revolutions.
            public struct Crank: Hashable, Sendable {
                /// Revolutions, which begin again at 0 after 65 535.
                public let revolutions: UInt16
                /// When the last one ended in units of 1/1024 s, which begins again at 0 after 64 s.
                public let lastEvent: UInt16

                public init(revolutions: UInt16, lastEvent: UInt16) {
                    self.revolutions = revolutions
                    self.lastEvent = lastEvent
                }
            }

            /// The wheel; `nil` when it is not in this measurement.
            public let wheel: Wheel?
            /// The crank; `nil` when it is not in this measurement.
            public let crank: Crank?

            public init(wheel: Wheel? = nil, crank: Crank? = nil) {
                self.wheel = wheel
                self.crank = crank
            }

            /// Turns of the wheel per second since an earlier measurement; `nil` when nothing can be said.
            ///
            /// Both counters may have begun again once between the two.
            public func wheelRevolutionsPerSecond(since earlier: Measurement) -> Double? {
                guard let wheel, let before = earlier.wheel, wheel.lastEvent != before.lastEvent else { return nil }
                return Double(wheel.revolutions &- before.revolutions) * 1024
                    / Double(wheel.lastEvent &- before.lastEvent)
            }

            /// Turns of the crank per minute since an earlier measurement; `nil` when nothing can be said.
            public func cadence(since earlier: Measurement) -> Double? {
                guard let crank, let before = earlier.crank, crank.lastEvent != before.lastEvent else { return nil }
                return Double(crank.revolutions &- before.revolutions) * 1024 * 60
                    / Double(crank.lastEvent &- before.lastEvent)
            }

            public static func deserialize(_ data: Data) -> Measurement? {
                var reader = ValueReader(data)
                guard let flags: UInt8 = reader.next() else { return nil }
                var wheel: Wheel?
                if flags & 0x01 != 0 {
                    guard let revolutions: UInt32 = reader.next(), let event: UInt16 = reader.next() else { return nil }
                    wheel = Wheel(revolutions: revolutions, lastEvent: event)
                }
                var crank: Crank?
                if flags & 0x02 != 0 {
                    guard let revolutions: UInt16 = reader.next(), let event: UInt16 = reader.next() else { return nil }
                    crank = Crank(revolutions: revolutions, lastEvent: event)
                }
                return reader.isAtEnd ? Measurement(wheel: wheel, crank: crank) : nil
            }

            public func serialize() -> Data {
                var data = Data([(wheel == nil ? 0 : 0x01) | (crank == nil ? 0 : 0x02)])
                if let wheel { data += wheel.revolutions.serialize() + wheel.lastEvent.serialize() }
                if let crank { data += crank.revolutions.serialize() + crank.lastEvent.serialize() }
                return data
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

        /// What the sensor can do.
        public struct Feature: OptionSet, RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
        {
            public static let uuid = "2A5C"
            public static let name = "CSC Feature"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues = ["Wheel Revolutions", "Crank Revolutions", "Multiple Sensor Locations"]

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// It counts the wheel's revolutions.
            public static let wheelRevolutions = Feature(rawValue: 0x01)
            /// It counts the crank's revolutions.
            public static let crankRevolutions = Feature(rawValue: 0x02)
            /// It can be told where it is mounted.
            public static let multipleSensorLocations = Feature(rawValue: 0x04)
        }
    }

    /// Where a sensor of speed or cadence is mounted.
    public enum SensorLocation: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable
    {
        case other = 0
        case topOfShoe = 1
        case inShoe = 2
        case hip = 3
        case frontWheel = 4
        case leftCrank = 5
        case rightCrank = 6
        case leftPedal = 7
        case rightPedal = 8
        case frontHub = 9
        case rearDropout = 10
        case chainstay = 11
        case rearWheel = 12
        case rearHub = 13
        case chest = 14
        case spider = 15
        case chainRing = 16
        public static let uuid = "2A5D"
        public static let name = "Sensor Location"
        public static let properties: CBCharacteristicProperties = [.read]
        public static let stringValues = [
            "Other", "Top of Shoe", "In Shoe", "Hip", "Front Wheel", "Left Crank", "Right Crank", "Left Pedal",
            "Right Pedal", "Front Hub", "Rear Dropout", "Chainstay", "Rear Wheel", "Rear Hub", "Chest", "Spider",
            "Chain Ring",
        ]
    }
}
