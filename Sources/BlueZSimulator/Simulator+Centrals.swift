import Foundation
import Futures

/// The peripheral side: what programs serve and send, and centrals that come to see.
extension Simulator {
    // MARK: Looking

    /// What the adapters send at the moment, byte for byte, by their number and in the order in which it was registered.
    /// What an adapter that is off would send is not among it.
    public var advertisements: [OnAirAdvertisement] {
        stage.look { simulation in
            guard simulation.isAlive else { return [] }
            return simulation.daemon.adapters.sorted { $0.key < $1.key }.flatMap { index, adapter in
                simulation.daemon.sent(by: index).map { sent in
                    OnAirAdvertisement(
                        adapter: index, address: adapter.hardware.address, data: sent.data,
                        scanResponse: sent.scanResponse, isConnectable: sent.record.isConnectable,
                        owner: sent.record.owner, path: sent.record.path)
                }
            }
        }
    }

    /// The applications that are registered, in the order of their registration.
    public var applications: [ServedApplication] {
        stage.look { simulation in
            guard simulation.isAlive else { return [] }
            return simulation.daemon.applications.values.filter { $0.registration == nil }
                .sorted { $0.id.number < $1.id.number }.map { application in
                    let services = simulation.daemon.databases[application.adapter]?.services ?? []
                    return ServedApplication(
                        adapter: application.adapter, owner: application.owner, path: application.path,
                        services: services.filter { $0.application == application.id }.map(ServedService.init))
                }
        }
    }

    // MARK: Centrals

    /// A central connects to an adapter: 50 ms after something that takes connections is advertised there. It has a
    /// device's object on the serving side, as every central has.
    ///
    /// - Parameters:
    ///   - central: who it is; one that is connected to this adapter is not connected a second time.
    ///   - index: the adapter's number.
    /// - Returns: the link, not yet up.
    @discardableResult
    public func connect(_ central: VirtualCentral, to index: Int = 0) -> CentralLink {
        let link = CentralLink(central, adapter: index, stage: stage)
        let key = DeviceKey(adapter: index, address: central.address)
        let now = seconds
        let previous = stage.wire.withLock { wire in
            defer { wire.centrals[key] = link }
            return wire.centrals[key]
        }
        stage.decide { simulation in
            if previous?.state != .disconnected, previous != nil { simulation.air.leave(key, now: now) }
            if central.confirmsIndications {
                simulation.daemon.unconfirming.remove(central.address)
            } else {
                simulation.daemon.unconfirming.insert(central.address)
            }
            simulation.air.visit(central, key, now: now)
        }
        return link
    }

    // MARK: Faults

    /// From now on the daemon dies, as 5.66 does, where a central's link ends while a program has not answered what that
    /// central asked: five seconds after the question. It comes back with ``simulateDaemonReturn()``.
    public func simulateDeathByAbandonedAnswers(_ dies: Bool = true) {
        stage.decide { $0.daemon.diesOfAbandonedAnswers = dies }
    }

    /// The next `count` registrations of an application fail.
    public func simulateRegistrationFailures(
        _ count: Int, error: DaemonError = .failed("Failed to create entry in database")
    ) {
        stage.decide { $0.daemon.registrationFailures = Array(repeating: error, count: max(0, count)) }
    }

    /// The next `count` registrations of an advertisement fail, after its properties were read.
    public func simulateAdvertisementFailures(
        _ count: Int, error: DaemonError = .failed("Failed to register advertisement")
    ) {
        stage.decide { $0.daemon.advertisementFailures = Array(repeating: error, count: max(0, count)) }
    }
}

extension Stage {
    /// A central hears something. On the loop.
    func tell(_ key: DeviceKey, _ news: CentralNews) {
        guard let link = wire.withLock({ $0.centrals[key] }) else { return }
        link.take(news, seconds: seconds)
        guard link.state == .disconnected else { return }
        wire.withLock { wire in
            if wire.centrals[key] === link { wire.centrals[key] = nil }
        }
    }
}
