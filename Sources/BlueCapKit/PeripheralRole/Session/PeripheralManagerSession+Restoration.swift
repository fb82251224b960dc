import Foundation
import BlueCapFutures
import BlueCapGATT

/// What of a peripheral manager outlives its process: read in the beginning, kept while things change.
extension PeripheralManagerSession {
    func restore(_ kept: PeripheralRestorationState) {
        let services = kept.services.map(\.made)
        for service in services { _ = service.claim(self, unless: nil) }
        let served = services.map { makeServed($0, isRestored: true) }
        // A handler that receives the state can ask for requests at once.
        for served in served { for each in served.characteristics { each.begin(self, nil) } }
        let isOpen = decideIfOpen { core in
            core.shell.isKeeping = true
            core.ownBonds.formUnion(kept.bonds?.map(\.key) ?? [])
            core.restored = (kept.advertisements.first(where: \.isMain) ?? kept.advertisements.first)?.data
            restore(served, in: &core)
            for advertisement in kept.advertisements { restore(advertisement, in: &core) }
        }
        if !isOpen { for served in served { for each in served.characteristics { each.end(self) } } }
    }

    private func restore(_ services: [Served], in core: inout Core) {
        // Where the application was faster, its own services take the place of as many with the same UUID.
        var own = core.served.values.filter { !$0.isRestored }.map(\.service.uuid)
        for served in services {
            if let place = own.firstIndex(of: served.service.uuid) {
                own.remove(at: place)
                continue
            }
            let number = core.makeNumber()
            core.served[number] = served
            core.state.add(number, .service, into: &core.shell.orders)
        }
    }

    private func restore(_ kept: PeripheralRestorationState.Advertisement, in core: inout Core) {
        let isThere =
            kept.isMain
            ? core.state.hasMainAdvertisement
            : core.state.advertisements.compactMap { core.advertised[$0] }
                .contains { !$0.isRestored && !$0.isMain && $0.handle.data == kept.data }
        guard !isThere else { return }
        let number = core.makeNumber()
        core.advertised[number] = Advertised(
            handle: RunningAdvertisement(session: self, number: number, data: kept.data),
            isMain: kept.isMain, isRestored: true)
        core.state.add(number, .advertisement(isMain: kept.isMain), into: &core.shell.orders)
    }

    func reportRestored() {
        if let reason = keeper?.failure { log?.restorationFailed(reason) }
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
            services: state.services.compactMap { served[$0]?.kept },
            advertisements: state.advertisements.compactMap { number in
                advertised[number].map { .init(data: $0.handle.data, isMain: $0.isMain) }
            }, bonds: keptBonds)
    }

    /// The bonds that this manager has made, which outlive the manager.
    var keptBonds: [RestorationState.Device]? {
        RestorationState.Device.list(ownBonds.map { key in devices.values.first { $0.key == key }?.address ?? key })
    }
}
