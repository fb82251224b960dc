package import BlueCapGATT

/// What was seen of a device's bond and BlueZ does not report.
package struct BondNote: Hashable, Sendable {
    /// That of the adapter; `nil` if it was not known.
    package var adapter: BluetoothAddress?
    package var address: BluetoothAddress
    package var addressType: BluetoothAddress.AddressType
    /// Whether this program has refused the pairing. A bond that has come of it nevertheless is removed, and counts as none
    /// until then.
    package var isRefused = false
    /// How many successive links have ended before they were encrypted.
    package var shortLinks = 0
    /// The device in the tree. A bond changes the address of a private device, and not its object.
    var object: ObjectKey?

    package init(
        adapter: BluetoothAddress?, address: BluetoothAddress, addressType: BluetoothAddress.AddressType,
        isRefused: Bool = false, shortLinks: Int = 0
    ) {
        (self.adapter, self.address, self.addressType) = (adapter, address, addressType)
        (self.isRefused, self.shortLinks) = (isRefused, shortLinks)
    }

    /// Whether there is nothing to note.
    package var isEmpty: Bool { !isRefused && shortLinks == 0 }

    /// Whether both are about the same bond.
    package func isAbout(_ other: BondNote) -> Bool {
        address == other.address && addressType == other.addressType
            && (adapter == other.adapter || adapter == nil || other.adapter == nil)
    }
}

/// Keeps the notes from one process to the next. Called on the loop: a call returns soon, and does not fail.
package protocol BondNoteStore: Sendable {
    func read() -> [BondNote]
    /// Replaces the note about `old`, if there is one, by `new`; an empty note is removed.
    func replace(_ old: BondNote, by new: BondNote)
}

extension ObjectTree {
    /// The note about a device; `nil` if there is none.
    package func note(about key: ObjectKey) -> BondNote? {
        guard !notes.isEmpty else { return nil }
        return notes.first { $0.object == key }
    }

    /// The devices whose bonds are removed, and that have a link or a bond now.
    var refusedDevices: [ObjectKey] {
        notes.compactMap { note in
            guard note.isRefused, let key = note.object, let slot = slot(of: key) else { return nil }
            let device = devices[slot].device
            return device.isConnected || device.hasKeys ? key : nil
        }
    }

    /// Adds notes of an earlier process.
    mutating func addNotes(_ added: [BondNote]) {
        notes += added.filter { note in !notes.contains { $0.isAbout(note) } }
        for slot in devices.indices where devices[slot].isLive { settleNote(ofDeviceAt: slot) }
    }

    /// Changes the note about a device. The change of a bond that counts as none from now on, or as one again, is reported.
    /// Does nothing if the device was never there.
    mutating func changeNote(
        about key: ObjectKey, into changes: inout [Change], _ body: (inout BondNote) -> Void
    ) {
        let slot = slot(of: key)
        guard let old = note(about: key) ?? slot.map({ newNote(ofDeviceAt: $0) }) else { return }
        var new = old
        body(&new)
        guard new != old else { return }
        changedNotes.append((old, new))
        notes.removeAll { $0.object == key }
        if !new.isEmpty { notes.append(new) }
        if let slot, old.isRefused != new.isRefused {
            settleNote(ofDeviceAt: slot)
            if devices[slot].device.hasKeys {
                changes.append(.deviceChanged(key, [.isPaired, .isBonded], isAdvertised: false))
            }
        }
    }

    /// Finds the note about a device that is new or has another address, or gives the note the new address.
    mutating func settleNote(ofDeviceAt slot: Int) {
        devices[slot].device.isRefused = false
        guard !notes.isEmpty else { return }
        let present = newNote(ofDeviceAt: slot)
        guard
            let index = notes.firstIndex(where: { $0.object == present.object })
                ?? notes.firstIndex(where: { $0.isAbout(present) })
        else { return }
        let old = notes[index]
        notes[index].object = present.object
        notes[index].adapter = present.adapter ?? old.adapter
        (notes[index].address, notes[index].addressType) = (present.address, present.addressType)
        if notes[index].address != old.address || notes[index].addressType != old.addressType {
            changedNotes.append((old, notes[index]))
        }
        devices[slot].device.isRefused = old.isRefused
    }

    private func newNote(ofDeviceAt slot: Int) -> BondNote {
        let device = devices[slot].device
        var note = BondNote(
            adapter: self[adapter: devices[slot].key.adapter]?.address, address: device.address,
            addressType: device.addressType)
        note.object = devices[slot].key
        return note
    }
}
