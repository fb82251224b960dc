import BlueZSimulator
import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapKit

/// What users suffer from while connecting, and what happens here instead; the letters are those of the behaviours in
/// Documentation/Reliability.md.
final class ConnectionBehaviourTests: ConnectionStage {
    // MARK: The plain way

    func testAConnectionIsReportedAndCounted() {
        let strap = strap()
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(strap.connectedAt, .distantPast)
        journal.watch(strap.connect())
        XCTAssertEqual(strap.state, .connecting)
        expect(.connect)
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(simulator.links.map(\.address), [Self.strapAddress])
        simulator.advance(by: 10)
        strap.disconnect()
        XCTAssertEqual(strap.state, .disconnecting)
        expect(.forceDisconnect)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(strap.disconnectReason, .application)

        XCTAssertEqual(strap.connectionCount, 1)
        XCTAssertEqual(strap.disconnectionCount, 1)
        XCTAssertEqual(strap.timeoutCount, 0)
        XCTAssertEqual(strap.secondsConnected, 10, accuracy: 0.5)
        XCTAssertEqual(strap.totalSecondsConnected, strap.cumlativeSecondsConnected)
        XCTAssertGreaterThan(strap.cumlativeSecondsDisconnected, 0)
        XCTAssertGreaterThan(strap.disconnectedAt, strap.connectedAt)
    }

