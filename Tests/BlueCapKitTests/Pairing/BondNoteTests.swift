import BlueCapBlueZ
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

@testable import BlueCapKit

/// What is known of a bond beyond what BlueZ reports: that it was refused, and that links with it end.
final class BondNoteTests: LockTestCase {
    private lazy var folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "bluecap-notes-\(UUID().uuidString)")
    private var configuration: CentralManager.Configuration {
        CentralManager.Configuration(stateDirectory: folder.path)
    }

    override func tearDown() {
        try? FileManager.default.removeItem(at: folder)
        super.tearDown()
    }

    /// The next process: nothing of the last one is left but its files.
    private func endProcess() {
        manager = nil
        requests.withLock { $0 = [] }
        simulator.advance(by: 10)
    }

    // MARK: Refused passkeys

    private struct Fault {
        let name: String
        let begin: (Simulator) -> Void
        let end: (Simulator) -> Void
    }

    private let faults = [
        Fault(name: "power", begin: { $0.simulatePowerOff() }, end: { $0.simulatePowerOn() }),
        Fault(name: "daemon", begin: { $0.simulateDaemonDeath() }, end: { $0.simulateDaemonReturn() }),
        Fault(name: "clean end", begin: { $0.simulateDaemonStop() }, end: { $0.simulateDaemonReturn() }),
    ]

    /// How many devices BlueZ has keys of, also of bonds that count as none.
    private func bondCount() -> Int {
        guard let session = manager?.session, let adapter = session.core.withLock({ $0.shell.adapter }) else {
            return -1
        }
        var count = 0
        session.client.daemon.forEachDevice(on: adapter) { _, device in if device.hasKeys { count += 1 } }
        return count
    }

    /// Refuses a passkey that the user of the lock enters nevertheless. The fault occurs before BlueZ has ended the link.
    private func refuse(isPrivate: Bool, _ begin: (Simulator) -> Void) throws -> Peripheral {
        beginAgain()
        let user = VirtualUser(passkey: .displayed(after: 0.2))
        var security = VirtualSecurity(.keyboardOnly, user: user)
        if isPrivate { security.privacy = VirtualPrivacy(identity: "00:1B:DC:00:00:01") }
        let peripheral = try lock(.ask(.displayOnly), security, configuration: configuration)
        answer { $0.reject() }
        XCTAssertNotNil(error(of: read(encrypted, of: peripheral), within: 3))
        simulator.advance(by: 0.5)
        begin(simulator)
        return peripheral
    }

    func testTheBondOfARefusedPasskeyIsRemovedWhenPowerAndDaemonReturn() throws {
        for isPrivate in [false, true] {
            for fault in faults {
                let what = "\(fault.name) private: \(isPrivate)"
                let peripheral = try refuse(isPrivate: isPrivate, fault.begin)
                simulator.advance(by: 3)
                XCTAssertFalse(peripheral.isBonded, what)
                fault.end(simulator)
                simulator.advance(by: 20)
                XCTAssertFalse(peripheral.isBonded, what)
                XCTAssertEqual(manager?.bonds(), [], what)
                XCTAssertEqual(bondCount(), 0, what)
            }
        }
    }

    func testTheNextProcessRemovesTheBondOfARefusedPasskey() throws {
        for fault in faults {
            _ = try refuse(isPrivate: false, fault.begin)
            endProcess()
            fault.end(simulator)
            simulator.advance(by: 2)
            // A program that knows nothing of the refusal.
            XCTAssertTrue(try find(.reject).isBonded, "there is nothing to remove: \(fault.name)")
            endProcess()
            let peripheral = try find(.ask(.displayOnly), configuration)
            simulator.advance(by: 10)
            XCTAssertEqual(bondCount(), 0, fault.name)
            XCTAssertFalse(peripheral.isBonded, fault.name)
            // Another pairing is possible, and its bond stays.
            answer { _ in }
            XCTAssertNil(error(of: peripheral.pair()), fault.name)
            simulator.advance(by: 20)
            XCTAssertTrue(peripheral.isBonded, fault.name)
            endProcess()
            XCTAssertTrue(try find(.ask(.displayOnly), configuration).isBonded, fault.name)
            endProcess()
        }
    }

    func testNoOperationUsesALinkThatARefusedBondEncrypts() throws {
        let peripheral = try refuse(isPrivate: false) { $0.simulatePowerOff() }
        simulator.advance(by: 1)
        simulator.simulateRefusedCalls(1_000, of: "RemoveDevice", error: .bluez("Failed", "Not now"))
        simulator.simulatePowerOn()
        peripheral.connect()
        let value = read(encrypted, of: peripheral)
        simulator.advance(by: 30)
        if case .success(let data)? = value.result { XCTFail("read \(data)") }
        XCTAssertFalse(peripheral.isBonded)
    }

    // MARK: Dead bonds

    func testAPairingWithADeadBondFails() throws {
        let peripheral = try lock(.justWorks, configuration: configuration)
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertNil(error(of: peripheral.pair()))
        simulator.simulateKeyLoss(of: address)
        peripheral.disconnect()
        simulator.advance(by: 5)
        guard case .keyMissing? = error(of: peripheral.pair()) as? PairingError else { return XCTFail("no error") }
        XCTAssertNil(error(of: peripheral.repair()))
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
    }

    func testAPairingWithABondMakesALinkAndKeepsIt() throws {
        let peripheral = try pairedLock(configuration: configuration)
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertEqual(peripheral.state, .connected)
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
        peripheral.disconnect()
        simulator.advance(by: 5)
        simulator.simulateOutOfRange(of: address)
        XCTAssertEqual(error(of: peripheral.pair(timeout: 5), within: 6) as? PairingError, .timedOut)
        simulator.simulateOutOfRange(false, of: address)
        simulator.advance(by: 60)
        XCTAssertNotEqual(peripheral.state, .connected, "the attempt goes on")
    }

    /// Each process sees one link that ends: the second one reports what it means.
    func testShortLinksAreCountedFromOneProcessToTheNext() throws {
        let first = try lock(.justWorks, configuration: configuration)
        XCTAssertNil(error(of: first.pair()))
        simulator.simulateKeyLoss(of: address)
        var failures: [String] = []
        for _ in 0..<3 {
            endProcess()
            let peripheral = try find(.justWorks, configuration)
            let encrypted = self.encrypted
            let run = peripheral.run(timeout: 20) { try await $0.read(encrypted) as Data }
            failures.append("\(error(of: run).map { "\($0)" } ?? "none")")
        }
        XCTAssertTrue(failures[1].contains("keys"), "\(failures)")
        XCTAssertTrue(failures[2].contains("keys"), "\(failures)")
        endProcess()
        let peripheral = try find(.justWorks, configuration)
        XCTAssertNil(error(of: peripheral.repair()))
        XCTAssertNil(error(of: peripheral.pair()))
    }
}
