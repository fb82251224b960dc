import BlueCapKit
import BlueZSimulator
import XCTest

/// Where the declarations and examples of the document on the peripheral role are tried, and a central comes by.
class PeripheralCase: DocumentedCase, @unchecked Sendable {
    /// A manager as each documented example makes it. The bus address is the only thing of ours.
    func documentedPeripheralManager() -> PeripheralManager {
        PeripheralManager(options: [
            CBPeripheralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.peripheral-manager-documentation"
                as NSString,
            "PeripheralManagerOptionBusAddressKey": simulator.address,
        ])
    }

    /// The same, when it has found Bluetooth on.
    func poweredPeripheralManager() -> PeripheralManager {
        let manager = documentedPeripheralManager()
        eventually("poweredOn") { manager.poweredOn }
        return manager
    }

    /// The document's service with its characteristic.
    func accelerometer() -> (MutableService, MutableCharacteristic) {
        let service = MutableService(uuid: TISensorTag.AccelerometerService.uuid)
        let characteristic = MutableCharacteristic(
            profile: RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
        service.characteristics = [characteristic]
        return (service, characteristic)
    }

    /// A characteristic of an added service that is advertised, so that centrals can connect.
    func served(
        _ characteristic: MutableCharacteristic, by manager: PeripheralManager
    ) throws -> MutableCharacteristic {
        let service = MutableService(uuid: TISensorTag.AccelerometerService.uuid)
        service.characteristics = [characteristic]
        try outcome(manager.add(service))
        try outcome(manager.startAdvertising("Sensor"))
        return characteristic
    }

    /// A central that is connected.
    func visitor() -> CentralLink {
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"))
        eventually("the link") { link.state == .connected }
        return link
    }

    func answer(to request: CentralRequest) -> Result<[UInt8], CentralLinkError>? {
        eventually("an answer") { request.result != nil }
        return request.result
    }

    /// The services that BlueZ has, in its long form.
    var offered: [String] { simulator.applications.flatMap(\.services).map { $0.uuid.uppercased() } }
}
