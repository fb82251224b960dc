import Foundation

/// How links come up and end.
extension Air {
    mutating func connect(_ key: DeviceKey) {
        let timeout = peers[key.address]?.peripheral.link.connectTimeout ?? VirtualLink().connectTimeout
        deadlines.set(.timeout(key.address), to: now + timeout)
        guard let peer = peers[key.address] else {
            strangers[key.address] = key
            return
        }
        // Linked to another adapter it does not advertise, and cannot be reached until that ends.
        guard case .free = peer.state else {
            strangers[key.address] = key
            return
        }
        peers[key.address]?.state = .wanted(by: key, since: now)
        if let faults = peers[key.address]?.randomFaults?.next() { peers[key.address]?.faults = faults }
        meet(key.address)
    }

    /// Whoever is wanted may be there now, or come in time.
    mutating func meet(_ address: VirtualAddress) {
        guard let peer = peers[address], case .wanted(let key, _) = peer.state,
            let start = peer.reachable(atOrAfter: now)
        else { return }
        if peer.faults.refusals == 0, start <= now, ask(.connection(key), peer) { return }
        schedule(.connection(address), after: start - now + peer.peripheral.link.connectLatency)
    }

    mutating func connectionDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .wanted(let key, _) = peer.state else { return }
        guard peer.faults.refusals == 0 else {
            peers[address]?.faults.refusals -= 1
            return giveUp(address)
        }
        deadlines.remove(.timeout(address))
        peers[address]?.state = .linked(PeerLink(key: key))
        events.append(.linkUp(key, peer.peripheral.link))
        _ = ask(.linkChanged(isUp: true), peer)
        if let end = peer.peripheral.disappearsAfter { deadlines.set(.drop(address), to: end) }
        guard peer.faults.drops > 0 else { return }
        peers[address]?.faults.drops -= 1
        // Not in this turn, even with no delay: the host must have seen the link.
        deadlines.set(.drop(address), to: now + peer.faults.dropDelay)
    }

    mutating func giveUp(_ address: VirtualAddress) {
        deadlines.remove(.timeout(address))
        deadlines.remove(.connection(address))
        if case .wanted(let key, _)? = peers[address]?.state {
            peers[address]?.state = .free
            events.append(.linkFailed(key))
        } else if let key = strangers.removeValue(forKey: address) {
            events.append(.linkFailed(key))
        }
    }

    mutating func cancel(_ key: DeviceKey) {
        if strangers[key.address] == key { strangers[key.address] = nil }
        if case .wanted(let by, _)? = peers[key.address]?.state, by == key { peers[key.address]?.state = .free }
        guard link(of: key) == nil else { return drop(key.address, .local) }
        deadlines.remove(.timeout(key.address))
        deadlines.remove(.connection(key.address))
    }

    /// The link ends.
    mutating func drop(_ address: VirtualAddress, _ reason: LinkEndCause) {
        guard let peer = peers[address], case .linked(let link) = peer.state else { return }
        peers[address]?.state = .free
        for due in [Due.drop(address), .discovery(address), .response(address)] { deadlines.remove(due) }
        for characteristic in link.subscriptions.keys.sorted() {
            deadlines.remove(.notification(address, characteristic: characteristic))
            if let attribute = peer.attribute(characteristic + 1) {
                _ = ask(.subscription(attribute, isOn: false), peer)
            }
        }
        events.append(.linkDown(link.key, reason))
        _ = ask(.linkChanged(isUp: false), peer)
        guard let key = strangers.removeValue(forKey: address) else { return }
        peers[address]?.state = .wanted(by: key, since: now)
        meet(address)
    }

    mutating func drop(_ address: VirtualAddress, _ reason: LinkEndCause, now: TimeInterval) {
        self.now = now
        drop(address, reason)
        for key in hostLinks.keys.sorted() where key.address == address || hostLinks[key]?.server.address == address {
            dropHost(key, reason, server: reason)
        }
        for key in visitors.keys.sorted() where key.address == address && visitors[key]?.isUp == true {
            leave(key, reason)
        }
    }

    /// Every link and every attempt ends, as when nobody is there any more at the other end.
    mutating func silence() {
        silenceHosts()
        for address in strangers.keys.sorted() { giveUp(address) }
        for address in peers.keys.sorted() {
            switch peers[address]?.state {
            case .linked: drop(address, .local)
            case .wanted: giveUp(address)
            case .free, nil: break
            }
        }
    }

    mutating func discoveryDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .linked(let link) = peer.state else { return }
        let name = peer.table.characteristic(.uuid(AttributeTable.deviceName)).flatMap { peer.values[$0.valueHandle] }
        let identity = AirIdentity(name: name.flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) })
        events.append(.discovered(link.key, peer.faults.isUnresolved ? [] : peer.table.services, identity))
    }
}
