import BlueZ
import Foundation
import Futures
import Reactor

/// A stream of signal strengths that is being fed.
struct RSSIPoll {
    let number: UInt64
    let period: TimeInterval
    let promise: StreamPromise<Int>
    /// On the loop alone.
    var timer: TimerID?
}

/// The signal strength of connected peripherals, as far as BlueZ tells it.
extension CentralSession {
    func readRSSI(_ key: PeripheralKey) -> Future<Int> {
        let promise = Promise<Int>()
        let result = rssi(of: key)
        complete {
            switch result {
            case .success(let rssi): promise.success(rssi)
            case .failure(let error): promise.failure(error)
            }
        }
        return promise.future
    }

    private func rssi(of key: PeripheralKey) -> Result<Int, PeripheralError> {
        core.withLock { core in
            guard core.state.readState(of: key, { $0.connection.state == .connected }) == true else {
                return .failure(.disconnected)
            }
            return core.read(key, in: client) { $0.rssi }.map { .success($0) } ?? .failure(.rssiUnavailable)
        }
    }

    func startPollingRSSI(_ peripheral: Peripheral, period: TimeInterval, capacity: Int) -> FutureStream<Int> {
        guard period > 0, period < 1e9 else {
            return .failed(
                PeripheralError.invalidArgument("A period of polling is more than zero seconds, not \(period)."))
        }
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        let key = peripheral.key
        let poll = RSSIPoll(number: client.makeID(), period: period, promise: StreamPromise(capacity: capacity))
        var old: RSSIPoll?
        let isOpen = decideIfOpen { core in
            old = core.rssiPolls.updateValue(poll, forKey: key)
        }
        guard isOpen else { return .failed(PeripheralError.disconnected) }
        if let old { end(old) }
        loop.post { [weak self] in self?.poll(key, poll.number) }
        return poll.promise.stream
    }

    func stopPollingRSSI(_ key: PeripheralKey) {
        if let poll = core.withLock({ $0.rssiPolls.removeValue(forKey: key) }) { end(poll) }
    }

    /// On the loop.
    func stopAllPollingOfRSSI() {
        let polls = core.withLock { core in
            defer { core.rssiPolls = [:] }
            return core.rssiPolls
        }
        for (_, poll) in polls.sorted(by: { $0.key < $1.key }) { end(poll) }
    }

    private func end(_ poll: RSSIPoll) {
        loop.perform { [loop] in
            if let timer = poll.timer { loop.cancel(timer) }
        }
        complete { poll.promise.finish() }
    }

    private func poll(_ key: PeripheralKey, _ number: UInt64) {
        guard let poll = core.withLock({ $0.rssiPolls[key] }), poll.number == number else { return }
        let result = rssi(of: key)
        complete {
            switch result {
            case .success(let rssi): poll.promise.success(rssi)
            case .failure(let error): poll.promise.failure(error)
            }
        }
        let timer = loop.schedule(after: poll.period) { [weak self] in self?.poll(key, number) }
        let isCurrent = core.withLock { core in
            guard core.rssiPolls[key]?.number == number else { return false }
            core.rssiPolls[key]?.timer = timer
            return true
        }
        if !isCurrent { loop.cancel(timer) }
    }
}
