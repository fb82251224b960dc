public import Foundation
import GATT

// Names from BlueCap's latest sources (February 2020), in addition to those of its documents.

extension Characteristic {
    /// Whether the value can be read: the properties contain `read`.
    public var canRead: Bool { propertyEnabled(.read) }

    /// Whether the value can be written: the properties contain `write` or `writeWithoutResponse`.
    public var canWrite: Bool { propertyEnabled([.write, .writeWithoutResponse]) }

    /// The number of reads of this characteristic that have not completed, including the active one.
    public var pendingReadCount: Int { pendingCount { if case .read = $0 { true } else { false } } }

    /// The number of writes of this characteristic that have not completed, including the active one.
    public var pendingWriteCount: Int { pendingCount { if case .read = $0 { false } else { true } } }

    /// Returns a value as readable text, converted by the characteristic's profile.
    ///
    /// - Parameter data: The bytes of the value.
    /// - Returns: The texts of the value's parts; `nil` if there are no bytes, or if they are not a valid value of the
    ///   profile.
    public func stringValue(_ data: Data?) -> [String: String]? { data.flatMap { profile.stringValue($0) } }

    /// Returns the bytes of a value that was entered as text, converted by the characteristic's profile.
    ///
    /// - Parameter stringValue: The texts of the value's parts.
    /// - Returns: The bytes; `nil` if the texts are not a valid value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }

    private func pendingCount(_ isCounted: (AttributeState.Request) -> Bool) -> Int {
        session.readState(of: peripheral.key) { $0.attributes.pendingCount(on: id, where: isCounted) } ?? 0
    }
}
