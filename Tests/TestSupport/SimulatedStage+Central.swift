import BlueZSimulator
import Foundation
import Futures

extension SimulatedStage: CentralStage {
    private var address: VirtualAddress { "C0:FF:EE:00:00:02" }

    private func services(of applications: [[StageService]]) -> [VirtualService] {
        applications.flatMap { $0 }.map { service in
            VirtualService(service.uuid, characteristics: service.characteristics.map(\.virtual))
        }
    }

    public func serve(_ peripheral: StagePeripheral) {
        simulator.add(
            VirtualPeripheral(
                address, addressType: .random,
                advertisement: Advertisement(localName: peripheral.name), interval: 0.1,
                services: services(of: peripheral.applications)),
            behavior: refusals)
        served = peripheral
    }

    public func silence() { simulator.remove(address) }

    public func drop() { simulator.simulateLinkLoss(of: address) }

    public func unregister(application: Int) {
        var applications = served?.applications ?? []
        applications[application] = []
        simulator.simulateServicesChanged(of: address, to: services(of: applications))
    }

    public func register(application: Int) {
        simulator.simulateServicesChanged(of: address, to: services(of: served?.applications ?? []))
    }

    /// The only one of its UUID, or the first.
    private func selector(_ key: String) -> AttributeSelector {
        let all = served?.services.flatMap(\.characteristics) ?? []
        return .uuid(all.first { $0.key == key }?.uuid ?? key)
    }

    public func value(of key: String) -> [UInt8] { simulator.value(of: selector(key), at: address) ?? [] }

    public func setValue(_ value: [UInt8], of key: String) { simulator.setValue(value, of: selector(key), at: address) }

    public func refuse(_ operation: StageOperation, of key: String, code: UInt8) {
        guard case .uuid(let uuid) = selector(key) else { return }
        refusals.set(operation, uuid, code)
    }

    public func notify(_ key: String, _ values: [[UInt8]]) {
        for value in values { simulator.notify(address, characteristic: selector(key), value: value) }
    }

    public func count(_ key: String, to count: Int) {
        simulator.simulateNotifications(count: count, size: 20, of: address, characteristic: selector(key))
    }
}

/// Answers with an error where it was told to.
final class StageRefusals: PeripheralBehavior {
    private let codes = Locked([String: UInt8]())

    func set(_ operation: StageOperation, _ uuid: String, _ code: UInt8) {
        codes.withLock { $0[operation.rawValue + uuid.lowercased()] = code }
    }

    private func answer(_ operation: StageOperation, _ attribute: VirtualAttribute) -> AttributeAnswer? {
        guard attribute.descriptor == nil else { return nil }
        return codes.withLock { $0[operation.rawValue + attribute.characteristic.lowercased()] }.map { .error($0) }
    }

    func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer {
        answer(.read, attribute) ?? .value(value)
    }

    func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer {
        answer(.write, attribute) ?? .done
    }
}
