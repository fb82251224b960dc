import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

/// A Bluejay that pairs with a virtual lock.
final class PairingTests: BluejayCase, @unchecked Swift.Sendable {
    private static let service = ServiceIdentifier(uuid: "B001")
    private static let encrypted = CharacteristicIdentifier(uuid: "B002", service: service)
    private static let authenticated = CharacteristicIdentifier(uuid: "B003", service: service)
    private static let numbers = VirtualSecurity(.displayYesNo)
    private static let notPaired = DaemonError(name: "org.bluez.Error.NotPermitted", message: "Not paired")

    private func add(_ security: VirtualSecurity) {
        simulator.add(
            VirtualPeripheral(
                Self.address, addressType: .random,
                advertisement: Advertisement(localName: "Strap 1", serviceUUIDs: ["180D"]), interval: 0.1,
                services: [
                    VirtualService(
                        "B001",
                        characteristics: [
                            VirtualCharacteristic("B002", [.read, .write], value: [2], security: .encrypted),
                            VirtualCharacteristic("B003", [.read], value: [3], security: .authenticated),
                        ])
                ], security: security))
    }

    /// Starts with that policy, and connects.
    @discardableResult
    private func connect(
        _ policy: PairingPolicy?, _ security: VirtualSecurity = VirtualSecurity()
    ) -> PeripheralIdentifier {
        add(security)
        bluejay.start(mode: .new(options), pairing: policy)
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
        return connect()
    }

    private func read(_ characteristic: CharacteristicIdentifier) {
        bluejay.read(from: characteristic) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
    }

    private func pair() { bluejay.pair { [seen] in seen.note("pair", $0) } }

    private var isEncrypted: Bool { simulator.links.contains { $0.security != .none } }

    // MARK: Bonds

    func testPairEncryptsTheConnection() {
        let observer = PairingNotes(seen)
        bluejay.register(pairingObserver: observer)
        connect(.justWorks)
        pair()
        expect("pair done")
        XCTAssertTrue(isEncrypted && bluejay.isConnected)
        XCTAssertEqual(seen.texts.dropLast().last, "Strap 1 paired true bonded true application")
        pair()
        eventually("the second completion") { seen.texts.filter { $0 == "pair done" }.count == 2 }
        read(Self.encrypted)
        expect("read 2")
    }

    func testPairRequiresAConnectionAndAPolicy() {
        start()
        pair()
        expect("pair notConnected")
        bluejay = Bluejay(callbackQueue: callbacks)
        connect(nil)
        pair()
        expect("pair notAllowed")
        XCTAssertTrue(bluejay.isConnected)
    }

    func testUnpairEndsTheConnectionAndTheBond() {
        let observer = Observer(seen)
        let identifier = connect(.justWorks)
        pair()
        expect("pair done")
        bluejay.register(observer: observer)
        bluejay.unpair(identifier) { [seen] in seen.note("unpair", $0) }
        expect("unpair done")
        XCTAssertEqual(seen.texts.suffix(2), ["disconnected Strap 1", "unpair done"])
        XCTAssertFalse(bluejay.isConnected || bluejay.shouldAutoReconnect)
        pass(5)
        XCTAssertEqual(simulator.links.count, 0)
    }

    func testUnpairRequiresNoConnection() {
        let identifier = connect(.justWorks)
        pair()
        expect("pair done")
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        bluejay.unpair(identifier) { [seen] in seen.note("unpair", $0) }
        expect("unpair done")
        bluejay.unpair(PeripheralIdentifier(uuid: UUID(), name: nil)) { [seen] in
            if case .failure(BluejayError.unexpectedPeripheral) = $0 { seen.note("unknown") }
        }
        expect("unknown")
    }

    func testMissingKeysAreTheReasonOfTheLoss() {
        let handler = Reasons(seen)
        bluejay.registerDisconnectHandler(handler: handler)
        let identifier = connect(.justWorks)
        pair()
        expect("pair done")
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        simulator.simulateKeyLoss(of: Self.address)
        for attempt in 1...3 where !seen.texts.contains(where: { $0.contains("keyMissing") }) {
            bluejay.connect(identifier, timeout: .seconds(20)) { [seen] in seen.note("connect \(attempt)", $0) }
            pass(10)
        }
        XCTAssertTrue(seen.texts.contains { $0.hasSuffix("keyMissing false") }, "\(seen.texts)")
    }

    // MARK: Requests

    func testTheObserverAnswersOnTheCallbackQueue() {
        let observer = PairingNotes(seen, on: callbacks) { $0.confirm() }
        bluejay.register(pairingObserver: observer)
        connect(.ask(.displayYesNo), Self.numbers)
        pair()
        expect("pair done")
        XCTAssertEqual(seen.texts.first, "request of Strap 1")
        read(Self.authenticated)
        expect("read 3")
    }

    func testARejectedPairingFails() {
        let observer = PairingNotes(seen) { $0.reject() }
        connect(.ask, Self.numbers)
        bluejay.register(pairingObserver: observer)
        pair()
        expect("pair rejected by application")
    }

    func testWithoutAnObserverARequestIsRejected() {
        connect(.ask, Self.numbers)
        pair()
        expect("pair rejected by policy")
        var observer: PairingNotes? = PairingNotes(seen)
        bluejay.register(pairingObserver: observer!)
        observer = nil
        eventually("the end of the link") { bluejay.isConnected }
        pair()
        expect("pair rejected by application")
    }

