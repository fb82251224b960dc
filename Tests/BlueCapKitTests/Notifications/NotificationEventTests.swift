import BlueCapFutures
import BlueZSimulator
import TestSupport
import XCTest

@testable import BlueCapKit

/// Notifications as sequences that subscribe themselves, and end the subscription with their last reader.
final class NotificationEventTests: XCTestCase {
    private let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

    /// Receives a stream with one handler, which `token` cancels.
    private func read<T: Sendable>(_ stream: FutureStream<T>, _ token: CancelToken = CancelToken()) -> Locked<[Try<T>]>
    {
        let elements = Locked<[Try<T>]>([])
        stream.onComplete(context: ImmediateContext(), cancelToken: token) { element in
            elements.withLock { $0.append(element) }
        }
        return elements
    }

    private func events(_ elements: Locked<[Try<NotificationEvent>]>) -> [NotificationEvent] {
        elements.withLock { $0.compactMap(\.value) }
    }

    private func advance(_ stage: AttributeStage, line: UInt = #line, until isThere: () -> Bool) {
        XCTAssertTrue(stage.simulator.advance(until: isThere, limit: 60), line: line)
    }

    // MARK: Delivering

    func testEventsSubscribeAndDeliverValuesAndGaps() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let elements = read(characteristic.notificationEvents())
        stage.awaitNotifying(characteristic)
        stage.notify(1, 2)
        stage.interrupt(characteristic)
        stage.notify(3)
        XCTAssertEqual(
            events(elements), [.value(Data([1])), .value(Data([2])), .gap, .value(Data([3]))])
        XCTAssertTrue(elements.withLock { $0 }.allSatisfy { $0.isSuccess() })
    }

    func testValuesArriveUntilTheLinkThatIsEndedHasEnded() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let elements = read(characteristic.notificationEvents())
        stage.awaitNotifying(characteristic)
        stage.peripheral.disconnect()
        // BlueZ ends the link after two seconds.
        var sent: [NotificationEvent] = []
        while stage.peripheral.state != .disconnected, sent.count < 100 {
            let byte = UInt8(sent.count)
            if stage.simulator.notify(AttributeStage.address, characteristic: "2A37", value: [byte]) {
                sent.append(.value(Data([byte])))
            }
            stage.simulator.advance(by: 0.05)
        }
        XCTAssertEqual(sent.count, 40)
        XCTAssertEqual(events(elements), sent)
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        stage.notify(99)
        XCTAssertEqual(events(elements), sent + [.gap, .value(Data([99]))])
    }

    func testAGapIsAFailureAmongValues() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let elements = read(characteristic.notifications())
        stage.awaitNotifying(characteristic)
        stage.notify(1)
        stage.interrupt(characteristic)
        stage.notify(2)
        let seen = elements.withLock { $0 }
        XCTAssertEqual(seen.compactMap(\.value), [Data([1]), Data([2])])
        XCTAssertEqual(seen.count, 3)
        XCTAssertEqual(seen[1].error as? CharacteristicError, .notificationsInterrupted)
    }

    func testAPeripheralsEventsNeedNoDiscovery() throws {
        let stage = try AttributeStage([AttributeStage.heart]).connected()
        let elements = read(stage.peripheral.notificationEvents(rate))
        advance(stage) { stage.peripheral.services.first?.characteristics.first?.isNotifying == true }
        stage.notify(7)
        XCTAssertEqual(events(elements), [.value(Data([7]))])
    }

    func testWithoutALinkItFails() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.peripheral.disconnect()
        advance(stage) { stage.peripheral.state == .disconnected }
        for stream in [characteristic.notificationEvents(), stage.peripheral.notificationEvents(rate)] {
            XCTAssertEqual(stage.failure(of: stream.first()) as? PeripheralError, .disconnected)
            XCTAssertEqual(try stage.wait(stream.recover(context: ImmediateContext()) { _ in .gap }.collect()).count, 1)
        }
    }

    func testACharacteristicThatCannotNotifyFails() throws {
        let stage = try AttributeStage.explored()
        let stream = try stage.characteristic("2A38").notificationEvents()
        XCTAssertEqual(stage.failure(of: stream.first()) as? CharacteristicError, .notifyNotSupported)
    }

    func testTheTimeLimitIncludesTheWaitForALink() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.simulator.remove(AttributeStage.address)
        advance(stage) { !stage.isLinked }
        stage.peripheral.reconnect()
        let stream = characteristic.notificationEvents(timeout: .seconds(3))
        XCTAssertEqual(stage.failure(of: stream.first(), limit: 3.1) as? CharacteristicError, .notifyTimeout)
    }

    // MARK: The end of the subscription

    func testTheLastReaderEndsTheSubscription() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let stream = characteristic.notificationEvents()
        let (first, second) = (CancelToken(), CancelToken())
        let elements = read(stream, first)
        _ = read(stream, second)
        stage.awaitNotifying(characteristic)
        stream.cancel(second)
        stage.notify(1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        XCTAssertEqual(events(elements), [.value(Data([1]))])
        stream.cancel(first)
        advance(stage) { stage.subscriptionCount() == 0 }
        XCTAssertFalse(characteristic.isNotifying)
        // Another loop over the same stream ends after what is kept.
        XCTAssertEqual(try stage.wait(stream.collect()), [.value(Data([1]))])
        // Another call subscribes again.
        let again = read(characteristic.notificationEvents())
        stage.awaitNotifying(characteristic)
        stage.notify(2)
        XCTAssertEqual(events(again), [.value(Data([2]))])
    }

    func testTheSubscriptionStaysForAnotherStream() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let (one, two) = (CancelToken(), CancelToken())
        let (first, second) = (characteristic.notificationEvents(), characteristic.notifications())
        _ = read(first, one)
        let values = read(second, two)
        stage.awaitNotifying(characteristic)
        first.cancel(one)
        stage.notify(1)
        XCTAssertEqual(values.withLock { $0.compactMap(\.value) }, [Data([1])])
        second.cancel(two)
        advance(stage) { stage.subscriptionCount() == 0 }
    }

    func testTheSubscriptionOfStartNotifyingStays() throws {
        for isFirst in [true, false] {
            let (stage, characteristic) = try AttributeStage.rate()
            if isFirst { try stage.start(characteristic) }
            let token = CancelToken()
            let stream = characteristic.notificationEvents()
            _ = read(stream, token)
            stage.awaitNotifying(characteristic)
            if !isFirst { try stage.start(characteristic) }
            stream.cancel(token)
            stage.simulator.advance(by: 5)
            stage.notify(1)
            XCTAssertEqual(stage.subscriptionCount(), 1)
            XCTAssertEqual(characteristic.dataValue, Data([1]))
        }
    }

    func testTheSubscriptionOfAPeripheralsNotificationsStays() throws {
        let stage = try AttributeStage.explored()
        let token = CancelToken()
        let stream = stage.peripheral.notifications(rate)
        let values = read(stream, token)
        advance(stage) { stage.subscriptionCount() == 1 }
        stream.cancel(token)
        stage.notify(1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        XCTAssertEqual(values.withLock { $0.count }, 0)
    }

    func testAReaderThatEndsBeforeTheSubscriptionHasBegunLeavesNone() throws {
        let stage = try AttributeStage([AttributeStage.heart], link: VirtualLink(resolveLatency: 2)).connected()
        let token = CancelToken()
        let stream = stage.peripheral.notificationEvents(rate)
        _ = read(stream, token)
        stream.cancel(token)
        stage.simulator.advance(by: 10)
        XCTAssertEqual(stage.subscriptionCount(), 0)
        XCTAssertEqual(stage.count(of: "StartNotify"), 0)
    }

    /// Also if a subscription was refused meanwhile.
    func testAReaderThatEndsWhileTheLinkIsLostLeavesNoResubscription() throws {
        for isRefused in [false, true] {
            let (stage, characteristic) = try AttributeStage.rate()
            let token = CancelToken()
            let stream = characteristic.notificationEvents()
            _ = read(stream, token)
            stage.awaitNotifying(characteristic)
            stage.loseLink()
            if isRefused {
                let refused: Future<Characteristic> = characteristic.startNotifying()
                XCTAssertEqual(stage.failure(of: refused) as? PeripheralError, .disconnected)
            }
            stream.cancel(token)
            stage.reconnect()
            stage.simulator.advance(by: 10)
            XCTAssertEqual(stage.subscriptionCount(), 0, "\(isRefused)")
        }
    }

    func testAStreamThatIsNeverReadEndsWithItsFirstValue() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        _ = characteristic.notificationEvents()
        stage.awaitNotifying(characteristic)
        stage.notify(1)
        advance(stage) { stage.subscriptionCount() == 0 }
    }

    func testOneEventIsEnough() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let first = characteristic.notifications().first()
        stage.awaitNotifying(characteristic)
        stage.notify(9)
        XCTAssertEqual(try stage.wait(first), Data([9]))
        advance(stage) { stage.subscriptionCount() == 0 }
    }

    // MARK: In asynchronous functions

    func testLeavingALoopEndsTheSubscription() async throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            for try await event in characteristic.notificationEvents() where event == .value(Data([2])) { return true }
            return false
        }
        await stage.simulator.advance(by: 1)
        stage.notify(1, 2)
        await stage.simulator.advance(by: 1)
        let isFound = try await task.value
        XCTAssertTrue(isFound)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testLeavingALoopOverAnOperatorEndsTheSubscription() async throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            let events = characteristic.notificationEvents().map(context: ImmediateContext()) { "\($0)" }
            for try await event in events { return event }
            return ""
        }
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        stage.notify(1)
        await stage.simulator.advance(by: 1)
        let event = try await task.value
        XCTAssertEqual(event, "\(NotificationEvent.value(Data([1])))")
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testCancellingTheTaskEndsTheSubscription() async throws {
        let stage = try AttributeStage.explored()
        let (peripheral, rate) = (stage.peripheral, rate)
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            for try await _ in peripheral.notificationEvents(rate) {}
        }
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        task.cancel()
        await stage.simulator.advance(by: 1)
        try await task.value
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testSubscribingAndUnsubscribingWait() async throws {
        let (stage, characteristic) = try AttributeStage.rate(link: VirtualLink(callLatency: 0.5))
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await characteristic.startNotifying()
            let isNotifying = characteristic.isNotifying
            try await characteristic.stopNotifying(timeout: .seconds(5))
            return (isNotifying, characteristic.isNotifying)
        }
        await stage.simulator.advance(by: 10)
        let (before, after) = try await task.value
        XCTAssertTrue(before)
        XCTAssertFalse(after)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testTheTimeLimitOfASubscriptionIsThatOfTheDuration() async throws {
        let (stage, characteristic) = try AttributeStage.rate(link: VirtualLink(callLatency: 5))
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await characteristic.startNotifying(over: .signals, timeout: .milliseconds(500))
        }
        await stage.simulator.advance(by: 1)
        await task.expectThrown(CharacteristicError.notifyTimeout)
    }

    func testCancellingTheTaskCancelsASubscriptionThatHasNotBegun() async throws {
        let (stage, characteristic) = try AttributeStage.rate(link: VirtualLink(callLatency: 5))
        let task = Task(executorPreference: stage.simulator.taskExecutor) { try await characteristic.startNotifying() }
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        task.cancel()
        await stage.simulator.advance(by: 20)
        await task.expectThrown(CancellationError.self)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testACancelledStopStillEndsTheSubscription() async throws {
        let (stage, characteristic) = try AttributeStage.rate(link: VirtualLink(callLatency: 5))
        let started: Future<Characteristic> = characteristic.startNotifying()
        let task = Task(executorPreference: stage.simulator.taskExecutor) { try await characteristic.stopNotifying() }
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        task.cancel()
        await stage.simulator.advance(by: 20)
        await task.expectThrown(CancellationError.self)
        XCTAssertNotNil(try stage.wait(started))
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testACancelledStopLeavesTheOperationsOfHandlers() async throws {
        let (stage, characteristic) = try AttributeStage.rate(link: VirtualLink(callLatency: 5))
        let (peripheral, rate) = (stage.peripheral, rate)
        // The stop waits for the start, and the read of the handler for this one.
        let started: Future<Characteristic> = characteristic.startNotifying()
        let first: Future<Data> = peripheral.read(rate)
        let reading = Promise<Data>()
        let values: FutureStream<(characteristic: Characteristic, data: Data?)> =
            characteristic.receiveNotificationUpdates()
        values.collect().onComplete(context: ImmediateContext()) { _ in
            let data: Future<Data> = peripheral.read(rate)
            reading.completeWith(context: ImmediateContext(), future: data)
        }
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await awaiting { peripheral.stopNotifications(rate) }
        }
        await stage.simulator.advance(by: 1)
        task.cancel()
        await stage.simulator.advance(by: 20)
        await task.expectThrown(CancellationError.self)
        XCTAssertEqual(try stage.wait(reading.future), Data([0]))
        XCTAssertTrue(started.completed && first.completed)
    }

    func testARunThatEndsAsItsSubscriptionBeginsLeavesNone() async throws {
        let stage = try AttributeStage.explored(link: VirtualLink(callLatency: 0.5))
        let (characteristic, peripheral, rate) = (try stage.characteristic("2A37"), stage.peripheral, rate)
        let other = NotificationStream(eventsOf: peripheral, .max)
        let begun = other.subscribe(to: characteristic, over: .signals, timeout: .infinity, outlivesLinks: false)
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await peripheral.run { _ = try await $0.notificationEvents(rate) }
        }
        // Both wait for the same reply.
        begun.onSuccess(context: ImmediateContext()) { task.cancel() }
        await stage.simulator.advance(by: 5)
        await task.expectThrown(CancellationError.self)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        let token = CancelToken()
        _ = read(other.stream, token)
        other.stream.cancel(token)
        await stage.simulator.advance(by: 5)
        XCTAssertTrue(stage.isLinked)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testARunsEventsEndWithItsLoop() async throws {
        let stage = try AttributeStage.explored()
        let (peripheral, rate) = (stage.peripheral, rate)
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await peripheral.run(timeout: .seconds(30)) { connected in
                for try await event in try await connected.notificationEvents(rate, timeout: .seconds(5)) {
                    return event
                }
                return .gap
            }
        }
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 1)
        stage.notify(5)
        await stage.simulator.advance(by: 1)
        let event = try await task.value
        XCTAssertEqual(event, .value(Data([5])))
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }
}
