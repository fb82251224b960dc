/// A device's place in the tree, valid until the device is removed.
///
/// A small number, so that users can keep what they know of devices in an array beside the tree's. Places are used again;
/// the generation tells the old tenant from the new.
package struct DeviceHandle: Hashable, Sendable {
    package let slot: UInt32
    package let generation: UInt32
}

/// Something in the tree became different.
package enum Change: Hashable, Sendable {
    case adapterAdded(ObjectKey)
    /// These properties were set or have gone.
    case adapterChanged(ObjectKey, Adapter1.Fields)
    case adapterRemoved(ObjectKey)
    /// `isHeard`: the device has an RSSI, so it advertises at this moment; otherwise BlueZ merely remembers it.
    case deviceAdded(DeviceHandle, isHeard: Bool)
    /// These properties were set or have gone. `isHeard`: the signal stems from an advertisement.
    case deviceChanged(DeviceHandle, Device1.Fields, isHeard: Bool)
    /// Its values can be read for the last time. Its attributes were reported as removed before.
    case deviceRemoved(DeviceHandle)
    /// The device and what contains the attribute are reported before it.
    case attributeAdded(AttributeKey, AttributeKind)
    /// These properties were set or have gone. Each value that arrives is one such change, never two in one.
    case attributeChanged(AttributeKey, AttributeFields)
    /// It cannot be read any more.
    case attributeRemoved(AttributeKey, AttributeKind)
}

/// The changes that a message brings: nearly always one, and then there is no array.
package struct ChangeBuffer {
    private var first: Change?
    private var others: [Change] = []

    package init() {}

    package var isEmpty: Bool { first == nil }

    package var changes: [Change] { first.map { [$0] + others } ?? [] }

    package mutating func append(_ change: Change) {
        if first == nil { first = change } else { others.append(change) }
    }

    /// Calls `body` with each change, in their order.
    func forEach(_ body: (Change) -> Void) {
        guard let first else { return }
        body(first)
        for change in others { body(change) }
    }

    package mutating func removeAll() { self = ChangeBuffer() }
}
