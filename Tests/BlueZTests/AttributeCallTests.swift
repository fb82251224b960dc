import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import Glibc
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// Makes completions that record their results.
private struct Notes: Sendable {
    let results = Locked<[String]>([])

    func callAsFunction<T, Failure>(_ name: String = "") -> @Sendable (Result<T, Failure>) -> Void {
        { [results] result in
            results.withLock { list in
                switch result {
                case .success(let data as Data): list.append("\(name)\([UInt8](data))")
                case .success: list.append("\(name)ok")
                case .failure(let error): list.append("\(name)\(error)")
                }
            }
        }
    }
}

extension BlueZClient {
    /// Reads a value and ends the read.
    fileprivate func value(
        _ key: AttributeKey, offset: Int = 0, timeout: Double, completion: @escaping BlueZCompletion<Data>
    ) {
        readValue(key, offset: offset, timeout: timeout) { [self] in completion(readEnded(key, offset: offset, $0)) }
    }
}

final class AttributeCallTests: XCTestCase {
    private let daemon = FakeDaemon()
    private let observer = RecordingObserver()
    private let note = Notes()
    private let device = ObjectKey(BlueZMessages.device)
    private var observation: CancelHandle?

    private let adapter = ObjectKey.hci0
    /// A client that is ready.
    private lazy var client = readyClient()

    override func setUp() { _ = client }

    private var characteristic: AttributeKey { AttributeKey(device: device, handle: 0x2A) }
    private var descriptor: AttributeKey { AttributeKey(device: device, handle: 0x2C) }

    private func readyClient() -> BlueZClient {
        daemon.objects = BlueZMessages.connectedDevice
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        observation = client.observe(observer)
        daemon.loop.run()
        XCTAssertEqual(observer.log.last, "ready")
        observer.forget()
        daemon.forgetCalls()
        return client
    }

    private func onLoop(_ work: @escaping @Sendable () -> Void) {
        daemon.loop.post(work)
        daemon.loop.run()
    }

    private var results: [String] { note.results.withLock { $0 } }

    // MARK: Changes

    func testAnObserverReceivesAttributesInTheirOrderAndEachValue() {
        let newcomer = RecordingObserver()
        let second = client.observe(newcomer)
        daemon.loop.run()
        XCTAssertEqual(newcomer.log.suffix(4), ["+service 40", "+characteristic 42", "+descriptor 44", "ready"])

        for value in [[1], [1], [2, 3]] as [[UInt8]] { daemon.connection?.send(BlueZMessages.valueChanged(value)) }
        daemon.loop.run()
        XCTAssertEqual(observer.log, ["~42 [1]", "~42 [1]", "~42 [2, 3]"])
        second.cancel()
    }

    // MARK: Reading and writing

    func testAReadGivesTheBytesOfTheAnswer() {
        daemon.bodies["ReadValue"] = { $0.bytes([7, 8]) }
        onLoop { [client, characteristic, descriptor, note] in
            client.value(characteristic, timeout: 5, completion: note("a"))
            client.value(descriptor, offset: 3, timeout: 5, completion: note("b"))
        }
        XCTAssertEqual(results, ["a[7, 8]", "b[7, 8]"])
        XCTAssertEqual(
            daemon.details,
            [
                "char002a org.bluez.GattCharacteristic1 ReadValue a{sv}",
                "desc002c org.bluez.GattDescriptor1 ReadValue a{sv}",
            ])
    }

    func testAWriteNamesItsTypeForCharacteristicsOnly() {
        onLoop { [client, characteristic, descriptor, note] in
            for type in CBCharacteristicWriteType.allCases {
                client.daemon.writeValue(characteristic, Data([1]), type: type, timeout: 5, completion: note())
            }
            client.daemon.writeValue(
                descriptor, Data(), type: .withResponse, offset: 700, timeout: 5, completion: note())
        }
        XCTAssertEqual(results, ["ok", "ok", "ok"])
        XCTAssertEqual(daemon.options, [["type": "request"], ["type": "command"], ["offset": "700"]])
    }

