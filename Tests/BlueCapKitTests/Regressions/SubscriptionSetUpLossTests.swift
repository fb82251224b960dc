import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// `peripheral.notifications(_:)` ended for good if the link fell while the subscription was being set up, although it
/// survived each later loss.
final class SubscriptionSetUpLossTests: XCTestCase {
    private static let address: VirtualAddress = "C0:00:00:00:00:01"
    private let rate = CharacteristicIdentifier.strap("2A37")
    private let interrupted = "\(CharacteristicError.notificationsInterrupted)"

    /// A program that connects, subscribes at once, and reconnects whenever the link is gone.
    private final class Scene {
        let simulator = Simulator.inProcess(room: .empty)
        let manager: CentralManager
        let peripheral: Peripheral
        private let values = Locked<[Data]>([])
        private let failures = Locked<[String]>([])
        private let isOver = Locked(false)

        init(link: VirtualLink = VirtualLink()) throws {
            simulator.add(.strap([VirtualCharacteristic("2A37", [.notify], value: [0])], link: link))
            (manager, peripheral) = try simulator.firstPeripheral()
            simulator.advance(by: 0.1)
        }

        var received: [Data] { values.withLock { $0 } }
        var failed: [String] { failures.withLock { $0 } }
        var hasEnded: Bool { isOver.withLock { $0 } }
        /// On the first link; on later ones the service has not been discovered by this program.
        var isNotifying: Bool {
            peripheral.service(CBUUID(string: "180D"))?.characteristic(CBUUID(string: "2A37"))?.isNotifying ?? false
        }

        func connect() {
            peripheral.connect().onSuccess(context: ImmediateContext()) { peripheral, event in
                if event == .disconnect || event == .timeout { peripheral.reconnect() }
            }
        }

        func subscribe(
            _ identifier: CharacteristicIdentifier, over transport: NotificationTransport,
            timeout: TimeInterval = .infinity
        ) {
            let stream = peripheral.notifications(identifier, over: transport, timeout: timeout)
            stream.onComplete(context: ImmediateContext()) { [values, failures] element in
                switch element {
                case .success(let data): values.withLock { $0.append(data) }
                case .failure(let error): failures.withLock { $0.append("\(error)") }
                }
            }
            // A collection succeeds if the stream ends without a failure.
            stream.collect().onSuccess(context: ImmediateContext()) { [isOver] _ in isOver.withLock { $0 = true } }
        }

        /// Waits until values are received, at once or after the effects of the fault. From then on each value is received once.
        func expectValues(
            _ step: String, within limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line
        ) {
            let end = simulator.seconds + limit
            while received.isEmpty, simulator.seconds < end {
                notify(0)
                simulator.advance(by: 0.5)
            }
            let state = "\(step): \(peripheral.state), \(failed)"
            XCTAssertFalse(received.isEmpty, state, file: file, line: line)
            simulator.advance(by: 2)
            let before = received.count
            for value in 1...3 { notify(UInt8(value)) }
            simulator.advance(by: 2)
            let expected = [Data([1]), Data([2]), Data([3])]
            XCTAssertEqual(Array(received.dropFirst(before)), expected, state, file: file, line: line)
        }

        private func notify(_ value: UInt8) {
            simulator.notify(SubscriptionSetUpLossTests.address, characteristic: .uuid("2A37"), value: [value])
        }
    }

    /// Runs a scene for each transport and moment. Its program connected and subscribed that many seconds ago.
    private func each(
        _ transports: [NotificationTransport] = [.signals, .socket], at moments: StrideThrough<Double>? = nil,
        link: VirtualLink = VirtualLink(), fault: (Simulator) -> Void = { _ in }, timeout: TimeInterval = .infinity,
        _ body: (_ scene: Scene, _ transport: NotificationTransport, _ step: String) throws -> Void
    ) throws {
        for transport in transports {
            for moment in moments ?? stride(from: 0, through: 0, by: 1) {
                let scene = try Scene(link: link)
                fault(scene.simulator)
                scene.connect()
                scene.subscribe(rate, over: transport, timeout: timeout)
                scene.simulator.advance(by: moment)
                try body(scene, transport, "\(transport) after \(moment) s")
            }
        }
    }

    /// The set-up takes 1.3 s with this link: 0.3 until the link is up, 0.5 until the services are known, 0.4 for the answer
    /// of the peripheral, and the rest for BlueZ's replies.
    private let slow = VirtualLink(connectLatency: 0.3, resolveLatency: 0.5, exportDelay: 0.02, callLatency: 0.4)

    // MARK: Each moment

    func testALinkLostAtAnyMomentOfTheSetUpIsFollowedByValues() throws {
        try each(at: stride(from: 0, through: 1.6, by: 0.05), link: slow) { scene, _, step in
            let hadBegun = scene.isNotifying
            scene.simulator.simulateLinkLoss(of: Self.address)
            scene.expectValues(step)
            // A gap is reported if there was something before it.
            XCTAssertEqual(scene.failed, hadBegun ? [interrupted] : [], step)
        }
    }

