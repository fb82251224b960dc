import BlueZSimulator
import BlueCapFutures
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapKit

/// A room in virtual time in which a manager serves, and centrals come by.
class PeripheralStage: RandomTestCase {
    var simulator = Simulator.inProcess(room: .empty) { didSet { ownManager = nil } }
    private var ownManager: PeripheralManager?
    /// The manager that most tests need. The first use creates it, and it ends with the test.
    var manager: PeripheralManager {
        if let ownManager { return ownManager }
        let manager = makeManager()
        ownManager = manager
        return manager
    }

    override func tearDown() {
        ownManager = nil
        super.tearDown()
    }

    func makeManager(
        _ configuration: PeripheralManager.Configuration = .init(), adapter: String? = nil
    ) -> PeripheralManager {
        let manager = unreadyManager(configuration, adapter: adapter)
        // Its stored state, if it has one, is read in real time. Virtual time must not pass before that has ended.
        manager.session.keeper?.wait()
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5), manager.stateExplanation)
        return manager
    }

    func unreadyManager(
        _ configuration: PeripheralManager.Configuration = .init(), adapter: String? = nil
    ) -> PeripheralManager {
        var configuration = configuration
        configuration.busAddress = simulator.address
        configuration.adapter = adapter
        return try! PeripheralManager(configuration: configuration)
    }

    static func heart(_ properties: CBCharacteristicProperties = [.read, .notify]) -> MutableService {
        let service = MutableService(uuid: "180D")
        service.characteristics = [
            MutableCharacteristic(
                uuid: "2A37", properties: properties, permissions: [.readable], value: Data([0, 60])),
            MutableCharacteristic(uuid: "2A39", properties: [.write], permissions: [.writeable]),
        ]
        return service
    }

    static func battery() -> MutableService {
        let service = MutableService(uuid: "180F")
        service.characteristics = [
            MutableCharacteristic(
                uuid: "2A19", properties: [.read, .notify], permissions: [.readable], value: Data([80]))
        ]
        return service
    }

    // MARK: Waiting

    @discardableResult
    func value<T>(
        of future: Future<T>, within limit: TimeInterval = 30, file: StaticString = #filePath, line: UInt = #line
    ) throws -> T {
        try simulator.outcome(of: future, within: limit, file: file, line: line)
    }

    func failure<T>(of future: Future<T>, within limit: TimeInterval = 30) -> (any Error)? {
        simulator.failure(of: future, within: limit)
    }

    func managerError<T>(of future: Future<T>, within limit: TimeInterval = 30) -> PeripheralManagerError? {
        failure(of: future, within: limit) as? PeripheralManagerError
    }

    func wait(
        _ limit: TimeInterval = 10, file: StaticString = #filePath, line: UInt = #line, until isReached: () -> Bool
    ) {
        XCTAssertTrue(simulator.advance(until: isReached, limit: limit), "It did not come.", file: file, line: line)
    }

    // MARK: Serving

    /// Adds services and advertises, so that centrals can connect. Returns the first of them.
    @discardableResult
    func serve(
        _ services: MutableService..., with manager: PeripheralManager? = nil, file: StaticString = #filePath,
        line: UInt = #line
    ) throws -> MutableService {
        let manager = manager ?? self.manager
        for service in services { try value(of: manager.add(service), file: file, line: line) }
        try value(of: manager.startAdvertising("Strap"), file: file, line: line)
        return services[0]
    }

    /// A central that is connected.
    func phone(
        _ address: VirtualAddress = "C0:FF:EE:00:CE:01", mtu: Int = 247, confirms: Bool = true, to adapter: Int = 0,
        file: StaticString = #filePath, line: UInt = #line
    ) -> CentralLink {
        let link = simulator.connect(
            VirtualCentral(address, name: "Phone", mtu: mtu, confirmsIndications: confirms), to: adapter)
        wait(file: file, line: line) { link.state == .connected }
        return link
    }

    /// A central that is connected and has subscribed to 2A37.
    @discardableResult
    func subscriber(
        _ address: VirtualAddress = "C0:FF:EE:00:CE:01", confirms: Bool = true, indications: Bool = false,
        file: StaticString = #filePath, line: UInt = #line
    ) -> CentralLink {
        let link = phone(address, confirms: confirms, file: file, line: line)
        _ = result(of: link.subscribe(to: "2A37", indications: indications), file: file, line: line)
        return link
    }

    /// Asks until it is answered.
    func result(
        of request: CentralRequest, within limit: TimeInterval = 40, file: StaticString = #filePath, line: UInt = #line
    ) -> Result<[UInt8], CentralLinkError>? {
        wait(limit, file: file, line: line) { request.result != nil }
        return request.result
    }

    func offered() -> [String] {
        simulator.applications.flatMap(\.services).sorted { $0.handle < $1.handle }.map {
            String($0.uuid.prefix(8).suffix(4)).uppercased()
        }
    }
}

/// What a stream has brought, as it came.
final class Elements<T: Sendable>: Sendable {
    private let held = Locked<(values: [T], failures: [String], isFinished: Bool)>(([], [], false))

    init(_ stream: FutureStream<T>) {
        stream.onComplete(context: ImmediateContext()) { [held] element in
            held.withLock { held in
                switch element {
                case .success(let value): held.values.append(value)
                case .failure(let error): held.failures.append("\(error)")
                }
            }
        }
    }

    var values: [T] { held.withLock { $0.values } }
    var failures: [String] { held.withLock { $0.failures } }
    var count: Int { values.count }
}
