import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

final class FaultTests: XCTestCase {
    private let tag = VirtualPeripheral(
        "C0:00:00:00:00:02", addressType: .random, advertisement: Advertisement(localName: "Tag"), interval: 1)
    private let old = VirtualPeripheral(
        "C0:00:00:00:00:07", advertisement: Advertisement(localName: "Old"), isRemembered: true)

    private func scene() -> (Simulator, BusClient) {
        let simulator = Simulator.inProcess(room: Room(peripherals: [tag, old]), bluez: .v5_66)
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 1.5)
        _ = client.takeLog()
        return (simulator, client)
    }

    func testPowerOffEndsTheScanAndPowerOnDoesNotBringItBack() {
        let (simulator, client) = scene()
        simulator.simulatePowerOff()
        simulator.advance(by: 5)
        client.expectLog("- dev_C0_00_00_00_00_02", "hci0 Powered=false Discovering=false Class=0")
        simulator.simulatePowerOn()
        simulator.advance(by: 5)
        client.expectLog("hci0 Powered=true Class=7078156")
        XCTAssertEqual(simulator.discoverySessions, [])
        XCTAssertEqual(client.error(of: "StopDiscovery")?.message, "No discovery started")
    }

    func testRfkillHoldsTheAdapterOff() {
        let (simulator, client) = scene()
        simulator.simulateRfkill(true)
        simulator.run()
        XCTAssertEqual(client.property("Powered"), "false")
        XCTAssertEqual(client.set("Powered", .bool(true)), .bluez("Blocked", "Blocked through rfkill"))
        simulator.simulateRfkill(false)
        simulator.run()
        XCTAssertEqual(client.property("Powered"), "true")
    }

    func testAnAdapterIsPulledOutAndPluggedIn() {
        let (simulator, client) = scene()
        simulator.simulateAdapterRemoval()
        client.expectLog("- dev_C0_00_00_00_00_07", "- dev_C0_00_00_00_00_02", "- hci0")
        XCTAssertEqual(client.objects(), ["/org/bluez"])
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.freedesktop.DBus.Error.UnknownObject")
        simulator.simulateAdapterAddition()
        client.expectLog("+ hci0", "+ dev_C0_00_00_00_00_07")
    }

    func testADeadDaemonIsGoneWithoutAWordAndReturnsWithWhatItStored() {
        let (simulator, client) = scene()
        simulator.simulateDaemonDeath()
        simulator.advance(by: 60)
        client.expectLog("gone")
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.freedesktop.DBus.Error.NameHasNoOwner")
        XCTAssertEqual(simulator.devices, [])
        simulator.simulateDaemonReturn()
        client.expectLog("back")
        XCTAssertEqual(
            client.objects(), ["/org/bluez", "/org/bluez/hci0", "/org/bluez/hci0/dev_C0_00_00_00_00_07"])
        XCTAssertEqual(simulator.discoverySessions, [])
        client.startScanning()
        simulator.advance(by: 2)
        XCTAssertTrue(client.takeLog().contains("+ dev_C0_00_00_00_00_02"))
    }

    func testStartsFailAsOftenAsWasSaid() {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        let client = BusClient(simulator)
        simulator.simulateStartDiscoveryFailures(2)
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.bluez.Error.InProgress")
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.bluez.Error.InProgress")
        XCTAssertNil(client.error(of: "StartDiscovery"))
        simulator.simulateStartDiscoveryFailures(1, error: .failed("Input/output error"))
        XCTAssertEqual(BusClient(simulator).error(of: "StartDiscovery"), .bluez("Failed", "Input/output error"))
    }

    func testADiscoveryDiesWithOrWithoutAWord() {
        let (simulator, client) = scene()
        simulator.simulateDiscoveryDeath(isAnnounced: false)
        simulator.advance(by: 5)
        client.expectLog()
        XCTAssertEqual(client.property("Discovering"), "true")
        XCTAssertNil(client.error(of: "StopDiscovery"))
        XCTAssertNil(client.error(of: "StartDiscovery"))
        simulator.advance(by: 2)
        XCTAssertTrue(client.takeLog().contains { $0.contains("RSSI=") }, "a new start receives again")
        simulator.simulateDiscoveryDeath()
        simulator.advance(by: 5)
        XCTAssertEqual(client.takeLog().last, "hci0 Discovering=false")
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.bluez.Error.InProgress")
    }

    func testRefusedCallersReceiveAccessDeniedForEveryCall() {
        let (simulator, client) = scene()
        simulator.simulateAccessDenied()
        XCTAssertEqual(client.error(of: "StopDiscovery")?.name, DBusError.Name.accessDenied)
        XCTAssertEqual(client.error(of: "GetManagedObjects", at: "/")?.name, DBusError.Name.accessDenied)
        simulator.simulateAccessDenied(false)
        XCTAssertNil(client.error(of: "StopDiscovery"))
    }

    func testSlowRepliesComeLateAndSignalsDoNot() {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        let client = BusClient(simulator)
        simulator.simulateSlowReplies(by: 10)
        let before = simulator.seconds
        XCTAssertNil(client.error(of: "StartDiscovery"))
        XCTAssertEqual(simulator.seconds - before, 10, accuracy: 0.001)
        client.expectLog("hci0 Discovering=true")
    }

    func testWrongTypesAreOnTheWire() {
        let (simulator, client) = scene()
        simulator.simulateWrongTypes(of: tag.address, properties: ["RSSI", "Name"])
        client.expectLog("dev_C0_00_00_00_00_02 Name=2989 RSSI=not what you expect")
        simulator.simulateWrongTypes(of: tag.address, properties: [])
        client.expectLog("dev_C0_00_00_00_00_02 Name=Tag RSSI=-60")
    }

    func testASightingOnDemandIsReceivedAtOnce() {
        let (simulator, client) = scene()
        simulator.simulateSighting(of: tag.address, rssi: -33)
        client.expectLog("dev_C0_00_00_00_00_02 RSSI=-33")
    }

    func testAPeripheralTakenOutOfTheRoomIsForgottenHalfAMinuteLater() {
        let (simulator, client) = scene()
        simulator.remove(tag.address)
        simulator.advance(by: 28)
        client.expectLog()
        simulator.advance(by: 2.5)
        client.expectLog("- dev_C0_00_00_00_00_02")
    }

    func testAnEndedSimulatorIsOffTheBus() {
        let (simulator, client) = scene()
        simulator.end()
        client.expectLog("gone")
    }
}
