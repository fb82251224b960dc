import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

final class BackgroundTaskTests: BluejayCase, @unchecked Swift.Sendable {
    func testATaskReadsLikeAScript() {
        connect()
        bluejay.run(backgroundTask: { peripheral -> UInt8 in
            try peripheral.endListen(to: Self.measurement)
            try peripheral.write(to: Self.location, value: UInt8(0))
            return try peripheral.read(from: Self.location) as UInt8
        }) { [seen] (result: RunResult<UInt8>) in seen.note("run", result) }
        XCTAssertTrue(bluejay.isRunningBackgroundTask)
        expect("run 0")
        XCTAssertFalse(bluejay.isRunningBackgroundTask)
    }

    func testTheOuterObjectIsRefusedInsideTheTask() {
        connect()
        let bluejay = bluejay!
        bluejay.run(backgroundTask: { [seen] peripheral in
            bluejay.read(from: Self.location) { (result: ReadResult<UInt8>) in seen.note("inside", result) }
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [seen] in seen.note("run", $0) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("outside", result) }
        bluejay.run(backgroundTask: { _ in }) { [seen] in seen.note("second", $0) }
        expect("run ()")
        XCTAssertEqual(
            seen.texts.sorted(),
            [
                "inside calledInsideBackgroundTask", "outside backgroundTaskRunning", "run ()",
                "second multipleBackgroundTaskNotSupported",
            ])
    }

    func testAfterTheTaskItsPeripheralIsOfNoUse() {
        connect()
        bluejay.run(backgroundTask: { peripheral -> SynchronizedPeripheral in
            XCTAssertGreaterThan(peripheral.maximumWriteValueLength(for: .withoutResponse), 0)
            return peripheral
        }) { [seen] (result: RunResult<SynchronizedPeripheral>) in
            guard case .success(let peripheral) = result else { return }
            seen.note("\(peripheral.maximumWriteValueLength(for: .withoutResponse))")
            do { _ = try peripheral.read(from: Self.location) as UInt8 } catch { seen.note("read", error) }
        }
        expect("read notInBackgroundTask")
        XCTAssertEqual(seen.texts, ["0", "read notInBackgroundTask"])
    }

    func testALossEndsWhatTheTaskWaitsFor() {
        let observer = Observer(seen)
        connect()
        bluejay.register(observer: observer)
        bluejay.run(backgroundTask: { [seen] peripheral in
            do {
                try peripheral.listen(to: Self.measurement) { (value: Data) in
                    seen.note("received \([UInt8](value))")
                    return .keepListening
                }
            } catch {
                seen.note("listen", error)
            }
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [seen] in seen.note("run", $0) }
        awaitSubscription()
        notify([0, 61])
        loseLink()
        expect("disconnected Strap 1")
        XCTAssertEqual(
            seen.texts,
            [
                "available true", "connected Strap 1", "received [0, 61]", "listen notConnected", "run notConnected",
                "disconnected Strap 1",
            ])
        eventually("the connection") { bluejay.isConnected }
    }

    // MARK: Forms

    func testATaskTakesAndReturnsWhatItWorksWith() {
        connect()
        bluejay.run(
            userData: [UInt8(4), UInt8(7)],
            backgroundTask: { peripheral, values -> UInt8 in
                for value in values { try peripheral.write(to: Self.location, value: value) }
                return try peripheral.read(from: Self.location)
            },
            completionOnMainThread: { [seen] (result: RunResult<UInt8>) in seen.note("run", result) })
        expect("run 7")
        bluejay.run(
            userData: "x",
            backgroundTask: { peripheral, text in try peripheral.write(to: Self.control, value: text) },
            completionOnMainThread: { [seen] result in seen.note("text", result) })
        expect("text ()")
        XCTAssertEqual(strap.written, [[4], [7], [120]])
    }

    func testWhatATaskThrowsIsItsFailure() {
        connect()
        struct Mine: Error {}
        bluejay.run(backgroundTask: { _ in throw Mine() }) { [seen] (result: RunResult<Int>) in
            guard case .failure(let error) = result else { return }
            seen.note("\(error is Mine)")
        }
        expect("true")
        XCTAssertFalse(bluejay.isRunningBackgroundTask)
    }

    // MARK: Listening

    func testAListenOfATaskLastsUntilItIsDone() {
        connect()
        bluejay.run(backgroundTask: { peripheral -> [UInt16] in
            var values: [UInt16] = []
            try peripheral.listen(to: Self.measurement) { (value: UInt16) in
                values.append(value)
                return values.count == 3 ? .done : .keepListening
            }
            return values
        }) { [seen] (result: RunResult<[UInt16]>) in seen.note("run", result) }
        awaitSubscription()
        for byte in UInt8(1)...5 { notify([byte, 0]) }
        expect("run [1, 2, 3]")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
    }

    func testAListenOfATaskTimesOut() {
        connect()
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.listen(to: Self.measurement, timeout: .seconds(5)) { (_: Data) in .keepListening }
        }) { [seen] in seen.note("run", $0) }
        awaitSubscription()
        notify([1])
        expect("run listenTimedOut", limit: 6)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
    }