    func testWithoutAnObserverAnotherHandlerAnswers() throws {
        for isReleased in [false, true] {
            bluejay = Bluejay(callbackQueue: callbacks)
            let manager = try CentralManager(configuration: managerConfiguration)
            manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { [seen] request in
                seen.note("handler")
                request.confirm()
            }
            if !isReleased { add(Self.numbers) }
            var observer: PairingNotes? = PairingNotes(seen)
            bluejay.register(pairingObserver: observer!)
            bluejay.start(mode: .use(manager: manager, peripheral: nil), pairing: .ask(.displayYesNo))
            if !isReleased { bluejay.unregister(pairingObserver: observer!) }
            observer = nil
            eventually("Bluetooth") { bluejay.isBluetoothAvailable }
            let identifier = connect()
            let count = seen.texts.count
            pair()
            eventually("the completion") { seen.texts.count == count + 2 }
            XCTAssertEqual(seen.texts.suffix(2), ["handler", "pair done"])
            bluejay.unpair(identifier) { [seen] in seen.note("unpair", $0) }
            eventually("the end of the bond") { seen.texts.last == "unpair done" }
            _ = bluejay.stopAndExtractBluetoothState()
        }
    }

    // MARK: Operations that need a pairing

    func testAReadPairsIfThePolicyAllowsIt() {
        connect(.justWorks)
        read(Self.encrypted)
        expect("read 2")
        XCTAssertTrue(isEncrypted)
    }

    func testARefusedReadSaysWhichPairingItNeeds() {
        connect(nil)
        simulator.simulateRefusedCalls(of: "ReadValue", error: Self.notPaired)
        read(Self.encrypted)
        expect("read needs encryption")
        bluejay = Bluejay(callbackQueue: callbacks)
        connect(.justWorks)
        pair()
        expect("pair done")
        simulator.simulateRefusedCalls(of: "ReadValue", error: Self.notPaired)
        read(Self.authenticated)
        expect("read needs authentication")
    }

    func testAnObserverAnswersWhileATaskIsBlocked() {
        let observer = PairingNotes(seen, on: callbacks) { $0.confirm() }
        bluejay.register(pairingObserver: observer)
        connect(.ask(.displayYesNo), Self.numbers)
        bluejay.run(backgroundTask: { peripheral -> UInt8 in
            try peripheral.read(from: Self.authenticated)
        }) { [seen] (result: RunResult<UInt8>) in seen.note("run", result) }
        expect("run 3")
        XCTAssertEqual(seen.texts.first, "request of Strap 1")
    }

    func testATaskPairs() {
        connect(.justWorks)
        bluejay.run(backgroundTask: { peripheral -> UInt8 in
            try peripheral.pair(timeout: .seconds(20))
            return try peripheral.read(from: Self.encrypted)
        }) { [seen] (result: RunResult<UInt8>) in seen.note("run", result) }
        expect("run 2")
    }

    // MARK: Ends

    func testCancelEverythingCancelsThePairing() {
        let observer = PairingNotes(seen) { _ in }
        bluejay.register(pairingObserver: observer)
        connect(.ask(.displayYesNo), Self.numbers)
        pair()
        expect("request of Strap 1")
        bluejay.cancelEverything(shouldDisconnect: false)
        expect("pair cancelled")
        pass(40)
        XCTAssertFalse(isEncrypted)
        read(Self.service.characteristic)
        expect("read missingCharacteristic")
    }

    func testAPairingSurvivesTheEndOfALinkThatIsOlderThanThePolicy() {
        let observer = PairingNotes(seen) { $0.confirm() }
        connect(nil, Self.numbers)
        let state = bluejay.stopAndExtractBluetoothState()
        bluejay.register(pairingObserver: observer)
        bluejay.start(mode: .use(manager: state.manager, peripheral: state.peripheral), pairing: .ask(.displayYesNo))
        eventually("the connection") { bluejay.isConnected }
        pair()
        expect("pair done")
        eventually("the connection") { bluejay.isConnected && isEncrypted }
        read(Self.authenticated)
        expect("read 3")
    }
}

extension ServiceIdentifier {
    /// One that the lock does not have.
    fileprivate var characteristic: CharacteristicIdentifier { CharacteristicIdentifier(uuid: "B00F", service: self) }
}

private final class PairingNotes: PairingObserver {
    private let notes: Notes
    private let queue: DispatchQueue?
    private let answer: (PairingRequest) -> Void

    init(_ notes: Notes, on queue: DispatchQueue? = nil, answer: @escaping (PairingRequest) -> Void = { _ in }) {
        (self.notes, self.queue, self.answer) = (notes, queue, answer)
    }

    func didReceivePairingRequest(_ request: PairingRequest, from peripheral: PeripheralIdentifier) {
        if let queue { dispatchPrecondition(condition: .onQueue(queue)) }
        notes.note("request of \(peripheral.name)")
        answer(request)
    }

    func didChangePairing(of peripheral: PeripheralIdentifier, to change: PairingChange) {
        notes.note("\(peripheral.name) paired \(change.isPaired) bonded \(change.isBonded) \(change.origin)")
    }
}

/// Notes why connections are lost, and ends Bluejay's reconnections.
private final class Reasons: DisconnectHandler {
    private let notes: Notes

    init(_ notes: Notes) { self.notes = notes }

    func didDisconnect(
        from peripheral: PeripheralIdentifier, with error: (any Error)?, willReconnect autoReconnect: Bool
    ) -> AutoReconnectMode {
        notes.note("lost", error)
        return .change(shouldAutoReconnect: false)
    }
}
