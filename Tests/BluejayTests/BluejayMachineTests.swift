import TestSupport
import XCTest

@testable import Bluejay

/// The tables of what Bluejay does next, without time, threads or Bluetooth.
final class BluejayMachineTests: XCTestCase {
    /// A machine with the requests that were made.
    private struct Player {
        var machine = BluejayMachine()
        private var requests: [Int: Request] = [:]
        private var attempts: [Int] = []

        /// Executes an event of a table. A number is that of the request; `task` and `inside` are its callers.
        mutating func send(_ event: [String]) throws -> String {
            let number = event.count > 1 ? Int(event[1]) ?? 0 : 0
            let caller: BluejayMachine.Caller =
                event.contains("task") ? .task : event.contains("inside") ? .insideTask : .application
            func ask(_ work: Request.Work) -> String { self.ask(number, work, by: caller) }
            switch event[0] {
            case "isScanning": return "\(machine.isScanning)"
            case "isConnecting": return "\(machine.isConnecting)"
            case "isConnected": return "\(machine.connection == .connected)"
            case "isDisconnecting": return "\(machine.isDisconnecting)"
            case "reconnects": return "\(machine.shouldAutoReconnect)"
            case "connectsFor": return "\(requests[number].map { machine.connection == .connecting($0) } ?? false)"
            case "isSameAttempt": return "\(attempts.contains(Int(machine.attempt)))"
            case "noteAttempt": attempts.append(Int(machine.attempt))
            case "ready", "connected":
                _ = machine.started()
                _ = machine.availabilityChanged(true)
                guard event[0] == "connected" else { break }
                _ = self.ask(90, .aConnection, by: .application)
                _ = machine.linkWentUp()
            case "scan": return ask(.aScan)
            case "connect": return ask(.aConnection)
            case "operation": return ask(.operation)
            case "pair": return ask(.aPairing)
            case "unpair": return ask(.unpairing)
            case "disconnect": return ask(.disconnect(isImmediate: event.contains("now")))
            case "finished":
                guard let request = requests[number] else { throw UnknownEvent(event) }
                return words(
                    machine.finished(
                        request, event.count > 2 ? .failure(BluejayError.listenTimedOut) : .success(Data())))
            case "start": return words(machine.started())
            case "stop": return words(machine.stopped())
            case "available": return words(machine.availabilityChanged(event[1] == "true"))
            case "linkUp": return words(machine.linkWentUp())
            case "linkDown": return words(machine.linkWentDown(isRequested: event.contains("requested")))
            case "linkFailed":
                return words(
                    machine.linkFailed(
                        event.contains("keyMissing")
                            ? BluejayError.pairingFailed(.keyMissing(isCertain: true)) : .connectionTimedOut))
            case "handler":
                let modes: [String: AutoReconnectMode] = [
                    "on": .change(shouldAutoReconnect: true), "off": .change(shouldAutoReconnect: false),
                ]
                return words(machine.handlerReturned(event.count > 1 ? modes[event[1]]! : .noChange))
            case "cancelEverything":
                return words(
                    machine.cancelEverything(
                        BluejayError.cancelled, shouldDisconnect: event.contains("disconnecting")))
            case "scanEnded": return words(machine.scanEnded())
            case "beginTask": return machine.taskRequested(by: caller).map { short($0) } ?? "none"
            case "taskEnded": return words(machine.taskEnded())
            default: throw UnknownEvent(event)
            }
            return "none"
        }

        mutating func ask(_ number: Int, _ work: Request.Work, by caller: BluejayMachine.Caller) -> String {
            let request = Request(work) { _ in }
            requests[number] = request
            // Before `words`, which takes a copy of the machine.
            let effects = machine.requested(request, by: caller)
            return words(effects)
        }

