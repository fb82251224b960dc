public import BlueZSimulator
import Foundation
import BlueCapFutures

extension SimulatedStage: CentralStage {
    var address: VirtualAddress { hasPrivateAddress ? "4A:FF:EE:00:00:02" : "C0:FF:EE:00:00:02" }

    private func services(of applications: [[StageService]]) -> [VirtualService] {
        applications.flatMap { $0 }.map { $0.virtual() }
    }

    public func serve(_ peripheral: StagePeripheral) {
        simulator.add(peripheral.virtual(address, security: security), behavior: refusals)
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

extension StagePeripheral {
    /// The peripheral as the simulator has it. Its objects are late, as the radio lab has them at a first connection.
    /// - Parameter handle: That of the first service; nil for the first free one.
    public func virtual(
        _ address: VirtualAddress, security: VirtualSecurity = VirtualSecurity(), handle: UInt16? = nil
    ) -> VirtualPeripheral {
        let services = services.enumerated().map { $1.virtual(handle: $0 == 0 ? handle : nil) }
        return VirtualPeripheral(
            address, addressType: .random,
            advertisement: Advertisement(localName: name, serviceUUIDs: advertised), interval: 0.1,
            services: services, link: VirtualLink(exportDelay: 0.001), security: security)
    }
}

extension StageService {
    func virtual(handle: UInt16? = nil) -> VirtualService {
        VirtualService(uuid, characteristics: characteristics.map(\.virtual), handle: handle)
    }
}

/// Responds to the chosen operations with an error.
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
