import Foundation
import XCTest

@testable import Bluejay

/// The tables of what Bluejay does next, without time, threads or Bluetooth.
final class BluejayMachineTests: XCTestCase {
    private typealias Effect = BluejayMachine.Effect

    /// A machine with a few verbs, and effects as words.
    private struct Player {
        var machine = BluejayMachine()
        private(set) var requests: [Int: Request] = [:]

        mutating func ready() -> Player {
            _ = machine.started()
            _ = machine.availabilityChanged(true)
            return self
        }

        mutating func connected() -> Player {
            _ = ready()
            _ = ask(90, .aConnection)
            _ = machine.linkWentUp()
            return self
        }

        mutating func ask(
            _ id: Int, _ work: Request.Work, by caller: BluejayMachine.Caller = .application
        ) -> String {
            let request = Request(work) { _ in }
            requests[id] = request
            return words(machine.requested(request, by: caller))
        }

        mutating func finish(_ id: Int, _ error: BluejayError? = nil) -> String {
            guard let request = requests[id] else { return "no request \(id)" }
            return words(machine.finished(request, error.map { .failure($0) } ?? .success(Data())))
        }

        mutating func play(_ event: (inout BluejayMachine) -> [Effect]) -> String { words(event(&machine)) }

        private func words(_ effects: [Effect]) -> String {
            effects.map { effect in
                word(effect) { request in requests.first { $0.value == request }?.key ?? 0 }
            }.joined(separator: ", ")
        }
    }

    private var player = Player()

    func testWhatIsAskedForBeforeBluetoothsFirstWordWaitsForIt() {
        XCTAssertEqual(player.play { $0.started() }, "")
        XCTAssertEqual(player.ask(1, .aScan), "")
        XCTAssertEqual(player.ask(2, .aConnection), "settle 1 ok")
        XCTAssertEqual(player.play { $0.availabilityChanged(true) }, "available true, begin 2")
        XCTAssertEqual(player.play { $0.availabilityChanged(true) }, "")
    }

    func testItFailsWhenTheFirstWordIsNo() {
        _ = player.play { $0.started() }
        _ = player.ask(1, .aScan)
        XCTAssertEqual(
            player.play { $0.availabilityChanged(false) }, "available false, settle 1 bluetoothUnavailable")
        XCTAssertEqual(player.ask(2, .aConnection), "settle 2 bluetoothUnavailable")
        XCTAssertEqual(player.play { $0.availabilityChanged(true) }, "available true")
        XCTAssertEqual(player.ask(3, .aConnection), "begin 3")
    }

