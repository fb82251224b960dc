import BlueCapKit
import BlueZSimulator
import BlueCapDBus
import BlueCapFutures
import XCTest

/// Several at one characteristic: managers of this process, and other programs.
final class NotificationSharingTests: XCTestCase {
    private let journal = NotificationJournal()
    private let others = NotificationJournal()

    /// Two managers, each at the same characteristic.
    private func makePair() throws -> (stage: AttributeStage, other: SecondManager, [Characteristic]) {
        let stage = try AttributeStage([AttributeStage.heart])
        let other = try SecondManager(beside: stage)
        try stage.explore()
        let characteristics = [try stage.characteristic("2A37"), try other.explore(on: stage)]
        journal.watch(characteristics[0].receiveNotificationUpdates())
        others.watch(characteristics[1].receiveNotificationUpdates())
        return (stage, other, characteristics)
    }

    private func playTogether(
        _ transports: [NotificationTransport], file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let (stage, other, characteristics) = try makePair()
        for (characteristic, transport) in zip(characteristics, transports) {
            try stage.start(characteristic, over: transport, file: file, line: line)
        }
        stage.notify(1, 2)
        XCTAssertEqual(journal.bytes, [1, 2], file: file, line: line)
        XCTAssertEqual(others.bytes, [1, 2], file: file, line: line)
        XCTAssertEqual(stage.subscriptionCount(), 1, file: file, line: line)

        stage.loseLink()
        XCTAssertTrue(stage.simulator.advance(until: { other.peripheral.state != .connected }, limit: 30))
        stage.reconnect()
        other.peripheral.reconnect()
        for characteristic in characteristics { stage.awaitNotifying(characteristic, file: file, line: line) }
        stage.notify(3)
        XCTAssertEqual(journal.entries, [.number(1), .number(2), .gap, .number(3)], file: file, line: line)
        XCTAssertEqual(others.entries, [.number(1), .number(2), .gap, .number(3)], file: file, line: line)
        XCTAssertEqual(stage.subscriptionCount(), 1, file: file, line: line)

        try stage.wait(characteristics[0].stopNotifying() as Future<Void>, file: file, line: line)
        stage.notify(4)
        XCTAssertEqual(journal.bytes, [1, 2, 3], file: file, line: line)
        XCTAssertEqual(others.bytes, [1, 2, 3, 4], file: file, line: line)
        try stage.wait(characteristics[1].stopNotifying() as Future<Void>, file: file, line: line)
        stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 0, file: file, line: line)
        withExtendedLifetime(other) {}
    }

    func testTwoManagersShareSignals() throws { try playTogether([.signals, .signals]) }
    func testTwoManagersShareASocket() throws { try playTogether([.socket, .socket]) }
    func testWhoWantsSignalsGetsTheOthersSocket() throws { try playTogether([.socket, .signals]) }
    func testWhoWantsASocketGetsTheOthersSignals() throws { try playTogether([.signals, .socket]) }

    func testTwoThatAskForASocketAtOnceGetOne() throws {
        let (stage, other, characteristics) = try makePair()
        let started = characteristics.map { $0.startNotifying(over: .socket) as Future<Characteristic> }
        for future in started { try stage.wait(future) }
        XCTAssertEqual(stage.count(of: "AcquireNotify"), 1)
        stage.notify(1)
        XCTAssertEqual(journal.bytes + others.bytes, [1, 1])
        withExtendedLifetime(other) {}
    }

    // MARK: D5, other programs

    /// Another connection to the bus, as another program has it.
    private func call(_ member: String, _ interfaceBody: (inout MessageWriter) -> Void, on stage: AttributeStage) throws
        -> (Connection, Message?)
    {
        let connection = Connection.open(.custom(stage.simulator.address), loop: stage.simulator.loop)
        stage.simulator.run()
        let path = try XCTUnwrap(
            ObjectPath(
                validating:
                    "/org/bluez/hci0/dev_\(AttributeStage.address)".replacingOccurrences(of: ":", with: "_")
                    + "/service000a/char000b"))
        let answered = Locked<Result<Message, DBusError>?>(nil)
        let message = Message.call(
            destination: "org.bluez", path: path, interface: "org.bluez.GattCharacteristic1", member: member,
            body: interfaceBody)
        connection.call(message, timeout: 10) { result in answered.withLock { $0 = result } }
        XCTAssertTrue(stage.simulator.advance(until: { answered.withLock { $0 != nil } }, limit: 20))
        // With the answer a socket that came by it would be closed.
        return (connection, try answered.withLock { $0 }?.get())
    }

    func testASocketIsNotSharedWithAnotherProgram() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let program = try call("AcquireNotify", { $0.dictionary(key: "s", value: "v") { _ in } }, on: stage)
        for transport in NotificationTransport.allCases {
            let started: Future<Void> = characteristic.startNotifying(over: transport)
            let error = stage.failure(of: started)
            guard case .acquiredByOther(let cause)? = error as? CharacteristicError else {
                return XCTFail("\(transport): \(String(describing: error))")
            }
            XCTAssertEqual(cause.message, "Notify acquired")
        }
        withExtendedLifetime(program) {}
    }

    func testASocketIsRefusedBesideAnotherProgramsSignals() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let program = try call("StartNotify", { _ in }, on: stage)
        let started: Future<Void> = characteristic.startNotifying(over: .socket)
        guard case .acquiredByOther(let cause)? = stage.failure(of: started) as? CharacteristicError else {
            return XCTFail("not refused")
        }
        XCTAssertEqual(cause.name, "org.bluez.Error.InProgress")
        try stage.start(characteristic)
        withExtendedLifetime(program) {}
    }
}
