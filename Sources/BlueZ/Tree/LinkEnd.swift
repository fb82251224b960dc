import DBus

/// Why a link ended, as the signal `Device1.Disconnected` says: from 5.83 on, between `ServicesResolved` false and `Connected`
/// false, when the last bearer of the device is down (`device_disconnected` in `src/device.c`).
package struct LinkEnd: Hashable, Sendable {
    /// The D-Bus name, such as `org.bluez.Reason.Remote`.
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

extension ObjectTree {
    /// Why the last link of a device ended; `nil` if the daemon has not said so, and while there is a link.
    package func linkEnd(of handle: DeviceHandle) -> LinkEnd? {
        guard !linkEnds.isEmpty else { return nil }
        return key(of: handle).flatMap { linkEnds[$0] }
    }

    /// `s s`: a reason and its text.
    mutating func linkEnded(_ signal: Message) {
        guard let key = signal.withPath({ key(ofPath: $0) }) ?? nil, slot(of: key) != nil else { return }
        var reader = signal.reader
        guard let name = reader.string() else { return }
        linkEnds[key] = LinkEnd(name: name, message: reader.string() ?? "")
    }

    /// Of an earlier link, since there is another.
    mutating func forgetOldLinkEnd(at slot: Int) {
        guard !linkEnds.isEmpty else { return }
        let device = devices[slot].device
        if device.isConnected || device.areServicesResolved { linkEnds[devices[slot].key] = nil }
    }
}