        private func words(_ effects: [BluejayMachine.Effect]) -> String {
            guard !effects.isEmpty else { return "none" }
            return effects.map { effect in
                word(effect) { request in requests.first { $0.value == request }?.key ?? 0 }
            }.joined(separator: ", ")
        }
    }

    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var player = Player()
            return { try player.send($0) }
        }
    }

    func testTheStart() {
        play(
            """
            What is requested before Bluetooth's first report waits for it:
            start → none; scan 1 → none; connect 2 → settle 1 ok; available true → available true, begin 2
            available true → none
            It fails if the first report is that Bluetooth is not available:
            start; scan 1; available false → available false, settle 1 bluetoothUnavailable
            connect 2 → settle 2 bluetoothUnavailable; available true → available true; connect 3 → begin 3
            Nothing is done before the start:
            scan 1 → settle 1 stopped; beginTask → stopped; stop → none; cancelEverything disconnecting → none
            The first report is waited for also after everything is cancelled:
            start; scan 1; cancelEverything disconnecting → settle 1 cancelled; scan 2 → none
            available true → available true, begin 2
            """)
    }

    func testOperations() {
        play(
            """
            One at a time in the order of the requests:
            connected; operation 1 → begin 1; operation 2 → none; scan 3 → none; finished 1 → settle 1 ok, begin 2
            finished 1 → none; finished 2 listenTimedOut → settle 2 listenTimedOut, begin 3; isScanning → true
            Operations require a connection:
            ready; operation 1 → settle 1 notConnected; connect 2 → begin 2; operation 3 → settle 3 notConnected
            isConnecting → true; linkUp → settle 2 ok, connected; operation 4 → begin 4
            A pairing that has begun is not ended by a loss:
            connected; pair 1 → begin 1; pair 2 → none; operation 3 → none
            linkDown → settle 2 notConnected, settle 3 notConnected, end listens notConnected, disconnected notConnected true
            handler → reconnect; finished 1 → settle 1 ok
            The end of a bond requires no connection:
            ready; pair 1 → settle 1 notConnected; unpair 2 → begin 2; unpair 3 → none
            finished 2 → settle 2 ok, begin 3
            There is one scan:
            ready; scan 1 → begin 1; scan 2 → settle 2 multipleScanNotSupported; scanEnded → settle 1 ok, stop 1
            scan 3 → none; finished 1 → begin 3; connect 4 → settle 3 ok, stop 3; finished 3 → begin 4
            """)
    }

    func testThousandsMayWait() throws {
        var player = Player()
        _ = try player.send(["connected"])
        let start = Date()
        for number in 1...20_000 {
            _ = player.ask(number, .operation, by: .application)
        }
        XCTAssertLessThan(Date().timeIntervalSince(start), 20)
        XCTAssertEqual(try player.send(["finished", "1"]), "settle 1 ok, begin 2")
    }

    func testThereIsOneConnection() {
        play(
            """
            Further requests are refused:
            ready; connect 1 → begin 1; connect 2 → settle 2 multipleConnectNotSupported; linkUp
            connect 3 → settle 3 multipleConnectNotSupported; disconnect 4 → end link
            disconnect 5 → settle 5 multipleDisconnectNotSupported; connect 6 → none
            connect 7 → settle 7 multipleConnectNotSupported; disconnect 8 → none
            linkDown requested → end listens explicitDisconnect, settle 4 ok, disconnected nil false, begin 6
            Each attempt has a number of its own:
            ready; connect 1; noteAttempt; linkUp; disconnect 2; isSameAttempt → true; connect 3; linkDown
            connectsFor 3 → true; isSameAttempt → false; noteAttempt; stop; start; isSameAttempt → false
            A connection is made when the one that ends has ended:
            connected; cancelEverything disconnecting; connect 1 → none; isConnecting → false
            linkDown requested → end listens explicitDisconnect, disconnected nil false, begin 1; isConnecting → true
            linkUp; cancelEverything disconnecting; connect 2; cancelEverything → settle 2 cancelled; scan 3 → begin 3
            linkDown requested → end listens explicitDisconnect, disconnected nil false
            After a connection that fails the next is tried:
            ready; connect 1; linkFailed → end listens connectionTimedOut, settle 1 connectionTimedOut
            isConnecting → false; connect 2 → begin 2
            """)
    }

    func testLosses() {
        play(
            """
            A loss fails what requires the connection and leaves the rest:
            connected; operation 1; operation 2; scan 3
            linkDown → settle 1 notConnected, stop 1, settle 2 notConnected, end listens notConnected, \
            disconnected notConnected true
            finished 1 → begin 3; handler → reconnect; isConnecting → true; linkFailed → try again; linkUp → connected
            Missing keys are the reason of the next loss:
            connected; linkFailed keyMissing → none
            linkDown → end listens keyMissing true, disconnected keyMissing true true; handler; linkUp
            linkDown → end listens notConnected, disconnected notConnected true
            The handler decides what follows:
            connected; linkDown; handler off → none; reconnects → false; connect 1; linkUp; reconnects → true
            disconnect 2
            linkDown requested; reconnects → false; handler on → reconnect
            A connection that the application requests needs no reconnection:
            connected; linkDown; connect 1 → begin 1; handler → none
            A disconnection that waits succeeds with the loss:
            connected; operation 1; disconnect 2; operation 3 → settle 3 disconnectQueued
            linkDown → settle 1 notConnected, stop 1, end listens notConnected, settle 2 ok, disconnected notConnected false
            handler → none
            A disconnection behind the next connection is that connection's:
            connected; operation 1; disconnect 2; connect 3; disconnect 4
            linkDown → settle 1 notConnected, stop 1, end listens notConnected, settle 2 ok, disconnected notConnected false
            finished 1 → begin 3; linkUp → settle 3 ok, connected, end link
            linkDown requested → end listens explicitDisconnect, settle 4 ok, disconnected nil false
            An attempt to reconnect is ended in its turn:
            connected; linkDown; handler; disconnect 1 → end link
            linkDown requested → end listens explicitDisconnect, settle 1 ok; reconnects → false
            disconnect 2 → settle 2 notConnected
            Bluetooth's end fails everything:
            connected; operation 1; scan 2
            available false → available false, settle 1 bluetoothUnavailable, stop 1, settle 2 bluetoothUnavailable
            linkDown → end listens notConnected, disconnected notConnected true; handler → reconnect
            """)
    }

    func testCancellingAndDisconnecting() {
        play(
            """
            Everything is cancelled in each state:
            ready; cancelEverything disconnecting → none; scan 1
            cancelEverything disconnecting → settle 1 cancelled, stop 1; finished 1; connect 2
            cancelEverything → settle 2 cancelled, end link; connect 3 → none
            linkDown requested → end listens explicitDisconnect, begin 3; reconnects → true; linkUp
            operation 4; operation 5; cancelEverything → settle 4 cancelled, stop 4, settle 5 cancelled
            finished 4 → none
            isConnected → true; cancelEverything disconnecting → end link; cancelEverything disconnecting → none
            linkDown requested → end listens explicitDisconnect, disconnected nil false; reconnects → false
            An immediate disconnection waits for the link's end alone:
            connected; operation 1; operation 2
            disconnect 3 now → settle 1 explicitDisconnect, stop 1, settle 2 explicitDisconnect, end link
            finished 1 → none
            linkDown requested → end listens explicitDisconnect, settle 3 ok, disconnected nil false
            An immediate disconnection ends an attempt to connect:
            ready; connect 1; disconnect 2 now → settle 1 explicitDisconnect, end link; isDisconnecting → true
            linkUp → none
            linkDown requested → end listens explicitDisconnect, settle 2 ok; reconnects → false
            A disconnection behind an attempt waits for it:
            ready; connect 1; disconnect 2 → none; linkUp → settle 1 ok, connected, end link
            linkDown requested → end listens explicitDisconnect, settle 2 ok, disconnected nil false
            """)
    }

    func testTasks() {
        play(
            """
            While a task runs, requests of others are refused:
            connected; beginTask → none; beginTask → multipleBackgroundTaskNotSupported
            beginTask inside → calledInsideBackgroundTask; operation 1 → settle 1 backgroundTaskRunning
            operation 2 inside → settle 2 calledInsideBackgroundTask; disconnect 3 now → settle 3 backgroundTaskRunning
            operation 4 task → begin 4; finished 4 → settle 4 ok; taskEnded → none
            operation 5 task → settle 5 notInBackgroundTask
            A task receives a loss first:
            connected; beginTask; operation 1 task
            linkDown → settle 1 notConnected, stop 1, end listens notConnected, fail task notConnected
            finished 1 → none
            operation 2 task → settle 2 notConnected; taskEnded → disconnected notConnected true
            Stopping settles everything:
            connected; beginTask; operation 1 task
            stop → settle 1 stopped, stop 1, end listens stopped, fail task stopped; stop → none
            linkDown requested → none; connect 2 → settle 2 stopped; taskEnded → none
            """)
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
