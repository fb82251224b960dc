@testable import BlueCapKit
import BlueZSimulator
import CoreBluetooth
@testable import CoreBluetoothPrograms
@testable import HeartRateMonitorExample
import XCTest

/// Programs that were written for iOS run unchanged on the simulator, on the main queue.
final class ProgramTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:01"
    private var simulator: Simulator!

    override func setUp() {
        simulator = Simulator.inProcess(room: .empty)
        CBCentralManager.defaultConfiguration.busAddress = simulator.address
        CBPeripheralManager.defaultConfiguration.busAddress = simulator.address
        simulator.add(
            VirtualPeripheral(
                address, addressType: .random,
                advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]), interval: 0.1,
                services: [
                    VirtualService(
                        "180D",
                        characteristics: [
                            VirtualCharacteristic("2A37", [.notify]),
                            VirtualCharacteristic("2A38", [.read], value: [1]),
                            VirtualCharacteristic("2A39", [.write]),
                        ])
                ]))
    }

    override func tearDown() {
        CBCentralManager.defaultConfiguration = .init(pairingPolicy: .justWorks)
        CBPeripheralManager.defaultConfiguration = .init()
    }

    /// Lets virtual time pass, and runs the main queue, until the condition holds.
    private func wait(
        _ what: String, limit: TimeInterval = 120, file: StaticString = #filePath, line: UInt = #line,
        until condition: () -> Bool
    ) {
        let end = simulator.seconds + limit
        while !condition() {
            guard simulator.seconds < end else { return XCTFail("\(what) did not happen", file: file, line: line) }
            simulator.advance(by: 0.05)
            runMainQueue()
        }
    }

    private func runMainQueue() {
        for _ in 0..<3 {
            // The queue is served in the order of its blocks.
            let last = DispatchWorkItem {}
            DispatchQueue.main.async(execute: last)
            while last.wait(timeout: .now()) == .timedOut {
                _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01))
            }
            simulator.run()
        }
    }

    /// Notifies a value as soon as the program is subscribed.
    private func notify(_ bytes: [UInt8], file: StaticString = #filePath, line: UInt = #line) {
        wait("the subscription", file: file, line: line) {
            self.simulator.notify(self.address, characteristic: .uuid("2A37"), value: bytes)
        }
    }

    func testTheHeartRateMonitorFollowsItsSensor() {
        let monitor = HeartRateMonitor()
        var events: [String] = []
        monitor.onStatus = { events.append("\($0)") }
        monitor.onLocation = { events.append($0) }
        monitor.onReading = { events.append("\($0.beatsPerMinute) \($0.intervals)") }
        wait("the location") { events.contains("chest") }
        notify([0x10, 61, 0x00, 0x04])
        wait("the heart rate") { events.last == "61 [1.0]" }
        XCTAssertEqual(
            events,
            ["searching", "connecting(name: \"Strap\")", "connected(name: \"Strap\")", "chest", "61 [1.0]"])

        monitor.resetEnergyExpended()
        wait("the write") { self.simulator.value(of: .uuid("2A39"), at: self.address) == [1] }

        for cause in ["link", "power", "daemon"] {
            events = []
            switch cause {
            case "link": simulator.simulateLinkLoss(of: address)
            case "power":
                simulator.simulatePowerOff()
                wait("the end") { monitor.status != .connected(name: "Strap") }
                simulator.simulatePowerOn()
            default:
                simulator.simulateDaemonDeath()
                wait("the end") { monitor.status != .connected(name: "Strap") }
                simulator.simulateDaemonReturn()
            }
            wait("the connection after \(cause)") {
                monitor.status == .connected(name: "Strap") && events.contains("chest")
            }
            notify([0, 62])
            wait("the heart rate after \(cause)") { events.last == "62 []" }
        }
        monitor.disconnect()
        wait("the end") { monitor.status == .unavailable && self.simulator.links.isEmpty }
    }

    func testTheTasksOfTheCentralRole() {
        let program = CentralTasks()
        wait("all") { program.events.count == 8 }
        XCTAssertEqual(
            Set(program.events),
            [
                "Discovered Strap", "Service 180D", "Characteristic 2A37", "Characteristic 2A38",
                "Characteristic 2A39", "Subscribed 2A37", "Value 2A38 [1]", "Wrote 2A39 ",
            ])
        notify([0, 63])
        wait("the value") { program.events.last == "Value 2A37 [0, 63]" }
    }

    func testTheTasksOfThePeripheralRole() {
        simulator = Simulator.inProcess(room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
        CBCentralManager.defaultConfiguration = .init(
            busAddress: simulator.address, adapter: "hci0", pairingPolicy: .justWorks)
        CBPeripheralManager.defaultConfiguration = .init(busAddress: simulator.address, adapter: "hci1")
        let peripheral = PeripheralTasks()
        wait("the advertisement") { peripheral.events == ["Advertising"] }
        let central = CentralTasks()
        wait("the tasks of the central") { central.events.contains("Wrote 2A39 ") }
        wait("the subscription") { peripheral.events.contains("Subscribed to 2A37") }
        XCTAssertTrue(peripheral.events.contains("Written [7]"))
        XCTAssertTrue(central.events.contains("Value 2A38 [1]"))
        let values = (0..<200).map { Data([0, UInt8($0)]) }
        peripheral.send(values)
        wait("the values") { central.events.last == "Value 2A37 [0, 199]" }
        let received = central.events.filter { $0.hasPrefix("Value 2A37") }
        XCTAssertEqual(received, values.map { "Value 2A37 \([UInt8]($0))" })
        central.centralManager.cancelPeripheralConnection(central.discoveredPeripheral!)
        wait("the end") { peripheral.events.last == "Unsubscribed from 2A37" }
    }

    func testARestoredProgramContinues() {
        let folder = NSTemporaryDirectory() + "corebluetooth-programs-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        CBCentralManager.defaultConfiguration.stateDirectory = folder
        CBCentralManager.defaultConfiguration.keepsLinks = true
        var program: RestoringProgram? = RestoringProgram()
        RestorationKeeper.waitForAll()
        wait("the subscription") { program?.events == ["Subscribed"] }
        let start = simulator.seconds
        wait("the file") { self.simulator.seconds > start + 1 }
        RestorationKeeper.waitForAll()
        // As if the process had been killed: the links stay.
        program?.centralManager = nil
        program = nil
        runMainQueue()
        RestorationKeeper.waitForAll()
        runMainQueue()

        let next = RestoringProgram()
        RestorationKeeper.waitForAll()
        wait("the subscription") { next.events.contains("Subscribed") }
        XCTAssertEqual(next.events.first, "Restored")
        notify([0, 64])
        wait("the value") { next.events.last == "Value [0, 64]" }
    }

    func testAFrugalProgramRetrievesAndDisconnects() {
        let program = FrugalProgram(knownIdentifier: nil)
        notify([0, 65])
        wait("the end") { program.events.last == "Disconnected true" }
        XCTAssertEqual(program.events, ["Discovered", "Value [0, 65]", "Disconnected true"])
        let next = FrugalProgram(knownIdentifier: program.knownIdentifier)
        notify([0, 66])
        wait("the end") { next.events.last == "Disconnected true" }
        XCTAssertEqual(next.events, ["Retrieved", "Value [0, 66]", "Disconnected true"])
    }
}
