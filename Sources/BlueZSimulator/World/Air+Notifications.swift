import Foundation

/// Subscriptions, and what is sent because of them.
extension Air {
    mutating func configure(_ characteristic: UInt16, _ bits: UInt8, at address: VirtualAddress) {
        guard let peer = peers[address], let target = peer.table.targets[characteristic + 1]?.characteristic else {
            return
        }
        update(address) { $0.subscriptions[characteristic] = bits == 0 ? nil : (bits: bits, sent: 0) }
        if let descriptor = target.configurationHandle { peers[address]?.values[descriptor] = [bits, 0] }
        if let attribute = peer.attribute(target.valueHandle) {
            _ = ask(.subscription(attribute, isOn: bits != 0), peer)
        }
        let due = Due.notification(address, characteristic: characteristic)
        guard bits != 0, let source = target.notifications else { return deadlines.remove(due) }
        deadlines.set(due, to: now + source.interval)
    }

    mutating func notificationDue(_ address: VirtualAddress, _ characteristic: UInt16) {
        guard let peer = peers[address], case .linked(let link) = peer.state,
            let subscription = link.subscriptions[characteristic],
            let source = peer.table.targets[characteristic + 1]?.characteristic.notifications
        else { return }
        update(address) { $0.subscriptions[characteristic]?.sent += 1 }
        deadlines.set(.notification(address, characteristic: characteristic), to: now + source.interval)
        notify(characteristic, source.value(at: subscription.sent), at: address)
    }

    /// The value is this from now on; who subscribes is sent it. Gives whether somebody does.
    @discardableResult
    mutating func notify(_ characteristic: UInt16, _ bytes: [UInt8], at address: VirtualAddress) -> Bool {
        peers[address]?.values[characteristic + 1] = bytes
        guard case .linked(let link)? = peers[address]?.state, link.subscriptions[characteristic] != nil else {
            return false
        }
        let longest = (peers[address]?.peripheral.link.mtu ?? 23) - 3
        events.append(.value(link.key, characteristic: characteristic, Array(bytes.prefix(longest))))
        return true
    }

    mutating func setValue(_ bytes: [UInt8], ofHandle handle: UInt16, at address: VirtualAddress) {
        peers[address]?.values[handle] = bytes
    }
}