    func testNothingIsDoneBeforeTheStart() {
        XCTAssertEqual(player.ask(1, .aScan), "settle 1 stopped")
        XCTAssertEqual(player.machine.taskRequested(by: .application), .stopped)
        XCTAssertEqual(player.play { $0.stopped() }, "")
        XCTAssertEqual(player.play { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: true) }, "")
    }

    func testOneThingAtATimeInTheOrderOfAsking() {
        _ = player.connected()
        XCTAssertEqual(player.ask(1, .operation), "begin 1")
        XCTAssertEqual(player.ask(2, .operation), "")
        XCTAssertEqual(player.ask(3, .aScan), "")
        XCTAssertEqual(player.finish(1), "settle 1 ok, begin 2")
        XCTAssertEqual(player.finish(1), "")
        XCTAssertEqual(player.finish(2, .listenTimedOut), "settle 2 listenTimedOut, begin 3")
        XCTAssertTrue(player.machine.isScanning)
    }

    func testOperationsTakeAConnection() {
        _ = player.ready()
        XCTAssertEqual(player.ask(1, .operation), "settle 1 notConnected")
        XCTAssertEqual(player.ask(2, .aConnection), "begin 2")
        XCTAssertEqual(player.ask(3, .operation), "settle 3 notConnected")
        XCTAssertTrue(player.machine.isConnecting)
        XCTAssertEqual(player.play { $0.linkWentUp() }, "settle 2 ok, connected")
        XCTAssertEqual(player.ask(4, .operation), "begin 4")
    }

    func testAPairingThatHasBegunIsNotEndedByALoss() {
        _ = player.connected()
        XCTAssertEqual(player.ask(1, .aPairing), "begin 1")
        XCTAssertEqual(player.ask(2, .aPairing), "")
        XCTAssertEqual(player.ask(3, .operation), "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "settle 2 notConnected, settle 3 notConnected, end listens notConnected, disconnected notConnected true")
        XCTAssertEqual(player.play { $0.handlerReturned(.noChange) }, "reconnect")
        XCTAssertEqual(player.finish(1), "settle 1 ok")
    }

    func testTheEndOfABondRequiresNoConnection() {
        _ = player.ready()
        XCTAssertEqual(player.ask(1, .aPairing), "settle 1 notConnected")
        XCTAssertEqual(player.ask(2, .unpairing), "begin 2")
        XCTAssertEqual(player.ask(3, .unpairing), "")
        XCTAssertEqual(player.finish(2), "settle 2 ok, begin 3")
    }

    func testMissingKeysAreTheReasonOfTheNextLoss() {
        _ = player.connected()
        XCTAssertEqual(player.play { $0.linkFailed(BluejayError.pairingFailed(.keyMissing(isCertain: true))) }, "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "end listens keyMissing true, disconnected keyMissing true true")
        _ = player.play { $0.handlerReturned(.noChange) }
        _ = player.play { $0.linkWentUp() }
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "end listens notConnected, disconnected notConnected true")
    }

    func testEachAttemptHasANumberOfItsOwn() throws {
        _ = player.ready()
        _ = player.ask(1, .aConnection)
        let first = player.machine.attempt
        _ = player.play { $0.linkWentUp() }
        _ = player.ask(2, .disconnect(isImmediate: false))
        XCTAssertEqual(player.machine.attempt, first)
        _ = player.ask(3, .aConnection)
        _ = player.play { $0.linkWentDown(isRequested: false) }
        XCTAssertEqual(player.machine.connection, .connecting(try XCTUnwrap(player.requests[3])))
        XCTAssertNotEqual(player.machine.attempt, first)
        let second = player.machine.attempt
        _ = player.play { $0.stopped() }
        _ = player.play { $0.started() }
        XCTAssertFalse([first, second].contains(player.machine.attempt))
    }

    func testAConnectionIsMadeWhenTheOneThatEndsIsGone() {
        _ = player.connected()
        _ = player.play { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: true) }
        XCTAssertEqual(player.ask(1, .aConnection), "")
        XCTAssertFalse(player.machine.isConnecting)
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, disconnected nil false, begin 1")
        XCTAssertTrue(player.machine.isConnecting)
        _ = player.play { $0.linkWentUp() }
        _ = player.play { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: true) }
        _ = player.ask(2, .aConnection)
        XCTAssertEqual(
            player.play { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: false) }, "settle 2 cancelled")
        XCTAssertEqual(player.ask(3, .aScan), "begin 3")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, disconnected nil false")
    }

    func testTheFirstWordIsWaitedForAlsoWhenEverythingIsCancelled() {
        _ = player.play { $0.started() }
        _ = player.ask(1, .aScan)
        XCTAssertEqual(
            player.play { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: true) }, "settle 1 cancelled")
        XCTAssertEqual(player.ask(2, .aScan), "")
        XCTAssertEqual(player.play { $0.availabilityChanged(true) }, "available true, begin 2")
    }

    func testThousandsMayWait() {
        _ = player.connected()
        let start = Date()
        for number in 1...20_000 {
            _ = player.ask(number, .operation)
        }
        XCTAssertLessThan(Date().timeIntervalSince(start), 20)
        XCTAssertEqual(player.finish(1), "settle 1 ok, begin 2")
    }

    func testThereIsOneScan() {
        _ = player.ready()
        XCTAssertEqual(player.ask(1, .aScan), "begin 1")
        XCTAssertEqual(player.ask(2, .aScan), "settle 2 multipleScanNotSupported")
        XCTAssertEqual(player.play { $0.scanEnded() }, "settle 1 ok, stop 1")
        XCTAssertEqual(player.ask(3, .aScan), "")
        XCTAssertEqual(player.finish(1), "begin 3")
        XCTAssertEqual(player.ask(4, .aConnection), "settle 3 ok, stop 3")
        XCTAssertEqual(player.finish(3), "begin 4")
    }

    func testThereIsOneConnection() {
        _ = player.ready()
        XCTAssertEqual(player.ask(1, .aConnection), "begin 1")
        XCTAssertEqual(player.ask(2, .aConnection), "settle 2 multipleConnectNotSupported")
        _ = player.play { $0.linkWentUp() }
        XCTAssertEqual(player.ask(3, .aConnection), "settle 3 multipleConnectNotSupported")
        XCTAssertEqual(player.ask(4, .disconnect(isImmediate: false)), "end link")
        XCTAssertEqual(player.ask(5, .disconnect(isImmediate: false)), "settle 5 multipleDisconnectNotSupported")
        XCTAssertEqual(player.ask(6, .aConnection), "")
        XCTAssertEqual(player.ask(7, .aConnection), "settle 7 multipleConnectNotSupported")
        XCTAssertEqual(player.ask(8, .disconnect(isImmediate: false)), "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, settle 4 ok, disconnected nil false, begin 6")
    }

    func testAConnectionThatFailsLetsTheNextTry() {
        _ = player.ready()
        _ = player.ask(1, .aConnection)
        XCTAssertEqual(
            player.play { $0.linkFailed(BluejayError.connectionTimedOut) },
            "end listens connectionTimedOut, settle 1 connectionTimedOut")
        XCTAssertFalse(player.machine.isConnecting)
        XCTAssertEqual(player.ask(2, .aConnection), "begin 2")
    }

    func testALossFailsWhatTakesTheConnectionAndLeavesTheRest() {
        _ = player.connected()
        _ = player.ask(1, .operation)
        _ = player.ask(2, .operation)
        _ = player.ask(3, .aScan)
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "settle 1 notConnected, stop 1, settle 2 notConnected, end listens notConnected, "
                + "disconnected notConnected true")
        XCTAssertEqual(player.finish(1), "begin 3")
        XCTAssertEqual(player.play { $0.handlerReturned(.noChange) }, "reconnect")
        XCTAssertTrue(player.machine.isConnecting)
        XCTAssertEqual(player.play { $0.linkFailed(BluejayError.connectionTimedOut) }, "try again")
        XCTAssertEqual(player.play { $0.linkWentUp() }, "connected")
    }

    func testTheHandlerDecidesWhatFollows() {
        _ = player.connected()
        _ = player.play { $0.linkWentDown(isRequested: false) }
        XCTAssertEqual(player.play { $0.handlerReturned(.change(shouldAutoReconnect: false)) }, "")
        XCTAssertFalse(player.machine.shouldAutoReconnect)
        _ = player.ask(1, .aConnection)
        _ = player.play { $0.linkWentUp() }
        XCTAssertTrue(player.machine.shouldAutoReconnect)
        _ = player.ask(2, .disconnect(isImmediate: false))
        _ = player.play { $0.linkWentDown(isRequested: true) }
        XCTAssertFalse(player.machine.shouldAutoReconnect)
        XCTAssertEqual(player.play { $0.handlerReturned(.change(shouldAutoReconnect: true)) }, "reconnect")
    }

    func testWhoConnectsHimselfNeedNoReconnection() {
        _ = player.connected()
        _ = player.play { $0.linkWentDown(isRequested: false) }
        XCTAssertEqual(player.ask(1, .aConnection), "begin 1")
        XCTAssertEqual(player.play { $0.handlerReturned(.noChange) }, "")
    }

    func testADisconnectionThatWaitsHasWhatItWantsWhenTheLinkIsLost() {
        _ = player.connected()
        _ = player.ask(1, .operation)
        _ = player.ask(2, .disconnect(isImmediate: false))
        XCTAssertEqual(player.ask(3, .operation), "settle 3 disconnectQueued")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "settle 1 notConnected, stop 1, end listens notConnected, settle 2 ok, disconnected notConnected false")
        XCTAssertEqual(player.play { $0.handlerReturned(.noChange) }, "")
    }

    func testAnAttemptToReconnectIsEndedInItsTurn() {
        _ = player.connected()
        _ = player.play { $0.linkWentDown(isRequested: false) }
        _ = player.play { $0.handlerReturned(.noChange) }
        XCTAssertEqual(player.ask(1, .disconnect(isImmediate: false)), "end link")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) }, "end listens explicitDisconnect, settle 1 ok")
        XCTAssertFalse(player.machine.shouldAutoReconnect)
        XCTAssertEqual(player.ask(2, .disconnect(isImmediate: false)), "settle 2 notConnected")
    }

    func testCancellingEverythingInEachState() {
        _ = player.ready()
        let cancel: (Bool) -> (inout BluejayMachine) -> [Effect] = { shouldDisconnect in
            { $0.cancelEverything(BluejayError.cancelled, shouldDisconnect: shouldDisconnect) }
        }
        XCTAssertEqual(player.play(cancel(true)), "")
        _ = player.ask(1, .aScan)
        XCTAssertEqual(player.play(cancel(true)), "settle 1 cancelled, stop 1")
        _ = player.finish(1)
        _ = player.ask(2, .aConnection)
        XCTAssertEqual(player.play(cancel(false)), "settle 2 cancelled, end link")
        XCTAssertEqual(player.ask(3, .aConnection), "", "The next attempt waits for the end of the last.")
        XCTAssertEqual(player.play { $0.linkWentDown(isRequested: true) }, "end listens explicitDisconnect, begin 3")
        XCTAssertTrue(player.machine.shouldAutoReconnect)
        _ = player.play { $0.linkWentUp() }
        _ = player.ask(4, .operation)
        _ = player.ask(5, .operation)
        XCTAssertEqual(player.play(cancel(false)), "settle 4 cancelled, stop 4, settle 5 cancelled")
        XCTAssertEqual(player.finish(4), "")
        XCTAssertEqual(player.machine.connection, .connected)
        XCTAssertEqual(player.play(cancel(true)), "end link")
        XCTAssertEqual(player.play(cancel(true)), "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, disconnected nil false")
        XCTAssertFalse(player.machine.shouldAutoReconnect)
    }

    func testAnImmediateDisconnectionWaitsForTheLinksEndAlone() {
        _ = player.connected()
        _ = player.ask(1, .operation)
        _ = player.ask(2, .operation)
        XCTAssertEqual(
            player.ask(3, .disconnect(isImmediate: true)),
            "settle 1 explicitDisconnect, stop 1, settle 2 explicitDisconnect, end link")
        XCTAssertEqual(player.finish(1), "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, settle 3 ok, disconnected nil false")
    }

    func testAnImmediateDisconnectionEndsAnAttemptToConnect() {
        _ = player.ready()
        _ = player.ask(1, .aConnection)
        XCTAssertEqual(player.ask(2, .disconnect(isImmediate: true)), "settle 1 explicitDisconnect, end link")
        XCTAssertTrue(player.machine.isDisconnecting)
        XCTAssertEqual(player.play { $0.linkWentUp() }, "")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) }, "end listens explicitDisconnect, settle 2 ok")
        XCTAssertFalse(player.machine.shouldAutoReconnect)
    }

    func testADisconnectionBehindAnAttemptWaitsForIt() {
        _ = player.ready()
        _ = player.ask(1, .aConnection)
        XCTAssertEqual(player.ask(2, .disconnect(isImmediate: false)), "")
        XCTAssertEqual(player.play { $0.linkWentUp() }, "settle 1 ok, connected, end link")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: true) },
            "end listens explicitDisconnect, settle 2 ok, disconnected nil false")
    }

    func testWhileATaskRunsNothingElseIsTaken() {
        _ = player.connected()
        XCTAssertNil(player.machine.taskRequested(by: .application))
        XCTAssertEqual(player.machine.taskRequested(by: .application), .multipleBackgroundTaskNotSupported)
        XCTAssertEqual(player.machine.taskRequested(by: .insideTask), .calledInsideBackgroundTask)
        XCTAssertEqual(player.ask(1, .operation), "settle 1 backgroundTaskRunning")
        XCTAssertEqual(player.ask(2, .operation, by: .insideTask), "settle 2 calledInsideBackgroundTask")
        XCTAssertEqual(player.ask(3, .disconnect(isImmediate: true)), "settle 3 backgroundTaskRunning")
        XCTAssertEqual(player.ask(4, .operation, by: .task), "begin 4")
        XCTAssertEqual(player.finish(4), "settle 4 ok")
        XCTAssertEqual(player.play { $0.taskEnded() }, "")
        XCTAssertEqual(player.ask(5, .operation, by: .task), "settle 5 notInBackgroundTask")
    }

    func testATaskReceivesALossFirst() {
        _ = player.connected()
        _ = player.machine.taskRequested(by: .application)
        _ = player.ask(1, .operation, by: .task)
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "settle 1 notConnected, stop 1, end listens notConnected, fail task notConnected")
        XCTAssertEqual(player.finish(1), "")
        XCTAssertEqual(player.ask(2, .operation, by: .task), "settle 2 notConnected")
        XCTAssertEqual(player.play { $0.taskEnded() }, "disconnected notConnected true")
    }

    func testStoppingSettlesEverything() {
        _ = player.connected()
        _ = player.machine.taskRequested(by: .application)
        _ = player.ask(1, .operation, by: .task)
        XCTAssertEqual(
            player.play { $0.stopped() }, "settle 1 stopped, stop 1, end listens stopped, fail task stopped")
        XCTAssertEqual(player.play { $0.stopped() }, "")
        XCTAssertEqual(player.play { $0.linkWentDown(isRequested: true) }, "")
        XCTAssertEqual(player.ask(2, .aConnection), "settle 2 stopped")
        XCTAssertEqual(player.play { $0.taskEnded() }, "")
    }

    func testBluetoothsEndFailsEverything() {
        _ = player.connected()
        _ = player.ask(1, .operation)
        _ = player.ask(2, .aScan)
        XCTAssertEqual(
            player.play { $0.availabilityChanged(false) },
            "available false, settle 1 bluetoothUnavailable, stop 1, settle 2 bluetoothUnavailable")
        XCTAssertEqual(
            player.play { $0.linkWentDown(isRequested: false) },
            "end listens notConnected, disconnected notConnected true")
        XCTAssertEqual(player.play { $0.handlerReturned(.noChange) }, "reconnect")
    }
}

