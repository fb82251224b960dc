import BlueCapKit
import BlueZSimulator
import XCTest

/// Blocks of Documentation/Simulator.md on the simulator in process, line for line.
final class SimulatorGuideTests: XCTestCase {
    func testAPeripheralOfAnEmptyRoomIsDiscovered() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let tag = VirtualPeripheral("C0:FF:EE:00:00:01", rssi: -48, advertisement: Advertisement(localName: "Tag"))
        simulator.add(tag)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let found = try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            return try await manager.startScanning(timeout: .seconds(30)).first().value
        }
        XCTAssertEqual(found.name, "Tag")
    }

    final class Lock: PeripheralBehavior {
        func write(
            _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
            at seconds: TimeInterval
        ) -> AttributeAnswer {
            bytes == [1, 2, 3, 4] ? .done : .error(0x80)
        }
    }

    func testAPeripheralHasServicesAndABehaviour() throws {
        let strap = VirtualPeripheral(
            "C0:FF:EE:00:18:0D", addressType: .random,
            advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]),
            services: [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic(
                            "2A37", [.notify], notifications: .cycle([[0, 72], [0, 74]], every: 1)),
                        VirtualCharacteristic("2A38", [.read], value: [1]),
                        VirtualCharacteristic("2A39", [.write], descriptors: [.description("Reset")]),
                    ])
            ],
            link: VirtualLink(callLatency: 0.03, mtu: 185))

        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(strap, behavior: Lock())
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        simulator.advance(by: 1)
        let found = manager.startScanning().first()
        simulator.advance(by: 5)
        guard let peripheral = found.result?.value else { return XCTFail("No peripheral was discovered.") }
        peripheral.connect().onFailure(context: ImmediateContext()) { XCTFail("\($0)") }
        simulator.advance(by: 5)
        let service = ServiceIdentifier(uuid: "180D")
        let place: Future<UInt8> = peripheral.read(CharacteristicIdentifier(uuid: "2A38", service: service))
        let control = CharacteristicIdentifier(uuid: "2A39", service: service)
        let values = peripheral.notifications(CharacteristicIdentifier(uuid: "2A37", service: service)).take(2)
            .collect()
        let (refused, accepted) = (
            peripheral.write(Data([1]), to: control), peripheral.write(Data([1, 2, 3, 4]), to: control)
        )
        simulator.advance(by: 10)
        XCTAssertEqual(place.result?.value, 1)
        XCTAssertEqual(values.result?.value, [Data([0, 72]), Data([0, 74])])
        guard case .writeFailed(let failure)? = refused.result?.error as? CharacteristicError else {
            return XCTFail("\(String(describing: refused.result))")
        }
        XCTAssertEqual(failure.attError?.rawValue, 0x80)
        XCTAssertEqual(accepted.result?.isSuccess(), true)
    }

    func testACentralReadsAndSubscribes() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let service = MutableService(uuid: "180F")
        let rate = MutableCharacteristic(
            uuid: "2A37", properties: .notify, permissions: .readable, value: Data([0, 72]))
        service.characteristics = [
            MutableCharacteristic(uuid: "2A19", properties: .read, permissions: .readable, value: Data([80])), rate,
        ]
        let advertised = manager.add(service).flatMap(context: ImmediateContext()) {
            manager.startAdvertising("Battery", uuids: [service.uuid])
        }
        simulator.advance(by: 5)
        XCTAssertEqual(advertised.result?.isSuccess(), true)

        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", mtu: 185), to: 0)
        simulator.advance(by: .seconds(1))
        let level = phone.read("2A19")
        phone.subscribe(to: "2A37")
        simulator.advance(by: .seconds(1))
        // level.result, phone.values …
        XCTAssertEqual(level.bytes, [80])
        XCTAssertNoThrow(try rate.update(withData: Data([0, 74])))
        simulator.advance(by: 1)
        XCTAssertEqual(phone.values.map(\.bytes), [[0, 74]])
    }

    func testAnEncryptedValueIsReadAfterAComparison() async throws {
        let lock = VirtualPeripheral(
            "C0:FF:EE:00:10:CC",
            services: [VirtualService("B001", characteristics: [VirtualCharacteristic("B002", security: .encrypted)])],
            security: VirtualSecurity(.displayYesNo, user: VirtualUser(confirms: .accept(after: 2))))
        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(lock)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: .ask))
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { $0.confirm() }
        await simulator.advance(by: 1)
        let found = manager.startScanning().first()
        await simulator.advance(by: 5)
        let peripheral = try XCTUnwrap(found.result?.value)
        let state = CharacteristicIdentifier(uuid: "B002", service: ServiceIdentifier(uuid: "B001"))
        let value = Task(executorPreference: simulator.taskExecutor) {
            try await peripheral.run(timeout: .seconds(30)) { try await $0.read(state) as Data }
        }
        await simulator.advance(by: 20)
        let data = try await value.value
        XCTAssertEqual(data, Data())
        XCTAssertTrue(peripheral.isBonded)
    }
}
