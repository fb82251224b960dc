import BlueZ
import Foundation
import Futures
import GATT
import Reactor

/// Advertisements, from the wish to their end.
extension PeripheralManagerSession {
    /// An advertisement while it is wished.
    struct Aired {
        let handle: RunningAdvertisement
        /// As the handle has it.
        var data: AdvertisingData
        let promise: Promise<RunningAdvertisement>
        let isMain: Bool
        /// It is there because an earlier run had it, and nobody has started it yet.
        var isRestored = false
        /// Counts what BlueZ was asked for: what is told of something earlier means nothing.
        var turn = 0
    }

    // MARK: Wishes; any thread

    var isAdvertising: Bool { core.withLock { $0.state.advertising.isAdvertising } }

    var advertisements: [RunningAdvertisement] {
        core.withLock { core in core.state.advertising.numbers.compactMap { core.aired[$0]?.handle } }
    }

    /// - Parameters:
    ///   - isMain: Whether there may be one such at a time.
    ///   - timeout: In seconds.
    func startAdvertising(
        _ data: AdvertisingData, isMain: Bool, timeout: TimeInterval
    ) -> Future<RunningAdvertisement> {
        let promise = Promise<RunningAdvertisement>()
        do {
            if let problem = options.problem { throw problem }
            try data.checkForAny()
        } catch {
            complete { promise.failure(error) }
            return promise.future
        }
        var refusal: PeripheralManagerError?
        let isOpen = decideIfOpen { core in
            // Of several that are alike the one that was begun first.
            let former = core.state.advertising.numbers.first { number in
                guard let aired = core.aired[number] else { return false }
                return aired.isRestored && aired.isMain == isMain && (isMain || aired.data == data)
            }
            guard !isMain || !core.state.advertising.hasMain || former != nil else {
                refusal = .isAdvertising
                return
            }
            let number = AdvertisingRegistry.Number(rawValue: core.makeNumber())
            let handle = RunningAdvertisement(session: self, number: number, data: data)
            core.aired[number] = Aired(handle: handle, data: data, promise: promise, isMain: isMain)
            core.order(
                core.state.advertise {
                    $0.replace(former) + $0.begin(number, isMain: isMain, timeout: max(timeout, 0))
                })
        }
        if let error = isOpen ? refusal : .managerEnded { complete { promise.failure(error) } }
        return promise.future
    }

    /// - Parameter number: `nil` for all.
    func stopAdvertising(_ number: AdvertisingRegistry.Number?, timeout: TimeInterval) -> Future<Void> {
        let promise = Promise<Void>()
        decide { core in
            let effects = core.state.advertise { advertising in
                let (stop, effects) = advertising.stop(number, timeout: max(timeout, 0))
                core.stopping[stop] = promise
                return core.shell.isClosed ? effects + advertising.forgetStops() : effects
            }
            core.order(effects)
        }
        return promise.future
    }

    func advertisingLimits(timeout: TimeInterval) -> Future<AdvertisingLimits> {
        let promise = Promise<AdvertisingLimits>()
        loop.post { [self] in
            guard let adapter = core.withLock({ $0.shell.adapter }) else {
                let state = managerState
                return complete { promise.failure(PeripheralManagerError.notPoweredOn(state)) }
            }
            client.advertisingCapabilities(of: adapter, timeout: min(max(timeout, 0), 86_400)) { [self] result in
                let daemon = daemonCapabilities(of: adapter)
                complete {
                    switch result {
                    case .success(let capabilities): promise.success(AdvertisingLimits(capabilities, of: daemon))
                    case .failure(let error) where error.cause == .noReply:
                        promise.failure(PeripheralManagerError.advertisingLimitsTimeout)
                    case .failure: promise.failure(PeripheralManagerError.advertisingNotSupported)
                    }
                }
            }
        }
        return promise.future
    }

    private func daemonCapabilities(of adapter: ObjectKey) -> DaemonCapabilities {
        client.withTree { $0[adapter: adapter]?.capabilities } ?? DaemonCapabilities()
    }

    /// Advertises something else in its place.
    func changed(_ number: AdvertisingRegistry.Number, to data: AdvertisingData) {
        core.withLock { $0.aired[number]?.data = data }
        loop.post {
            self.core.withLock { $0.onAir[number] }?.change(to: AdvertisementData(data))
            self.keepSoon()
        }
    }

