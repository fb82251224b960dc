import BlueCapKit
import TestSupport
import XCTest

/// Ring 4: a foreign central pairs with our peripheral: `bluetoothctl`, with its own agent. Then `bleak` connects
/// and reads what needs the bond.
///
/// Our agent is the default one, so BlueZ asks it about our end, and `bluetoothctl`'s about the other end.
final class RadioForeignCentralPairingTests: XCTestCase {
    func testJustWorksPairsWithoutAQuestionToTheUser() throws {
        let end = try PeripheralEnd(.justWorks)
        let user = try Bluetoothctl("NoInputNoOutput", isDefault: false)
        try user.beginPairing()
        XCTAssertNil(try user.outcome())
        end.expectBond()
        XCTAssertEqual(end.manager.bonds().map(\.isOurs), [true])
        try user.disconnect()
        let central = try ForeignCentral()
        try central.connect(to: Vault.name, advertising: Vault.service)
        XCTAssertEqual(try central.read(Vault.encrypted), .value([2]))
    }

    /// `bleak` has no agent, and BlueZ needs none for the side that asks for a pairing without a number.
    func testBleakPairsAndWeAuthorizeIt() throws {
        let end = try PeripheralEnd(.ask(.noInputNoOutput))
        let central = try ForeignCentral()
        try central.connect(to: Vault.name, advertising: Vault.service)
        try central.beginPairing()
        let request = try end.request()
        XCTAssertEqual(request.kind, .authorize)
        request.confirm()
        XCTAssertNil(try central.outcomeOfPairing())
        XCTAssertEqual(try central.read(Vault.encrypted), .value([2]))
        end.expectBond()
    }

    func testTheNumberIsConfirmedAtBothEndsAndSecureValuesAreRead() throws {
        let end = try PeripheralEnd(.ask(.displayYesNo))
        let user = try Bluetoothctl("DisplayYesNo", isDefault: false)
        try SecurityLog.begin()
        try user.beginPairing()
        let request = try end.request()
        guard case .confirm(let passkey) = request.kind else { return XCTFail("\(request)") }
        XCTAssertEqual(try user.asked(), "confirm \(passkey.digits)")
        try user.answer("yes")
        request.confirm()
        XCTAssertNil(try user.outcome())
        let air = try SecurityLog()
        XCTAssertTrue(air.usesSecureConnections, "\(air)")
        XCTAssertEqual(air.keys, ["P-256 authenticated"])
        try user.disconnect()
        let central = try ForeignCentral()
        try central.connect(to: Vault.name, advertising: Vault.service)
        XCTAssertEqual(try central.read(Vault.secure), .value([6]))
    }

    func testWeRejectTheNumber() throws {
        let end = try PeripheralEnd(.ask(.displayYesNo))
        let user = try Bluetoothctl("DisplayYesNo", isDefault: false)
        try user.beginPairing()
        XCTAssertTrue(try user.asked().hasPrefix("confirm"))
        try end.request().reject()
        XCTAssertEqual(try user.outcome(), "org.bluez.Error.AuthenticationFailed")
        end.expectFailure(.rejected(by: .application))
    }

    func testTheUserRejectsTheNumber() throws {
        let end = try PeripheralEnd(.ask(.displayYesNo))
        let user = try Bluetoothctl("DisplayYesNo", isDefault: false)
        try user.beginPairing()
        XCTAssertTrue(try user.asked().hasPrefix("confirm"))
        let request = try end.request()
        try user.answer("no")
        XCTAssertEqual(try user.outcome(), "org.bluez.Error.AuthenticationFailed")
        try end.outcome(of: request.whenEnded())
        XCTAssertFalse(request.confirm())
        end.expectFailure(.cancelled)
    }

    func testThePasskeyThatTheUserSeesIsEnteredHere() throws {
        let end = try PeripheralEnd(.ask(.keyboardOnly))
        let user = try Bluetoothctl("DisplayOnly", isDefault: false)
        try user.beginPairing()
        let passkey = try user.displayed()
        let request = try end.request()
        XCTAssertEqual(request.kind, .enterPasskey)
        request.enter(passkey)
        XCTAssertNil(try user.outcome())
        end.expectBond()
    }

    func testTheUserEntersThePasskeyThatIsSeenHere() throws {
        let end = try PeripheralEnd(.ask(.displayOnly))
        let user = try Bluetoothctl("KeyboardOnly", isDefault: false)
        try user.beginPairing()
        XCTAssertEqual(try user.asked(), "enter")
        let request = try end.request()
        guard case .displayPasskey(let passkey, entered: 0) = request.kind else { return XCTFail("\(request)") }
        try user.answer(passkey.digits)
        XCTAssertNil(try user.outcome())
        end.expectBond()
        try end.outcome(of: request.whenEnded())
    }

