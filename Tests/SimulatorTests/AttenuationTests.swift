import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// A peripheral that is not equally strong at all adapters, and one that has several links.
final class AttenuationTests: XCTestCase {
    private static let address = GattCast.strap.address

    private func scene(
        adapters: Int = 3, _ change: (inout VirtualPeripheral) -> Void = { _ in }
    ) -> (Simulator, BusClient) {
        var strap = GattCast.strap
        strap.rssi = .constant(-60)
        change(&strap)
        let simulator = Simulator.inProcess(
            room: Room(peripherals: [strap]), adapters: (0..<adapters).map { VirtualAdapter(index: $0) }, bluez: .v5_66)
        return (simulator, BusClient(simulator))
    }

    private func scan(_ client: BusClient, _ adapter: Int) {
        client.startScanning(on: ObjectPath(stringLiteral: "/org/bluez/hci\(adapter)"))
    }

    private func path(_ adapter: Int) -> ObjectPath {
        ObjectPath(stringLiteral: "/org/bluez/hci\(adapter)/dev_C0_00_00_00_00_01")
    }

    private func strength(_ client: BusClient, _ adapter: Int) -> String? {
        client.property("RSSI", at: path(adapter))
    }

    func testEachAdapterReceivesItsOwnStrength() {
        let (simulator, client) = scene()
        for adapter in 0..<3 { scan(client, adapter) }
        simulator.simulateAttenuation(of: Self.address, by: 25, adapter: 1)
        simulator.simulateAttenuation(of: Self.address, by: 41, adapter: 2)
        simulator.advance(by: 2)
        XCTAssertEqual(strength(client, 0), "-60")
        XCTAssertEqual(strength(client, 1), "-85")
        XCTAssertFalse(client.objects().contains { $0.hasPrefix("/org/bluez/hci2/dev") }, "nothing is left of it")
        simulator.simulateAttenuation(of: Self.address, by: 40, adapter: 2)
        simulator.simulateAttenuation(of: Self.address, by: 0, adapter: 1)
        simulator.advance(by: 2)
        XCTAssertEqual(strength(client, 2), "-100")
        XCTAssertEqual(strength(client, 1), "-60")
    }

    func testAWalkIsTheSameLessTheLoss() {
        let (simulator, client) = scene { $0.rssi = .steps([.init(after: 0, rssi: -50), .init(after: 10, rssi: -70)]) }
        for adapter in 0..<2 { scan(client, adapter) }
        simulator.simulateAttenuation(of: Self.address, by: 12, adapter: 1)
        simulator.advance(by: 5)
        XCTAssertEqual([strength(client, 0), strength(client, 1)], ["-50", "-62"])
        simulator.advance(by: 10)
        XCTAssertEqual([strength(client, 0), strength(client, 1)], ["-70", "-82"])
    }

    func testTheAttenuationStaysWhenThePeripheralChanges() {
        let (simulator, client) = scene()
        scan(client, 1)
        simulator.simulateAttenuation(of: Self.address, by: 10, adapter: 1)
        simulator.add(VirtualPeripheral(Self.address, addressType: .random, rssi: .constant(-40)))
        simulator.advance(by: 2)
        XCTAssertEqual(strength(client, 1), "-50")
    }

