import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Errors of pairings and bonds with another cause than the known one. If BlueZ did not register the agent, the error named a
/// missing answer of the user; for a refused removal it named a wrong passkey, for a lost bus an adapter without power.
final class UntruePairingMessageTests: XCTestCase {
    private static let address: VirtualAddress = "C0:00:00:00:00:0A"

    private static let room = Room(peripherals: [
        VirtualPeripheral(
            address, addressType: .random, advertisement: Advertisement(localName: "Lock"), interval: 0.05,
            services: [VirtualService("B001", characteristics: [VirtualCharacteristic("B002", [.read])])],
            security: VirtualSecurity(.noInputNoOutput))
    ])

    private var simulator = Simulator.inProcess(room: room)
    private var manager: CentralManager?

    /// Begins again with another simulator.
    private func begin() {
        manager = nil
        simulator = Simulator.inProcess(room: Self.room)
    }

    /// The lock, found by a manager that has no policy so far.
    private func lock() throws -> Peripheral {
        let (manager, peripheral) = try simulator.firstPeripheral()
        self.manager = manager
        return peripheral
    }

    private func bondedLock() throws -> Peripheral {
        let lock = try lock()
        manager?.pairingPolicy = .justWorks
        XCTAssertNil(error(of: lock.pair()))
        return lock
    }

    private func error<T>(of future: Future<T>, within seconds: Double = 90) -> PairingError? {
        simulator.failure(of: future, within: seconds) as? PairingError
    }

    // MARK: The agent

    func testAnAgentThatBlueZDoesNotRegisterIsTheReasonWhenTheTimeIsOver() throws {
        let faults: [(name: String, begin: (Simulator) -> Void)] = [
            (
                "org.bluez.Error.Failed",
                { $0.simulateRefusedCalls(100, of: "RegisterAgent", error: .bluez("Failed", "Not now")) }
            ),
            ("org.freedesktop.DBus.Error.NoReply", { $0.simulateUnansweredCalls(100, of: "RegisterAgent") }),
        ]
        for (name, begin) in faults {
            for timeout in [5.0, 20] {
                self.begin()
                let lock = try lock()
                begin(simulator)
                manager?.pairingPolicy = .justWorks
                guard case .unauthorized(let failure)? = error(of: lock.pair(timeout: timeout)) else {
                    XCTFail("another error: \(name)")
                    continue
                }
                XCTAssertEqual(failure.name, name)
            }
        }
    }

    func testAPairThatTheBusForbidsIsNotAWrongPasskey() throws {
        let lock = try lock()
        manager?.pairingPolicy = .justWorks
        simulator.simulateRefusedCalls(
            of: "Pair", error: DaemonError(name: "org.freedesktop.DBus.Error.AccessDenied", message: "Rejected"))
        guard case .unauthorized(let failure)? = error(of: lock.pair()) else { return XCTFail("another error") }
        XCTAssertEqual(failure.name, "org.freedesktop.DBus.Error.AccessDenied")
    }

    // MARK: Removals

