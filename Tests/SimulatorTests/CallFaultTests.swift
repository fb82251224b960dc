import BlueCapDBus
import XCTest

@testable import BlueZSimulator

/// Calls that fail or get no reply, and peripherals out of range.
final class CallFaultTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:02"
    private let path: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_02"

    private func scene() -> (Simulator, BusClient) {
        let tag = VirtualPeripheral(
            address, addressType: .random, advertisement: Advertisement(localName: "Tag"), interval: 1,
            services: [VirtualService("180F", characteristics: [VirtualCharacteristic("2A19", [.read], value: [1])])])
        let simulator = Simulator.inProcess(room: Room(peripherals: [tag]), bluez: .v5_66)
        return (simulator, BusClient(simulator))
    }

    func testTheNextCallOfAMethodIsRefusedAndTheOneAfterItIsNot() {
        let (simulator, client) = scene()
        simulator.simulateRefusedCalls(of: "StartDiscovery", error: .bluez("NotReady", "Not now"))
        XCTAssertEqual(client.property("Powered"), "true")
        let error = client.error(of: "StartDiscovery")
        XCTAssertEqual(error, .bluez("NotReady", "Not now"))
        XCTAssertNil(client.error(of: "StartDiscovery"))
    }

    func testAnyCallIsRefusedAsOftenAsAskedFor() {
        let (simulator, client) = scene()
        simulator.simulateRefusedCalls(2)
        XCTAssertEqual(client.property("Powered"), nil)
        XCTAssertEqual(client.objects(), [])
        XCTAssertEqual(client.property("Powered"), "true")
    }

    func testACallThatIsNotAnsweredHasNoEffectAndEndsWithItsTimeLimit() {
        let (simulator, client) = scene()
        simulator.simulateUnansweredCalls(of: "StartDiscovery")
        let result = client.call("StartDiscovery", within: 3)
        guard case .failure(let error)? = result else { return XCTFail("\(String(describing: result))") }
        XCTAssertEqual(error.name, "org.freedesktop.DBus.Error.NoReply")
        XCTAssertEqual(simulator.discoverySessions, [])
        XCTAssertNil(client.error(of: "StartDiscovery"))
    }

    func testAPeripheralOutOfRangeLosesItsLinkAndIsNotDiscoveredUntilItIsBack() {
        let (simulator, client) = scene()
        client.startScanning()
        simulator.advance(by: 1.5)
        XCTAssertNil(client.error(of: "Connect", at: path))
        XCTAssertEqual(simulator.links.map(\.address), [address])

        simulator.simulateOutOfRange(of: address)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(client.property("Connected", at: path), "false")
        let received = simulator.statistics.sightings
        simulator.advance(by: 10)
        XCTAssertEqual(simulator.statistics.sightings, received)

        let attempt = client.begin("Connect", at: path)
        simulator.advance(by: 10)
        XCTAssertNil(attempt.succeeded)
        simulator.simulateOutOfRange(false, of: address)
        simulator.advance(by: 1)
        XCTAssertEqual(attempt.succeeded, true)
        XCTAssertEqual(simulator.links.map(\.address), [address])
    }
}
