public import Foundation

/// Google's beacon: frames of several kinds, as data of the service FEAA (*Eddystone Protocol Specification*).
///
/// A beacon usually sends its frames in turn. BlueZ keeps the newest of them, so an application receives them one after
/// another. Encrypted telemetry and ephemeral identities (EID), which require keys, are not supported.
///
/// The frames contain the signal strength at zero metres: 41 dB more than at one metre, by the specification.
public enum Eddystone {
    /// The service that has the frames as its data.
    public static let service = CBUUID(0xFEAA)
    /// The attenuation of the first metre in dB.
    static let lossAtOneMetre = 41

    /// The identity of a beacon: ten bytes of its owner and six of its own.
    public struct UID: Hashable, Sendable {
        /// The signal strength at zero metres in dBm, from -100 to +20: the measurement at one metre plus 41.
        public var powerAtZeroMetres: Int8
        /// Ten bytes that an owner's beacons share.
        public let namespace: Data
        /// Six bytes that distinguish an owner's beacons.
        public let instance: Data

        /// Returns `nil` unless `namespace` has ten bytes and `instance` six.
        public init?(namespace: Data, instance: Data, powerAtZeroMetres: Int8 = -18) {
            guard namespace.count == 10, instance.count == 6 else { return nil }
            self.powerAtZeroMetres = powerAtZeroMetres
            // A slice keeps its indices; the copy begins at 0.
            self.namespace = Data(namespace)
            self.instance = Data(instance)
        }

        /// Reads data of the service FEAA; `nil` if they do not begin with a UID frame. The last two of its twenty bytes are
        /// reserved, and many beacons omit them; bytes that follow are ignored.
        public init?(data: Data) {
            let bytes = [UInt8](data)
            guard bytes.count >= 18, bytes[0] == 0x00 else { return nil }
            self.init(
                namespace: Data(bytes[2..<12]), instance: Data(bytes[12..<18]),
                powerAtZeroMetres: Int8(bitPattern: bytes[1]))
        }

        /// The service data, twenty bytes.
        public var data: Data {
            .joined(Data([0x00, UInt8(bitPattern: powerAtZeroMetres)]), namespace, instance, Data(count: 2))
        }
    }

    /// Telemetry of a beacon, unencrypted.
    public struct TLM: Hashable, Sendable {
        /// The battery's voltage in mV; `nil` for a beacon that does not measure it.
        public var batteryMillivolts: UInt16?
        private var rawTemperature: Int16
        /// How many advertisements it has sent since it was switched on.
        public var advertisementCount: UInt32
        /// Tenths of a second since it was switched on.
        public var tenthsOfUptime: UInt32

        private static let noTemperature = Int16.min

        /// The temperature in degrees Celsius; `nil` for a beacon that does not measure it.
        ///
        /// The setter rounds to 1/256 degree, within -127.996 and +127.996; NaN counts as `nil`.
        public var temperature: Double? {
            get { rawTemperature == TLM.noTemperature ? nil : Double(rawTemperature) / 256 }
            set {
                guard let newValue, !newValue.isNaN else { return rawTemperature = TLM.noTemperature }
                rawTemperature = Int16(min(max((newValue * 256).rounded(), -32_767), 32_767))
            }
        }

        /// Seconds since it was switched on.
        public var uptime: TimeInterval { Double(tenthsOfUptime) / 10 }

        /// Creates telemetry of its fields.
        public init(
            batteryMillivolts: UInt16? = nil, temperature: Double? = nil, advertisementCount: UInt32,
            tenthsOfUptime: UInt32
        ) {
            // In the frame, 0 mV means "not measured".
            self.batteryMillivolts = batteryMillivolts == 0 ? nil : batteryMillivolts
            rawTemperature = TLM.noTemperature
            self.advertisementCount = advertisementCount
            self.tenthsOfUptime = tenthsOfUptime
            self.temperature = temperature
        }

