import Foundation
import Futures
import GATT
import Reactor

/// What of a peripheral manager outlives its process: read in the beginning, kept while things change.
extension PeripheralManagerSession {
    /// Seconds from a change until it is on its way to the disk; what changes meanwhile goes along.
    static let keepingDelay = 0.25
    /// Seconds until a write that failed is tried again.
    static let keepingPatience = 30.0
    /// Seconds until a state is opened again for which the process had no descriptor.
    static let openingPatience = 1.0

    // MARK: Beginning and end; any thread

    /// Has the kept state read, and what was under way wanted again.
    func beginRestoration() {
        guard options.problem == nil, let keeper else {
            let error =
                options.problem
                ?? .invalidOption(
                    "A state is restored for a manager with CBPeripheralManagerOptionRestoreIdentifierKey among its "
                        + "options.")
            return complete { self.restoredPromise.failure(error) }
        }
        // Without a thread here the disk's queue may wait for one, and this with it.
        guard loop.start() == nil else { return loop.post { [weak self] in self?.beginRestoration() } }
        guard !core.withLock({ $0.isClosed }) else { return }
        keeper.open { [weak self] opening in self?.restore(opening) }
    }

    /// A manager that ends leaves nothing under way.
    /// - Parameter hasTakenOver: Whether what was kept is ours to end.
    func endRestoration(_ hasTakenOver: Bool) {
        keeper?.finish(hasTakenOver ? PeripheralRestorationState() : nil)
        complete { self.restoredPromise.failure(PeripheralManagerError.restoreFailed) }
    }

    // MARK: Restoring

    private func restore(_ opening: StateKeeper<PeripheralRestorationState>.Opening) {
        // What has been asked for meanwhile was not kept yet.
        defer { loop.post { self.keepSoon() } }
        switch opening {
        case .postponed:
            loop.schedule(after: Self.openingPatience) { [weak self] in self?.beginRestoration() }
        case .failed(let error):
            core.withLock { $0.isKeeping = true }
            // Not here: whoever hears of it must not hold up the disk.
            loop.post { self.complete { self.restoredPromise.failure(PeripheralManagerError(error)) } }
        case .kept(let state):
            let services = state.services.map(\.made)
            for service in services { _ = service.claim(self) }
            let served = services.map { makeServed($0, isRestored: true) }
            // Whoever is told of the state can ask for requests at once.
            for served in served { for each in served.characteristics { each.begin(self, nil) } }
            let isOpen = decideIfOpen { core in
                core.isKeeping = true
                core.restored = (state.advertisements.first(where: \.isMain) ?? state.advertisements.first)?.data
                return served.flatMap { restore($0, in: &core) }
                    + state.advertisements.flatMap { restore($0, in: &core) } + core.state.beginRestoring()
            }
            if !isOpen { for served in served { for each in served.characteristics { each.end(self) } } }
        }
    }

    private func restore(_ served: Served, in core: inout Core) -> [PeripheralManagerState.Effect] {
        // Somebody was quicker: their own service holds.
        guard !core.served.values.contains(where: { !$0.isRestored && $0.service.uuid == served.service.uuid }) else {
            return []
        }
        let number = ServiceRegistry.Number(rawValue: core.makeNumber())
        core.served[number] = served
        return core.state.service { $0.add(number) }
    }

    private func restore(
        _ kept: PeripheralRestorationState.Advertisement, in core: inout Core
    ) -> [PeripheralManagerState.Effect] {
        let isThere =
            kept.isMain
            ? core.state.advertising.hasMain
            : core.aired.values.contains { !$0.isRestored && !$0.isMain && $0.data == kept.data }
        guard !isThere else { return [] }
        let number = AdvertisingRegistry.Number(rawValue: core.makeNumber())
        core.aired[number] = Aired(
            handle: RunningAdvertisement(session: self, number: number, data: kept.data), data: kept.data,
            promise: Promise(), isMain: kept.isMain, isRestored: true)
        return core.state.advertise { $0.begin(number, isMain: kept.isMain) }
    }

    /// On the loop.
    func tellRestored() {
        let data = core.withLock { $0.restored }
        complete {
            self.restoredPromise.success(data.map { PeripheralAdvertisements($0) } ?? PeripheralAdvertisements())
        }
    }

    // MARK: Keeping; on the loop

    /// Something may have changed of what is kept.
    func keepSoon() {
        guard keeper != nil, core.withLock({ $0.isKeeping && !$0.isClosed && $0.timers[.keeping] == nil }) else {
            return
        }
        start(.keeping, after: Self.keepingDelay)
    }

    /// The time has come to have it written.
    func keepNow() {
        guard let keeper, let kept = core.withLock({ $0.isClosed ? nil : $0.kept }) else { return }
        keeper.keep(kept) { [weak self] in
            guard let self else { return }
            loop.post { self.keepAgain() }
        }
    }

    private func keepAgain() {
        guard core.withLock({ !$0.isClosed && $0.timers[.keeping] == nil }) else { return }
        start(.keeping, after: Self.keepingPatience)
    }
}

extension PeripheralManagerSession.Core {
    /// All that is under way at this moment.
    var kept: PeripheralRestorationState {
        PeripheralRestorationState(
            services: state.services.numbers.compactMap { served[$0]?.kept },
            advertisements: state.advertising.numbers.compactMap { number in
                aired[number].map { .init(data: $0.data, isMain: $0.isMain) }
            })
    }
}

extension PeripheralManagerError {
    init(_ failure: RestorationFailure) {
        self =
            switch failure {
            case .restoreFailed: .restoreFailed
            case .restoreIdentifierInUse(let path): .restoreIdentifierInUse(path)
            }
    }
}