    /// As above, if BlueZ takes its time for each answer.
    func testALinkLostBetweenACallAndItsReplyIsFollowedByValues() throws {
        try each(
            at: stride(from: 0, through: 2.4, by: 0.1), fault: { $0.simulateSlowReplies(by: 0.6) }
        ) { scene, _, step in
            scene.simulator.simulateLinkLoss(of: Self.address)
            scene.simulator.advance(by: 1)
            scene.simulator.simulateSlowReplies(by: 0)
            scene.expectValues(step)
            XCTAssertTrue(scene.failed.allSatisfy { $0 == interrupted }, "\(step): \(scene.failed)")
        }
    }

    // MARK: Each step

    func testALinkThatFallsWithItsConnectionIsFollowedByValues() throws {
        try each(fault: { $0.simulateConnectReplyThenDrop(2, after: 0, of: Self.address) }) { scene, _, step in
            scene.expectValues(step)
            XCTAssertEqual(scene.failed, [])
        }
    }

    func testALinkLostWhileTheServicesAreNotKnownIsFollowedByValues() throws {
        let scene = try Scene(link: VirtualLink(resolveLatency: 3))
        scene.connect()
        XCTAssertTrue(scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 5))
        scene.subscribe(rate, over: .signals)
        for _ in 1...3 {
            scene.simulator.advance(by: 1)
            scene.simulator.simulateLinkLoss(of: Self.address)
            XCTAssertTrue(scene.simulator.advance(until: { scene.peripheral.state != .connected }, limit: 5))
            XCTAssertTrue(scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 30))
        }
        scene.expectValues("discovery")
        XCTAssertEqual(scene.failed, [])
    }

    func testALinkLostWhileBlueZDoesNotAnswerTheSubscriptionIsFollowedByValues() throws {
        try each(fault: { $0.simulateUnansweredAttributes(of: Self.address) }) { scene, transport, step in
            scene.simulator.advance(by: 5)
            let call = transport == .signals ? "StartNotify" : "AcquireNotify"
            XCTAssertEqual(scene.simulator.statistics.count(of: call), 1)
            scene.simulator.simulateUnansweredAttributes(false, of: Self.address)
            scene.simulator.simulateLinkLoss(of: Self.address)
            scene.expectValues(step)
            XCTAssertEqual(scene.failed, [])
        }
    }

    func testALinkThatIsGivenUpSinceThePeripheralIsSilentIsFollowedByValues() throws {
        for transport in [NotificationTransport.signals, .socket] {
            let scene = try Scene()
            scene.connect()
            XCTAssertTrue(scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 5))
            scene.simulator.advance(by: 1)
            scene.simulator.simulateSilence(of: Self.address)
            scene.subscribe(rate, over: transport)
            scene.simulator.advance(by: 31)
            scene.simulator.simulateSilence(false, of: Self.address)
            scene.expectValues("\(transport)")
            XCTAssertEqual(scene.failed, [])
        }
    }

    func testALossOfDaemonOrAdapterDuringTheSetUpIsFollowedByValues() throws {
        let losses: [(name: String, go: (Simulator) -> Void, back: (Simulator) -> Void)] = [
            ("the daemon", { $0.simulateDaemonDeath() }, { $0.simulateDaemonReturn() }),
            ("the power", { $0.simulatePowerOff() }, { $0.simulatePowerOn() }),
            ("the adapter", { $0.simulateAdapterRemoval() }, { $0.simulateAdapterAddition() }),
        ]
        for loss in losses {
            try each(
                at: stride(from: 0.1, through: 1.3, by: 0.3),
                link: VirtualLink(connectLatency: 0.3, resolveLatency: 0.5, callLatency: 0.4)
            ) { scene, _, step in
                loss.go(scene.simulator)
                scene.simulator.advance(by: 5)
                loss.back(scene.simulator)
                scene.expectValues("\(loss.name), \(step)", within: 120)
            }
        }
    }

    func testALinkThatTheProgramEndsDuringTheSetUpIsFollowedByValuesOnTheNext() throws {
        try each([.signals], link: VirtualLink(resolveLatency: 2)) { scene, _, step in
            scene.simulator.advance(by: 1)
            scene.peripheral.disconnect()
            scene.simulator.advance(by: 20)
            XCTAssertEqual(scene.failed, [])
            XCTAssertFalse(scene.hasEnded)
            scene.connect()
            scene.expectValues(step)
        }
    }

    // MARK: What an earlier link leaves behind

    func testAStopThatIsAnsweredLateDoesNotCloseTheNextSocket() throws {
        let scene = try Scene()
        scene.connect()
        scene.subscribe(rate, over: .socket)
        XCTAssertTrue(scene.simulator.advance(until: { scene.isNotifying }, limit: 10))
        scene.simulator.simulateUnansweredAttributes(of: Self.address)
        scene.simulator.simulateLinkLoss(of: Self.address)
        scene.simulator.advance(by: 0.02)
        XCTAssertEqual(scene.simulator.statistics.count(of: "StopNotify"), 1)
        scene.simulator.simulateUnansweredAttributes(false, of: Self.address)
        XCTAssertTrue(scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 10))
        // BlueZ does not know the device any more: the answer is not waited for.
        scene.simulator.simulateDeviceRemoval(of: Self.address)
        scene.expectValues("the next link", within: 30)
        // Now the call has run out of time.
        scene.simulator.advance(by: 40)
        scene.expectValues("after the late answer")
    }

    func testADeviceThatIsRemovedWhileItsTableIsReadLeavesTheStream() throws {
        for moment in stride(from: 0.0, through: 1.2, by: 0.02) {
            let scene = try Scene(link: VirtualLink(connectLatency: 0.2, resolveLatency: 0.3, exportDelay: 0.02))
            scene.connect()
            scene.subscribe(rate, over: .signals)
            XCTAssertTrue(scene.simulator.advance(until: { scene.isNotifying }, limit: 10))
            scene.simulator.simulateDeviceRemoval(of: Self.address)
            scene.simulator.advance(by: moment)
            scene.simulator.simulateDeviceRemoval(of: Self.address)
            // A Connect of a device that is removed is not answered, and has to run out of time.
            scene.expectValues("after \(moment) s", within: 200)
            XCTAssertTrue(scene.failed.allSatisfy { $0 == interrupted }, "after \(moment) s: \(scene.failed)")
        }
    }

    // MARK: What ends it

    func testWithoutALinkAndAConnectionThatIsAskedForItFailsAtOnce() throws {
        let scene = try Scene()
        scene.subscribe(rate, over: .signals)
        scene.simulator.advance(by: 0.1)
        XCTAssertEqual(scene.failed, ["\(PeripheralError.disconnected)"])
    }

    func testACharacteristicThatIsNotThereIsAFailureOnALaterLinkToo() throws {
        let scene = try Scene(link: VirtualLink(resolveLatency: 1))
        scene.connect()
        scene.subscribe(
            CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F")), over: .signals)
        scene.simulator.advance(by: 0.5)
        scene.simulator.simulateLinkLoss(of: Self.address)
        XCTAssertTrue(scene.simulator.advance(until: { !scene.failed.isEmpty }, limit: 30))
        XCTAssertTrue(scene.failed[0].contains("180F"), "\(scene.failed)")
        XCTAssertEqual(scene.failed.count, 1)
    }

    func testStoppingEndsItWithoutAFailureAtEachStep() throws {
        try each([.signals], at: stride(from: 0, through: 1.6, by: 0.2), link: slow) { scene, _, step in
            let stop = scene.peripheral.stopNotifications(rate)
            scene.simulator.expect(step) { stop.completed }
            scene.simulator.advance(by: 5)
            XCTAssertEqual(scene.failed, [], step)
            XCTAssertTrue(scene.hasEnded, step)
            XCTAssertFalse(scene.isNotifying, step)
            XCTAssertEqual(scene.simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [], step)
        }
    }

    func testTerminatingEndsItWithoutAFailureAtEachStep() throws {
        try each([.signals], at: stride(from: 0, through: 1.6, by: 0.2), link: slow) { scene, _, step in
            scene.peripheral.terminate()
            scene.simulator.advance(by: 10)
            XCTAssertEqual(scene.failed, [], step)
            XCTAssertTrue(scene.hasEnded, step)
        }
    }

    // MARK: Time

    func testTheCallersTimeLimitHoldsOverLinks() throws {
        try each([.signals], link: VirtualLink(resolveLatency: 3), timeout: 5) { scene, _, _ in
            scene.simulator.advance(by: 2)
            scene.simulator.simulateLinkLoss(of: Self.address)
            scene.simulator.remove(Self.address)
            scene.simulator.advance(by: 2.9)
            XCTAssertEqual(scene.failed, [])
            scene.simulator.advance(by: 0.2)
            XCTAssertEqual(scene.failed, ["\(PeripheralError.serviceDiscoveryTimeout)"])
        }
    }

    func testTheCallersTimeLimitHoldsWhileBlueZDoesNotAnswer() throws {
        try each(fault: { $0.simulateUnansweredAttributes(of: Self.address) }, timeout: 5) { scene, _, _ in
            scene.simulator.advance(by: 4.9)
            XCTAssertEqual(scene.failed, [])
            scene.simulator.advance(by: 0.2)
            XCTAssertEqual(scene.failed, ["\(CharacteristicError.notifyTimeout)"])
        }
    }
}
