import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

extension VirtualPeripheral {
    /// A peripheral with one service, 180D, of these characteristics.
    static func strap(_ characteristics: [VirtualCharacteristic] = [], link: VirtualLink = VirtualLink()) -> Self {
        Self(
            "C0:00:00:00:00:01", advertisement: Advertisement(localName: "Strap"), interval: 0.1,
            services: [VirtualService("180D", characteristics: characteristics)], link: link)
    }
}

extension CharacteristicIdentifier {
    /// A characteristic of the service 180D.
    static func strap(_ uuid: String) -> Self { Self(uuid: uuid, service: ServiceIdentifier(uuid: "180D")) }
}

extension Simulator {
    /// Starts a central manager on this bus, and waits until it is powered on.
    func centralManager(
        adapter: String? = nil, pairingPolicy: PairingPolicy = .reject, file: StaticString = #filePath,
        line: UInt = #line
    ) throws -> CentralManager {
        let manager = try CentralManager(
            configuration: .init(busAddress: address, adapter: adapter, pairingPolicy: pairingPolicy))
        expect("power", within: 5, file: file, line: line) { manager.poweredOn }
        return manager
    }

    /// Starts a central manager on this bus, and returns it with the first peripheral that it discovers.
    func firstPeripheral(
        pairingPolicy: PairingPolicy = .reject, file: StaticString = #filePath, line: UInt = #line
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        let manager = try centralManager(pairingPolicy: pairingPolicy, file: file, line: line)
        let scan = manager.startScanning()
        expect("a discovery", within: 5, file: file, line: line) { !manager.peripherals.isEmpty }
        manager.stopScanning()
        withExtendedLifetime(scan) {}
        return (manager, try XCTUnwrap(manager.peripherals.first, file: file, line: line))
    }

    /// Adds a peripheral, starts a central manager that discovers it, and connects.
    func connected(
        to device: VirtualPeripheral, pairingPolicy: PairingPolicy = .reject, file: StaticString = #filePath,
        line: UInt = #line
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        add(device)
        let (manager, peripheral) = try firstPeripheral(pairingPolicy: pairingPolicy, file: file, line: line)
        peripheral.connect()
        expect("a link", within: 20, file: file, line: line) { peripheral.state == .connected }
        return (manager, peripheral)
    }
}
