public import BlueCapKit
public import Foundation
import BlueCapFutures
import XCTest

/// A central that pairs, and has a user.
public protocol PairingCentral: StageCentral {
    /// Decides how it pairs from the next link on, and what its user does. Without this call it does not pair.
    func setUser(_ user: StagePeer)
    /// Looks for the name, which is advertised with that service, and begins to pair.
    func beginPairing(with name: String, advertising service: String) throws
    /// The passkey that it displays, as soon as it does.
    func displayedPasskey() throws -> Passkey
    /// Its user enters this passkey. A simulated user enters what is displayed, and this has no effect.
    func enter(_ passkey: Passkey) throws
    /// Waits for the end of the pairing. Returns whether it succeeded; then all services have been discovered.
    func endPairing() throws -> Bool
    /// Whether reading fails: with an error, or without a response.
    func isRefused(reading uuid: String) throws -> Bool
    /// Whether it is subscribed on the next link without subscribing again.
    var keepsSubscriptions: Bool { get }
}

/// What our peripheral protects in the tests of pairings.
final class ServedLock: Sendable {
    static let name = "Safe"
    static let service = "c0020000-0000-4000-8000-00805f9b34fb"
    static let (open, encrypted, authenticated, secure, events) = (uuid(1), uuid(2), uuid(3), uuid(4), uuid(5))

    private static func uuid(_ number: Int) -> String { String(format: "c002%04x-0000-4000-8000-00805f9b34fb", number) }

    let manager: PeripheralManager
    let written: MutableCharacteristic
    let notified: MutableCharacteristic
    let lock = MutableService(uuid: ServedLock.service)

    init(_ configuration: PeripheralManager.Configuration) throws {
        manager = try PeripheralManager(configuration: configuration)
        written = MutableCharacteristic(
            uuid: Self.encrypted, properties: [.read, .write],
            permissions: [.readEncryptionRequired, .writeEncryptionRequired], value: Data([2]))
        notified = MutableCharacteristic(
            uuid: Self.events, properties: [.read, .notifyEncryptionRequired], permissions: .readable)
        lock.characteristics = [
            MutableCharacteristic(uuid: Self.open, properties: .read, permissions: .readable, value: Data([1])),
            written,
            MutableCharacteristic(
                uuid: Self.authenticated, properties: .read, permissions: .readAuthenticationRequired, value: Data([3])),
            MutableCharacteristic(
                uuid: Self.secure, properties: .read, permissions: .readSecureConnectionRequired, value: Data([4])),
            notified,
        ]
    }
}

/// The tests of pairings of a peripheral manager, with a central that is ours or a virtual one.
public struct PairingServerBodies: StagePlayer {
    let stage: any PeripheralStage
    let central: any PairingCentral
    public let journal = Journal()
    public let limit: TimeInterval = 60
    public var ground: any ScanStage { stage }

    public init(on stage: any PeripheralStage, central: any PairingCentral) {
        self.stage = stage
        self.central = central
    }

    // MARK: Steps

    /// Served and advertised. The agent is the default one, also if the central's program has another.
    private func served(_ policy: PairingPolicy, central user: StagePeer? = nil) throws -> ServedLock {
        var configuration = stage.peripheralConfiguration
        configuration.pairingPolicy = policy.asDefaultAgent()
        let lock = try ServedLock(configuration)
        journal.watchStates(of: lock.manager)
        journal.watch(lock.manager.whenPairingChanges().map(context: ImmediateContext()) { $0.change })
        journal.watch(lock.manager.whenPairingIsRequested())
        expect("power") { $0.states.contains(.poweredOn) }
        try outcome(of: lock.manager.add(lock.lock))
        try outcome(of: lock.manager.startAdvertising(ServedLock.name, uuids: [CBUUID(string: ServedLock.service)]))
        if let user { central.setUser(user) }
        return lock
    }

