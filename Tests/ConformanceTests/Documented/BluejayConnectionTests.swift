import Bluejay
import BlueZSimulator
import XCTest

/// The guide's sections Connecting to Connection States.
final class BluejayConnectionTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    /// The guide's view controller that connects.
    private final class ViewController: DisconnectHandler {
        let bluejay: Bluejay
        let seen: Notes

        init(_ bluejay: Bluejay, _ seen: Notes) { (self.bluejay, self.seen) = (bluejay, seen) }

        private func debugPrint(_ text: String) { seen.note(text) }
        private func performSegue(withIdentifier identifier: String, sender: Any?) { seen.note(identifier) }

        func connect(_ peripheralIdentifier: PeripheralIdentifier) {
            bluejay.connect(peripheralIdentifier) { [weak self] (result) in
                switch result {
                case .success(let peripheral):
                    self?.debugPrint("Connection to \(peripheral.name) successful.")

                    guard let weakSelf = self else {
                        return
                    }

                    weakSelf.performSegue(withIdentifier: "showHeartSensor", sender: self)
                case .failure(let error):
                    self?.debugPrint(
                        "Connection to \(peripheralIdentifier.name) failed with error: \(error.localizedDescription)")
                }
            }
        }

        func didDisconnect(
            from peripheral: Peripheral, with error: (any Error)?, willReconnect autoReconnect: Bool
        ) -> AutoReconnectMode {
            seen.note("didDisconnect")
            return .change(shouldAutoReconnect: false)
        }
    }

    private func loseTheLink() {
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the loss") { !bluejay.isConnected }
    }

    func testAConnection() {
        let identifier = discoveredSensor()
        let controller = ViewController(bluejay, seen)
        controller.connect(identifier)
        eventually("the connection") { seen.contains("showHeartSensor") }
        XCTAssertEqual(seen.texts, ["Connection to Heart successful.", "showHeartSensor"])
    }

    func testThereIsOneConnection() {
        let identifier = connectedSensor()
        let controller = ViewController(bluejay, seen)
        controller.connect(identifier)
        eventually("the refusal") { seen.count == 1 }
        XCTAssertEqual(
            seen.texts,
            [
                "Connection to Heart failed with error: "
                    + BluejayError.multipleConnectNotSupported.localizedDescription
            ])
    }

    func testAQueuedDisconnectionWaitsForItsTurn() {
        connectedSensor()
        let seen = seen
        let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
        bluejay.read(from: location) { (result: ReadResult<UInt8>) in
            if case .success(let value) = result { seen.note("read \(value)") }
        }
        bluejay.disconnect()
        eventually("the end") { !bluejay.isConnected && !bluejay.isDisconnecting }
        XCTAssertEqual(seen.texts, ["read 1"])
    }

    func testAnImmediateDisconnectionFailsWhatIsQueued() {
        for end in [
            { (bluejay: Bluejay) in bluejay.disconnect(immediate: true) }, { $0.cancelEverything() },
        ] as [(Bluejay) -> Void] {
            connectedSensor()
            let seen = seen
            let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
            bluejay.read(from: location) { (result: ReadResult<UInt8>) in
                if case .failure = result { seen.note("failed") }
            }
            end(bluejay)
            eventually("the end") { !bluejay.isConnected && !bluejay.isDisconnecting }
        }
        XCTAssertEqual(seen.texts, ["failed", "failed"])
    }

    func testEverythingIsCancelledWithoutDisconnecting() {
        connectedSensor()
        let seen = seen
        let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
        bluejay.read(from: location) { (result: ReadResult<UInt8>) in
            if case .failure(let error) = result { seen.note("\(error as? BluejayError == .cancelled)") }
        }

        bluejay.cancelEverything(shouldDisconnect: false)

        eventually("the failure") { seen.contains("true") }
        pass(3)
        XCTAssertTrue(bluejay.isConnected)
    }

    func testBluejayReconnectsByItself() {
        connectedSensor()
        XCTAssertTrue(bluejay.shouldAutoReconnect)
        loseTheLink()
        eventually("the connection") { bluejay.isConnected }
    }

    func testReconnectingIsOffAfterADisconnectionAndOnAfterAConnection() {
        let identifier = connectedSensor()
        for end in [{ $0.disconnect() }, { $0.cancelEverything() }] as [(Bluejay) -> Void] {
            XCTAssertTrue(bluejay.shouldAutoReconnect)
            end(bluejay)
            XCTAssertTrue(bluejay.shouldAutoReconnect, "Not before it is successful.")
            eventually("the end") { !bluejay.isConnected && !bluejay.isDisconnecting }
            XCTAssertFalse(bluejay.shouldAutoReconnect)
            bluejay.connect(identifier) { _ in }
            eventually("the connection") { bluejay.isConnected }
        }
        XCTAssertTrue(bluejay.shouldAutoReconnect)
    }

    func testADisconnectHandlerTurnsReconnectingOff() {
        connectedSensor()
        let controller = ViewController(bluejay, seen)

        bluejay.registerDisconnectHandler(handler: controller)

        loseTheLink()
        eventually("the handler") { seen.contains("didDisconnect") }
        pass(3)
        XCTAssertFalse(bluejay.shouldAutoReconnect)
        XCTAssertFalse(bluejay.isConnected)
    }

    func testADisconnectHandlerTakesThePlaceOfTheOneBefore() {
        connectedSensor()
        let (first, second) = (ViewController(bluejay, Notes()), ViewController(bluejay, seen))
        bluejay.registerDisconnectHandler(handler: first)
        bluejay.registerDisconnectHandler(handler: second)
        loseTheLink()
        eventually("the handler") { seen.contains("didDisconnect") }
        XCTAssertEqual(first.seen.count, 0)
    }

    func testAConnectionMayHaveATimeOut() {
        let identifier = discoveredSensor()
        simulator.remove(Self.address)
        let seen = seen
        bluejay.connect(identifier, timeout: .seconds(15)) { result in
            if case .failure(let error) = result { seen.note("\(error as? BluejayError == .connectionTimedOut)") }
        }
        pass(14)
        XCTAssertEqual(seen.texts, [])
        eventually("the time-out", limit: 5) { seen.contains("true") }
        func isExhaustive(_ timeout: Timeout) -> TimeInterval? {
            switch timeout {
            case .seconds(let seconds): seconds
            case .none: nil
            }
        }
        XCTAssertEqual(isExhaustive(.seconds(15)), 15)
    }

    func testTheStatesOfAConnection() {
        XCTAssertFalse(bluejay.isBluetoothAvailable)
        let identifier = discoveredSensor()
        XCTAssertTrue(bluejay.isBluetoothAvailable)
        bluejay.scan(serviceIdentifiers: nil, discovery: { _, _ in .continue }, stopped: { _, _ in })
        XCTAssertTrue(bluejay.isScanning)
        bluejay.connect(identifier) { _ in }
        XCTAssertFalse(bluejay.isScanning)
        XCTAssertTrue(bluejay.isConnecting)
        eventually("the connection") { bluejay.isConnected }
        XCTAssertFalse(bluejay.isConnecting)
        XCTAssertTrue(bluejay.shouldAutoReconnect)
        bluejay.disconnect()
        XCTAssertTrue(bluejay.isDisconnecting)
        eventually("the end") { !bluejay.isDisconnecting }
        XCTAssertFalse(bluejay.isConnected)
    }
}
