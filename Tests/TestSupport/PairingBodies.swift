import BlueCapKit
import BlueZSimulator
public import Foundation
import BlueCapFutures
import XCTest

/// The tests of pairings of a central manager. Each target has a class that runs them on its own stage.
///
/// All of them use the peripheral ``StagePeripheral/lock``.
public struct PairingBodies: StagePlayer {
    let stage: any PairingStage
    public let journal = Journal()
    public let limit: TimeInterval = 60
    public var ground: any ScanStage { stage }
    /// The manager of the test, until its end.
    private let kept = Locked<CentralManager?>(nil)

    public init(on stage: any PairingStage) { self.stage = stage }

    // MARK: Steps

    private static let service = ServiceIdentifier(uuid: "B001")
    let encrypted = CharacteristicIdentifier(uuid: "B002", service: service)
    let authenticated = CharacteristicIdentifier(uuid: "B003", service: service)
    let open = CharacteristicIdentifier(uuid: "B005", service: service)
    let secure = CharacteristicIdentifier(uuid: "B006", service: service)

    /// A manager with that policy, and the lock as it was found.
    func found(
        _ policy: PairingPolicy, _ peer: StagePeer = StagePeer()
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        try stage.setPeer(peer, central: policy.capability)
        try stage.serve(.lock)
        let (manager, peripheral) = try find(policy, journal)
        kept.withLock { $0 = manager }
        return (manager, peripheral)
    }

