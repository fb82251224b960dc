import Foundation

/// The services of gnos.us, which BlueCap's examples use.
public enum Gnosus {
    static let tag = "gnos.us"

    /// The profiles of all services with their characteristics, for a `ProfileManager`.
    public static var serviceProfiles: [ServiceProfile] { [HelloWorldService.profile, LocationService.profile] }

    /// A greeting that changes from time to time.
    public enum HelloWorldService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "2F0A0000-69AA-F316-3E78-4194989A6C1A", "Hello World", tag: Gnosus.tag,
            [Greeting.profile, UpdatePeriod.profile])

        /// The greeting; text.
        public enum Greeting: DeclaredCharacteristic {
            public static let declaration = CharacteristicDeclaration(
                "2F0A0001-69AA-F316-3E78-4194989A6C1A", "Hello World Greeting", [.read, .notify],
                initialValue: SerDe.serialize("Hello"))
        }

        /// The time between two greetings in milliseconds; five seconds at first.
        public struct UpdatePeriod: RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                "2F0A0002-69AA-F316-3E78-4194989A6C1A", "Update Period", [.read, .write],
                initialValue: SerDe.serialize(UInt16(5000)))

            /// The time in milliseconds.
            public let period: UInt16
            public var rawValue: UInt16 { period }
            public init?(rawValue: UInt16) { period = rawValue }

            /// The time in milliseconds under the characteristic's name.
            public var stringValue: [String: String] { [UpdatePeriod.name: "\(period)"] }

            public init?(stringValue: [String: String]) {
                guard let period: UInt16 = TextFields(stringValue).number(UpdatePeriod.name) else { return nil }
                self.period = period
            }
        }
    }

    /// A place on the earth. Its UUID is that of ``HelloWorldService/Greeting``, as in BlueCap.
    public enum LocationService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "2F0A0001-69AA-F316-3E78-4194989A6C1A", "Location", tag: Gnosus.tag,
            [LatitudeAndLongitude.profile])

        /// Latitude and longitude, in steps of a hundredth of a degree.
        ///
        /// BlueCap divides by 100 where it should multiply, so that its values are steps of a hundred degrees. Here the
        /// steps are those that the name of the type promises: a value from a program of BlueCap reads as 0 or as ±0.01.
        public struct LatitudeAndLongitude: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic,
            Hashable
        {
            public static let declaration = CharacteristicDeclaration(
                "2F0A0017-69AA-F316-3E78-4194989A6C1A", "Latitude and Longitude", [.read, .write],
                initialValue: SerDe.serialize([Int16]([3775, -12241])))

            private static let stepsPerDegree = 100.0
            private let latitudeRaw: Int16
            private let longitudeRaw: Int16

            /// The latitude in degrees, north of the equator.
            public var latitude: Double { Double(latitudeRaw) / Self.stepsPerDegree }
            /// The longitude in degrees, east of Greenwich.
            public var longitude: Double { Double(longitudeRaw) / Self.stepsPerDegree }

            /// Creates a place from degrees, rounded to hundredths; `nil` unless the latitude is from -90 to 90 and the longitude
            /// from -180 to 180.
            public init?(latitude: Double, longitude: Double) {
                guard abs(latitude) <= 90, abs(longitude) <= 180,
                    let latitudeRaw = Int16(nearest: latitude * Self.stepsPerDegree),
                    let longitudeRaw = Int16(nearest: longitude * Self.stepsPerDegree)
                else { return nil }
                (self.latitudeRaw, self.longitudeRaw) = (latitudeRaw, longitudeRaw)
            }

            /// Two numbers.
            public static let size = 2
            public var rawValue: [Int16] { [latitudeRaw, longitudeRaw] }
            public init?(rawValue: [Int16]) {
                guard rawValue.count == 2 else { return nil }
                (latitudeRaw, longitudeRaw) = (rawValue[0], rawValue[1])
            }

            /// `"latitude"` and `"longitude"` in degrees, `"latitudeRaw"` and `"longitudeRaw"` as transmitted.
            public var stringValue: [String: String] {
                [
                    "latitude": String(format: "%.2f", latitude), "longitude": String(format: "%.2f", longitude),
                    "latitudeRaw": "\(latitudeRaw)", "longitudeRaw": "\(longitudeRaw)",
                ]
            }

            /// Creates the value from the transmitted numbers; if neither of them is given, from the degrees.
            public init?(stringValue: [String: String]) {
                let raw = ["latitudeRaw", "longitudeRaw"].compactMap { stringValue[$0] }
                if raw.isEmpty {
                    let degrees = ["latitude", "longitude"].compactMap { stringValue[$0].flatMap { Double($0) } }
                    guard degrees.count == 2 else { return nil }
                    self.init(latitude: degrees[0], longitude: degrees[1])
                } else {
                    self.init(rawValue: raw.compactMap { TextFields.number($0) })
                }
            }
        }
    }
}
