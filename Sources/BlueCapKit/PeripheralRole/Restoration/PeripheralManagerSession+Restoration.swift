import Foundation
import Futures
import GATT
import Reactor

/// What of a peripheral manager outlives its process: read in the beginning, kept while things change.
extension PeripheralManagerSession {
    func restore(_ kept: PeripheralRestorationState) {
        let services = kept.services.map(\.made)
        for service in services { _ = service.claim(self) }
        let served = services.map { makeServed($0, isRestored: true) }
        // Whoever is told of the state can ask for requests at once.
        for served in served { for each in served.characteristics { each.begin(self, nil) } }
        let isOpen = decideIfOpen { core in
            core.shell.isKeeping = true
            core.restored = (kept.advertisements.first(where: \.isMain) ?? kept.advertisements.first)?.data
            for served in served { core.order(restore(served, in: &core)) }
            for advertisement in kept.advertisements { core.order(restore(advertisement, in: &core)) }
            core.order(core.state.beginRestoring())
        }
        if !isOpen { for served in served { for each in served.characteristics { each.end(self) } } }
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