    func testARefusedRemovalSaysSo() throws {
        let lock = try bondedLock()
        let refuse = { [simulator] in
            simulator.simulateRefusedCalls(of: "RemoveDevice", error: .bluez("Failed", "Not now"))
        }
        let bond = try XCTUnwrap(manager?.bonds().first)
        for removal in [{ self.error(of: lock.unpair()) }, { self.error(of: lock.repair()) }] {
            refuse()
            let error = try XCTUnwrap(removal())
            guard case .removalFailed(let failure) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failure.message, "Not now")
            XCTAssertFalse(error.description.contains("passkey"), error.description)
        }
        refuse()
        guard case .removalFailed? = error(of: try XCTUnwrap(manager).forget(bond)) else { return XCTFail("no error") }
        XCTAssertTrue(lock.isBonded)
        XCTAssertNil(error(of: lock.unpair()))
    }

    func testARemovalThatBlueZDoesNotReplyToIsNoPairingThatTookTooLong() throws {
        let lock = try bondedLock()
        simulator.simulateUnansweredCalls(of: "RemoveDevice")
        guard case .removalFailed(let failure)? = error(of: lock.unpair(timeout: 5)) else {
            return XCTFail("another error")
        }
        XCTAssertEqual(failure.name, "org.freedesktop.DBus.Error.NoReply")
    }

    func testAMarkThatBlueZDoesNotSetIsNoFailedPairing() throws {
        let lock = try bondedLock()
        simulator.simulateRefusedCalls(of: "Set", error: .bluez("Failed", "Not now"))
        guard case .trustFailed? = error(of: lock.setTrusted(true)) else { return XCTFail("another error") }
    }

    // MARK: The bus

    func testWhatIsNotThereIsNamed() throws {
        let states: [(begin: (Simulator) -> Void, name: String, part: String)] = [
            ({ $0.simulatePowerOff() }, "org.bluez.Error.NotReady", "The adapter is off"),
            (
                { $0.simulateDaemonDeath() }, "org.freedesktop.DBus.Error.ServiceUnknown",
                "bluetoothd or the adapter has disappeared"
            ),
            ({ $0.simulateAdapterRemoval(0) }, "org.freedesktop.DBus.Error.ServiceUnknown", "or no adapter"),
        ]
        for (begin, name, part) in states {
            self.begin()
            let lock = try bondedLock()
            let bond = try XCTUnwrap(manager?.bonds().first)
            begin(simulator)
            simulator.advance(by: 1)
            for removal in [{ self.error(of: lock.pair()) }, { self.error(of: lock.unpair()) }] {
                guard case .unavailable(let failure)? = removal() else { return XCTFail("another error: \(part)") }
                XCTAssertEqual(failure.name, name)
                XCTAssertTrue(failure.message.contains(part), failure.message)
            }
            if name != "org.bluez.Error.NotReady" {
                guard case .unavailable(let failure)? = error(of: try XCTUnwrap(manager).forget(bond)) else {
                    return XCTFail("another error: \(part)")
                }
                XCTAssertTrue(failure.message.contains(part), failure.message)
            }
        }
    }

    // MARK: The state directory

    func testAStateThatIsNotRestoredNeedNotBeRenamed() {
        for text in [CentralManagerError.restoreFailed.description, PeripheralManagerError.restoreFailed.description] {
            XCTAssertFalse(text.contains("renamed") || text.contains("set aside"), text)
            XCTAssertTrue(text.contains("stateRestorationFailure"), text)
        }
    }

    // MARK: Advertisements

    /// Depending on the timing, BlueZ reports that there is no space, or another program has taken the last one.
    func testAFullAdapterHasOneErrorWhoeverWasFaster() throws {
        let simulator = Simulator.inProcess(room: .empty)
        func manager() -> PeripheralManager {
            let manager = try! PeripheralManager(configuration: .init(busAddress: simulator.address))
            XCTAssertTrue(simulator.advance(until: { manager.state == .poweredOn }, limit: 5))
            return manager
        }
        func error(of start: Future<RunningAdvertisement>) -> PeripheralManagerError? {
            simulator.failure(of: start, within: 20) as? PeripheralManagerError
        }
        let (first, second) = (manager(), manager())
        let data = AdvertisingData(localName: "Tag")
        let space = try XCTUnwrap(simulator.outcome(of: first.advertisingLimits()).available)
        for _ in 1..<space { XCTAssertNil(error(of: first.startAdvertising(data))) }
        // BlueZ reports to both that there is space for one.
        let starts = [first.startAdvertising(data), second.startAdvertising(data)]
        let errors = starts.map(error).compactMap { $0 }
        XCTAssertEqual(errors, [.tooManyAdvertisements(space)])
        XCTAssertEqual(error(of: second.startAdvertising(data)), .tooManyAdvertisements(space))
    }
}
