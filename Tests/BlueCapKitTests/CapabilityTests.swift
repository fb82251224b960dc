import BlueCapKit
import BlueZSimulator
import Foundation
import BlueCapFutures
import BlueCapGATT
import XCTest

/// What managers say that BlueZ can do.
final class CapabilityTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)

    private func central() -> CentralManager {
        try! CentralManager(configuration: .init(busAddress: simulator.address))
    }

    func testCapabilitiesAreKnownWhenTheAdapterIs() {
        let manager = central()
        XCTAssertEqual(manager.capabilities, BluetoothCapabilities())
        let atPowerOn = Locked<BluetoothCapabilities?>(nil)
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { [weak manager] state in
            if state == .poweredOn { atPowerOn.withLock { $0 = manager?.capabilities } }
        }
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        simulator.advance(by: 1)

        XCTAssertNotNil(manager.capabilities.version)
        XCTAssertEqual(atPowerOn.withLock { $0 }, manager.capabilities)
        XCTAssertTrue(manager.capabilities.serviceFilter)
    }

    func testBothRolesHaveTheSame() throws {
        let manager = central()
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 5))
        XCTAssertEqual(manager.capabilities, peripheral.capabilities)
        XCTAssertNotEqual(peripheral.capabilities, BluetoothCapabilities())
    }

    func testARestartedDaemonGetsANewValue() throws {
        let manager = central()
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let reported = Locked<[[BluetoothCapabilities]]>([[], []])
        manager.whenCapabilitiesChange().onSuccess(context: ImmediateContext()) { value in
            reported.withLock { $0[0].append(value) }
        }
        peripheral.whenCapabilitiesChange().onSuccess(context: ImmediateContext()) { value in
            reported.withLock { $0[1].append(value) }
        }
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 5))
        let known = manager.capabilities
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        XCTAssertEqual(manager.capabilities, BluetoothCapabilities())
        XCTAssertEqual(peripheral.capabilities, BluetoothCapabilities())
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 20))
        XCTAssertEqual(manager.capabilities, known)
        let expected = [known, BluetoothCapabilities(), known]
        XCTAssertEqual(reported.withLock { $0 }, [expected, expected])
    }

    func testARefusedWriteNamesTheServicesThatBlueZUsesItself() {
        let refusal = BusError(
            name: "org.bluez.Error.NotAuthorized", message: "Operation Not Authorized",
            attError: .insufficientAuthorization)
        XCTAssertTrue(CharacteristicError.writeFailed(refusal).description.contains("ExportClaimedServices"))
    }

    func testTheyCanBeWrittenAsJSON() throws {
        var value = BluetoothCapabilities()
        value.version = .init(5, 82)
        value.secondaryChannels = [.coded, .twoMegabit]
        value.advertisingPowerRange = -34...7
        value.maximumAdvertisingLength = 251
        let data = try JSONEncoder().encode(value)
        XCTAssertEqual(try JSONDecoder().decode(BluetoothCapabilities.self, from: data), value)
        XCTAssertEqual(value.version?.description, "5.82")
        XCTAssertLessThan(BluetoothCapabilities.Version(5, 66), .init(5, 82))
    }
}
