public import Foundation
import GATT

// BlueCap's names, as at its head, beside those of the documents.

extension Characteristic {
    /// Whether the value can be read: `read` is among the properties.
    public var canRead: Bool { propertyEnabled(.read) }

    /// Whether the value can be written: `write` or `writeWithoutResponse` is among the properties.
    public var canWrite: Bool { propertyEnabled([.write, .writeWithoutResponse]) }

    /// The number of reads of this characteristic that were asked for and are not finished, with the one under way.
    public var pendingReadCount: Int { pendingCount { if case .read = $0 { true } else { false } } }

    /// The number of writes of this characteristic that were asked for and are not finished, with the one under way.
    public var pendingWriteCount: Int { pendingCount { if case .read = $0 { false } else { true } } }

    /// Returns a value as people read it, by the characteristic's profile.
    ///
    /// - Parameter data: The bytes of the value.
    /// - Returns: The texts of the value's parts; `nil` for no bytes, and for bytes that are no value of the profile.
    public func stringValue(_ data: Data?) -> [String: String]? { data.flatMap { profile.stringValue($0) } }

    /// Returns the bytes of a value that people have typed, by the characteristic's profile.
    ///
    /// - Parameter stringValue: The texts of the value's parts.
    /// - Returns: The bytes; `nil` if the texts are no value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }

    private func pendingCount(_ isCounted: (AttributeState.Request) -> Bool) -> Int {
        session.readState(of: peripheral.key) { $0.attributes.pendingCount(on: id, where: isCounted) } ?? 0
    }
}
