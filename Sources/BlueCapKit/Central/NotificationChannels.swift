import BlueZ
import Foundation
import Reactor

/// Identifies a characteristic of a manager.
struct CharacteristicKey: Hashable, Comparable, Sendable {
    let peripheral: PeripheralKey
    let characteristic: AttributeID

    static func < (left: Self, right: Self) -> Bool {
        (left.peripheral, left.characteristic) < (right.peripheral, right.characteristic)
    }
}

/// Passes the values of subscribed characteristics from the bus to the streams.
///
/// Used on the loop only, so a value needs no lock, and the class is `@unchecked Sendable`. Values that arrive together
/// are delivered together (`flush`).
final class NotificationChannels: @unchecked Sendable {
    private struct Channel {
        let key: AttributeKey
        let subject: CharacteristicKey
        var gate = ValueGate()
    }

    private var channels: [Channel] = []
    private var places: [AttributeKey: Int] = [:]
    /// How many reads of each characteristic are active.
    private var reads: [AttributeKey: Int] = [:]
    /// Indices of channels with values in their batch.
    private var full: [Int] = []
    private var sockets: [AttributeKey: [(call: SubscriptionMachine.Call, share: CancelHandle)]] = [:]

    // MARK: The gates

    /// Opens the channel: from now on, values of the characteristic over this transport are delivered to its streams.
    func open(_ key: AttributeKey, of subject: CharacteristicKey, _ transport: NotificationTransport, afterGap: Bool) {
        let place = place(of: key, subject)
        channels[place].gate.open(transport, afterGap: afterGap)
    }

    /// Changes the transport to one that differs from the requested transport.
    func reopen(_ key: AttributeKey, _ transport: NotificationTransport) { change(key) { $0.reopen(transport) } }

    private func place(of key: AttributeKey, _ subject: CharacteristicKey) -> Int {
        if let place = places[key], channels[place].subject == subject { return place }
        var channel = Channel(key: key, subject: subject)
        for _ in 0..<(reads[key] ?? 0) { channel.gate.readBegan() }
        if let place = places[key] {
            channels[place] = channel
            return place
        }
        channels.append(channel)
        places[key] = channels.count - 1
        return channels.count - 1
    }

    func markGap(_ key: AttributeKey) { change(key) { $0.markGap() } }

    /// - Returns: Whether values had been received since the channel was opened.
    func close(_ key: AttributeKey) -> Bool {
        var hasPassed = false
        change(key) { gate in
            hasPassed = gate.hasPassed
            gate.close()
        }
        return hasPassed
    }

    /// Removes a channel that is closed and empty; otherwise peripherals that change their addresses would add more and
    /// more.
    func forget(_ key: AttributeKey) {
        // The indices of channels change here, so none may be stored in `full`.
        guard full.isEmpty, let place = knownPlace(of: key), channels[place].gate.isIdle else { return }
        channels.swapAt(place, channels.count - 1)
        places[channels[place].key] = place
        channels.removeLast()
        places[key] = nil
    }

    /// How many characteristics have a channel.
    var count: Int { channels.count }

    // MARK: Values

    /// Handles a value that BlueZ has signalled. Returns false if there is no subscription by signals.
    func signalled(_ key: AttributeKey, _ value: @autoclosure () -> Data?) -> Bool {
        guard let place = knownPlace(of: key), channels[place].gate.passesSignals, let value = value() else {
            return false
        }
        change(at: place) { $0.signalled(value) }
        return true
    }

    /// Handles values from the characteristic's socket.
    func received(_ values: [Data], from key: AttributeKey) {
        change(key) { $0.received(values) }
    }

    func readBegan(_ key: AttributeKey) {
        reads[key, default: 0] += 1
        change(key) { $0.readBegan() }
    }

    func readEnded(_ key: AttributeKey, offset: Int, reply: Data?) {
        if let count = reads[key] { reads[key] = count > 1 ? count - 1 : nil }
        change(key) { $0.readEnded(reply, offset: offset) }
    }

    /// Delivers the values since the last call.
    func flush(_ deliver: (CharacteristicKey, [Data?]) -> Void) {
        while let place = full.popLast() {
            deliver(channels[place].subject, channels[place].gate.takeBatch())
        }
    }

    var isEmpty: Bool { full.isEmpty }

    private func change(_ key: AttributeKey, _ body: (inout ValueGate) -> Void) {
        if let place = knownPlace(of: key) { change(at: place, body) }
    }

    private func change(at place: Int, _ body: (inout ValueGate) -> Void) {
        let wasEmpty = channels[place].gate.batch.isEmpty
        body(&channels[place].gate)
        if wasEmpty, !channels[place].gate.batch.isEmpty { full.append(place) }
    }

    private func knownPlace(of key: AttributeKey) -> Int? {
        // If there are few channels, the usual case, a linear search is faster than hashing.
        guard channels.count > 4 else {
            // Uses indices: iterating over the elements would copy each channel.
            for place in channels.indices where channels[place].key == key { return place }
            return nil
        }
        return places[key]
    }

    // MARK: Sockets

    func keep(_ socket: CancelHandle, of key: AttributeKey, _ call: SubscriptionMachine.Call) {
        sockets[key, default: []].append((call, socket))
    }

    func closeSocket(of key: AttributeKey, _ call: SubscriptionMachine.Call) {
        for (other, socket) in sockets[key] ?? [] where other == call { socket.cancel() }
        let rest = (sockets[key] ?? []).filter { $0.call != call }
        sockets[key] = rest.isEmpty ? nil : rest
    }

    /// Closes the sockets that were requested before a call.
    func closeSockets(of key: AttributeKey, before call: SubscriptionMachine.Call) {
        for (other, _) in sockets[key] ?? [] where other.rawValue < call.rawValue { closeSocket(of: key, other) }
    }
}
