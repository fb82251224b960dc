import BlueCapKit
import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

/// A room in virtual time in which a manager has found peripherals and stopped scanning.
class ConnectionStage: RandomTestCase {
    var simulator = Simulator.inProcess(room: .empty) { didSet { endCentral() } }
    private var ownCentral: CentralManager?
    /// The manager that most tests need. The first use creates it, and it ends with the test.
    var central: CentralManager {
        if let ownCentral { return ownCentral }
        let central = manager()
        ownCentral = central
        return central
    }
    let journal = Journal()

    static let strapAddress: VirtualAddress = "C0:00:00:00:00:01"

    override func tearDown() {
        endCentral()
        super.tearDown()
    }

    func endCentral() { ownCentral = nil }

    static func device(_ number: Int, name: String = "Strap", link: VirtualLink = VirtualLink()) -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualAddress(stringLiteral: "C0:00:00:00:00:0\(number)"),
            advertisement: Advertisement(localName: name, serviceUUIDs: ["180D"]), interval: 0.2,
            services: [
                VirtualService("180D", characteristics: [VirtualCharacteristic("2A37", value: [0, 60])])
            ], link: link)
    }

    func manager(_ configuration: CentralManager.Configuration = .init()) -> CentralManager {
        simulator.central(configuration)
    }

    /// Adds the devices, and scans until each is found.
    func find(_ devices: [VirtualPeripheral], with manager: CentralManager) -> [Peripheral] {
        for device in devices where !simulator.peripherals.contains(device) { simulator.add(device) }
        let sightings = Journal()
        sightings.watch(manager.startScanning())
        XCTAssertTrue(simulator.advance(until: { sightings.sightings.count == devices.count }, limit: 5))
        manager.stopScanning()
        simulator.advance(by: 0.1)
        return sightings.sightings.sorted { $0.address < $1.address }
    }

    func strap(_ manager: CentralManager? = nil, link: VirtualLink = VirtualLink()) -> Peripheral {
        find([Self.device(1, link: link)], with: manager ?? central)[0]
    }

    /// Connects, with the journal watching.
    func connect(_ peripheral: Peripheral, retries: UInt = .max, timeout: TimeInterval = .infinity) {
        journal.watch(
            peripheral.connect(timeoutRetries: retries, disconnectRetries: retries, connectionTimeout: timeout))
        expect(.connect)
    }

    /// Lets time pass until the newest event is this one, and no other has come with it.
    func expect(
        _ event: ConnectionEvent, within limit: TimeInterval = 30, file: StaticString = #filePath, line: UInt = #line
    ) {
        let count = journal.connectionEvents.count
        let isThere = simulator.advance(until: { journal.connectionEvents.count > count }, limit: limit)
        XCTAssertTrue(isThere, "no \(event)", file: file, line: line)
        XCTAssertEqual(
            journal.connectionEvents.suffix(max(0, journal.connectionEvents.count - count)), [event], file: file,
            line: line)
    }

    func calls(_ member: String) -> Int { simulator.statistics.count(of: member) }
}