    func testAWriteIsAnsweredByAListenThatWasThereBefore() {
        connect()
        let simulator = simulator
        strap.onWrite = { bytes in
            simulator.notify(Self.address, characteristic: .uuid("2A3A"), value: bytes.map { $0 + 1 })
        }
        bluejay.run(backgroundTask: { [seen] peripheral in
            try peripheral.writeAndListen(writeTo: Self.control, value: UInt8(8), listenTo: Self.answers) {
                (value: UInt8) in
                seen.note("answer \(value)")
                return .done
            }
        }) { [seen] in seen.note("run", $0) }
        expect("run ()")
        XCTAssertEqual(seen.texts, ["answer 9", "run ()"])
    }

    func testAnAnswerIsAssembledFromItsPackets() {
        connect()
        let simulator = simulator
        strap.onWrite = { _ in
            for packet in [[0x48], [], [0x65, 0x6C], [0x6C, 0x6F]] as [[UInt8]] {
                simulator.notify(Self.address, characteristic: .uuid("2A3A"), value: packet)
            }
        }
        bluejay.run(backgroundTask: { peripheral -> String in
            var text = ""
            try peripheral.writeAndAssemble(
                writeTo: Self.control, value: UInt8(8), listenTo: Self.answers, expectedLength: 5
            ) { (value: String) in
                text = value
                return .done
            }
            return text
        }) { [seen] in seen.note("run", $0) }
        expect("run Hello")
    }

