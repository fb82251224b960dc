import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// One process, both roles, no radio.
final class BothRolesTests: PeripheralStage {
    override func setUp() {
        super.setUp()
        simulator = Simulator.inProcess(room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
    }

    private func central() -> CentralManager {
        let manager = try! CentralManager(configuration: .init(busAddress: simulator.address, adapter: "hci0"))
        wait { manager.poweredOn }
        return manager
    }

    private func find(_ manager: CentralManager) throws -> Peripheral {
        let sightings = Elements(manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")]))
        wait { sightings.count > 0 }
        manager.stopScanning()
        return try XCTUnwrap(sightings.values.first)
    }

    func testACentralOfThisProcessFindsConnectsAndTalks() throws {
        let manager = makeManager(adapter: "hci1")
        let service = Self.heart()
        try value(of: manager.add(service))
        try value(of: manager.startAdvertising("Strap", uuids: [service.uuid]))
        let (measurement, control) = (service.characteristics[0], service.characteristics[1])
        let requests = Elements(control.startRespondingToWriteRequests())

        let central = central()
        let peripheral = try find(central)
        XCTAssertEqual(peripheral.name, "Strap")
        let events = Elements(peripheral.connect())
        wait(30) { events.values.last?.connectionEvent == .connect }
        let discovered: Future<Peripheral> = peripheral.discoverAllServices()
        try value(of: discovered)
        let heart = try XCTUnwrap(peripheral.service(service.uuid))
        let found: Future<Service> = heart.discoverAllCharacteristics()
        try value(of: found)
        let remote = try XCTUnwrap(heart.characteristic(measurement.uuid))
        let read: Future<Characteristic> = remote.read()
        XCTAssertEqual(try value(of: read).dataValue, Data([0, 60]))

        let started: Future<Characteristic> = remote.startNotifying()
        try value(of: started)
        let values: FutureStream<Data> = remote.receiveNotificationUpdates()
        let received = Elements(values)
        for number in 0..<500 { try measurement.update(withData: Data([UInt8(number & 0xFF), UInt8(number >> 8)])) }
        wait(60) { received.count == 500 }
        XCTAssertEqual(received.values, (0..<500).map { Data([UInt8($0 & 0xFF), UInt8($0 >> 8)]) })

        let target = try XCTUnwrap(heart.characteristic(control.uuid))
        let written: Future<Characteristic> = target.write(data: Data([7]))
        wait { requests.count == 1 }
        XCTAssertEqual(requests.values[0].request.value, Data([7]))
        control.respondToRequest(requests.values[0].request, withResult: .success)
        try value(of: written)

        peripheral.disconnect()
        wait { !measurement.isUpdating }
    }
}