    private func visit() throws { try central.connect(to: ServedLock.name, advertising: ServedLock.service) }
    private func beginPairing() throws {
        try central.beginPairing(with: ServedLock.name, advertising: ServedLock.service)
    }

    /// The next request of the manager.
    private func request(file: StaticString = #filePath, line: UInt = #line) throws -> PairingRequest {
        expect("a request", file: file, line: line) { !$0.pairingRequests.isEmpty }
        return try XCTUnwrap(journal.read { $0.pairingRequests.first }, file: file, line: line)
    }

    private func expectBond(with lock: ServedLock, file: StaticString = #filePath, line: UInt = #line) {
        expect("the bond", file: file, line: line) { entries in
            entries.pairingChanges.last.map { $0.isPaired && $0.isBonded && $0.origin == .application } ?? false
        }
        XCTAssertEqual(lock.manager.bonds().map(\.isOurs), [true], file: file, line: line)
    }

    private func expectNoBond(with lock: ServedLock, file: StaticString = #filePath, line: UInt = #line) {
        expect("the failure", file: file, line: line) { $0.pairingChanges.last?.error != nil }
        XCTAssertEqual(lock.manager.bonds(), [], file: file, line: line)
        XCTAssertFalse(lock.manager.centrals.contains { $0.isPaired || $0.isBonded }, file: file, line: line)
    }

    // MARK: Values

    /// BlueZ as the central pairs then, is rejected, and ends the link.
    public func anUnpairedCentralIsRefused() throws {
        let lock = try served(.reject)
        try visit()
        XCTAssertEqual(try central.read(ServedLock.open), .value([1]))
        XCTAssertTrue(try central.isRefused(reading: ServedLock.encrypted))
        XCTAssertEqual(lock.manager.bonds(), [])
    }

    public func aPairedCentralUsesWhatItsPairingAllows() throws {
        let lock = try served(.justWorks, central: StagePeer())
        let written = Journal()
        try beginPairing()
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        XCTAssertEqual(try central.read(ServedLock.encrypted), .value([2]))
        lock.written.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { [weak lock] request, _ in
            written.write { $0.values.append(request.value) }
            lock?.written.respondToRequest(request, withResult: .success)
        }
        XCTAssertEqual(try central.write([9], to: ServedLock.encrypted, withResponse: true), .value([]))
        XCTAssertEqual(written.values, [Data([9])])
        try central.subscribe(to: ServedLock.events)
        try lock.notified.update(withData: Data([7]))
        XCTAssertEqual(try central.values(of: ServedLock.events, count: 1), [[7]])
        XCTAssertTrue(try central.isRefused(reading: ServedLock.authenticated))
    }

    public func aBondedCentralReadsAfterItReturnsWithoutAQuestion() throws {
        let lock = try served(.ask(.displayYesNo), central: StagePeer(.displayYesNo))
        try beginPairing()
        try request().confirm()
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        try central.disconnect()
        try visit()
        XCTAssertEqual(try central.read(ServedLock.authenticated), .value([3]))
        XCTAssertEqual(try central.read(ServedLock.secure), .value([4]))
        XCTAssertEqual(journal.read { $0.pairingRequests.count }, 1)
        XCTAssertEqual(lock.manager.centrals.map(\.isBonded), [true])
        try central.disconnect()
    }

    /// - Parameter isSentAgain: Whether an update after the return reaches the central (bluez#634).
    public func aBondedCentralKeepsItsSubscription() throws {
        let lock = try served(.justWorks, central: StagePeer())
        try beginPairing()
        XCTAssertTrue(try central.endPairing())
        try central.subscribe(to: ServedLock.events)
        try lock.notified.update(withData: Data([1]))
        XCTAssertEqual(try central.values(of: ServedLock.events, count: 1), [[1]])
        try central.disconnect()
        try visit()
        if !central.keepsSubscriptions { try central.subscribe(to: ServedLock.events) }
        try lock.notified.update(withData: Data([2]))
        XCTAssertEqual(try central.values(of: ServedLock.events, count: 1).last, [2])
        try central.disconnect()
    }