    func testARefusalKeepsItsWordsAndItsATTCode() {
        daemon.errors["ReadValue"] = [
            DBusError(name: "org.bluez.Error.Failed", message: "Operation failed with ATT error: 0x0e")
        ]
        let code = Locked<UInt8?>(nil)
        onLoop { [client, characteristic] in
            client.value(characteristic, timeout: 5) { result in
                if case .failure(let error) = result { code.withLock { $0 = error.attCode } }
            }
        }
        XCTAssertEqual(code.withLock { $0 }, 0x0E)
    }

    func testAnAnswerOfAnotherFormIsAFailure() {
        daemon.bodies["ReadValue"] = { $0.string("seven") }
        daemon.bodies["AcquireNotify"] = { $0.uint16(23) }
        onLoop { [client, characteristic, note] in
            client.value(characteristic, timeout: 5, completion: note())
            client.daemon.acquireNotify(characteristic, completion: note())
        }
        XCTAssertEqual(results.count, 2)
        XCTAssertTrue(results.allSatisfy { $0.contains("InvalidSignature") })
    }

    func testASilentDaemonCostsAReadItsTimeAndNoMore() {
        daemon.silent = ["ReadValue"]
        onLoop { [client, characteristic, note] in client.value(characteristic, timeout: 5, completion: note()) }
        XCTAssertEqual(results, [])
        daemon.loop.advance(by: 5)
        XCTAssertEqual(results, ["org.freedesktop.DBus.Error.NoReply: No answer came in time."])
        daemon.answerLate("ReadValue")
        XCTAssertEqual(results.count, 1)
    }

    func testWhatIsNotInTheTreeFailsSoonAndNeverInsideTheCall() {
        onLoop { [client, device, note] in
            let absent = AttributeKey(device: device, handle: 0x99)
            client.value(absent, timeout: 5, completion: note("read "))
            let notified: BlueZCompletion<Void> = note("notify ")
            client.notifications.subscribe(absent, overSocket: false, mayPair: false, for: client) {
                if case .failed(let error) = $0 { notified(.failure(error)) }
            }
            client.connector.disconnect(ObjectKey(rawValue: 99), completion: note("disconnect "))
            client.connector.connect(ObjectKey(rawValue: 99), completion: note("connect "))
            XCTAssertEqual(note.results.withLock { $0 }, [])
        }
        XCTAssertEqual(results.count, 4)
        XCTAssertTrue(results.allSatisfy { $0.contains("UnknownObject") })
        XCTAssertEqual(daemon.calls, [])
    }

    func testADaemonThatDiesFailsWhatIsPendingOnce() {
        daemon.silent = ["ReadValue", "Connect"]
        onLoop { [client, characteristic, device, note] in
            client.value(characteristic, timeout: 5, completion: note("read "))
            client.connector.connect(device, completion: note("connect "))
        }
        daemon.vanish()
        daemon.loop.advance(by: 60)
        XCTAssertEqual(results.count, 2)
        XCTAssertTrue(results.allSatisfy { $0.contains("NoReply") }, "\(results)")
    }

    func testABusThatIsLostFailsWhatIsPendingOnce() {
        daemon.silent = ["WriteValue"]
        onLoop { [client, characteristic, note] in
            client.daemon.writeValue(characteristic, Data([1]), type: .withResponse, timeout: 50, completion: note())
        }
        daemon.bus.close()
        daemon.loop.advance(by: 60)
        XCTAssertEqual(results.count, 1)
        XCTAssertTrue(results[0].contains("Disconnected"))
    }

