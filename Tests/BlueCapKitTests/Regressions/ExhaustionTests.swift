import BlueCapKit
import BlueZSimulator
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import TestBasics
import TestSupport
import XCTest

/// A process that had used up its descriptors or threads was ended by the library, and directories stayed behind.
///
/// Each test runs in a process of its own: what earlier tests of the process still close would make room.
final class ExhaustionTests: XCTestCase, StartsPrograms {
    override func invokeTest() {
        let isAlone = "EXHAUSTION_TEST_IS_ALONE"
        guard ProcessInfo.processInfo.environment[isAlone] == nil else { return super.invokeTest() }
        // The output is of interest only if the test fails.
        let script = #"output=$("$0" "$1" 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }"#
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        let test = "BlueCapKitTests." + name.replacingOccurrences(of: ".", with: "/")
        XCTAssertNoThrow(try CommandRun.output(of: "env", [isAlone + "=1", "sh", "-c", script, program, test]))
    }

    private let limit = 20.0
    private var folder = ""
    private var usualFolder: String?

    /// A temporary directory for these tests alone.
    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "exhaustion-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        usualFolder = ProcessInfo.processInfo.environment["TMPDIR"]
        setenv("TMPDIR", folder, 1)
    }

    override func tearDown() {
        if let usualFolder { setenv("TMPDIR", usualFolder, 1) } else { unsetenv("TMPDIR") }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private var leftovers: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? ["?"] }

    private func wait(until condition: () -> Bool) -> Bool { Shortage.wait(limit: limit, until: condition) }

    private func makeCentral(_ simulator: Simulator, _ configuration: CentralManager.Configuration = .init())
        -> CentralManager
    {
        var configuration = configuration
        configuration.busAddress = simulator.address
        return try! CentralManager(configuration: configuration)
    }

    private func makePeripheral(_ simulator: Simulator) -> PeripheralManager {
        try! PeripheralManager(configuration: .init(busAddress: simulator.address))
    }

    // MARK: Descriptors

    func testEachMissingDescriptorIsAnErrorOfTheManagersWhichRecover() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let others = loopThreads()
        for free in 0..<32 {
            let hasAll = try areOn(simulator, withFree: free)
            // A poller's two, and the socket.
            if hasAll { return XCTAssertGreaterThanOrEqual(free, 3) }
            XCTAssertTrue(wait { loopThreads() <= others })
        }
        XCTFail("It takes more than 32 descriptors.")
    }

    /// Whether managers are powered on that are made with so many descriptors free; otherwise they have failed, and recovered
    /// afterwards.
    private func areOn(_ simulator: Simulator, withFree free: Int) throws -> Bool {
        let (central, peripheral, state, explanation) = try Shortage.ofDescriptors(leaving: free) {
            let central = makeCentral(simulator)
            let peripheral = makePeripheral(simulator)
            _ = wait { central.state != .unknown && peripheral.state != .unknown }
            return (central, peripheral, (central.state, peripheral.state), central.stateExplanation)
        }
        if state.0 == .poweredOn, state.1 == .poweredOn { return true }
        XCTAssertEqual(state.0, .unsupported, "\(free) descriptors")
        XCTAssertEqual(state.1, .unsupported, "\(free) descriptors")
        XCTAssertEqual(
            explanation,
            "The manager cannot connect to the D-Bus system bus: "
                + "The process has used up its limit of open files (see `ulimit -n`).")
        XCTAssertTrue(wait { central.poweredOn && peripheral.poweredOn }, "no recovery after \(free)")
        let failures = Locked(0)
        central.startScanning().onFailure(context: ImmediateContext()) { _ in failures.withLock { $0 += 1 } }
        XCTAssertTrue(central.isScanning)
        central.stopScanning()
        XCTAssertEqual(failures.withLock { $0 }, 0)
        return false
    }

    func testAStateThatCannotBeOpenedForLackOfDescriptorsIsOpenedLater() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let (manager, problem) = try Shortage.ofDescriptors(leaving: 0) {
            let manager = makeCentral(
                simulator,
                .init(restoreIdentifier: "exhausted", stateDirectory: folder))
            _ = wait { manager.stateRestorationProblem != nil }
            return (manager, manager.stateRestorationProblem)
        }
        XCTAssertEqual(problem, "Cannot open \(folder)/central: Too many open files.")
        let restored: Future<Void> = manager.whenStateRestored()
        XCTAssertTrue(wait { restored.completed })
        guard case .success? = restored.result else { return XCTFail("\(String(describing: restored.result))") }
        XCTAssertNil(manager.stateRestorationProblem)
        XCTAssertNil(manager.stateRestorationFailure)
    }

    func testAPrivateBusThatLacksADescriptorLeavesNothingBehind() throws {
        for free in 0..<64 {
            let problem = try Shortage.ofDescriptors(leaving: free) { () -> String? in
                do {
                    try PrivateBus().stop()
                    return nil
                } catch {
                    return "\(error)"
                }
            }
            XCTAssertEqual(leftovers, [], "after \(problem ?? "success") with \(free)")
            guard let problem else { return XCTAssertGreaterThan(free, 0) }
            XCTAssertFalse(problem.isEmpty)
        }
        XCTFail("It takes more than 64 descriptors.")
    }

    func testASimulatorThatLacksADescriptorLeavesNothingBehind() throws {
        for free in 0..<64 {
            let problem = try Shortage.ofDescriptors(leaving: free) { simulatorProblem() }
            XCTAssertEqual(leftovers, [], "after \(problem.map { "\($0)" } ?? "success") with \(free)")
            guard let problem else { return XCTAssertGreaterThan(free, 0) }
            guard case .noBus = problem else { return XCTFail("\(problem)") }
        }
        XCTFail("It takes more than 64 descriptors.")
    }

    private func simulatorProblem() -> SimulatorError? {
        do throws(SimulatorError) {
            try Simulator.onPrivateBus(room: .empty).end()
            return nil
        } catch {
            return error
        }
    }

    // MARK: The loop

    func testALoopWithoutDescriptorsHasItsPostsAndTimers() throws {
        let loop = ThreadLoop(name: "test")
        let seen = Locked<[String]>([])
        try Shortage.ofDescriptors(leaving: 0) {
            loop.schedule(after: 0.02) { seen.withLock { $0.append("timer") } }
            loop.post { seen.withLock { $0.append("post") } }
            _ = wait { seen.withLock { $0.count } == 2 }
            loop.post { seen.withLock { $0.append("later post") } }
            _ = wait { seen.withLock { $0.count } == 3 }
        }
        XCTAssertEqual(seen.withLock { $0 }, ["post", "timer", "later post"])
    }

    func testAWatchWithoutDescriptorsReceivesAnErrorAndALaterOneWorks() throws {
        let loop = ThreadLoop(name: "test")
        var ends: [Int32] = [-1, -1]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends), 0)
        defer { for end in ends { close(end) } }
        let (ours, theirs) = (ends[0], ends[1])
        let seen = Locked<[IOEvents]>([])
        for free in 0..<2 {
            let shortage = try Shortage.ofDescriptors(leaving: free) {
                let shortage = loop.wait { loop.prepareToWatch() }
                let watch = loop.wait {
                    loop.watch(ours, for: .readable) { found in seen.withLock { $0.append(found) } }
                }
                loop.wait {}
                loop.wait { watch.cancel() }
                return shortage
            }
            XCTAssertEqual(shortage, .descriptors(EMFILE))
            XCTAssertEqual(seen.withLock { $0 }, [.error])
            seen.withLock { $0 = [] }
        }
        XCTAssertNil(loop.wait { loop.prepareToWatch() })
        let watch = loop.wait {
            loop.watch(ours, for: .readable) { found in
                var byte: UInt8 = 0
                read(ours, &byte, 1)
                seen.withLock { $0.append(found) }
            }
        }
        var byte: UInt8 = 1
        write(theirs, &byte, 1)
        XCTAssertTrue(wait { !seen.withLock { $0.isEmpty } })
        XCTAssertEqual(seen.withLock { $0 }, [.readable])
        // And it is woken for posts where it waits for descriptors.
        XCTAssertEqual(loop.wait { 1 }, 1)
        loop.wait { watch.cancel() }
    }

    // MARK: Threads

    func testWithoutThreadsTheManagersFailAndRecoverWhenTheyAreAskedAgain() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let states = Locked<[ManagerState]>([])
        let failures = Locked<[CentralManagerError]>([])
        let (central, peripheral, found, explanations) = try Shortage.ofThreads {
            let central = makeCentral(
                simulator,
                .init(restoreIdentifier: "exhausted", stateDirectory: folder))
            let peripheral = makePeripheral(simulator)
            central.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
                states.withLock { $0.append(state) }
            }
            central.startScanning().onFailure(context: ImmediateContext()) { error in
                failures.withLock { $0.append(error as? CentralManagerError ?? .isScanning) }
            }
            return (
                central, peripheral, [central.state, peripheral.state],
                [central.stateExplanation, peripheral.stateExplanation]
            )
        }
        XCTAssertEqual(found, [.unsupported, .unsupported])
        XCTAssertEqual(failures.withLock { $0 }, [.unsupported])
        for explanation in explanations {
            XCTAssertTrue(explanation.contains("can have no further thread (see `ulimit -u`"), explanation)
        }
        XCTAssertTrue(wait { central.poweredOn && peripheral.poweredOn }, central.stateExplanation)
        XCTAssertTrue(wait { states.withLock { $0.last } == .poweredOn })
        XCTAssertEqual(states.withLock { $0 }, [.unsupported, .poweredOn])
        let restored: Future<Void> = central.whenStateRestored()
        XCTAssertTrue(wait { restored.completed })
        guard case .success? = restored.result else { return XCTFail("\(String(describing: restored.result))") }
    }

    func testWithoutThreadsASimulatorFailsAndLeavesNothingBehind() throws {
        let problem = try Shortage.ofThreads { simulatorProblem() }
        guard case .noBus(let text)? = problem else { return XCTFail("\(String(describing: problem))") }
        XCTAssertTrue(text.contains("thread"), text)
        XCTAssertEqual(leftovers, [])
    }
}
