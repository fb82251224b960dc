/// Sizes of the Attribute Protocol, in bytes.
package enum AttributeProtocol {
    /// The longest value of an attribute (Core Specification, Vol 3, Part F, 3.2.9).
    package static let longestValue = 512
    /// The smallest packet, which every link has (Vol 3, Part G, 5.2.1).
    package static let smallestPacket = 23

    /// Returns how much of a value fits into one packet: what its header of three bytes leaves, and no more than the longest
    /// value. A packet of 517 bytes, as Android and BlueZ have it, would have space for 514.
    ///
    /// - Parameter mtu: The size of a packet; `nil` if it is not known.
    package static func longestValue(inPacketOf mtu: Int?) -> Int {
        min(max(mtu ?? smallestPacket, smallestPacket) - 3, longestValue)
    }
}