    func testNoMoreThanAHundredCallsAreUnderWayAndTheOthersFollowInOrder() {
        daemon.silent = ["ReadValue"]
        daemon.bodies["ReadValue"] = { $0.bytes([1]) }
        onLoop { [client, characteristic, note] in
            for number in 0..<150 { client.value(characteristic, timeout: 60, completion: note("\(number) ")) }
        }
        XCTAssertEqual(daemon.count("ReadValue"), 100)
        daemon.answerLate("ReadValue")
        XCTAssertEqual(daemon.count("ReadValue"), 101)
        for _ in 0..<149 { daemon.answerLate("ReadValue") }
        XCTAssertEqual(results, (0..<150).map { "\($0) [1]" })
    }

    // MARK: Sockets

    private func socketEnds() -> (ours: OwnedDescriptor, given: OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends), 0)
        return (OwnedDescriptor(owning: ends[0]), OwnedDescriptor(owning: ends[1]))
    }

    func testAnAcquiredSocketCarriesValuesPastTheBus() throws {
        let (ours, given) = socketEnds()
        daemon.bodies["AcquireNotify"] = {
            $0.descriptor(given.rawValue ?? -1)
            $0.uint16(247)
        }
        let sockets = Locked<[AcquiredSocket]>([])
        let packets = Locked<[Data]>([])
        onLoop { [client, characteristic] in
            client.daemon.acquireNotify(characteristic) { result in
                guard case .success(let socket) = result else { return }
                socket.start(onPackets: { list in packets.withLock { $0 += list } }, onClosed: {})
                sockets.withLock { $0.append(socket) }
            }
        }
        given.close()
        XCTAssertEqual(sockets.withLock { $0.first?.mtu }, 247)
        let peer = try XCTUnwrap(ours.rawValue)
        XCTAssertNil(([5, 6] as [UInt8]).withUnsafeBytes { sendPacket($0, to: peer) })
        daemon.loop.run()
        XCTAssertEqual(packets.withLock { $0 }, [Data([5, 6])])
        onLoop { sockets.withLock { $0 = [] } }
        XCTAssertTrue(isHungUp(peer))
    }

    /// BlueZ may notify until it replies to `StopNotify`, and the loop reads the bus first.
    func testAValueInTheSocketIsReceivedBeforeTheEndOfItsSubscription() throws {
        let (ours, given) = socketEnds()
        daemon.bodies["AcquireNotify"] = {
            $0.descriptor(given.rawValue ?? -1)
            $0.uint16(23)
        }
        daemon.bodies["StopNotify"] = { _ in
            XCTAssertNil(([7] as [UInt8]).withUnsafeBytes { sendPacket($0, to: ours.rawValue ?? -1) })
        }
        let events = Locked<[String]>([])
        onLoop { [client, characteristic] in
            client.notifications.subscribe(characteristic, overSocket: true, mayPair: false, for: client) { event in
                events.withLock { $0.append("\(event)") }
            }
        }
        given.close()
        XCTAssertEqual(events.withLock { $0 }, ["began"])
        onLoop { [client, characteristic] in
            client.notifications.unsubscribe(characteristic, for: client) { _ in events.withLock { $0.append("ended") }
            }
        }
        XCTAssertEqual(events.withLock { $0 }, ["began", "values([1 bytes])", "ended"])
        XCTAssertTrue(isHungUp(try XCTUnwrap(ours.rawValue)))
    }

    func testAReplyOfAnotherTypeIsReportedWithBothSignatures() {
        daemon.bodies["AcquireNotify"] = { $0.string("no socket") }
        onLoop { [client, characteristic, note] in client.daemon.acquireNotify(characteristic, completion: note()) }
        XCTAssertEqual(
            results,
            [
                "org.freedesktop.DBus.Error.InvalidSignature: "
                    + "The reply to AcquireNotify has the signature \"s\" instead of \"hq\"."
            ])
    }

    /// The reply was reported as `"hq" instead of "hq"`.
    func testASocketThatThisProcessHasNoDescriptorForIsReportedAsThat() throws {
        let limit = try DescriptorLimit()
        let (ours, given) = socketEnds()
        let loop = daemon.loop
        daemon.bodies["AcquireWrite"] = { writer in
            writer.descriptor(given.rawValue ?? -1)
            writer.uint16(247)
            // Runs when the reply is on its way, before the client reads it.
            loop.post { limit.exhaust() }
        }
        onLoop { [client, characteristic, note] in
            client.daemon.acquireWrite(characteristic, completion: note("first "))
        }
        limit.restore()

        XCTAssertEqual(
            results,
            [
                "first org.freedesktop.DBus.Error.LimitsExceeded: "
                    + "The process has used up its limit of open files (see `ulimit -n`)."
            ])
        daemon.bodies["AcquireWrite"] = { writer in
            writer.descriptor(given.rawValue ?? -1)
            writer.uint16(247)
        }
        let mtu = Locked(0)
        onLoop { [client, characteristic] in
            client.daemon.acquireWrite(characteristic) { result in mtu.withLock { $0 = (try? result.get())?.mtu ?? 0 } }
        }
        XCTAssertEqual(mtu.withLock { $0 }, 247, "with descriptors again")
        withExtendedLifetime(ours) {}
    }

    // MARK: Links

    func testConnectionsOfOneAdapterTakeTurns() {
        daemon.silent = ["Connect"]
        let started = Locked(0)
        onLoop { [client, device, note] in
            for number in 0..<3 {
                client.connector.connect(
                    device, started: { started.withLock { $0 += 1 } }, completion: note("\(number) "))
            }
        }
        XCTAssertEqual(daemon.count("Connect"), 1)
        XCTAssertEqual(started.withLock { $0 }, 1)
        daemon.answerLate("Connect")
        daemon.answerLate(
            "Connect", error: DBusError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local"))
        daemon.answerLate("Connect")
        XCTAssertEqual(
            results, ["0 ok", "1 org.bluez.Error.Failed: le-connection-abort-by-local", "2 ok"])
        XCTAssertEqual(started.withLock { $0 }, 3)
    }

    func testACancelledConnectionIsDisconnectedAndReportedOnce() {
        report(isConnected: false)
        daemon.silent = ["Connect"]
        let attempt = Locked<ConnectID?>(nil)
        onLoop { [client, device, note] in
            let id = client.connector.connect(device, completion: note())
            attempt.withLock { $0 = id }
        }
        onLoop { [client] in if let id = attempt.withLock({ $0 }) { client.connector.cancel(id) } }
        XCTAssertEqual(daemon.calls, ["Connect", "Disconnect"])
        XCTAssertEqual(results, [])
        daemon.answerLate(
            "Connect", error: DBusError(name: "org.bluez.Error.Failed", message: "br-connection-canceled"))
        XCTAssertEqual(results, ["org.bluez.Error.Canceled: The attempt to connect was cancelled."])
    }

    func testAConnectionThatTakesTooLongIsCalledOff() {
        daemon.silent = ["Connect"]
        onLoop { [client, device, note] in client.connector.connect(device, completion: note()) }
        daemon.loop.advance(by: LinkMachine.attemptLimit)
        XCTAssertEqual(daemon.calls.filter { $0 != "StopDiscovery" }, ["Connect", "Disconnect"])
        daemon.loop.advance(by: LinkMachine.endLimit)
        XCTAssertEqual(results.count, 1)
        XCTAssertTrue(results[0].contains("NoReply"))
    }

    private func report(isConnected: Bool) {
        daemon.send(
            BlueZMessages.propertiesChanged(
                BlueZMessages.device, "org.bluez.Device1", [("Connected", .bool(isConnected))]))
    }

    func testASuccessWithoutALinkIsAFailure() {
        report(isConnected: false)
        daemon.bodies["Get"] = { $0.variant("b") { $0.bool(false) } }
        onLoop { [client, device, note] in client.connector.connect(device, completion: note("1 ")) }
        daemon.bodies["Get"] = { $0.variant("b") { $0.bool(true) } }
        onLoop { [client, device, note] in client.connector.connect(device, completion: note("2 ")) }
        XCTAssertEqual(results, ["1 org.bluez.Error.Failed: Connect succeeded without a connection", "2 ok"])
    }

    func testADisconnectionIsOverWhenTheTreeShowsItAndConnectionsWaitForIt() {
        report(isConnected: true)
        daemon.bodies["Get"] = { $0.variant("b") { $0.bool(true) } }
        onLoop { [client, device, note] in
            client.connector.disconnect(device, completion: note("disconnect "))
            client.connector.connect(device, completion: note("connect "))
        }
        XCTAssertEqual(daemon.calls, ["Disconnect"])
        XCTAssertEqual(results, [])
        report(isConnected: false)
        XCTAssertEqual(results, ["disconnect ok", "connect ok"])
        XCTAssertEqual(daemon.calls, ["Disconnect", "Connect", "Get"])
    }

    func testADisconnectionThatTheTreeShowsBeforeTheReplyIsOverWithTheReply() {
        report(isConnected: true)
        daemon.silent = ["Disconnect"]
        onLoop { [client, device, note] in client.connector.disconnect(device, completion: note()) }
        report(isConnected: false)
        XCTAssertEqual(results, [])
        daemon.answerLate("Disconnect")
        XCTAssertEqual(results, ["ok"])
    }

    func testADisconnectionThatTheTreeNeverShowsIsOverSoon() {
        report(isConnected: true)
        onLoop { [client, device, note] in client.connector.disconnect(device, completion: note()) }
        XCTAssertEqual(results, [])
        daemon.loop.advance(by: 0.25)
        XCTAssertEqual(results, ["ok"])
        daemon.loop.advance(by: 10)
        XCTAssertEqual(results, ["ok"])
    }

    func testDisconnectionsOfOneDeviceAreOneCall() {
        daemon.silent = ["Disconnect"]
        onLoop { [client, device, note] in
            for number in 0..<2 { client.connector.disconnect(device, completion: note("\(number) ")) }
        }
        XCTAssertEqual(daemon.calls, ["Disconnect"])
        daemon.loop.advance(by: LinkMachine.endLimit)
        XCTAssertEqual(results.count, 2)
        XCTAssertTrue(results.allSatisfy { $0.contains("NoReply") }, "\(results)")
    }

    func testARefusedDisconnectionIsReportedAndDelaysNoOtherAttempt() {
        daemon.errors["Disconnect"] = [DBusError(name: "org.bluez.Error.NotConnected", message: "Not Connected")]
        onLoop { [client, device, note] in
            client.connector.disconnect(device, completion: note("disconnect "))
            client.connector.connect(device, completion: note("connect "))
        }
        XCTAssertEqual(results, ["disconnect org.bluez.Error.NotConnected: Not Connected", "connect ok"])
    }

    func testAFenceIsAnsweredWhateverTheDaemonDoes() {
        let fences = Locked(0)
        let count: @Sendable () -> Void = { fences.withLock { $0 += 1 } }
        onLoop { [client, device] in client.connector.fence(device, completion: count) }
        XCTAssertEqual(fences.withLock { $0 }, 1)
        daemon.silent = ["Get"]
        onLoop { [client, device] in
            client.connector.fence(device, completion: count)
            client.connector.fence(ObjectKey(rawValue: 99), completion: count)
        }
        XCTAssertEqual(fences.withLock { $0 }, 1)
        daemon.loop.advance(by: 5)
        XCTAssertEqual(fences.withLock { $0 }, 3)
    }

    func testTheSizeOfPacketsIsReadIfNoSignalNamesIt() {
        daemon.bodies["Get"] = { $0.variant("q") { $0.uint16(185) } }
        onLoop { [client, device] in client.connector.readMTU(of: device) }
        XCTAssertEqual(daemon.calls, [], "The characteristic came with it.")

        for isConnected in [false, true] {
            daemon.send(
                BlueZMessages.propertiesChanged(
                    BlueZMessages.device, "org.bluez.Device1", [("Connected", .bool(isConnected))]))
        }
        for _ in 0..<2 { onLoop { [client, device] in client.connector.readMTU(of: device) } }
        XCTAssertEqual(daemon.calls, ["Get"])
        XCTAssertEqual(client.daemon.objects.attribute(characteristic)?.mtu, 185)
    }

    // MARK: Pauses

    func testScansRestWhileAPauseLastsAndComeBackWithoutAWord() throws {
        let events = Locked<[ScanEvent]>([])
        onLoop { [client, adapter] in
            _ = client.discovery.start(on: adapter, filter: DiscoveryFilter()) { event in
                events.withLock { $0.append(event) }
            }
        }
        onLoop { [client, adapter] in client.discovery.setPaused(true, on: adapter) }
        XCTAssertEqual(daemon.calls, ["SetDiscoveryFilter", "StartDiscovery", "StopDiscovery"])
        onLoop { [client, adapter] in client.discovery.setPaused(false, on: adapter) }
        onLoop { [client, adapter] in client.discovery.setPaused(false, on: adapter) }
        XCTAssertEqual(daemon.count("StartDiscovery"), 2)
        XCTAssertEqual(events.withLock { $0 }, [.started])
    }

    func testScansPauseForTheFirstSecondsOfTheAttemptsOfATry() throws {
        daemon.silent = ["Connect"]
        onLoop { [client, adapter] in _ = client.discovery.start(on: adapter, filter: DiscoveryFilter()) { _ in } }
        let connect: @Sendable () -> Void = { [client, device] in client.connector.connect(device) { _ in } }
        onLoop(connect)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
        daemon.loop.advance(by: 2)
        daemon.answerLate("Connect", error: DBusError(name: "org.bluez.Error.Failed", message: "x"))
        XCTAssertEqual(daemon.count("StartDiscovery"), 1, "They are not resumed between two attempts.")
        onLoop(connect)
        daemon.loop.advance(by: 2)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
        XCTAssertEqual(daemon.count("StartDiscovery"), 1)
        daemon.loop.advance(by: 1)
        XCTAssertEqual(daemon.count("StartDiscovery"), 2, "The device is not near.")
        daemon.answerLate("Connect", error: DBusError(name: "org.bluez.Error.Failed", message: "x"))
        onLoop(connect)
        XCTAssertEqual(daemon.count("StopDiscovery"), 2)
        daemon.bodies["Get"] = { $0.variant("b") { $0.bool(true) } }
        daemon.answerLate("Connect")
        XCTAssertEqual(daemon.count("StartDiscovery"), 3, "There is a link.")
        onLoop { [client, device] in client.connector.connect(device, pausesScans: false) { _ in } }
        XCTAssertEqual(daemon.count("StopDiscovery"), 2)
    }

    func testAScanThatBeginsDuringAPauseStartsAfterIt() throws {
        let events = Locked<[ScanEvent]>([])
        onLoop { [client, adapter] in
            client.discovery.setPaused(true, on: adapter)
            _ = client.discovery.start(on: adapter, filter: DiscoveryFilter()) { event in
                events.withLock { $0.append(event) }
            }
        }
        XCTAssertEqual(daemon.calls, [])
        onLoop { [client, adapter] in client.discovery.setPaused(false, on: adapter) }
        XCTAssertEqual(daemon.calls, ["SetDiscoveryFilter", "StartDiscovery"])
        XCTAssertEqual(events.withLock { $0 }, [.started])
    }
}

/// Leaves this process without a free descriptor, until restored.
private final class DescriptorLimit: Sendable {
    private let usual: rlimit

    init() throws {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw POSIXError(.EINVAL) }
        usual = limit
    }

    /// A descriptor gets the lowest free number, which has to be below the limit.
    func exhaust() {
        let lowest = dup(STDERR_FILENO)
        close(lowest)
        set(rlim_t(lowest))
    }

    func restore() { set(usual.rlim_cur) }

    private func set(_ count: rlim_t) {
        var limit = rlimit(rlim_cur: count, rlim_max: usual.rlim_max)
        XCTAssertEqual(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit), 0)
    }
}
