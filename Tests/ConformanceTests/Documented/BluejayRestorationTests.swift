import Bluejay
import BlueZSimulator
import XCTest

/// The guide's section Background Operation.
final class BluejayRestorationTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    private struct Log {
        let seen: Notes
        func debug(_ text: String) { seen.note(text) }
    }

    /// The guide's view controller, which restores its listens.
    private final class ViewController: ConnectionObserver, ListenRestorer {
        let bluejay: Bluejay
        let log: Log
        let heartRate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

        init(_ bluejay: Bluejay, _ seen: Notes) { (self.bluejay, log) = (bluejay, Log(seen: seen)) }

        func start() {
            let startOptions = StartOptions(
                enableBluetoothAlert: true,
                backgroundRestore: .enable("com.steamclock.bluejay")
            )
            bluejay.start(mode: .new(startOptions), connectionObserver: self)
        }

        func startWithListenRestorer() {
            let startOptions = StartOptions(
                enableBluetoothAlert: true,
                backgroundRestore: .enableWithListenRestorer("com.steamclock.bluejay", self)
            )
            bluejay.start(mode: .new(startOptions), connectionObserver: self)
        }

        func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool {
            if characteristic == heartRate {
                bluejay.restoreListen(
                    to: heartRate,
                    completion: { (result: ReadResult<UInt8>) in
                        switch result {
                        case .success(let value):
                            self.log.debug("Listen succeeded with value: \(value)")
                        case .failure(let error):
                            self.log.debug("Listen failed with error: \(error.localizedDescription)")
                        }
                    })

                return true
            }

            return false
        }

        func connected(to peripheral: Peripheral) { log.debug("connected") }
    }

    /// Ends a program that is listening. Its link stays, as after a killed process.
    private func endWhileListening() {
        let configuration = CentralManager.Configuration(keepsLinks: true)
        bluejay.start(
            mode: .new(
                StartOptions(
                    enableBluetoothAlert: false, backgroundRestore: .enable("com.steamclock.bluejay"),
                    managerConfiguration: configuration)))
        connectedSensor()
        for uuid in ["2A37", "2456E1B9-26E2-8F83-E744-F34F01E9D703"] {
            let service = uuid == "2A37" ? "180D" : "2456E1B9-26E2-8F83-E744-F34F01E9D701"
            bluejay.listen(to: CharacteristicIdentifier(uuid: uuid, service: ServiceIdentifier(uuid: service))) {
                (_: ReadResult<Data>) in
            }
        }
        eventually("the listens") { simulator.links.first?.subscriptions.count == 2 }
        pass(1)
        bluejay = nil
        settle()
        bluejay = Bluejay(callbackQueue: callbacks)
        pass(1)
        XCTAssertEqual(simulator.links.first?.subscriptions, [])
    }

    func testTheConnectionIsRestored() {
        endWhileListening()
        let controller = ViewController(bluejay, seen)
        controller.start()
        eventually("the connection") { seen.contains("connected") }
        XCTAssertTrue(bluejay.isConnected)
    }

    func testWithoutAListenRestorerAllListensAreCancelled() {
        endWhileListening()
        let controller = ViewController(bluejay, seen)
        controller.start()
        eventually("the connection") { seen.contains("connected") }
        pass(5)
        XCTAssertEqual(simulator.links.first?.subscriptions, [])
    }

    func testAListenRestorerIsAskedAboutEachListen() {
        endWhileListening()
        let controller = ViewController(bluejay, seen)
        controller.startWithListenRestorer()
        awaitListen()
        notify([80])
        eventually("the value") { seen.contains("Listen succeeded with value: 80") }
        XCTAssertEqual(seen.texts, ["connected", "Listen succeeded with value: 80"])
        XCTAssertEqual(simulator.links.first?.subscriptions.count, 1)
    }

    func testARestoredListenFailsWithItsConnection() {
        endWhileListening()
        let controller = ViewController(bluejay, seen)
        controller.startWithListenRestorer()
        awaitListen()
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the failure") {
            seen.texts.contains { $0.hasPrefix("Listen failed with error: There is no connection") }
        }
    }
}
