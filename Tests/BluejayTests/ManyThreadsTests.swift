import Bluejay
import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

/// Several threads that ask one Bluejay for whatever comes to their mind, while links are lost and Bluetooth goes.
final class ManyThreadsTests: BluejayCase, @unchecked Swift.Sendable {
    func testEachCompletionComesOnceWhoeverAsks() {
        let identifier = connect()
        let asked = Tally()
        let threads = DispatchGroup()
        var random = TestRandom(self)
        for _ in 0..<4 {
            let numbers = random.split()
            DispatchQueue.global().async(group: threads) { [bluejay] in
                var random = numbers
                // On a busy machine many requests come while nothing is connected: it takes more of them until each kind has
                // succeeded.
                var count = 0
                while count < 1_000 || !asked.hasSuccesses && count < 50_000 {
                    Self.ask(bluejay!, identifier, asked, &random)
                    count += 1
                }
            }
        }
        while threads.wait(timeout: .now()) == .timedOut {
            switch random.below(200) {
            case 0: simulator.simulateLinkLoss(of: Self.address)
            case 1: simulator.simulatePowerOff()
            case 2, 3, 4: simulator.simulatePowerOn()
            case 5...20: simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [0, 60])
            default: simulator.advance(by: 0.01)
            }
        }
        simulator.simulatePowerOn()
        pass(5)
        _ = bluejay.stopAndExtractBluetoothState()
        pass(60, step: 1)
        XCTAssertEqual(asked.complaints, [])
        XCTAssertGreaterThan(asked.count, 500)
        XCTAssertTrue(asked.hasSuccesses)
    }

    /// One request of any kind.
    private static func ask(
        _ bluejay: Bluejay, _ identifier: PeripheralIdentifier, _ asked: Tally, _ random: inout TestRandom
    ) {
        switch random.below(24) {
        case 0...4:
            let name = asked.name("read")
            bluejay.read(from: location) { (result: ReadResult<UInt8>) in
                if case .success = result { asked.succeeded("read") }
                asked.came(name)
            }
        case 5...8:
            let name = asked.name("write")
            bluejay.write(to: location, value: UInt8(1)) { _ in asked.came(name) }
        case 9...10:
            let name = asked.name("listen")
            bluejay.listen(to: measurement, multipleListenOption: random.below(2) == 0 ? .trap : .replaceable) {
                (result: ReadResult<Data>) in
                switch result {
                case .success: asked.mayCome(name)
                case .failure(CharacteristicError.notificationsInterrupted): asked.mayCome(name)
                case .failure: asked.came(name)
                }
            }
        case 11...12:
            let name = asked.name("end")
            bluejay.endListen(to: measurement, error: BluejayError.cancelled) { _ in asked.came(name) }
        case 13...17:
            let name = asked.name("connect")
            bluejay.connect(identifier, timeout: .seconds(5)) { result in
                if case .success = result { asked.succeeded("connect") }
                asked.came(name)
            }
        case 18:
            let name = asked.name("disconnect")
            bluejay.disconnect(immediate: random.below(2) == 0) { _ in asked.came(name) }
        case 19:
            let name = asked.name("scan")
            bluejay.scan(
                duration: 0.5, allowDuplicates: true, serviceIdentifiers: nil,
                discovery: { _, _ in
                    asked.mayCome(name)
                    return .continue
                }, stopped: { _, _ in asked.came(name) })
        case 20...21:
            let name = asked.name("run")
            bluejay.run(backgroundTask: { try $0.read(from: location) as UInt8 }) {
                (result: RunResult<UInt8>) in
                if case .success = result { asked.succeeded("run") }
                asked.came(name)
            }
        case 22:
            let observer = Observer(Notes())
            bluejay.register(observer: observer)
            if random.below(2) == 0 { bluejay.unregister(observer: observer) }
        default:
            if random.below(4) == 0 { bluejay.cancelEverything(shouldDisconnect: random.below(2) == 0) }
        }
        usleep(UInt32(random.below(400)))
    }
}

/// The operations that were requested, and those that have been completed.
// Unchecked: what changes is touched under the lock alone.
private final class Tally: @unchecked Swift.Sendable {
    private let lock = NSLock()
    private var last = 0
    private var open: Set<String> = []
    private var wrong: [String] = []
    private var successes: Set<String> = []

    var count: Int { lock.withLock { last } }
    /// What came twice or late, and what never came.
    var complaints: [String] { lock.withLock { wrong + open.map { "\($0) never" } } }

    func name(_ kind: String) -> String {
        lock.withLock {
            last += 1
            open.insert("\(kind) \(last)")
            return "\(kind) \(last)"
        }
    }

    func succeeded(_ kind: String) { lock.withLock { _ = successes.insert(kind) } }

    /// Whether a request of each kind that reports its success has succeeded.
    var hasSuccesses: Bool { lock.withLock { successes.isSuperset(of: ["connect", "read", "run"]) } }

    func mayCome(_ name: String) {
        lock.withLock { if !open.contains(name) { wrong.append("\(name) late") } }
    }

    func came(_ name: String) {
        lock.withLock { if open.remove(name) == nil { wrong.append("\(name) twice") } }
    }
}