    func find(_ policy: PairingPolicy, _ journal: Journal) throws -> (manager: CentralManager, peripheral: Peripheral) {
        var configuration = stage.centralConfiguration
        configuration.pairingPolicy = policy
        let manager = try CentralManager(configuration: configuration)
        journal.watchStates(of: manager)
        expect("power", in: journal) { $0.states.contains(.poweredOn) }
        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "B001")]))
        expect("the lock", in: journal) { !$0.sightings.isEmpty }
        manager.stopScanning()
        try outcome(of: manager.whenScanningStopped())
        let peripheral = try XCTUnwrap(journal.sightings.first)
        journal.watch(peripheral.whenPairingChanges())
        return (manager, peripheral)
    }

    /// The same with a handler of the requests.
    func asked(
        _ policy: PairingPolicy, _ peer: StagePeer
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        let (manager, peripheral) = try found(policy, peer)
        journal.watch(manager.whenPairingIsRequested())
        return (manager, peripheral)
    }

    /// The same with a pairing whose request has come to the handler.
    private func pairing(
        _ policy: PairingPolicy, _ peer: StagePeer, isConnected: Bool = false
    ) throws -> (manager: CentralManager, peripheral: Peripheral, pairing: Future<Peripheral>, request: PairingRequest)
    {
        let (manager, peripheral) = try asked(policy, peer)
        if isConnected { connect(peripheral) }
        let pairing = peripheral.pair()
        return (manager, peripheral, pairing, try request())
    }

    /// The lock, with a bond and without a link.
    private func bonded() throws -> Peripheral {
        let (_, peripheral) = try found(.justWorks)
        try outcome(of: peripheral.pair())
        disconnect(peripheral)
        return peripheral
    }

    private func repair(_ peripheral: Peripheral) throws {
        try outcome(of: peripheral.repair())
        XCTAssertTrue(peripheral.isBonded)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
    }

    private func expect(_ what: String, in journal: Journal, until isReached: (Journal.Entries) -> Bool) {
        XCTAssertTrue(stage.wait(journal, limit: limit, until: isReached), "\(what) did not come")
    }

    /// The next request of the manager.
    func request(_ number: Int = 1, file: StaticString = #filePath, line: UInt = #line) throws -> PairingRequest {
        expect("request \(number)", file: file, line: line) { $0.pairingRequests.count >= number }
        return try XCTUnwrap(
            journal.read { $0.pairingRequests.dropFirst(number - 1).first }, file: file, line: line)
    }

    /// The future's error, once it has failed.
    func error<T: Sendable>(
        of future: Future<T>, file: StaticString = #filePath, line: UInt = #line
    ) -> (any Error)? {
        do {
            try outcome(of: future, file: file, line: line)
            return nil
        } catch {
            return error
        }
    }

    func pairingError<T: Sendable>(
        of future: Future<T>, file: StaticString = #filePath, line: UInt = #line
    ) -> PairingError? {
        error(of: future, file: file, line: line) as? PairingError
    }

    func value(_ identifier: CharacteristicIdentifier, of peripheral: Peripheral) throws -> [UInt8] {
        let read: Future<Data> = peripheral.read(identifier, timeout: limit)
        return [UInt8](try outcome(of: read))
    }

    func connect(_ peripheral: Peripheral) {
        let count = journal.connectionEvents.count
        journal.watch(peripheral.connect())
        expect("the link") { $0.connectionEvents.dropFirst(count).contains(.connect) }
    }

    /// A link that `pair` has made has no stream of events.
    func disconnect(_ peripheral: Peripheral) {
        peripheral.disconnect()
        XCTAssertTrue(waitUntil { peripheral.state == .disconnected }, "the link did not end")
    }

    /// Waits for a condition that has no entry in the journal.
    func waitUntil(_ isReached: () throws -> Bool) rethrows -> Bool {
        for _ in 0..<200 {
            if try isReached() { return true }
            _ = stage.wait(journal, limit: 0.05) { _ in false }
        }
        return false
    }

    func expectBond(_ origin: PairingChange.Origin, file: StaticString = #filePath, line: UInt = #line) {
        expect("the change", file: file, line: line) { entries in
            entries.pairingChanges.last.map { $0.isPaired && $0.isBonded && $0.origin == origin } ?? false
        }
    }

    func assertNotPaired(
        _ peripheral: Peripheral, _ manager: CentralManager, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertFalse(peripheral.isPaired || peripheral.isBonded, file: file, line: line)
        XCTAssertEqual(manager.bonds(), [], file: file, line: line)
    }

    /// Lets some seconds pass in which something does not happen.
    func expectNot(
        _ what: String, _ seconds: TimeInterval = 2, file: StaticString = #filePath, line: UInt = #line,
        _ isReached: (Journal.Entries) -> Bool
    ) {
        XCTAssertFalse(stage.wait(journal, limit: seconds, until: isReached), what, file: file, line: line)
    }

    func checkLink(_ security: LinkSecurity, file: StaticString = #filePath, line: UInt = #line) throws {
        XCTAssertEqual(try stage.linkSecurity(), security, file: file, line: line)
    }

    /// What the peripheral's user was asked, on a stage that knows it.
    func checkPeer(_ questions: String..., file: StaticString = #filePath, line: UInt = #line) throws {
        guard let asked = try stage.questionsToPeer() else { return }
        XCTAssertEqual(asked, questions, file: file, line: line)
    }

    // MARK: Pairings

    public func justWorksPairsAndKeepsTheLink() throws {
        let (manager, peripheral) = try found(.justWorks)
        try outcome(of: peripheral.pair())
        XCTAssertTrue(peripheral.isPaired && peripheral.isBonded)
        XCTAssertEqual(peripheral.state, .connected)
        try checkPeer("RequestAuthorization")
        try checkLink(.encrypted)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        XCTAssertEqual(manager.bonds().map(\.identifier), [peripheral.identifier])
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
        expectBond(.application)

        try outcome(of: peripheral.pair())
        XCTAssertEqual(peripheral.pairingCount, 1)
        try checkPeer("RequestAuthorization")
    }

    public func aNumberIsComparedOnBothSides() throws {
        let (_, peripheral, pairing, request) = try pairing(.ask(.displayYesNo), StagePeer(.displayYesNo))
        guard case .confirm(let number) = request.kind else { return XCTFail("\(request)") }
        XCTAssertEqual(request.peer, .peripheral(peripheral))
        XCTAssertTrue(request.confirm())
        try outcome(of: pairing)
        try checkPeer("RequestConfirmation \(number.digits)")
        try checkLink(.secure)
        XCTAssertEqual(try value(authenticated, of: peripheral), [3])
        XCTAssertEqual(try value(secure, of: peripheral), [6])
    }

    public func aPasskeyIsEnteredHere() throws {
        let (_, peripheral, pairing, request) = try pairing(.ask(.keyboardOnly), StagePeer(.displayOnly))
        XCTAssertEqual(request.kind, .enterPasskey)
        XCTAssertTrue(request.enter(try stage.passkeyOfPeer()))
        try outcome(of: pairing)
        XCTAssertTrue(peripheral.isBonded)
        try checkPeer("DisplayPasskey")
        try checkLink(.secure)
    }

    public func aPasskeyIsDisplayedHere() throws {
        let (_, peripheral, pairing, request) = try pairing(.ask(.displayOnly), StagePeer(.keyboardOnly, .acceptLate))
        guard case .displayPasskey(let passkey, 0) = request.kind else { return XCTFail("\(request)") }
        XCTAssertTrue(request.isOpen)
        try stage.enterAtPeer(passkey)
        try outcome(of: pairing)
        try outcome(of: request.whenEnded())
        XCTAssertTrue(peripheral.isBonded)
        try checkPeer("RequestPasskey")
        XCTAssertEqual(try value(authenticated, of: peripheral), [3])
    }

    // MARK: Failures

    public func aWrongPasskeyFails() throws {
        let (manager, peripheral) = try asked(.ask(.keyboardOnly), StagePeer(.displayOnly))
        let pairing = peripheral.pair()
        let passkey = try stage.passkeyOfPeer()
        let wrong = try XCTUnwrap(Passkey(((Int(passkey.digits) ?? 0) + 1) % 1_000_000))
        XCTAssertTrue(try request().enter(wrong))
        guard case .failed? = pairingError(of: pairing) else { return XCTFail("\(pairing)") }
        assertNotPaired(peripheral, manager)
        XCTAssertEqual(peripheral.failedPairingCount, 1)
    }

    public func aWrongPasskeyOfThePeerFails() throws {
        let (manager, peripheral, pairing, request) = try pairing(
            .ask(.displayOnly), StagePeer(.keyboardOnly, .wrongPasskey))
        guard case .displayPasskey(let passkey, _) = request.kind else { return XCTFail("\(request)") }
        try stage.enterAtPeer(passkey)
        guard case .failed? = pairingError(of: pairing) else { return XCTFail("\(pairing)") }
        try outcome(of: request.whenEnded())
        assertNotPaired(peripheral, manager)
    }

    public func aNumberThatThePeerRejectsFails() throws {
        let (manager, peripheral, pairing, request) = try pairing(
            .ask(.displayYesNo), StagePeer(.displayYesNo, .reject))
        request.confirm()
        switch pairingError(of: pairing) {
        // Whether this side has confirmed before depends on the time.
        case .rejected(by: .peer), .failed: break
        case let error: XCTFail("\(String(describing: error))")
        }
        try outcome(of: request.whenEnded())
        XCTAssertFalse(request.confirm())
        assertNotPaired(peripheral, manager)
    }

    public func aRejectionOfOursIsNamedSo() throws {
        let (manager, peripheral) = try asked(.ask(.displayYesNo), StagePeer(.displayYesNo))
        let pairing = peripheral.pair()
        XCTAssertTrue(try request().reject())
        XCTAssertEqual(pairingError(of: pairing), .rejected(by: .application))
        expect("the change") { $0.pairingChanges.last?.error == .rejected(by: .application) }
        assertNotPaired(peripheral, manager)
    }

    public func withoutAHandlerThePolicyRejects() throws {
        let (manager, peripheral) = try found(.ask(.displayYesNo), StagePeer(.displayYesNo))
        XCTAssertEqual(pairingError(of: peripheral.pair()), .rejected(by: .policy))
        assertNotPaired(peripheral, manager)
    }

    /// - Parameter answerTimeout: In seconds; the Security Manager's own limit is 30.
    public func anUnansweredRequestIsRejectedBeforeBlueZGivesUp(answerTimeout: TimeInterval = 25) throws {
        var policy = PairingPolicy.ask(.displayYesNo)
        policy.answerTimeout = .seconds(answerTimeout)
        let (manager, peripheral, pairing, request) = try pairing(policy, StagePeer(.displayYesNo))
        XCTAssertEqual(pairingError(of: pairing), .timedOut)
        XCTAssertFalse(request.isOpen)
        XCTAssertEqual(journal.read { $0.pairingRequests.count }, 1)
        assertNotPaired(peripheral, manager)
    }

    public func cancellingLeavesNoBondAlsoIfThePeerAcceptsLater() throws {
        let (manager, peripheral, pairing, request) = try pairing(
            .ask(.displayYesNo), StagePeer(.displayYesNo, .acceptLate), isConnected: true)
        request.confirm()
        XCTAssertTrue(peripheral.isPairing)
        peripheral.cancelPairing()
        XCTAssertEqual(pairingError(of: pairing), .cancelled)
        expectNot("a bond stayed", 5) { _ in false }
        assertNotPaired(peripheral, manager)
        XCTAssertFalse(peripheral.isPairing)
    }

    public func aLinkThatIsLostWhilePairingFailsAndLeavesNoBond() throws {
        let (manager, peripheral, pairing, request) = try pairing(.ask(.displayYesNo), StagePeer(.displayYesNo, .never))
        try stage.cutLink()
        XCTAssertEqual(pairingError(of: pairing), .linkLost)
        try outcome(of: request.whenEnded())
        XCTAssertFalse(request.confirm())
        assertNotPaired(peripheral, manager)
    }

    // MARK: Several

    public func twoManagersShareOnePairing() throws {
        let (_, peripheral) = try found(.justWorks)
        let (other, same) = try find(.justWorks, Journal())
        let pairings = [peripheral.pair(), same.pair()]
        for pairing in pairings { try outcome(of: pairing) }
        XCTAssertTrue(peripheral.isBonded && same.isBonded)
        XCTAssertEqual(other.bonds().map(\.identifier), [peripheral.identifier])
        try checkPeer("RequestAuthorization")
    }

    public func aPairingOfAnotherProgramIsJoined() throws {
        let (_, peripheral) = try found(.justWorks)
        try stage.addForeignAgent(.accept)
        try stage.pairByAnotherProgram()
        try outcome(of: peripheral.pair())
        XCTAssertTrue(peripheral.isBonded)
    }

    public func aBondOfAnotherProgramIsReported() throws {
        let (manager, peripheral) = try found(.reject)
        try stage.addForeignAgent(.accept)
        try stage.pairByAnotherProgram()
        expectBond(.elsewhere)
        XCTAssertEqual(manager.bonds().map(\.isOurs), [false])
        XCTAssertEqual(pairingError(of: peripheral.unpair()), nil)
    }

    /// The agent of this process is the only one, and is asked about a pairing of another program.
    public func aPairingThatNoManagerWantsIsRejected() throws {
        let (manager, peripheral) = try asked(.ask(.displayYesNo), StagePeer(.displayYesNo, hasAgent: false))
        try stage.pairByAnotherProgram()
        expectNot("the manager was asked, or has a bond") {
            !$0.pairingRequests.isEmpty || $0.pairingChanges.contains(where: \.isPaired)
        }
        assertNotPaired(peripheral, manager)
    }

    public func anotherProgramCannotCallTheAgent() throws {
        let (manager, peripheral) = try asked(.ask, StagePeer(hasAgent: false))
        XCTAssertEqual(try stage.callAgents(), ["org.freedesktop.DBus.Error.AccessDenied"])
        XCTAssertEqual(journal.read { $0.pairingRequests.count }, 0)
        assertNotPaired(peripheral, manager)
    }

    // MARK: The agent

    public func theAgentLeavesWithTheLastManager() throws {
        try stage.setPeer(StagePeer(hasAgent: false), central: .noInputNoOutput)
        try stage.serve(.lock)
        XCTAssertFalse(try stage.isPairable())
        try reject()
        XCTAssertFalse(try stage.isPairable(), "a manager that rejects has no agent")
        try accept()
        XCTAssertTrue(try waitUntil { try !stage.isPairable() })
    }

    private func reject() throws { _ = try find(.reject, Journal()) }

    private func accept() throws {
        let (manager, _) = try find(.justWorks, Journal())
        XCTAssertTrue(try waitUntil { try stage.isPairable() })
        withExtendedLifetime(manager) {}
    }

    public func theAgentIsRegisteredAgainAfterARestart() throws {
        let (_, peripheral) = try found(.justWorks)
        try stage.restartDaemon()
        expect("the restart") { $0.states == [.poweredOn, .resetting, .poweredOn] }
        try stage.serve(.lock)
        try outcome(of: peripheral.pair())
        XCTAssertTrue(peripheral.isBonded)
    }

    // MARK: On demand

    public func anEncryptedReadPairsOnDemandAndIsRepeated() throws {
        let (_, peripheral) = try found(.justWorks)
        connect(peripheral)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        XCTAssertTrue(peripheral.isBonded)
        try checkLink(.encrypted)
    }

    public func aSubscriptionPairsOnDemand() throws {
        let (_, peripheral) = try found(.justWorks)
        connect(peripheral)
        let identifier = CharacteristicIdentifier(uuid: "B004", service: Self.service)
        let found: Future<Characteristic> = peripheral.characteristic(identifier, timeout: limit)
        let events = try outcome(of: found)
        journal.watch(events.receiveNotificationUpdates())
        let started: Future<Characteristic> = events.startNotifying()
        try outcome(of: started)
        XCTAssertTrue(peripheral.isPaired)
        try stage.notify("events", [[7]])
        expect("the value") { $0.values.contains(Data([7])) }
    }

    public func withRejectAnEncryptedReadFailsAndSaysWhichSecurityItNeeds() throws {
        let (manager, peripheral) = try found(.reject, StagePeer(.noInputNoOutput, .reject))
        try stage.addForeignAgent(.reject)
        connect(peripheral)
        let read: Future<Data> = peripheral.read(encrypted)
        switch error(of: read) {
        case CharacteristicError.pairingRequired(.encryption, _)?: break
        // BlueZ has ended the link, which it does up to 5.66, and reports nothing else.
        case PeripheralError.disconnected?: XCTAssertEqual(peripheral.state, .disconnected)
        case let error: XCTFail("\(String(describing: error))")
        }
        XCTAssertEqual(pairingError(of: peripheral.pair()), .notAllowed)
        assertNotPaired(peripheral, manager)
    }

    public func anAuthenticatedReadAfterJustWorksFails() throws {
        let (_, peripheral) = try found(.justWorks)
        try outcome(of: peripheral.pair())
        let read: Future<Data> = peripheral.read(authenticated, timeout: 20)
        XCTAssertNotNil(error(of: read))
        XCTAssertTrue(peripheral.isBonded)
    }

    // MARK: Consent

    /// Connects until a read of the protected value makes BlueZ ask the manager. In the radio lab the manager's agent is asked for
    /// both ends, and refuses for the peripheral's, of which it knows nothing: if that end is first, there is no other request.
    private func readUntilAsked(_ peripheral: Peripheral) throws -> (read: Future<Data>, request: PairingRequest) {
        for _ in 0..<20 {
            if peripheral.state != .connected { connect(peripheral) }
            let read: Future<Data> = peripheral.read(encrypted, timeout: limit)
            _ = stage.wait(journal, limit: limit) { !$0.pairingRequests.isEmpty || read.completed }
            if let request = journal.read({ $0.pairingRequests.first }) { return (read, request) }
            peripheral.disconnect()
            XCTAssertTrue(waitUntil { peripheral.state == .disconnected }, "the link did not end")
        }
        throw PairingError.timedOut
    }

    /// Reads the protected value, and rejects what the manager asks; returns the error.
    private func refuseToPair(_ peripheral: Peripheral, request number: Int) throws -> (any Error)? {
        let read: Future<Data> = peripheral.read(encrypted, timeout: limit)
        let request = try request(number)
        XCTAssertEqual(request.kind, .authorize)
        XCTAssertTrue(request.reject())
        return error(of: read)
    }

    /// The second time the manager would have to call `Pair`, about which BlueZ asks nothing.
    public func aRefusedQuestionIsAskedAgain() throws {
        let (manager, peripheral) = try asked(.ask(.noInputNoOutput), StagePeer(hasAgent: false))
        let (read, request) = try readUntilAsked(peripheral)
        XCTAssertEqual(request.kind, .authorize)
        XCTAssertTrue(request.reject())
        XCTAssertNotNil(error(of: read))
        XCTAssertTrue(waitUntil { peripheral.state == .disconnected }, "the link did not end")
        for number in 2...3 {
            connect(peripheral)
            XCTAssertNotNil(try refuseToPair(peripheral, request: number))
            assertNotPaired(peripheral, manager)
            if peripheral.state == .connected { disconnect(peripheral) }
        }
        expectNot("a bond appeared", 5) { _ in peripheral.isBonded }
    }

    public func aRequestEndsWhenItsDeviceIsRemoved() throws {
        let (manager, peripheral) = try asked(.ask(.noInputNoOutput), StagePeer(hasAgent: false))
        let (read, request) = try readUntilAsked(peripheral)
        let unpaired = peripheral.unpair()
        try outcome(of: request.whenEnded())
        XCTAssertFalse(request.reject())
        XCTAssertNil(error(of: unpaired))
        XCTAssertNotNil(error(of: read))
        assertNotPaired(peripheral, manager)
    }

    /// BlueZ ends the link two seconds after `Disconnect`; the power goes before.
    public func theBondOfARefusedPasskeyIsRemovedWhenThePowerReturns() throws {
        let (manager, peripheral, pairing, request) = try pairing(
            .ask(.displayOnly), StagePeer(.keyboardOnly, .acceptLate), isConnected: true)
        guard case .displayPasskey(let passkey, _) = request.kind else { return XCTFail("\(request)") }
        request.reject()
        try stage.enterAtPeer(passkey)
        XCTAssertNotNil(error(of: pairing))
        try stage.setPower(false)
        expect("no power") { $0.states.last == .poweredOff }
        try stage.setPower(true)
        expect("power") { $0.states.last == .poweredOn }
        expectNot("a bond appeared", 5) { _ in peripheral.isBonded }
        assertNotPaired(peripheral, manager)
    }

    /// `Pair` is called while BlueZ discovers services, after which up to 5.86 no reply comes.
    public func aPairingWhileServicesAreDiscoveredSucceeds() throws {
        let (_, peripheral) = try found(.justWorks)
        journal.watch(peripheral.connect())
        expect("the link") { $0.connectionEvents.last == .connect }
        try outcome(of: peripheral.pair(timeout: 20))
        XCTAssertTrue(peripheral.isPaired && peripheral.isBonded)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
    }

    public func aPairingWithADeadBondFails() throws {
        let peripheral = try bonded()
        // The bond holds: a link is made and encrypted with it.
        try outcome(of: peripheral.pair())
        XCTAssertEqual(peripheral.state, .connected)
        XCTAssertEqual(peripheral.pairingCount, 1)
        disconnect(peripheral)
        try stage.forgetKeys(of: .peripheral)
        guard case .keyMissing? = pairingError(of: peripheral.pair()) else { return XCTFail("no error") }
        try repair(peripheral)
    }

    // MARK: Bonds

    public func aBondedPeripheralIsReadAfterReconnectingWithoutAQuestion() throws {
        let peripheral = try bonded()
        connect(peripheral)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        XCTAssertEqual(peripheral.pairingCount, 1)
        try checkPeer("RequestAuthorization")
    }

    public func aBondOutlivesTheDaemon() throws {
        let (manager, peripheral) = try found(.justWorks)
        try outcome(of: peripheral.pair())
        try stage.restartDaemon()
        expect("the restart") { $0.states == [.poweredOn, .resetting, .poweredOn] }
        try stage.serve(.lock)
        XCTAssertTrue(peripheral.isBonded)
        XCTAssertEqual(manager.bonds().map(\.identifier), [peripheral.identifier])
        connect(peripheral)
        do {
            let value = try value(encrypted, of: peripheral)
            XCTAssertEqual(value, [2])
        } catch PeripheralError.disconnected where stage.mayEndFirstLink {
            expect("the end of the first link") { $0.connectionEvents.last == .disconnect }
            peripheral.reconnect()
            expect("the second link") { $0.connectionEvents.last == .connect }
            XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        }
        XCTAssertEqual(peripheral.pairingCount, 1)
    }

    public func aPeripheralWithoutKeysIsReportedAndRepaired() throws {
        let peripheral = try bonded()
        try stage.forgetKeys(of: .peripheral)
        func isReported(_ entries: Journal.Entries) -> Bool {
            entries.failures.contains { if case PeripheralError.pairing(.keyMissing) = $0 { true } else { false } }
        }
        journal.watch(peripheral.connect())
        for attempt in 1...3 {
            expect("the end of link \(attempt)") {
                isReported($0) || $0.connectionEvents.count(of: .disconnect) >= attempt
            }
            if journal.read(isReported) { break }
            peripheral.reconnect()
        }
        XCTAssertTrue(journal.read(isReported))
        XCTAssertTrue(peripheral.isBonded)
        try repair(peripheral)
    }

    /// The kernel begins a pairing that replaces the keys, and both ends refuse it. If this end is the first to do so, BlueZ
    /// leaves the link as it is; if the peripheral is, the link ends. Which one it is depends on the time.
    public func anAdapterWithoutKeysIsReportedAndRepaired() throws {
        let peripheral = try bonded()
        try stage.forgetKeys(of: .central)
        func isReported(_ entries: Journal.Entries) -> Bool {
            entries.failures.contains { $0 as? PeripheralError == .pairing(.keyMissing(isCertain: false)) }
        }
        journal.watch(peripheral.connect())
        expect("the link") { $0.connectionEvents.contains(.connect) }
        let read: Future<Data> = peripheral.read(encrypted)
        for attempt in 1...3 {
            let isOver = stage.wait(journal, limit: 90) {
                isReported($0) || $0.connectionEvents.count(of: .disconnect) >= attempt
            }
            XCTAssertTrue(isOver, "link \(attempt) neither ended nor was given up")
            if journal.read(isReported) { break }
            peripheral.reconnect()
        }
        XCTAssertTrue(journal.read(isReported), "the keys are not reported as missing")
        // Whether the link of the read was known to lack the keys depends on the time.
        switch error(of: read) as? PeripheralError {
        case .disconnected, .pairing(.keyMissing): break
        case let error: XCTFail("\(String(describing: error))")
        }
        XCTAssertTrue(waitUntil { peripheral.state == .disconnected }, "the link did not end")
        try stage.forgetKeys(of: .peripheral)
        try repair(peripheral)
    }

    public func unpairEndsTheLinkAndTheBond() throws {
        let (manager, peripheral) = try found(.justWorks)
        try outcome(of: peripheral.pair())
        try outcome(of: peripheral.unpair())
        assertNotPaired(peripheral, manager)
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertNil(try stage.linkSecurity())
        try stage.forgetKeys(of: .peripheral)
        // A page of the old bond, for classic services, fails after five seconds, and would remove the new one.
        expectNot("a change", 6) { _ in false }
        try outcome(of: peripheral.pair())
        XCTAssertTrue(peripheral.isBonded)
    }

    public func aPrivateAddressChangesAndThePeripheralStays() throws {
        let (manager, peripheral) = try found(.justWorks, StagePeer(isPrivate: true))
        let (address, identifier) = (peripheral.address, peripheral.identifier)
        try outcome(of: peripheral.pair())
        XCTAssertNotEqual(peripheral.address, address)
        XCTAssertEqual(peripheral.identifier, identifier)
        XCTAssertEqual(manager.bonds().map(\.identifier), [identifier])
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        disconnect(peripheral)
        connect(peripheral)
        XCTAssertEqual(try value(encrypted, of: peripheral), [2])
        XCTAssertEqual(peripheral.pairingCount, 1)
    }
}

extension [ConnectionEvent] {
    fileprivate func count(of event: ConnectionEvent) -> Int { filter { $0 == event }.count }
}