    /// The link ends at the adapter that the peripheral leaves, and comes up at the one that it approaches.
    func testALinkEndsOutOfReachAndAnAttemptWaits() {
        let (simulator, client) = scene()
        simulator.simulateAttenuation(of: Self.address, by: 0, adapter: 0)
        for adapter in 0..<2 { scan(client, adapter) }
        simulator.advance(by: 2)
        XCTAssertNil(client.error(of: "Connect", at: path(0)))
        simulator.simulateAttenuation(of: Self.address, by: 100, adapter: 1)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links.map(\.adapter), [0], "another adapter's loss ends no link")
        let second = client.begin("Connect", at: path(1))
        simulator.simulateAttenuation(of: Self.address, by: 41, adapter: 0)
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.links.map(\.adapter), [])
        XCTAssertEqual(client.property("Connected", at: path(0)), "false")
        XCTAssertNil(second.succeeded)
        simulator.simulateAttenuation(of: Self.address, by: 20, adapter: 1)
        simulator.advance(by: 1)
        XCTAssertEqual(second.succeeded, true)
        XCTAssertEqual(simulator.links.map(\.adapter), [1])
    }

    func testAnAttemptOutOfReachFailsAfterItsTimeAndBlocksNoOther() {
        let (simulator, client) = scene()
        for adapter in 0..<2 { scan(client, adapter) }
        simulator.advance(by: 2)
        simulator.simulateAttenuation(of: Self.address, by: 60, adapter: 0)
        let first = client.begin("Connect", at: path(0))
        simulator.advance(by: 1)
        XCTAssertNil(client.error(of: "Connect", at: path(1)))
        simulator.advance(by: 40)
        XCTAssertEqual(first.error?.message, "le-connection-abort-by-local")
        XCTAssertEqual(simulator.links.map(\.adapter), [1])
    }

    func testAnUnknownAddressHasNoEffect() {
        let (simulator, client) = scene(adapters: 1)
        scan(client, 0)
        simulator.simulateAttenuation(of: "C0:00:00:00:00:99", by: 50)
        simulator.advance(by: 2)
        XCTAssertEqual(strength(client, 0), "-60")
    }

    // MARK: Several links

    func testAConnectedPeripheralIsQuietUnlessItIsOneThatAdvertises() {
        for advertises in [false, true] {
            let (simulator, client) = scene { $0.advertisesWhileConnected = advertises }
            scan(client, 0)
            simulator.advance(by: 2)
            XCTAssertNil(client.error(of: "Connect", at: path(0)))
            scan(client, 1)
            simulator.advance(by: 5)
            XCTAssertEqual(strength(client, 1), advertises ? "-60" : nil)
            // With one link it takes no other.
            guard advertises else { continue }
            let second = client.begin("Connect", at: path(1))
            simulator.advance(by: 5)
            XCTAssertNil(second.succeeded)
            XCTAssertEqual(simulator.links.map(\.adapter), [0])
        }
    }

    func testItTakesAsManyLinksAsItsLimitAndNotifiesOverEach() {
        let (simulator, client) = scene {
            $0.advertisesWhileConnected = true
            $0.linkLimit = 2
        }
        for adapter in 0..<3 { scan(client, adapter) }
        simulator.advance(by: 2)
        for adapter in 0..<2 {
            XCTAssertNil(client.error(of: "Connect", at: path(adapter)))
            simulator.advance(by: 1)
            let rate = ObjectPath(stringLiteral: path(adapter).rawValue + "/service000a/char000b")
            XCTAssertNil(client.error(of: "StartNotify", at: rate))
        }
        let third = client.begin("Connect", at: path(2))
        simulator.advance(by: 1)
        XCTAssertNil(third.succeeded)
        _ = client.takeLog()
        simulator.notify(Self.address, characteristic: "2A37", value: [0, 80])
        simulator.advance(by: 1)
        XCTAssertEqual(client.takeLog().filter { $0.contains("Value=") }.count, 2)
        simulator.simulateAttenuation(of: Self.address, by: 100, adapter: 0)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links.map(\.adapter).sorted(), [1, 2], "the third takes the place of the first")
        XCTAssertEqual(third.succeeded, true)
    }

    func testTheOptionsAreReadFromFilesAndWritten() throws {
        var peripheral = VirtualPeripheral("C0:00:00:00:00:01")
        peripheral.advertisesWhileConnected = true
        peripheral.linkLimit = 3
        let json =
            #"{"peripherals": [{"address": "C0:00:00:00:00:01", "advertisesWhileConnected": true, "linkLimit": 3}]}"#
        XCTAssertEqual(try Room.decoded(from: Data(json.utf8)).peripherals, [peripheral])
        XCTAssertEqual(
            try JSONDecoder().decode(VirtualPeripheral.self, from: JSONEncoder().encode(peripheral)), peripheral)
        peripheral.linkLimit = 0
        XCTAssertEqual(peripheral.linkLimit, 1)
        let wrong = json.replacingOccurrences(of: "3", with: "17")
        XCTAssertThrowsError(try Room.decoded(from: Data(wrong.utf8))) {
            XCTAssertTrue("\($0)".contains("linkLimit: 17 is not a whole number from 1 to 16"), "\($0)")
        }
    }
}
