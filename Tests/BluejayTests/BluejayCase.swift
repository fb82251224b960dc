import Bluejay
import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

/// A Bluejay on a simulator in virtual time, with a heart rate strap.
///
/// Callbacks run on a queue of the test. Before virtual time advances, the callbacks and the background task run, so that each
/// run has the same order.
// Unchecked: what callbacks write the test reads after `settle` alone.
class BluejayCase: RandomTestCase, VirtualTimeCase, @unchecked Swift.Sendable {
    static let address: VirtualAddress = "C0:00:00:00:00:01"
    static let heartRate = ServiceIdentifier(uuid: "180D")
    static let measurement = CharacteristicIdentifier(uuid: "2A37", service: heartRate)
    static let location = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
    static let control = CharacteristicIdentifier(uuid: "2A39", service: heartRate)
    static let answers = CharacteristicIdentifier(uuid: "2A3A", service: heartRate)

    let simulator = Simulator.inProcess(room: .empty)
    let callbacks = DispatchQueue(label: "callbacks")
    var bluejay: Bluejay!
    let strap = Strap()
    /// What callbacks noted.
    let seen = Notes()
    var notedTexts: [String] { seen.texts }

    static func virtual(_ number: Int = 1, link: VirtualLink = VirtualLink()) -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualAddress(stringLiteral: "C0:00:00:00:00:0\(number)"), addressType: .random,
            advertisement: Advertisement(localName: "Strap \(number)", serviceUUIDs: ["180D"]), interval: 0.1,
            services: [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic("2A37", [.notify], value: [0, 60]),
                        VirtualCharacteristic("2A38", [.read, .write], value: [1]),
                        VirtualCharacteristic("2A39", [.write, .writeWithoutResponse]),
                        VirtualCharacteristic("2A3A", [.notify]),
                    ])
            ], link: link)
    }

    override func setUp() { bluejay = Bluejay(callbackQueue: callbacks) }

    override func tearDown() {
        settle()
        bluejay = nil
        settle()
    }

    var managerConfiguration: CentralManager.Configuration {
        CentralManager.Configuration(busAddress: simulator.address)
    }

    var options: StartOptions {
        StartOptions(
            enableBluetoothAlert: false, backgroundRestore: .disable, managerConfiguration: managerConfiguration)
    }

    // MARK: Time

    /// Runs all work that is due now: of the simulator, of callbacks, of the background task.
    func settle() {
        for _ in 0..<4 {
            simulator.run()
            callbacks.sync {}
            if let bluejay, !bluejay.awaitBackgroundTask() {
                XCTFail("The background task neither ends nor waits.")
            }
            simulator.run()
        }
    }

    // MARK: Beginnings

    func start(_ observer: (any ConnectionObserver)? = nil) {
        bluejay.start(mode: .new(options), connectionObserver: observer)
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
    }

    /// Started, with the strap found.
    @discardableResult
    func find(_ number: Int = 1, link: VirtualLink = VirtualLink()) -> PeripheralIdentifier {
        if !bluejay.hasStarted { start() }
        if !simulator.peripherals.contains(where: { $0.address == Self.virtual(number).address }) {
            simulator.add(Self.virtual(number, link: link), behavior: strap)
        }
        let found = Notes()
        var identifier: PeripheralIdentifier?
        bluejay.scan(
            serviceIdentifiers: [Self.heartRate],
            discovery: { discovery, _ in
                guard discovery.peripheralIdentifier.name == "Strap \(number)" else { return .continue }
                identifier = discovery.peripheralIdentifier
                return .stop
            }, stopped: { _, _ in found.note("stopped") })
        eventually("the strap") { found.texts.count == 1 }
        return identifier ?? PeripheralIdentifier(uuid: UUID(), name: nil)
    }

    /// Connected.
    @discardableResult
    func connect(link: VirtualLink = VirtualLink()) -> PeripheralIdentifier {
        let identifier = find(link: link)
        let connected = Notes()
        bluejay.connect(identifier) { result in connected.note("\(result)") }
        eventually("the connection") { connected.texts.count == 1 }
        XCTAssertTrue(bluejay.isConnected, "\(connected.texts)")
        return identifier
    }

    func notify(_ bytes: [UInt8], from uuid: String = "2A37") {
        simulator.notify(Self.address, characteristic: .uuid(uuid), value: bytes)
        settle()
    }

    func awaitSubscription(_ uuid: String = "2A37") {
        eventually("the listen") { !simulator.subscriptions(to: .uuid(uuid), at: Self.address).isEmpty }
        pass(0.2)
    }

    func loseLink() {
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the loss") { !bluejay.isConnected }
    }
}

extension Notes {
    /// Notes an error, or a result of Bluejay: its value, the name of its peripheral, or its error.
    func note(_ name: String, _ result: some Any) {
        switch result is any Error ? result : Mirror(reflecting: result).children.first?.value {
        case nil: note("\(name) done")
        case let error as any Error: note("\(name) \(short(error))")
        case let peripheral as Peripheral: note("\(name) \(peripheral.name)")
        case let value?: note("\(name) \(value)")
        }
    }

    func note(_ name: String, _ error: (any Error)?) { note("\(name) \(error.map(short) ?? "nil")") }
}

/// The case of an error, without its sentence.
func short(_ error: any Error) -> String {
    guard error is BluejayError else { return String(reflecting: error) }
    switch error {
    case BluejayError.pairingFailed(.rejected(let party)): return "rejected by \(party)"
    case BluejayError.pairingFailed(.keyMissing(let isCertain)): return "keyMissing \(isCertain)"
    case BluejayError.pairingFailed(.notAllowed): return "notAllowed"
    case BluejayError.pairingRequired(let security): return "needs \(security)"
    case BluejayError.missingCharacteristic: return "missingCharacteristic"
    default: break
    }
    return BluejayError.allShort.first { $0.0 == error as? BluejayError }?.1 ?? "\(error)"
}

extension BluejayError {
    fileprivate static let allShort: [(BluejayError, String)] = [
        (.bluetoothUnavailable, "bluetoothUnavailable"), (.multipleScanNotSupported, "multipleScanNotSupported"),
        (.multipleConnectNotSupported, "multipleConnectNotSupported"),
        (.multipleDisconnectNotSupported, "multipleDisconnectNotSupported"),
        (.connectionTimedOut, "connectionTimedOut"), (.notConnected, "notConnected"), (.cancelled, "cancelled"),
        (.explicitDisconnect, "explicitDisconnect"), (.disconnectQueued, "disconnectQueued"),
        (.listenTimedOut, "listenTimedOut"), (.backgroundTaskRunning, "backgroundTaskRunning"),
        (.multipleBackgroundTaskNotSupported, "multipleBackgroundTaskNotSupported"),
        (.calledInsideBackgroundTask, "calledInsideBackgroundTask"), (.notInBackgroundTask, "notInBackgroundTask"),
        (.multipleListenTrapped, "multipleListenTrapped"), (.multipleListenReplaced, "multipleListenReplaced"),
        (.indefiniteFlush, "indefiniteFlush"), (.stopped, "stopped"),
    ]
}
