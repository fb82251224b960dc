import BlueCapBlueZ
import Foundation
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor

/// Advertisements, from the request to their end.
extension PeripheralManagerSession {
    /// An advertisement, from its request until BlueZ has confirmed its end.
    struct Advertised {
        let handle: RunningAdvertisement
        let isMain: Bool
        /// Whether it was restored, and the application has not started it yet.
        var isRestored = false
        let promise = Promise<RunningAdvertisement>()
        /// Its registration, once that was begun.
        var advertising: Advertising?
        /// Succeeds when it is not sent any more.
        let confirmation = Promise<Void>()
    }

    // MARK: Requests; any thread

    var isAdvertising: Bool { core.withLock { !$0.state.advertisements.isEmpty } }

    var advertisements: [RunningAdvertisement] {
        core.withLock { core in core.state.advertisements.compactMap { core.advertised[$0]?.handle } }
    }

    /// - Parameters:
    ///   - isMain: Whether there may be one such at a time.
    ///   - timeout: In seconds.
    func startAdvertising(
        _ data: AdvertisingData, isMain: Bool, timeout: TimeInterval
    ) -> Future<RunningAdvertisement> {
        do {
            if let problem { throw problem }
            try data.checkForAny()
        } catch {
            return failed(error)
        }
        var future: Future<RunningAdvertisement>?
        let isOpen = decideIfOpen { core in
            // Of several that are alike the one that was begun first.
            let former = core.state.advertisements.first { number in
                guard let advertised = core.advertised[number] else { return false }
                return advertised.isRestored && advertised.isMain == isMain
                    && (isMain || advertised.handle.data == data)
            }
            guard !isMain || !core.state.hasMainAdvertisement || former != nil else { return }
            let number = core.makeNumber()
            let handle = RunningAdvertisement(session: self, number: number, data: data)
            let advertised = Advertised(handle: handle, isMain: isMain)
            core.advertised[number] = advertised
            future = advertised.promise.future
            core.state.remove(former, into: &core.shell.orders)
            core.state.add(
                number, .advertisement(isMain: isMain), timeout: max(timeout, 0), into: &core.shell.orders)
        }
        guard let future else { return failed(isOpen ? .isAdvertising : PeripheralManagerError.managerEnded) }
        Withdrawal.current?.register { [weak self] in self?.withdraw(future) ?? false }
        return future
    }

    /// Ends an advertisement whose start has not ended. Returns false if it has.
    private func withdraw(_ started: Future<RunningAdvertisement>) -> Bool {
        var isUnsettled = false
        decide { core in
            guard let number = core.advertised.first(where: { $0.value.promise.future === started })?.key,
                !core.state.isSettled(number)
            else { return }
            isUnsettled = true
            core.state.remove(number, into: &core.shell.orders)
        }
        return isUnsettled
    }

    /// - Parameter number: `nil` for all. The ends that were requested before are awaited too.
    func stopAdvertising(_ number: Number?, timeout: TimeInterval) -> Future<Void> {
        var ends: [Future<Void>] = []
        decide { core in
            for each in number.map({ [$0] }) ?? core.state.advertisements {
                core.state.remove(each, into: &core.shell.orders)
            }
            for (each, advertised) in core.advertised where number == nil || number == each {
                if core.state.stage(of: each) == nil { ends.append(advertised.confirmation.future) }
            }
        }
        guard !ends.isEmpty else { return settled(.success(())) }
        let promise = Promise<Void>()
        let timer =
            timeout.isFinite
            ? loop.schedule(after: max(timeout, 0)) {
                self.complete { promise.failure(PeripheralManagerError.stopAdvertisingTimeout) }
            } : nil
        ends.sequence(context: ImmediateContext()).onSuccess(context: ImmediateContext()) { [loop] _ in
            if let timer { loop.cancel(timer) }
            promise.success(())
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
                let known = capabilities
                complete {
                    switch result {
                    case .success(let instances): promise.success(AdvertisingLimits(instances, of: known))
                    case .failure(let error) where error.cause == .noReply:
                        promise.failure(PeripheralManagerError.advertisingLimitsTimeout)
                    case .failure: promise.failure(PeripheralManagerError.advertisingNotSupported)
                    }
                }
            }
        }
        return promise.future
    }

    /// Advertises something else in its place.
    func changed(_ number: Number, to data: AdvertisingData) {
        loop.post {
            self.core.withLock { $0.advertised[number]?.advertising }?.change(to: AdvertisementData(data))
            self.keepSoon()
        }
    }

    func isRegistered(_ number: Number) -> Bool {
        core.withLock { $0.state.stage(of: number) == .registered }
    }

    // MARK: Orders; on the loop

    func askLimits(_ number: Number) {
        let (adapter, advertised) = core.withLock { ($0.target, $0.advertised[number]) }
        guard let adapter, let advertised else { return }
        client.advertisingCapabilities(of: adapter) { [weak self] result in
            guard let self else { return }
            var refusal: PeripheralManagerError?
            var capacity: Int?
            // If BlueZ does not reply, its reply to the registration decides.
            if case .success(let instances) = result {
                let limits = AdvertisingLimits(instances, of: capabilities)
                refusal = limits.refusal(of: advertised.handle.data)
                capacity = limits.capacity
                advertised.handle.learn(limits)
            }
            decide { [refusal, capacity] in
                $0.state.limitsKnown(number, refusal: refusal, capacity: capacity, into: &$0.shell.orders)
            }
        }
    }

    func advertise(_ data: AdvertisingData, _ number: Number, on adapter: ObjectKey) {
        let advertising = Advertising(AdvertisementData(data), on: adapter, client: client) { [weak self] state in
            self?.registrationChanged(number, state)
        }
        let old = core.withLock { core in
            defer { core.advertised[number]?.advertising = advertising }
            return core.advertised[number]?.advertising
        }
        old?.end()
    }

    func ended(_ number: Number, _ end: AdvertisingEnd) {
        guard let advertised = core.withLock({ $0.advertised[number] }) else { return }
        complete { advertised.handle.endPromise.success(end) }
        if advertised.advertising == nil { confirmEnd(number) }
    }

    func confirmEnd(_ number: Number) {
        guard let advertised = core.withLock({ $0.advertised.removeValue(forKey: number) }) else { return }
        complete { advertised.confirmation.success(()) }
    }
}

extension AdvertisementData {
    init(_ data: AdvertisingData) {
        self.init()
        kind = data.kind == .broadcast ? .broadcast : .peripheral
        localName = data.localName
        serviceUUIDs = data.serviceUUIDs
        solicitedUUIDs = data.solicitedServiceUUIDs
        manufacturerData = data.manufacturerData
        serviceData = data.serviceData
        scanResponseServiceUUIDs = data.scanResponse.serviceUUIDs
        scanResponseManufacturerData = data.scanResponse.manufacturerData
        scanResponseServiceData = data.scanResponse.serviceData
        appearance = data.appearance
        includesTxPower = data.includesTxPower
        txPower = data.txPower.map { Int16(clamping: $0) }
        minInterval = data.interval.map { UInt32(($0.lowerBound / .milliseconds(1)).rounded()) }
        maxInterval = data.interval.map { UInt32(($0.upperBound / .milliseconds(1)).rounded()) }
        isDiscoverable = data.isDiscoverable && data.kind == .connectable ? true : nil
        timeout = data.timeout.map { UInt16(clamping: $0.components.seconds) }
        duration = data.duration.map { UInt16(clamping: $0.components.seconds) }
        secondaryChannel = data.secondaryChannel.flatMap { SecondaryChannel(rawValue: $0.rawValue) }
    }
}