    func testTheFormWithoutValuesSaysTheSameInSuccessesAndFailures() {
        let strap = strap()
        let stream: FutureStream<Void> = strap.connect(timeoutRetries: 1, connectionTimeout: 5)
        let successes = Journal()
        stream.onComplete(context: ImmediateContext()) { result in
            switch result {
            case .success: successes.write { $0.completions += 1 }
            case .failure(let error): successes.write { $0.failures.append(error) }
            }
        }
        XCTAssertTrue(simulator.advance(until: { successes.read(\.completions) == 1 }, limit: 5))
        simulator.simulateLinkLoss(of: Self.strapAddress)
        simulator.advance(by: 1)
        simulator.remove(Self.strapAddress)
        strap.reconnect()
        simulator.advance(by: 12)
        strap.reconnect()
        simulator.advance(by: 12)
        strap.disconnect()
        simulator.advance(by: 1)
        XCTAssertEqual(successes.peripheralErrors, [.disconnected, .connectionTimeout, .connectionTimeout])
        XCTAssertEqual(strap.timeoutCount, 2)
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testReconnectBeforeAnyConnectConnectsWithDefaults() {
        let strap = strap()
        strap.reconnect()
        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 5))
    }

    func testReconnectingWaitsForTheGivenTime() {
        let strap = strap()
        connect(strap)
        simulator.advance(by: 5)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect)
        strap.reconnect(withDelay: 7)
        let connects = calls("Connect")
        simulator.advance(by: 6.9)
        XCTAssertEqual(calls("Connect"), connects)
        expect(.connect, within: 1)
    }

    func testASecondConnectTakesOverTheLink() {
        let strap = strap()
        connect(strap)
        let second = Journal()
        second.watch(strap.connect())
        simulator.advance(by: 1)
        XCTAssertEqual(second.connectionEvents, [.connect])
        simulator.simulateLinkLoss(of: Self.strapAddress)
        simulator.advance(by: 1)
        XCTAssertEqual(second.connectionEvents, [.connect, .disconnect])
        XCTAssertEqual(journal.connectionEvents, [.connect])
        XCTAssertEqual(calls("Connect"), 1)
    }

    func testADisconnectWithoutAConnectionFailsOnTheStream() {
        let strap = strap()
        connect(strap)
        strap.disconnect()
        expect(.forceDisconnect)
        strap.disconnect()
        simulator.advance(by: 1)
        XCTAssertEqual(journal.peripheralErrors, [.disconnected])
    }

    func testATerminatedPeripheralIsOffTheListAndItsStreamEnds() {
        let strap = strap()
        connect(strap)
        strap.terminate()
        XCTAssertEqual(strap.state, .disconnecting)
        simulator.advance(by: 5)
        XCTAssertEqual(central.peripherals, [])
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(journal.connectionEvents, [.connect, .forceDisconnect])
        // The stream has ended: later events are not reported there.
        strap.reconnect()
        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 10))
        XCTAssertEqual(journal.connectionEvents, [.connect, .forceDisconnect])
        XCTAssertEqual(central.peripherals, [strap])
    }

    func testAllPeripheralsAreDisconnectedAtOnce() {
        let manager = manager()
        let peripherals = find((1...3).map { Self.device($0) }, with: manager)
        for peripheral in peripherals { journal.watch(peripheral.connect()) }
        XCTAssertTrue(simulator.advance(until: { journal.connectionEvents.count == 3 }, limit: 5))
        manager.disconnectAllPeripherals()
        simulator.advance(by: 5)
        XCTAssertEqual(journal.connectionEvents.suffix(3), [.forceDisconnect, .forceDisconnect, .forceDisconnect])
        XCTAssertEqual(simulator.links, [])
    }

    func testArgumentsThatMakeNoSenseAreRefusedInWords() {
        let strap = strap()
        for timeout in [0, -1, TimeInterval.nan] { journal.watch(strap.connect(connectionTimeout: timeout)) }
        simulator.advance(by: 1)
        XCTAssertEqual(journal.peripheralErrors.count, 3)
        for error in journal.peripheralErrors {
            guard case .invalidArgument(let text) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(text.contains("more than zero seconds"))
        }
        XCTAssertEqual(calls("Connect"), 0)
        journal.watch(strap.connect())
        strap.reconnect(withDelay: .nan)
        simulator.advance(by: 1)
        XCTAssertEqual(journal.peripheralErrors.count, 4)
        XCTAssertEqual(journal.connectionEvents, [.connect])
    }

    // MARK: B1

    func testFiveConnectsAtOnceTakeTurnsAndEachHasOneResult() {
        let manager = manager()
        let peripherals = find((1...5).map { Self.device($0, link: VirtualLink(connectLatency: 0.3)) }, with: manager)
        for peripheral in peripherals { journal.watch(peripheral.connect(connectionTimeout: 1)) }
        simulator.advance(by: 5)
        XCTAssertEqual(journal.connectionEvents, Array(repeating: .connect, count: 5))
        let times = simulator.statistics.calls.filter { $0.member == "Connect" }.map(\.seconds)
        XCTAssertEqual(times.count, 5)
        for (first, second) in zip(times, times.dropFirst()) { XCTAssertGreaterThanOrEqual(second - first, 0.299) }
    }

    func testAnAbsentPeripheralDoesNotHoldUpThePresentOnes() {
        let manager = manager()
        let peripherals = find((1...4).map { Self.device($0) }, with: manager)
        simulator.remove(Self.strapAddress)
        for peripheral in peripherals { journal.watch(peripheral.connect()) }
        simulator.advance(by: 20)
        XCTAssertEqual(journal.connectionEvents, [.connect, .connect, .connect])
        XCTAssertEqual(peripherals[0].state, .connecting)
        simulator.add(Self.device(1))
        expect(.connect, within: 60)
    }

    // MARK: B2

    func testATimeOutTakesTheAttemptBackSoThatTheNextIsNotRefused() {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        journal.watch(strap.connect(connectionTimeout: 5))
        expect(.timeout, within: 8)
        XCTAssertEqual(calls("Disconnect"), 1)
        simulator.add(Self.device(1))
        strap.reconnect()
        expect(.connect, within: 5)
        XCTAssertEqual(strap.failedAttempts, [])
    }

    func testADisconnectWhileConnectingTakesTheAttemptBack() {
        let strap = strap(link: VirtualLink(connectLatency: 5))
        journal.watch(strap.connect())
        simulator.advance(by: 1)
        strap.disconnect()
        expect(.forceDisconnect, within: 1)
        simulator.advance(by: 10)
        XCTAssertEqual(simulator.links, [])
        strap.reconnect()
        expect(.connect, within: 10)
        XCTAssertEqual(strap.failedAttempts, [])
    }

    func testADaemonThatAnswersNothingStillLetsTheTryEnd() {
        let strap = strap()
        simulator.simulateSlowReplies(by: 1_000)
        simulator.remove(Self.strapAddress)
        journal.watch(strap.connect(connectionTimeout: 5))
        expect(.timeout, within: 20)
        XCTAssertEqual(strap.state, .disconnected)
    }

    // MARK: B2a

    func testALinkThatComesUpAfterItsCancelledAttemptIsEnded() {
        let strap = strap(manager())
        for step in 0..<40 {
            simulator.simulateSlowReplies(by: step.isMultiple(of: 2) ? 0 : 0.3)
            strap.connect()
            simulator.advance(by: Double(step) * 0.01)
            strap.disconnect()
            simulator.advance(by: 3)
            XCTAssertEqual(strap.state, .disconnected, "step \(step)")
            XCTAssertTrue(simulator.links.isEmpty, "step \(step)")
        }
    }

    func testAConnectRightAfterADisconnectLeadsToALinkThatStays() {
        let strap = strap()
        connect(strap)
        strap.disconnect()
        let second = Journal()
        second.watch(strap.connect())
        simulator.advance(by: 10)
        XCTAssertEqual(journal.connectionEvents, [.connect, .forceDisconnect])
        XCTAssertEqual(second.connectionEvents, [.connect])
        XCTAssertEqual(simulator.links.count, 1)
        XCTAssertEqual(strap.state, .connected)
    }

    // MARK: B3

    func testTransientRefusalsAreNotShown() {
        let strap = strap()
        simulator.simulateConnectFailures(4, of: Self.strapAddress)
        connect(strap)
        XCTAssertEqual(calls("Connect"), 5)
        XCTAssertEqual(strap.failedAttempts.map(\.message), Array(repeating: "le-connection-abort-by-local", count: 4))
        XCTAssertEqual(journal.peripheralErrors, [])
    }

    func testARefusalThatNoRetryCuresIsShownWithItsWords() {
        let strap = strap()
        simulator.simulateConnectFailures(
            1, error: .failed("le-connection-concurrent-connection-limit"), of: Self.strapAddress)
        journal.watch(strap.connect())
        simulator.advance(by: 5)
        XCTAssertEqual(
            journal.peripheralErrors,
            [
                .connectionFailed(
                    BusError(name: "org.bluez.Error.Failed", message: "le-connection-concurrent-connection-limit"))
            ])
        XCTAssertEqual(strap.state, .disconnected)
        strap.reconnect()
        expect(.connect)
    }

    func testAScanRestsForTheAttemptAndGoesOn() {
        let strap = strap()
        let sightings = Journal()
        sightings.watch(central.startScanning(options: ScanOptions(allowsDuplicates: true)))
        simulator.add(Self.device(2, name: "Other"))
        simulator.advance(by: 1)
        let stops = calls("StopDiscovery")
        connect(strap)
        simulator.advance(by: 1)
        XCTAssertEqual(calls("StopDiscovery"), stops + 1)
        XCTAssertTrue(central.isScanning)
        let count = sightings.sightings.count
        simulator.advance(by: 2)
        XCTAssertGreaterThan(sightings.sightings.count, count)
        XCTAssertEqual(simulator.discoverySessions.count, 1)
    }

    // MARK: B4

    func testAPeripheralThatBlueZDroppedIsFoundAgainAndDiscoveryEndsWithTheLink() {
        let strap = strap()
        simulator.simulateDeviceRemoval(of: Self.strapAddress)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.devices, [])
        connect(strap)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.discoverySessions, [])
        XCTAssertEqual(journal.peripheralErrors, [])
    }

    func testAPeripheralThatVanishesAsTheScanStopsIsFoundAgain() {
        let manager = manager()
        simulator.add(Self.device(1))
        let sightings = Journal()
        sightings.watch(manager.startScanning())
        XCTAssertTrue(simulator.advance(until: { !sightings.sightings.isEmpty }, limit: 5))
        // BlueZ's removal and our Connect cross.
        manager.stopScanning()
        simulator.simulateDeviceRemoval(of: Self.strapAddress)
        journal.watch(sightings.sightings[0].connect(connectionTimeout: 20))
        expect(.connect, within: 20)
    }

    func testASearchForAPeripheralThatIsGoneEndsWithTheTimeOut() {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        simulator.simulateDeviceRemoval(of: Self.strapAddress)
        simulator.advance(by: 1)
        journal.watch(strap.connect(connectionTimeout: 25))
        expect(.timeout, within: 26)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    // MARK: B5, B7

    func testALinkOfAnotherManagerIsAdoptedAndLeftToIt() {
        let owner = manager()
        let strap = strap(owner)
        connect(strap)
        do {
            let guest = manager()
            let retrieved = guest.retrieveConnectedPeripherals(withServices: [])
            XCTAssertEqual(retrieved.map(\.address), [strap.address])
            let events = Journal()
            events.watch(retrieved[0].connect())
            simulator.advance(by: 1)
            XCTAssertEqual(events.connectionEvents, [.connect])
            XCTAssertEqual(calls("Connect"), 1)
            XCTAssertTrue(retrieved[0].isLinkShared)
            XCTAssertFalse(strap.isLinkShared)
        }
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.links.count, 1)
        XCTAssertEqual(journal.connectionEvents, [.connect])
    }

    func testAManagerThatGoesEndsItsLinksUnlessItIsToKeepThem() {
        for keeps in [false, true] {
            do {
                let manager = manager(.init(keepsLinks: keeps))
                let strap = strap(manager)
                journal.watch(strap.connect())
                XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 5))
            }
            simulator.advance(by: 5)
            XCTAssertEqual(simulator.links.count, keeps ? 1 : 0)
        }
    }

    func testAManagerThatGoesTakesItsAttemptBack() {
        do {
            let manager = manager()
            let strap = strap(manager, link: VirtualLink(connectLatency: 3))
            journal.watch(strap.connect())
            simulator.advance(by: 1)
        }
        simulator.advance(by: 10)
        XCTAssertEqual(simulator.links, [])
    }

    func testAPeripheralWhoseManagerIsGoneRefusesAtOnce() {
        var manager: CentralManager? = manager()
        let strap = strap(manager!)
        manager = nil
        simulator.advance(by: 5)
        journal.watch(strap.connect())
        simulator.advance(by: 1)
        XCTAssertEqual(journal.peripheralErrors, [.disconnected])
        XCTAssertEqual(strap.state, .disconnected)
    }

    // MARK: B6

    func testALinkThatFallsWithTheReplyIsTriedAgainUnseen() {
        let strap = strap()
        simulator.simulateConnectReplyThenDrop(of: Self.strapAddress)
        connect(strap)
        XCTAssertEqual(calls("Connect"), 2)
        XCTAssertEqual(strap.failedAttempts.count, 1)
        simulator.advance(by: 10)
        XCTAssertEqual(strap.state, .connected)
    }

    func testALinkThatFallsAfterTheReplyIsADisconnection() {
        let strap = strap()
        simulator.simulateConnectReplyThenDrop(after: 0.3, of: Self.strapAddress)
        connect(strap)
        expect(.disconnect)
        strap.reconnect()
        expect(.connect)
    }

    func testALinkThatIsNotSignalledIsAskedForAndItsEndIsSeen() {
        let strap = strap(link: VirtualLink(resolveLatency: 60))
        simulator.simulateUntoldConnections(of: Self.strapAddress)
        journal.watch(strap.connect())
        expect(.connect, within: 1)
        XCTAssertEqual(calls("Connect"), 1)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect, within: 1)
    }

    // MARK: B8

    func testDisconnectionsBeyondTheRetriesGiveUp() {
        let strap = strap()
        connect(strap, retries: 1)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect)
        strap.reconnect()
        expect(.connect)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.giveUp)
        simulator.advance(by: 30)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(strap.disconnectReason, .linkLost)
    }

    func testADisconnectStopsWhateverIsPlanned() {
        let strap = strap()
        connect(strap)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect)
        strap.reconnect(withDelay: 5)
        strap.disconnect()
        simulator.advance(by: 30)
        XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect, .forceDisconnect])
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testAResetKeepsConnectionsAndStillSeesTheirEnd() {
        let strap = strap()
        connect(strap)
        central.reset()
        simulator.advance(by: 2)
        XCTAssertTrue(central.poweredOn)
        XCTAssertEqual(strap.state, .connected)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect)
        strap.reconnect()
        expect(.connect)
    }

    // MARK: The list

    func testAConnectedPeripheralNeverExpires() {
        let strap = strap()
        connect(strap)
        simulator.remove(Self.strapAddress)
        journal.watch(central.startScanning())
        simulator.advance(by: 20)
        simulator.add(Self.device(2))
        simulator.advance(by: 300)
        XCTAssertTrue(central.peripherals.contains(strap) || strap.state != .connected)
        XCTAssertFalse(journal.expired.contains(strap))
    }

    func testAPeripheralThatIsGoneExpiresOnceAndIsListedAgainWhenItIsConnected() {
        let strap = strap()
        connect(strap)
        journal.watch(central.startScanning())
        journal.watchExpiries(of: central)
        simulator.simulateOutOfRange(of: Self.strapAddress)
        simulator.advance(by: 120)
        XCTAssertEqual(journal.expired, [strap])
        XCTAssertEqual(central.peripherals, [])

        // A change without an advertisement, as of a bonded device whose name the user changes.
        central.session.decide { core in
            core.state.listWanted(
                strap.key, device: nil, at: central.session.loop.now, date: Date(), into: &core.shell.orders)
        }
        XCTAssertEqual(central.peripherals, [], "The application does not wait for it.")
        strap.reconnect()
        simulator.advance(by: 0.1)
        XCTAssertEqual(central.peripherals, [strap])
    }
}
