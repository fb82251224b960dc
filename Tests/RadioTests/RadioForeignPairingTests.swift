import BlueCapKit
import TestSupport
import XCTest

/// Ring 4: our central pairs with the peripheral of a Python program, with `bluetoothctl` as its agent.
///
/// One `bluetoothd` serves both ends. So each end has an agent of its own on its own connection to the bus: BlueZ asks the
/// agent of the program that pairs about its end, and the default agent about the other end. A single agent would be asked
/// once for both, and its consent would say nothing about either.
final class RadioForeignPairingTests: XCTestCase {
    func testTheUserAuthorizesAndTheKeysAreThoseOfSecureConnections() throws {
        let end = try CentralEnd(.justWorks, user: "NoInputNoOutput")
        try SecurityLog.begin()
        let pairing = end.peripheral.pair()
        XCTAssertEqual(try end.user.asked(), "authorize")
        try end.user.answer("yes")
        try end.outcome(of: pairing)
        XCTAssertEqual(try end.read("B002"), [2])
        let air = try SecurityLog()
        XCTAssertTrue(air.usesSecureConnections, "\(air)")
        XCTAssertEqual(air.keys, ["P-256 unauthenticated"])
        XCTAssertEqual(end.journal.read { $0.pairingRequests.count }, 0, "The policy accepts without a question.")
    }

    func testTheUserConfirmsTheNumberAndSecureValuesAreRead() throws {
        let end = try CentralEnd(.ask(.displayYesNo), user: "DisplayYesNo")
        try SecurityLog.begin()
        let pairing = end.peripheral.pair()
        let request = try end.request()
        guard case .confirm(let passkey) = request.kind else { return XCTFail("\(request)") }
        XCTAssertEqual(try end.user.asked(), "confirm \(passkey.digits)")
        request.confirm()
        try end.user.answer("yes")
        try end.outcome(of: pairing)
        XCTAssertEqual(try end.read("B006"), [6])
        let air = try SecurityLog()
        XCTAssertTrue(air.usesSecureConnections && air.bothAsk(for: "mitm"), "\(air)")
        XCTAssertEqual(air.keys, ["P-256 authenticated"])
    }

    func testTheUserRejectsTheNumber() throws {
        let end = try CentralEnd(.ask(.displayYesNo), user: "DisplayYesNo")
        let pairing = end.peripheral.pair()
        try end.request().confirm()
        XCTAssertTrue(try end.user.asked().hasPrefix("confirm"))
        try end.user.answer("no")
        XCTAssertEqual(end.error(of: pairing), .rejected(by: .peer))
        XCTAssertFalse(end.peripheral.isPaired || end.peripheral.isBonded)
    }

    func testOurRejectionEndsTheUsersQuestion() throws {
        let end = try CentralEnd(.ask(.displayYesNo), user: "DisplayYesNo")
        let pairing = end.peripheral.pair()
        XCTAssertTrue(try end.user.asked().hasPrefix("confirm"))
        try end.request().reject()
        XCTAssertEqual(try end.user.asked(), "cancelled")
        XCTAssertEqual(end.error(of: pairing), .rejected(by: .application))
        XCTAssertFalse(end.peripheral.isPaired || end.peripheral.isBonded)
    }

    func testThePasskeyThatTheUserSeesIsEnteredHere() throws {
        let end = try CentralEnd(.ask(.keyboardOnly), user: "DisplayOnly")
        let pairing = end.peripheral.pair()
        let request = try end.request()
        XCTAssertEqual(request.kind, .enterPasskey)
        request.enter(try end.user.displayed())
        try end.outcome(of: pairing)
        XCTAssertEqual(try end.read("B003"), [3])
    }

    func testTheUserEntersThePasskeyThatIsSeenHere() throws {
        let end = try CentralEnd(.ask(.displayOnly), user: "KeyboardOnly")
        let pairing = end.peripheral.pair()
        let request = try end.request()
        guard case .displayPasskey(let passkey, entered: 0) = request.kind else { return XCTFail("\(request)") }
        XCTAssertEqual(try end.user.asked(), "enter")
        try end.user.answer(passkey.digits)
        try end.outcome(of: pairing)
        XCTAssertFalse(request.isOpen)
        XCTAssertEqual(try end.read("B006"), [6])
    }