    // MARK: Questions

    public func theServerComparesANumber() throws {
        let lock = try served(.ask(.displayYesNo), central: StagePeer(.displayYesNo))
        try beginPairing()
        let request = try request()
        guard case .confirm = request.kind, case .central(let peer) = request.peer else {
            return XCTFail("\(request)")
        }
        XCTAssertEqual(lock.manager.centrals, [peer])
        XCTAssertTrue(request.confirm())
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        XCTAssertEqual(try central.read(ServedLock.secure), .value([4]))
        try central.disconnect()
    }

    public func theServerEntersAPasskey() throws {
        let lock = try served(.ask(.keyboardOnly), central: StagePeer(.displayOnly))
        try beginPairing()
        let request = try request()
        XCTAssertEqual(request.kind, .enterPasskey)
        XCTAssertTrue(request.enter(try central.displayedPasskey()))
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        XCTAssertEqual(try central.read(ServedLock.authenticated), .value([3]))
        try central.disconnect()
    }

    public func theServerDisplaysAPasskey() throws {
        let lock = try served(.ask(.displayOnly), central: StagePeer(.keyboardOnly))
        try beginPairing()
        let request = try request()
        guard case .displayPasskey(let passkey, 0) = request.kind else { return XCTFail("\(request)") }
        try central.enter(passkey)
        XCTAssertTrue(try central.endPairing())
        try outcome(of: request.whenEnded())
        expectBond(with: lock)
        XCTAssertEqual(try central.read(ServedLock.authenticated), .value([3]))
        try central.disconnect()
    }

    // MARK: Failures

    public func aWrongPasskeyOfTheServerFails() throws {
        let lock = try served(.ask(.keyboardOnly), central: StagePeer(.displayOnly))
        try beginPairing()
        let request = try request()
        let passkey = try central.displayedPasskey()
        request.enter(try XCTUnwrap(Passkey(((Int(passkey.digits) ?? 0) + 1) % 1_000_000)))
        XCTAssertFalse(try central.endPairing())
        expectNoBond(with: lock)
    }

    public func rejectingTheCentralLeavesNoBond() throws {
        let lock = try served(.ask(.displayYesNo), central: StagePeer(.displayYesNo))
        try beginPairing()
        XCTAssertTrue(try request().reject())
        XCTAssertFalse(try central.endPairing())
        expectNoBond(with: lock)
        XCTAssertEqual(journal.read { $0.pairingChanges.last?.error }, .rejected(by: .application))
    }

    public func withRejectNoCentralPairs() throws {
        let lock = try served(.reject, central: StagePeer())
        try beginPairing()
        XCTAssertFalse(try central.endPairing())
        expectNoBond(with: lock)
        XCTAssertEqual(journal.read { $0.pairingChanges.last?.error }, .rejected(by: .policy))
    }

    public func noNewCentralPairsWhileTheAdapterIsNotPairable() throws {
        let lock = try served(.justWorks, central: StagePeer())
        try outcome(of: lock.manager.setPairable(false))
        try beginPairing()
        XCTAssertFalse(try central.endPairing())
        XCTAssertEqual(lock.manager.bonds(), [])
        try outcome(of: lock.manager.setPairable(true, timeout: 600))
        XCTAssertEqual(lock.manager.pairableTimeout, .seconds(600))
        try beginPairing()
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        try outcome(of: lock.manager.setPairable(true))
        try central.disconnect()
    }

    public func forgettingEndsTheBond() throws {
        let lock = try served(.justWorks, central: StagePeer())
        try beginPairing()
        XCTAssertTrue(try central.endPairing())
        expectBond(with: lock)
        XCTAssertEqual(try outcome(of: lock.manager.forgetBonds()).count, 1)
        expect("the end of the bond") { $0.pairingChanges.last?.isBonded == false }
        XCTAssertEqual(lock.manager.bonds(), [])
    }
}