private func word(_ effect: BluejayMachine.Effect, _ number: (Request) -> Int) -> String {
    switch effect {
    case .begin(let request): "begin \(number(request))"
    case .settle(let request, let outcome): "settle \(number(request)) \(word(outcome))"
    case .stop(let request): "stop \(number(request))"
    case .endLink: "end link"
    case .reconnect: "reconnect"
    case .tryAgain: "try again"
    case .endListens(let error): "end listens \(short(error))"
    case .failTask(let error): "fail task \(short(error))"
    case .reportAvailability(let isAvailable): "available \(isAvailable)"
    case .reportConnected: "connected"
    case .reportDisconnected(let error, let willReconnect):
        "disconnected \(error.map(short) ?? "nil") \(willReconnect)"
    case .call: "call"
    }
}

private func word(_ outcome: BluejayMachine.Outcome) -> String {
    switch outcome {
    case .success: "ok"
    case .failure(let error): error is BluejayError ? short(error) : "?"
    }
}

extension Request.Work {
    private static let characteristic = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
    private static let peripheral = PeripheralIdentifier(uuid: UUID(), name: nil)

    fileprivate static var aScan: Self {
        .scan(
            Scan(
                duration: 0, allowsDuplicates: false, throttle: 0, services: nil, discovery: { _, _ in .continue },
                expired: nil, stopped: { _, _ in }))
    }
    fileprivate static var aConnection: Self { .connect(peripheral, .none) }
    fileprivate static var operation: Self { .read(characteristic) }
    fileprivate static var aPairing: Self { .pair(.none) }
    fileprivate static var unpairing: Self { .unpair(peripheral) }
}
