import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestBasics
import XCTest

/// An hour of random faults with five peripherals: after each of them values flow again.
final class SubscriptionSoakTests: RandomTestCase {
    /// One peripheral of the program, which subscribes, and reconnects whenever the link is gone.
    private final class Sensor {
        static let identifier = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

        let address: VirtualAddress
        let peripheral: Peripheral
        let transport: NotificationTransport
        private let latest = Locked<Data?>(nil)
        private let failures = Locked<[String]>([])

        init(_ peripheral: Peripheral, over transport: NotificationTransport) {
            self.peripheral = peripheral
            self.transport = transport
            address = VirtualAddress(stringLiteral: peripheral.address)
        }

        var newest: Data? { latest.withLock { $0 } }
        /// Failures other than gaps and lost links: none is expected.
        var failed: [String] { failures.withLock { $0 } }
        func connect() {
            let events = peripheral.connect(connectionTimeout: 20)
            events.onSuccess(context: ImmediateContext()) { peripheral, event in
                if event == .disconnect || event == .timeout { peripheral.reconnect() }
            }
            // A refusal that no retry cures, as this program does not know.
            events.onFailure(context: ImmediateContext()) { [peripheral] _ in peripheral.reconnect(withDelay: 1) }
        }

        func subscribe() {
            peripheral.notifications(Self.identifier, over: transport).onComplete(context: ImmediateContext()) {
                [latest, failures] element in
                switch element {
                case .success(let data): latest.withLock { $0 = data }
                case .failure(CharacteristicError.notificationsInterrupted): break
                // The third link in succession that has ended during the request. Faults can do that; whether they are
                // counted is a matter of SubscriptionSetUpTests.
                case .failure(PeripheralError.disconnected): break
                case .failure(let error): failures.withLock { $0.append("\(error)") }
                }
            }
        }
    }

    private let simulator = Simulator.inProcess(room: .empty)
    private lazy var chance = TestRandom(self)

    private func device(_ number: Int) -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualAddress(stringLiteral: "C0:00:00:00:00:0\(number)"),
            advertisement: Advertisement(localName: "Sensor \(number)"), interval: 0.2,
            services: [
                VirtualService("180D", characteristics: [VirtualCharacteristic("2A37", [.notify], value: [0])])
            ], link: VirtualLink(connectLatency: 0.2, resolveLatency: 0.3, callLatency: 0.05))
    }

    func testValuesFlowAgainAfterEachOfAnHourOfRandomFaults() throws {
        for number in 1...5 { simulator.add(device(number)) }
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        let scan = manager.startScanning()
        XCTAssertTrue(simulator.advance(until: { manager.peripherals.count == 5 }, limit: 5))
        manager.stopScanning()
        let sensors = manager.peripherals.enumerated().map { index, peripheral in
            Sensor(peripheral, over: index % 2 == 0 ? .signals : .socket)
        }
        for sensor in sensors {
            sensor.connect()
            sensor.subscribe()
        }
        var faults: [String] = []
        var rounds = 0
        let end = simulator.seconds + 3_600
        while simulator.seconds < end {
            faults = (0...Int.random(in: 0...3, using: &chance)).map { _ in goWrong(sensors) }
            calm(sensors)
            rounds += 1
            guard expectValues(sensors, "round \(rounds), after \(faults)") else { return }
        }
        XCTAssertGreaterThan(rounds, 50, "The faults leave no time for others.")
        withExtendedLifetime((manager, scan)) {}
    }

    /// Each sensor sends a value that it has not sent before, until that is received.
    private func expectValues(_ sensors: [Sensor], _ what: String) -> Bool {
        let value = (0..<8).map { _ in UInt8.random(in: 0...255, using: &chance) }
        let end = simulator.seconds + 180
        var left = sensors
        while !left.isEmpty, simulator.seconds < end {
            for sensor in left { simulator.notify(sensor.address, characteristic: .uuid("2A37"), value: value) }
            simulator.advance(by: 0.5)
            left.removeAll { $0.newest == Data(value) }
        }
        let states = left.map { sensor in
            let link = simulator.links.first { $0.address == sensor.address }
            return "\(sensor.address): \(sensor.peripheral.state), \(link?.subscriptions ?? ["no link"])"
        }
        XCTAssertEqual(states, [], "No value: \(what)")
        XCTAssertEqual(sensors.flatMap(\.failed), [], what)
        return left.isEmpty && sensors.allSatisfy(\.failed.isEmpty)
    }

    // MARK: Faults

    /// Does something and lets some time pass. Returns what it was.
    private func goWrong(_ sensors: [Sensor]) -> String {
        let sensor = sensors[Int.random(in: sensors.indices, using: &chance)]
        let address = sensor.address
        let fault = Int.random(in: 0..<14, using: &chance)
        switch fault {
        case 0, 1: simulator.simulateLinkLoss(of: address)
        case 2: simulator.simulateConnectFailures(Int.random(in: 1...3, using: &chance), of: address)
        case 3: simulator.simulateConnectReplyThenDrop(after: seconds(0.5), of: address)
        case 4: simulator.simulateDropAfter(requests: 1, of: address)
        case 5: simulator.simulateLateAnswers(by: seconds(3), of: address)
        case 6: simulator.simulateUntoldConnections(Bool.random(using: &chance), of: address)
        case 7: simulator.simulateDeviceRemoval(of: address)
        case 8:
            simulator.simulateUnansweredAttributes(of: address)
            simulator.advance(by: seconds(2))
            simulator.simulateLinkLoss(of: address)
            simulator.advance(by: seconds(0.5))
            simulator.simulateUnansweredAttributes(false, of: address)
            // Under a link a call that is never answered is a failure.
            simulator.simulateLinkLoss(of: address)
        case 9:
            simulator.simulatePowerOff()
            simulator.advance(by: seconds(3))
            simulator.simulatePowerOn()
        case 10:
            simulator.simulateDaemonDeath()
            simulator.advance(by: seconds(3))
            simulator.simulateDaemonReturn()
        case 11:
            // Signals overtake slow replies, as on no bus: nothing may ask for what signals report.
            for sensor in sensors { simulator.simulateUntoldConnections(false, of: sensor.address) }
            simulator.simulateSlowReplies(by: seconds(1))
            simulator.advance(by: seconds(2))
            simulator.simulateSlowReplies(by: 0)
            simulator.advance(by: 1)
        case 12:
            let device = simulator.peripherals.first { $0.address == address }
            simulator.remove(address)
            simulator.advance(by: seconds(8))
            if let device { simulator.add(device) }
        default:
            // Another set-up, for the faults that follow.
            sensor.peripheral.stopNotifications(Sensor.identifier)
            sensor.subscribe()
        }
        // Some of it has an effect on a new link alone.
        if 2...7 ~= fault, Bool.random(using: &chance) { simulator.simulateLinkLoss(of: address) }
        simulator.advance(by: seconds(2))
        return "\(fault) of \(address)"
    }

    private func seconds(_ most: Double) -> Double { Double.random(in: 0...most, using: &chance) }

    private func calm(_ sensors: [Sensor]) {
        for sensor in sensors {
            simulator.simulateConnectFailures(0, of: sensor.address)
            simulator.simulateLateAnswers(by: 0, of: sensor.address)
        }
    }
}
