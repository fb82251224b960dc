import Foundation

/// Requests over a link, one at a time, and what they leave behind.
extension Air {
    mutating func receive(_ request: AttributeRequest, over key: DeviceKey) {
        guard link(of: key) != nil else { return }
        if case .write(_, _, _, .command) = request.kind { return begin(request, key) }
        var isFirst = false
        update(key.address) { link in
            isFirst = link.queue.isEmpty
            link.queue.append(request)
        }
        if isFirst { begin(request, key) }
    }

    /// A request is taken up: the behaviour is asked, or the value itself.
    mutating func begin(_ request: AttributeRequest, _ key: DeviceKey) {
        guard let peer = peers[key.address] else { return }
        if let refusal = peer.refusal(of: request) { return conclude(request, key, refusal) }
        switch request.kind {
        case .read(let handle, _):
            guard let attribute = peer.attribute(handle) else { break }
            let value = peer.values[handle] ?? []
            if ask(.read(key, request, attribute, value: value), peer) { return }
            return conclude(request, key, .value(value))
        case .write(let handle, _, let bytes, let type):
            guard let attribute = peer.attribute(handle) else { break }
            if ask(.write(key, request, attribute, bytes, type), peer) { return }
        case .configure:
            break
        }
        conclude(request, key, .done)
    }

    mutating func take(_ verdict: Verdict, now: TimeInterval) {
        self.now = now
        switch verdict {
        case .attribute(let key, let request, let answer):
            conclude(request, key, answer)
        case .connection(let key, let answer):
            guard let peer = peers[key.address], case .wanted(let by, _) = peer.state, by == key else { return }
            switch answer {
            case .accept(let delay):
                schedule(.connection(key.address), after: peer.peripheral.link.connectLatency + max(0, delay))
            case .refuse:
                peers[key.address]?.faults.refusals += 1
                schedule(.connection(key.address), after: peer.peripheral.link.connectLatency)
            case .ignore:
                break
            }
        }
    }

    /// It is known what a request comes to; when, the link and the faults decide.
    mutating func conclude(_ request: AttributeRequest, _ key: DeviceKey, _ answer: AttributeAnswer) {
        guard let peer = peers[key.address], link(of: key) != nil else { return }
        if case .write(_, _, _, .command) = request.kind {
            if case .success = answer.outcome { store(request, at: key.address) }
            return
        }
        // Not a request of a link that has ended since.
        guard link(of: key)?.queue.first?.id == request.id else { return }
        var outcome = answer.outcome
        update(key.address) { $0.requestCount += 1 }
        if peer.faults.vanishesInWrite, case .write = request.kind {
            peers[key.address]?.faults.vanishesInWrite = false
            outcome = .linkLoss
        }
        if let last = peer.faults.requestsUntilDrop {
            peers[key.address]?.faults.requestsUntilDrop = last > 1 ? last - 1 : nil
            if last <= 1 { outcome = .linkLoss }
        }
        guard !peer.faults.isSilent, outcome != .never else { return }
        update(key.address) { $0.outcome = outcome }
        let packets = Double(request.packets(mtu: peer.peripheral.link.mtu, answer: outcome))
        schedule(
            .response(key.address),
            after: peer.peripheral.link.callLatency * packets + answer.delay + peer.faults.extraDelay)
    }

    mutating func responseDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .linked(let link) = peer.state, let request = link.queue.first,
            let outcome = link.outcome
        else { return }
        update(address) { link in
            link.queue.removeFirst()
            link.outcome = nil
        }
        switch outcome {
        case .success(let bytes):
            let result = peer.result(of: request, bytes: bytes)
            if case .bytes = result { store(request, at: address) }
            events.append(.response(link.key, id: request.id, result))
        case .error(let code):
            events.append(.response(link.key, id: request.id, .error(code)))
        case .linkLoss:
            return drop(address, .timeout)
        case .never:
            return
        }
        if link.queue.count > 1 { begin(link.queue[1], link.key) }
    }

    /// What a request that succeeded leaves behind.
    mutating func store(_ request: AttributeRequest, at address: VirtualAddress) {
        switch request.kind {
        case .read:
            break
        case .write(let handle, let offset, let bytes, _):
            var value = offset == 0 ? [] : Array((peers[address]?.values[handle] ?? []).prefix(offset))
            value += bytes
            peers[address]?.values[handle] = value
            if let echo = peers[address]?.table.targets[handle]?.characteristic.echo {
                notify(echo, value, at: address)
            }
        case .configure(let characteristic, let bits):
            configure(characteristic, bits, at: address)
        }
    }
}