    func testAnotherPasskeyFails() throws {
        let end = try CentralEnd(.ask(.keyboardOnly), user: "DisplayOnly")
        let pairing = end.peripheral.pair()
        try end.request().enter(end.user.displayed().next)
        guard case .failed(let failure)? = end.error(of: pairing) else { return XCTFail("another error") }
        XCTAssertEqual(failure.name, "org.bluez.Error.AuthenticationFailed")
        XCTAssertFalse(end.peripheral.isPaired || end.peripheral.isBonded)
    }

    func testWithoutSecureConnectionsThePairingIsALegacyOne() throws {
        let end = try CentralEnd(.ask(.keyboardOnly), user: "DisplayOnly", hasSecureConnections: false)
        try SecurityLog.begin()
        let pairing = end.peripheral.pair()
        try end.request().enter(end.user.displayed())
        try end.outcome(of: pairing)
        XCTAssertEqual(try end.read("B003"), [3])
        let air = try SecurityLog()
        XCTAssertFalse(air.usesSecureConnections || air.exchangesPublicKeys, "\(air)")
        XCTAssertEqual(air.keys, ["P-192 authenticated"])
    }

    /// BlueZ pairs when a protected value is read, and asks the default agent about both ends: that of another program.
    func testAnAgentOfAnotherProgramPairsForAManagerThatRejects() throws {
        let end = try CentralEnd(.reject, user: "NoInputNoOutput")
        end.journal.watch(end.peripheral.connect())
        end.expect("the link") { $0.connectionEvents.contains(.connect) }
        let read: Future<Data> = end.peripheral.read(end.value("B002"), timeout: end.limit)
        XCTAssertEqual(try end.user.asked(), "authorize")
        try end.user.answer("yes")
        XCTAssertEqual([UInt8](try end.outcome(of: read)), [2])
        end.expect("the change") { entries in
            entries.pairingChanges.last.map { $0.isPaired && $0.isBonded && $0.origin == .elsewhere } ?? false
        }
    }
}

/// Our central, and the lock of the Python program as it was found.
private final class CentralEnd: StagePlayer {
    let journal = Journal()
    let limit: TimeInterval = 60
    let ground: any ScanStage
    let user: Bluetoothctl
    let peripheral: Peripheral
    private let manager: CentralManager

    /// - Parameters:
    ///   - user: What the user of the peripheral can show and enter, in BlueZ's words.
    ///   - hasSecureConnections: Whether the peripheral offers LE Secure Connections.
    init(_ policy: PairingPolicy, user: String, hasSecureConnections: Bool = true) throws {
        let stage = try RadioStage()
        ground = stage
        try RadioLab.setSecureConnections(hasSecureConnections, on: "hci1")
        self.user = try Bluetoothctl(user, isDefault: true)
        try stage.serve(.lock)
        var configuration = stage.centralConfiguration
        configuration.pairingPolicy = policy
        manager = try CentralManager(configuration: configuration)
        journal.watchStates(of: manager)
        journal.watch(manager.whenPairingIsRequested())
        let journal = journal
        _ = stage.wait(journal, limit: limit) { $0.states.contains(.poweredOn) }
        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "B001")]))
        _ = stage.wait(journal, limit: limit) { !$0.sightings.isEmpty || !$0.failures.isEmpty }
        peripheral = try XCTUnwrap(journal.sightings.first, "\(journal.read { $0 })")
        manager.stopScanning()
        try outcome(of: manager.whenScanningStopped())
        journal.watch(peripheral.whenPairingChanges())
    }

    deinit { XCTAssertNoThrow(try RadioLab.setSecureConnections(true, on: "hci1")) }

    /// The first request to our application.
    func request() throws -> PairingRequest {
        expect("a request") { !$0.pairingRequests.isEmpty }
        return try XCTUnwrap(journal.read { $0.pairingRequests.first })
    }

    func error(of pairing: Future<Peripheral>) -> PairingError? {
        do {
            try outcome(of: pairing)
            return nil
        } catch {
            return error as? PairingError
        }
    }

    func value(_ uuid: String) -> CharacteristicIdentifier {
        CharacteristicIdentifier(uuid: uuid, service: ServiceIdentifier(uuid: "B001"))
    }

    func read(_ uuid: String) throws -> [UInt8] {
        let read: Future<Data> = peripheral.read(value(uuid), timeout: limit)
        return [UInt8](try outcome(of: read))
    }
}

extension Passkey {
    /// Another one.
    var next: Passkey { Passkey(((Int(digits) ?? 0) + 1) % 1_000_000) ?? 0 }
}