    func testAPacketBeyondTheExpectedLengthIsAnError() {
        connect()
        let simulator = simulator
        strap.onWrite = { _ in
            simulator.notify(Self.address, characteristic: .uuid("2A3A"), value: [1, 2, 3])
        }
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.writeAndAssemble(
                writeTo: Self.control, value: UInt8(8), listenTo: Self.answers, expectedLength: 2
            ) { (_: Data) in .done }
        }) { [seen] (result: RunResult<Void>) in
            guard case .failure(let error) = result else { return }
            seen.note("\(error as? BluejayError == .dataOutOfBounds(start: 0, length: 2, count: 3))")
        }
        expect("true")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A3A"), at: Self.address), [])
    }

    func testAFlushLastsUntilNothingHasComeForAWhile() {
        connect()
        bluejay.run(backgroundTask: { [seen] peripheral in
            try peripheral.flushListen(to: Self.answers, idleWindow: 2) { seen.note("flushed") }
        }) { [seen] in seen.note("run", $0) }
        awaitSubscription("2A3A")
        let begin = simulator.seconds
        for _ in 0..<4 {
            notify([1], from: "2A3A")
            pass(1)
        }
        XCTAssertEqual(seen.texts, [])
        expect("run ()", limit: 3)
        XCTAssertEqual(seen.texts, ["flushed", "run ()"])
        XCTAssertGreaterThan(simulator.seconds - begin, 4.9)
        bluejay.run(backgroundTask: { try $0.flushListen(to: Self.answers, idleWindow: 0) {} }) { [seen] in
            seen.note("endless", $0)
        }
        expect("endless indefiniteFlush")
    }

    func testATaskDoesNotTakeSomebodyElsesListenAway() throws {
        connect()
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<UInt8>) in seen.note("listen", result) }
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.listen(to: Self.measurement) { (_: Data) in .done }
        }) { [seen] in seen.note("run", $0) }
        expect("run multipleListenTrapped")
        notify([4])
        XCTAssertEqual(seen.texts.last, "listen 4")
        XCTAssertTrue(try bluejay.isListening(to: Self.measurement))
    }

    // MARK: What ends a wait

    /// Called when that one is over.
    private var over: () -> Void = {}

    /// Starts a background task that listens until it is stopped, and listens once more after a failure.
    private func listenForEver() {
        bluejay.run(backgroundTask: { [seen] peripheral in
            do {
                try peripheral.listen(to: Self.measurement) { (_: Data) in .keepListening }
            } catch {
                seen.note("listen", error)
            }
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [self] in
            seen.note("run", $0)
            over()
        }
        awaitSubscription()
    }

    func testCancellingEverythingEndsATaskAndItsListen() {
        connect()
        listenForEver()
        bluejay.cancelEverything(shouldDisconnect: false)
        expect("run cancelled")
        XCTAssertEqual(seen.texts, ["listen cancelled", "run cancelled"])
        XCTAssertTrue(bluejay.isConnected)
        eventually("the end") { simulator.subscriptions(to: .uuid("2A37"), at: Self.address).isEmpty }
        bluejay.run(backgroundTask: { try $0.read(from: Self.location) as UInt8 }) { [seen] in seen.note("next", $0) }
        expect("next 1")
    }

    func testCancellingAndDisconnectingEndsATask() {
        connect()
        listenForEver()
        bluejay.cancelEverything()
        expect("run cancelled")
        eventually("the end") { !bluejay.isDisconnecting && !bluejay.isConnected }
        XCTAssertFalse(bluejay.shouldAutoReconnect)
    }

    func testStoppingEndsATaskAndTheNextOneRuns() {
        let identifier = connect()
        listenForEver()
        let state = bluejay.stopAndExtractBluetoothState()
        expect("run stopped")
        XCTAssertEqual(seen.texts, ["listen stopped", "run stopped"])
        withExtendedLifetime(state) {}
        bluejay.start(mode: .use(manager: state.manager, peripheral: state.peripheral))
        eventually("the connection") { bluejay.isConnected }
        bluejay.run(backgroundTask: { try $0.read(from: Self.location) as UInt8 }) { [seen] in seen.note("next", $0) }
        expect("next 1")
        withExtendedLifetime(identifier) {}
    }

    func testATaskThatDoesNotStopAtOnceDoesNotHoldUpTheNextStart() {
        connect()
        let (entered, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        bluejay.run(backgroundTask: { peripheral in
            entered.signal()
            mayGo.wait()
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [seen] in seen.note("old", $0) }
        entered.wait()
        let state = bluejay.stopAndExtractBluetoothState()
        bluejay.start(mode: .use(manager: state.manager, peripheral: state.peripheral))
        // Not `eventually`, which waits for the task.
        while !bluejay.isConnected { simulator.advance(by: 0.01) }
        bluejay.run(backgroundTask: { try $0.read(from: Self.location) as UInt8 }) { [seen] in seen.note("new", $0) }
        mayGo.signal()
        expect("new 1")
        XCTAssertEqual(seen.texts, ["old notInBackgroundTask", "new 1"])
    }

    func testTheDaemonsDeathEndsATask() {
        connect()
        listenForEver()
        simulator.simulateDaemonDeath()
        eventually("the end") { seen.count == 2 }
        XCTAssertTrue(seen.texts[1].hasPrefix("run "), "\(seen.texts)")
    }

    func testASilentPeripheralEndsATask() {
        connect()
        simulator.simulateSilence(of: Self.address)
        bluejay.run(backgroundTask: { _ = try $0.read(from: Self.location) as UInt8 }) { [seen] in
            seen.note("run", $0)
        }
        expect("run notConnected", limit: 60)
    }

    func testLettingBluejayGoEndsATask() {
        connect()
        listenForEver()
        let isOver = expectation(description: "the task's end")
        over = { isOver.fulfill() }
        bluejay = nil
        // Real time for the task's thread: the Bluejay that reports whether it waits has been released.
        wait(for: [isOver], timeout: 60)
        XCTAssertEqual(seen.texts, ["listen stopped", "run stopped"])
        eventually("the link's end") { simulator.links.isEmpty }
    }

    // MARK: Misuse

    func testTheSynchronizedPeripheralIsOfNoUseElsewhere() {
        connect()
        let kept = Kept()
        bluejay.run(backgroundTask: { [seen] peripheral in
            kept.peripheral = peripheral
            // Another thread, while the task runs.
            let other = DispatchQueue(label: "other")
            other.sync {}
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                do { _ = try peripheral.read(from: Self.location) as UInt8 } catch { seen.note("elsewhere", error) }
                done.signal()
            }
            done.wait()
        }) { [seen] in seen.note("run", $0) }
        expect("run ()")
        do {
            _ = try kept.peripheral?.read(from: Self.location) as UInt8?
        } catch {
            seen.note("later", error)
        }
        XCTAssertEqual(seen.texts, ["elsewhere notInBackgroundTask", "run ()", "later notInBackgroundTask"])
    }

    func testNothingOfTheOuterObjectHangsInsideTheTask() {
        connect()
        let bluejay = bluejay!
        bluejay.run(backgroundTask: { [seen] _ in
            bluejay.write(to: Self.location, value: UInt8(1)) { seen.note("write", $0) }
            bluejay.listen(to: Self.location) { (result: ReadResult<UInt8>) in seen.note("listen", result) }
            bluejay.endListen(to: Self.location) { seen.note("end", $0) }
            bluejay.disconnect { seen.note("disconnect", $0) }
            bluejay.connect(PeripheralIdentifier(uuid: UUID(), name: nil)) { seen.note("connect", $0) }
            bluejay.run(backgroundTask: { _ in }) { seen.note("run", $0) }
            bluejay.scan(
                serviceIdentifiers: nil, discovery: { _, _ in .stop }, stopped: { _, error in seen.note("scan", error) }
            )
        }) { [seen] in seen.note("task", $0) }
        expect("task ()")
        XCTAssertEqual(
            seen.texts,
            ["write", "listen", "end", "disconnect", "connect", "run", "scan"].map {
                "\($0) calledInsideBackgroundTask"
            }
                + ["task ()"])
    }
}

// Unchecked: written by the task, and read when it is over.
private final class Kept: @unchecked Swift.Sendable {
    var peripheral: SynchronizedPeripheral?
}