        /// Reads data of the service FEAA; `nil` if they do not begin with an unencrypted TLM frame. Bytes that follow are
        /// ignored.
        public init?(data: Data) {
            let bytes = [UInt8](data)
            guard bytes.count >= 14, bytes[0] == 0x20, bytes[1] == 0x00 else { return nil }
            self.init(
                batteryMillivolts: UInt16(bigEndian: bytes[2..<4]),
                advertisementCount: UInt32(bigEndian: bytes[6..<10]),
                tenthsOfUptime: UInt32(bigEndian: bytes[10..<14]))
            rawTemperature = Int16(bigEndian: bytes[4..<6])
        }

        /// The service data, fourteen bytes.
        public var data: Data {
            Data(
                [0x20, 0x00] + (batteryMillivolts ?? 0).bigEndianBytes + rawTemperature.bigEndianBytes
                    + advertisementCount.bigEndianBytes + tenthsOfUptime.bigEndianBytes)
        }
    }
}

extension Eddystone {
    /// A link, in up to seventeen bytes: common prefixes and suffixes take one byte each (*Eddystone Protocol
    /// Specification*, Eddystone-URL).
    ///
    /// Ask the user before you open the link of an unknown beacon.
    public struct URL: Hashable, Sendable {
        /// The signal strength at zero metres in dBm, from -100 to +20: the measurement at one metre plus 41.
        public var powerAtZeroMetres: Int8
        /// The link, beginning with `http://` or `https://`.
        public let text: String

        /// Returns `nil` if the link does not begin with `http://` or `https://` in lower case, has characters other than
        /// ASCII's printable ones, or takes more than seventeen bytes after its scheme.
        public init?(_ text: String, powerAtZeroMetres: Int8 = -18) {
            guard URL.encoded(text) != nil else { return nil }
            self.text = text
            self.powerAtZeroMetres = powerAtZeroMetres
        }

        /// Reads data of the service FEAA; `nil` if they are no URL frame.
        public init?(data: Data) {
            let bytes = [UInt8](data)
            guard (4...20).contains(bytes.count), bytes[0] == 0x10, bytes[2] < URL.schemes.count else { return nil }
            var text = URL.schemes[Int(bytes[2])]
            for byte in bytes[3...] {
                switch byte {
                case 0x21...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
                case 0..<UInt8(URL.expansions.count): text += URL.expansions[Int(byte)]
                default: return nil
                }
            }
            self.init(text, powerAtZeroMetres: Int8(bitPattern: bytes[1]))
        }

        /// The service data, four to twenty bytes: the shortest encoding of this link.
        public var data: Data {
            // Each initializer checks that the text can be encoded.
            Data([0x10, UInt8(bitPattern: powerAtZeroMetres)] + (URL.encoded(text) ?? []))
        }

        private static let schemes = ["http://www.", "https://www.", "http://", "https://"]
        /// The suffixes by their codes. Those with a `/` precede their shorter forms, so the first match is the longest.
        private static let expansions = [
            ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/", ".com", ".org", ".edu", ".net", ".info",
            ".biz", ".gov",
        ]

        /// Returns the byte of the scheme and those of the rest, or `nil` if a frame cannot contain the link.
        private static func encoded(_ text: String) -> [UInt8]? {
            // The rest must not be empty: "http://www." is "www." with the scheme http://.
            guard let scheme = schemes.firstIndex(where: { text.hasPrefix($0) && text.utf8.count > $0.utf8.count })
            else {
                return nil
            }
            var rest = text.utf8.dropFirst(schemes[scheme].utf8.count)
            var bytes = [UInt8(scheme)]
            while let character = rest.first {
                if let code = expansions.firstIndex(where: { rest.starts(with: $0.utf8) }) {
                    bytes.append(UInt8(code))
                    rest = rest.dropFirst(expansions[code].utf8.count)
                } else if (0x21...0x7E).contains(character) {
                    bytes.append(character)
                    rest = rest.dropFirst()
                } else {
                    return nil
                }
                if bytes.count > 18 { return nil }
            }
            return bytes
        }
    }
}
