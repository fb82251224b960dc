/// Where a broker listens: `mqtt://host:1883`, or `mqtts://host:8883` for TLS.
public struct BrokerAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name or a numeric address, an IPv6 address without brackets.
    public let host: String
    /// 1…65535; by default 1883, with TLS 8883.
    public let port: UInt16
    /// Whether the connection is by TLS.
    public let isSecure: Bool

    /// Parses an address.
    ///
    /// - Parameter text: `mqtt://` or `mqtts://`, a host, and optionally a colon and a port. An IPv6 address is in brackets.
    /// - Throws: An error that names the part that is wrong and what is allowed.
    public init(_ text: String) throws(BrokerAddressError) {
        func fail(_ what: String) -> BrokerAddressError {
            BrokerAddressError("broker address \"\(text)\": \(what); write mqtt://host:1883 or mqtts://host:8883")
        }
        let rest: Substring
        if text.hasPrefix("mqtt://") {
            (rest, isSecure) = (text.dropFirst("mqtt://".count), false)
        } else if text.hasPrefix("mqtts://") {
            (rest, isSecure) = (text.dropFirst("mqtts://".count), true)
        } else {
            throw fail("it begins with neither mqtt:// nor mqtts://")
        }
        if rest.contains("@") { throw fail("user names and passwords are options of their own") }
        let portText: Substring?
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { throw fail("the bracket is not closed") }
            host = String(rest[rest.index(after: rest.startIndex)..<end])
            let after = rest[rest.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { throw fail("\"\(after)\" follows the host") }
            portText = after.isEmpty ? nil : after.dropFirst()
        } else {
            let parts = rest.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            host = String(parts[0])
            portText = parts.count == 2 ? parts[1] : nil
        }
        let isHostCharacter = { (byte: UInt8) in byte > 0x20 && byte < 0x7F && !"/?#[]\\".utf8.contains(byte) }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy(isHostCharacter) else {
            throw fail("the host \"\(host)\" is no name and no address")
        }
        guard let portText else {
            port = isSecure ? 8883 : 1883
            return
        }
        guard portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(portText), number > 0 else {
            throw fail("the port \"\(portText)\" is not in 1…65535")
        }
        port = number
    }

    public var description: String {
        "\(isSecure ? "mqtts" : "mqtt")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}

/// What is wrong with the address of a broker, in one sentence.
public struct BrokerAddressError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
