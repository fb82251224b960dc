public import Foundation

extension Eddystone {
    /// A link, in up to seventeen bytes: frequent beginnings and endings take one byte each.
    ///
    /// *Eddystone Protocol Specification*, Eddystone-URL. Whoever follows a link that a stranger's beacon sends should ask
    /// their user first.
    public struct URL: Hashable, Sendable {
        /// The strength at no distance in dBm.
        public var powerAtZeroMetres: Int8
        /// The link, beginning with `http://` or `https://`.
        public let text: String

        /// `nil` where the link does not begin with `http://` or `https://` in lower case, has characters other than
        /// ASCII's printable ones, or takes more than seventeen bytes beside its beginning.
        /// - Parameters:
        ///   - text: The link.
        ///   - powerAtZeroMetres: dBm, from -100 to +20: what is measured at one metre, and 41 more.
        public init?(_ text: String, powerAtZeroMetres: Int8 = -18) {
            guard URL.encoded(text) != nil else { return nil }
            self.text = text
            self.powerAtZeroMetres = powerAtZeroMetres
        }

        /// Reads data of the service FEAA; `nil` where they are no URL frame.
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

        /// The service data, four to twenty bytes: the shortest that say this link.
        public var data: Data {
            // Every way to a value has checked that its text can be encoded.
            Data([0x10, UInt8(bitPattern: powerAtZeroMetres)] + (URL.encoded(text) ?? []))
        }

        private static let schemes = ["http://www.", "https://www.", "http://", "https://"]
        /// By their codes. Each that has a `/` comes before its shorter form, so the first that fits is the longest.
        private static let expansions = [
            ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/", ".com", ".org", ".edu", ".net", ".info",
            ".biz", ".gov",
        ]

        /// The scheme's byte and the rest's, or `nil` where a frame cannot say this.
        private static func encoded(_ text: String) -> [UInt8]? {
            // Something has to follow: "http://www." is "www." under the scheme http://.
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
