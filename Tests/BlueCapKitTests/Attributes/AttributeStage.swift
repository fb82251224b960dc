import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// A manager beside a simulator in virtual time, with one peripheral that it has found.
final class AttributeStage {
    static let address: VirtualAddress = "C0:00:00:00:00:01"

    let simulator: Simulator
    private(set) var manager: CentralManager?
    let peripheral: Peripheral

    init(
        _ services: [VirtualService], link: VirtualLink = VirtualLink(), behavior: (any PeripheralBehavior)? = nil,
        profiles: ProfileManager? = nil, bluez: BlueZVersion = .default
    ) throws {
        simulator = .inProcess(room: .empty, bluez: bluez)
        let virtual = VirtualPeripheral(
            Self.address, addressType: .random, advertisement: Advertisement(localName: "Strap"), interval: 0.1,
            services: services, link: link)
        if let behavior {
            simulator.add(virtual, behavior: behavior)
        } else {
            simulator.add(virtual)
        }
        let found = try Self.find(on: simulator, profiles: profiles)
        (manager, peripheral) = (found.manager, found.peripheral)
    }

    /// A manager that is on, and the peripheral that it finds.
    static func find(
        on simulator: Simulator, profiles: ProfileManager? = nil
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        let manager = simulator.central(profiles: profiles)
        let scan = manager.startScanning()
        XCTAssertTrue(simulator.advance(until: { !manager.peripherals.isEmpty }, limit: 5))
        manager.stopScanning()
        defer { withExtendedLifetime(scan) {} }
        return (manager, try XCTUnwrap(manager.peripherals.first))
    }

    func endManager() { manager = nil }

    /// Connects, and waits until the link is up.
    func connect(_ peripheral: Peripheral? = nil, file: StaticString = #filePath, line: UInt = #line) {
        let peripheral = peripheral ?? self.peripheral
        peripheral.connect()
        XCTAssertTrue(
            simulator.advance(until: { peripheral.state == .connected }, limit: 30), "no link", file: file, line: line)
    }

    /// Returns this stage when its peripheral is connected.
    func connected(file: StaticString = #filePath, line: UInt = #line) -> AttributeStage {
        connect(file: file, line: line)
        return self
    }

    var isLinked: Bool { peripheral.state == .connected }

    /// Connects and discovers all there is.
    func explore(_ peripheral: Peripheral? = nil, file: StaticString = #filePath, line: UInt = #line) throws {
        let peripheral = peripheral ?? self.peripheral
        connect(peripheral, file: file, line: line)
        try wait(peripheral.discoverAllServices() as Future<Peripheral>, file: file, line: line)
        for service in peripheral.services {
            try wait(service.discoverAllCharacteristics() as Future<Service>, file: file, line: line)
        }
    }

    /// Reads, and returns the value.
    @discardableResult
    func read(_ characteristic: Characteristic, file: StaticString = #filePath, line: UInt = #line) throws -> Data? {
        try wait(characteristic.read() as Future<Characteristic>, file: file, line: line).dataValue
    }

    /// Lets virtual time pass until the future is complete, and gives its outcome.
    @discardableResult
    func wait<T>(
        _ future: Future<T>, limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line
    ) throws -> T {
        try simulator.outcome(of: future, within: limit, file: file, line: line)
    }

    /// The error that the future fails with.
    func failure<T>(
        of future: Future<T>, limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line
    ) -> (any Error)? {
        simulator.failure(of: future, within: limit, file: file, line: line)
    }

    func characteristic(
        _ uuid: String, file: StaticString = #filePath, line: UInt = #line
    ) throws -> Characteristic {
        try XCTUnwrap(
            peripheral.services.lazy.compactMap { $0.characteristic(CBUUID(string: uuid)) }.first, file: file,
            line: line)
    }
}

/// A peripheral with the responses that a test chooses. The first response that is set for an attribute's UUID is sent.
final class ChosenAnswers: PeripheralBehavior {
    private let state = Locked(State())

    private struct State {
        var reads: [String: [AttributeAnswer]] = [:]
        var writes: [String: [AttributeAnswer]] = [:]
        var written: [[UInt8]] = []
    }

    /// What was written to anything, in the order in which it came.
    var written: [[UInt8]] { state.withLock { $0.written } }

    func answerReads(of uuid: String, _ answers: AttributeAnswer...) {
        state.withLock { $0.reads[CBUUID(string: uuid).fullUUIDString] = answers }
    }

    func answerWrites(to uuid: String, _ answers: AttributeAnswer...) {
        state.withLock { $0.writes[CBUUID(string: uuid).fullUUIDString] = answers }
    }

    func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer {
        state.withLock { state in
            let key = (attribute.descriptor ?? attribute.characteristic).uppercased()
            guard state.reads[key]?.isEmpty == false else { return .value(value) }
            return state.reads[key]?.removeFirst() ?? .value(value)
        }
    }

    func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer {
        state.withLock { state in
            let key = (attribute.descriptor ?? attribute.characteristic).uppercased()
            state.written.append(bytes)
            guard state.writes[key]?.isEmpty == false else { return .done }
            return state.writes[key]?.removeFirst() ?? .done
        }
    }
}

extension Simulator {
    /// A manager that is powered on.
    func central(
        _ configuration: CentralManager.Configuration = .init(), profiles: ProfileManager? = nil
    ) -> CentralManager {
        var configuration = configuration
        configuration.busAddress = address
        let manager = try! CentralManager(profileManager: profiles, configuration: configuration)
        XCTAssertTrue(advance(until: { manager.poweredOn }, limit: 5), manager.stateExplanation)
        return manager
    }
}