    func testAnotherPasskeyFails() throws {
        let end = try PeripheralEnd(.ask(.displayOnly))
        let user = try Bluetoothctl("KeyboardOnly", isDefault: false)
        try user.beginPairing()
        XCTAssertEqual(try user.asked(), "enter")
        let request = try end.request()
        guard case .displayPasskey(let passkey, _) = request.kind else { return XCTFail("\(request)") }
        try user.answer(passkey.next.digits)
        XCTAssertEqual(try user.outcome(), "org.bluez.Error.AuthenticationFailed")
        end.expectFailure(.linkLost)
    }

    func testACentralIsRefusedAfterThePairableTime() throws {
        let end = try PeripheralEnd(.justWorks)
        let user = try Bluetoothctl("NoInputNoOutput", isDefault: false)
        XCTAssertTrue(end.manager.isPairable)
        try end.outcome(of: end.manager.setPairable(true, timeout: 2))
        // It is stored for good.
        defer { XCTAssertNoThrow(try end.outcome(of: end.manager.setPairable(true))) }
        try user.sees("Controller \(Bluetoothctl.peer) Pairable: no")
        XCTAssertEqual(end.manager.pairableTimeout, .seconds(2))
        try user.beginPairing()
        XCTAssertEqual(try user.outcome(), "org.bluez.Error.AuthenticationFailed")
        XCTAssertFalse(end.manager.isPairable)
        XCTAssertEqual(end.manager.bonds(), [])
    }

    /// After its return a bonded central subscribes again, and receives what comes then.
    func testABondedCentralIsNotifiedAfterItsReturn() throws {
        let end = try PeripheralEnd(.justWorks)
        let user = try Bluetoothctl("NoInputNoOutput", isDefault: false)
        try user.beginPairing()
        XCTAssertNil(try user.outcome())
        end.expectBond()
        try user.disconnect()
        for value in UInt8(1)...2 {
            let central = try ForeignCentral()
            try central.connect(to: Vault.name, advertising: Vault.service)
            try central.subscribe(to: Vault.events)
            try end.vault.events.update(withData: Data([value]))
            XCTAssertEqual(try central.values(of: Vault.events, count: 1), [[value]])
            try central.disconnect()
        }
    }
}

/// What we serve: values that need a pairing.
private struct Vault {
    static let name = "Vault"
    static let service = uuid(1)
    static let encrypted = uuid(2)
    static let secure = uuid(3)
    static let events = uuid(4)

    private static func uuid(_ number: Int) -> String { String(format: "d000%04x-0000-4000-8000-00805f9b34fb", number) }

    let service = MutableService(uuid: Self.service)
    let events = MutableCharacteristic(
        uuid: Self.events, properties: [.read, .notify, .notifyEncryptionRequired], permissions: .readable)

    init() {
        service.characteristics = [
            MutableCharacteristic(
                uuid: Self.encrypted, properties: .read, permissions: [.readable, .readEncryptionRequired],
                value: Data([2])),
            MutableCharacteristic(
                uuid: Self.secure, properties: .read, permissions: [.readable, .readSecureConnectionRequired],
                value: Data([6])),
            events,
        ]
    }
}

/// Our peripheral, which serves the vault and advertises it.
private final class PeripheralEnd: StagePlayer {
    let journal = Journal()
    let limit: TimeInterval = 60
    let ground: any ScanStage
    let manager: PeripheralManager
    let vault = Vault()

    init(_ policy: PairingPolicy) throws {
        let stage = try RadioStage()
        ground = stage
        var configuration = stage.peripheralConfiguration
        configuration.pairingPolicy = policy.asDefaultAgent()
        manager = try PeripheralManager(configuration: configuration)
        let journal = journal
        journal.watch(manager.whenPairingIsRequested())
        manager.whenPairingChanges().onSuccess(context: ImmediateContext()) { event in
            journal.write { $0.pairingChanges.append(event.change) }
        }
        try outcome(of: manager.add(vault.service))
        try outcome(of: manager.startAdvertising(Vault.name, uuids: [CBUUID(string: Vault.service)]))
    }

    /// The first request to our application.
    func request() throws -> PairingRequest {
        expect("a request") { !$0.pairingRequests.isEmpty }
        return try XCTUnwrap(journal.read { $0.pairingRequests.first })
    }

    func expectBond() {
        expect("the bond") { entries in
            entries.pairingChanges.last.map { $0.isPaired && $0.isBonded && $0.error == nil } ?? false
        }
    }

    func expectFailure(_ error: PairingError) {
        expect("the failure") { !$0.pairingChanges.isEmpty }
        XCTAssertEqual(journal.read { $0.pairingChanges.last?.error }, error)
        XCTAssertEqual(manager.bonds(), [])
    }
}