    func isOnAir(_ number: AdvertisingRegistry.Number) -> Bool {
        core.withLock { $0.state.advertising.stage(of: number) == .onAir }
    }

    // MARK: Doing; on the loop

    func perform(_ effect: AdvertisingRegistry.Effect) {
        switch effect {
        case .askLimits(let number): askLimits(number)
        case .start(let number): start(number)
        case .end(let number): end(number)
        case .settle(let number, let failure): settle(number, failure)
        case .ended(let number, let end):
            guard let aired = core.withLock({ $0.aired.removeValue(forKey: number) }) else { return }
            complete { aired.handle.endPromise.success(end) }
        case .settleStop(let stop, let isInTime):
            guard let promise = core.withLock({ $0.stopping.removeValue(forKey: stop) }) else { return }
            complete {
                if isInTime {
                    promise.success(())
                } else {
                    promise.failure(PeripheralManagerError.stopAdvertisingTimeout)
                }
            }
        case .startTimer, .cancelTimer, .startStopTimer, .cancelStopTimer: break
        }
    }

    private func askLimits(_ number: AdvertisingRegistry.Number) {
        guard let (adapter, aired) = begin(number) else { return }
        client.advertisingCapabilities(of: adapter) { [weak self] result in
            var refusal: AdvertisingRegistry.Failure?
            // Without an answer BlueZ decides.
            if let self, case .success(let capabilities) = result {
                let limits = AdvertisingLimits(capabilities, of: daemonCapabilities(of: adapter))
                refusal = limits.refusal(of: aired.handle.data)
                aired.handle.learn(limits)
            }
            self?.decide { core in
                guard core.aired[number]?.turn == aired.turn else { return }
                core.order(core.state.advertise { $0.limitsKnown(number, refusal: refusal) })
            }
        }
    }

    private func start(_ number: AdvertisingRegistry.Number) {
        guard let (adapter, aired) = begin(number) else { return }
        let advertising = client.advertise(AdvertisementData(aired.handle.data), on: adapter) { [weak self] event in
            guard let event = AdvertisingRegistry.Event(event) else { return }
            self?.decide { core in
                guard core.aired[number]?.turn == aired.turn else { return }
                core.order(core.state.advertise { $0.told(number, event) })
            }
        }
        let old = core.withLock { $0.onAir.updateValue(advertising, forKey: number) }
        old?.end()
    }

    /// Something new is asked of BlueZ for it.
    private func begin(_ number: AdvertisingRegistry.Number) -> (ObjectKey, Aired)? {
        core.withLock { core in
            core.aired[number]?.turn += 1
            guard let adapter = core.target, let aired = core.aired[number] else { return nil }
            return (adapter, aired)
        }
    }

    private func end(_ number: AdvertisingRegistry.Number) {
        let advertising = core.withLock { $0.onAir.removeValue(forKey: number) }
        let confirm: @Sendable () -> Void = { [weak self] in
            self?.decide { $0.order($0.state.advertise { $0.confirmedEnd(number) }) }
        }
        if let advertising { advertising.end(completion: confirm) } else { confirm() }
    }

    private func settle(_ number: AdvertisingRegistry.Number, _ failure: AdvertisingRegistry.Failure?) {
        guard let aired = core.withLock({ $0.aired[number] }) else { return }
        complete {
            if let failure {
                aired.promise.failure(PeripheralManagerError(failure))
            } else {
                aired.promise.success(aired.handle)
            }
        }
    }
}

extension PeripheralManagerError {
    init(_ failure: AdvertisingRegistry.Failure) {
        self =
            switch failure {
            case .notPoweredOn(let state): .notPoweredOn(state)
            case .notSupported: .advertisingNotSupported
            case .tooMany(let count): .tooManyAdvertisements(count)
            case .invalid(let text): .invalidAdvertisement(text)
            case .tooLong(let field, let excess): .advertisementTooLong(field: field, by: excess)
            case .refused(let failure): .advertisementRefused(failure)
            case .unanswered: .startAdvertisingTimeout
            case .stopped: .advertisingStopped
            case .ended: .managerEnded
            }
    }
}
