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
                        adapter: index, address: sent.record.ownAddress ?? adapter.hardware.address, data: sent.data,
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
    ///   - central: who it is; the link that one with its address has to this adapter ends.
    ///   - index: the adapter's number.
    /// - Returns: the link, not yet up.
    @discardableResult
    public func connect(_ central: VirtualCentral, to index: Int = 0) -> CentralLink {
        let now = seconds
        let link = stage.wire.withLock { wire in
            wire.centralNumber += 1
            let link = CentralLink(central, adapter: index, number: wire.centralNumber, stage: stage)
            wire.centrals[wire.centralNumber] = link
            return link
        }
        stage.decide { simulation in
            if central.confirmsIndications {
                simulation.daemon.unconfirming.remove(central.address)
            } else {
                simulation.daemon.unconfirming.insert(central.address)
            }
            simulation.air.visit(central, number: link.number, link.key, now: now)
        }
        return link
    }

    // MARK: Faults

    /// From now on the daemon dies, as BlueZ does, where a central's link ends while a program has not answered what that
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

    /// From now on the daemon accepts `RegisterApplication` and `RegisterAdvertisement` and does not answer them; all other
    /// calls are answered. `false` ends it: the daemon then works off, in their order, the registrations that it has accepted
    /// from clients that are still there.
    public func simulateIgnoredRegistrations(_ areIgnored: Bool = true) {
        stage.decide { $0.daemon.ignoresRegistrations = areIgnored }
    }
}

extension Stage {
    /// A central hears something. On the loop.
    func tell(_ number: UInt64, _ news: CentralNews) {
        guard let link = wire.withLock({ $0.centrals[number] }) else { return }
        link.take(news, seconds: seconds)
        if link.state == .disconnected { wire.withLock { $0.centrals[number] = nil } }
    }
}
