import Bluejay
import BlueZSimulator
import XCTest

/// The guide's sections Initialization, Bluetooth Events, Services and Characteristics, and CoreBluetooth Migration.
final class BluejayStartTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    /// The part of the guide's view controller that receives events.
    private final class ViewController: ConnectionObserver {
        let bluejay: Bluejay
        let seen: Notes

        init(_ bluejay: Bluejay, _ seen: Notes) { (self.bluejay, self.seen) = (bluejay, seen) }

        func viewDidLoad() {
            bluejay.start(mode: .new(StartOptions.bluejayDefault), connectionObserver: self)
        }

        func bluetoothAvailable(_ available: Bool) { seen.note("available \(available)") }
        func connected(to peripheral: Peripheral) { seen.note("connected \(peripheral.name)") }
        func disconnected(from peripheral: Peripheral) { seen.note("disconnected \(peripheral.name)") }
    }

    func testBluejayIsMadeAndStarted() {
        let bluejay = Bluejay()

        XCTAssertFalse(bluejay.hasStarted)
        bluejay.start()
        XCTAssertTrue(bluejay.hasStarted)
    }

    func testCallbacksComeOnTheMainQueue() {
        simulator.add(Self.sensor)
        bluejay = Bluejay()
        bluejay.start()
        let seen = seen
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { discovery, _ in
                seen.note(Thread.isMainThread ? "main" : "elsewhere")
                return .stop
            }, stopped: { _, _ in seen.note(Thread.isMainThread ? "main" : "elsewhere") })
        while seen.count < 2, simulator.seconds < 60 {
            simulator.advance(by: 0.1)
            // What a program does with `dispatchMain()`.
            RunLoop.main.run(until: Date())
        }
        XCTAssertEqual(seen.texts, ["main", "main"])
    }

    func testAnObserverIsRegisteredWithTheStart() {
        let controller = ViewController(bluejay, seen)
        controller.viewDidLoad()
        eventually("Bluetooth") { seen.contains("available true") }
        connectedSensor()
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the loss") { seen.contains("disconnected Heart") }
        XCTAssertEqual(seen.texts.prefix(3), ["available true", "connected Heart", "disconnected Heart"])
    }

    func testObserversComeAndGoAndAreHeldWeakly() {
        var batteryLabel: ViewController? = ViewController(bluejay, seen)
        let rssiLabel = ViewController(bluejay, seen)
        startBluejay()

        bluejay.register(observer: batteryLabel!)
        bluejay.register(observer: rssiLabel)
        settle()
        XCTAssertEqual(seen.texts, ["available true", "available true"])

        bluejay.unregister(observer: rssiLabel)

        batteryLabel = nil
        simulator.simulatePowerOff()
        eventually("the power's end") { !bluejay.isBluetoothAvailable }
        settle()
        XCTAssertEqual(seen.count, 2)
        withExtendedLifetime((batteryLabel, rssiLabel)) {}
    }

    func testServicesAndCharacteristicsHaveIdentifiers() {
        let heartRateService = ServiceIdentifier(uuid: "180D")
        let bodySensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRateService)
        let heartRate = CharacteristicIdentifier(uuid: "2A37", service: heartRateService)

        XCTAssertNotEqual(bodySensorLocation, heartRate)
        XCTAssertEqual(heartRate.service, heartRateService)
        XCTAssertEqual(heartRate, CharacteristicIdentifier(uuid: "2a37", service: ServiceIdentifier(uuid: "180d")))
    }

    func testAStackThatIsThereIsUsed() throws {
        let anotherManager = CentralManager()
        eventually("Bluetooth") { anotherManager.poweredOn }
        simulator.add(Self.sensor)
        _ = anotherManager.startScanning()
        eventually("the sensor") { !anotherManager.peripherals.isEmpty }
        anotherManager.stopScanning()
        let alreadyConnectedPeripheral = try XCTUnwrap(anotherManager.peripherals.first)
        alreadyConnectedPeripheral.connect()
        eventually("the link") { alreadyConnectedPeripheral.state == .connected }

        bluejay.start(mode: .use(manager: anotherManager, peripheral: alreadyConnectedPeripheral))

        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(simulator.links.count, 1)
    }

    func testTheStackHasTheNamesOfCoreBluetooth() {
        let stopAndExtractBluetoothState: (Bluejay) -> () -> (manager: CBCentralManager, peripheral: CBPeripheral?) =
            Bluejay.stopAndExtractBluetoothState
        connectedSensor()
        let state = stopAndExtractBluetoothState(bluejay)()
        let anotherManager: CBCentralManager = state.manager
        let alreadyConnectedPeripheral: CBPeripheral? = state.peripheral
        bluejay.start(mode: .use(manager: anotherManager, peripheral: alreadyConnectedPeripheral))
        eventually("the connection") { bluejay.isConnected }
    }

    func testTheStackIsGivenAway() {
        let stopAndExtractBluetoothState: (Bluejay) -> () -> (manager: CentralManager, peripheral: Peripheral?) =
            Bluejay.stopAndExtractBluetoothState
        connectedSensor()
        let state = stopAndExtractBluetoothState(bluejay)()
        XCTAssertFalse(bluejay.hasStarted)
        XCTAssertEqual(state.peripheral?.name, "Heart")
        pass(3)
        XCTAssertEqual(state.peripheral?.state, .connected)
    }
}
