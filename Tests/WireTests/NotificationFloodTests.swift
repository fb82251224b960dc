import BlueZSimulator
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// Notifications without pauses, a hundred thousand over an acquired socket and fewer over the slower bus. The client uses only
/// D-Bus, so that this measures the simulator.
final class NotificationFloodTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:01"
    private let device: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01"
    private let sensor: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char000b"

    func testValuesOfTwentyBytesArriveCompleteAndInOrderOverTheBus() throws { try overTheBus(20_000, size: 20) }
    func testValuesOf244BytesArriveCompleteAndInOrderOverTheBus() throws { try overTheBus(20_000, size: 244) }
    func testValuesOfTwentyBytesArriveCompleteAndInOrderOverASocket() throws { try overASocket(100_000, size: 20) }
    func testValuesOf244BytesArriveCompleteAndInOrderOverASocket() throws { try overASocket(100_000, size: 244) }

    /// Counts the values that are in sequence.
    private struct Tally {
        var size = 0
        var next = 0
        var unexpected = 0

        mutating func take(_ bytes: UnsafeRawBufferPointer) {
            let isNext =
                bytes.count == size
                && bytes.loadUnaligned(as: UInt32.self).littleEndian == UInt32(next)
            if isNext { next += 1 } else { unexpected += 1 }
        }
    }

    private func overTheBus(_ count: Int, size: Int) throws {
        let (simulator, connection) = try scene()
        let all = expectation(description: "all values have come")
        let tally = Locked(Tally(size: size))
        let rule = MatchRule(sender: "org.bluez", path: sensor)
        let subscription = connection.subscribe(rule) { message in
            var reader = message.reader
            reader.skip()
            var value: [UInt8]?
            reader.dictionary { entry in
                if entry.string() == "Value" { value = entry.variant { $0.bytes() } } else { entry.skip() }
            }
            guard let value else { return }
            let isLast = tally.withLock { tally in
                value.withUnsafeBytes { tally.take($0) }
                return tally.next == count
            }
            if isLast { all.fulfill() }
        }
        try call("StartNotify", connection)
        simulator.simulateNotifications(count: count, size: size, of: address, characteristic: "2A37")
        wait(for: [all], timeout: 120)
        XCTAssertEqual(tally.withLock { $0.unexpected }, 0)
        subscription.cancel()
        connection.close()
        simulator.end()
    }

    private func overASocket(_ count: Int, size: Int) throws {
        let (simulator, connection) = try scene()
        let reply = try call("AcquireNotify", connection) { $0.dictionary(key: "s", value: "v") { _ in } }
        var reader = reply.reader
        let socket = try XCTUnwrap(reader.descriptor())
        let descriptor = try XCTUnwrap(socket.rawValue)
        let all = expectation(description: "all values have come")
        let tally = Locked(Tally(size: size))
        let buffer = PacketBuffer(packetSize: 512)
        let watch = Locked<Watch?>(nil)
        let loop = connection.loop
        loop.post {
            let ready = loop.watch(descriptor, for: .readable) { _ in
                let isLast = tally.withLock { tally in
                    _ = buffer.receive(descriptor) { tally.take($0) }
                    return tally.next == count
                }
                if isLast { all.fulfill() }
            }
            watch.withLock { $0 = ready }
        }
        simulator.simulateNotifications(count: count, size: size, of: address, characteristic: "2A37")
        wait(for: [all], timeout: 120)
        XCTAssertEqual(tally.withLock { $0.unexpected }, 0)
        loop.post { watch.withLock { $0 }?.cancel() }
        connection.close()
        simulator.end()
    }

    /// A simulator with a sensor that is connected, and its client.
    private func scene() throws -> (Simulator, Connection) {
        let sensor = VirtualPeripheral(
            address, addressType: .random, isRemembered: true,
            services: [VirtualService("180D", characteristics: [VirtualCharacteristic("2A37", [.notify])])],
            link: .immediate)
        let simulator = try Simulator.onPrivateBus(room: Room(peripherals: [sensor]))
        let connection = Connection.open(.custom(simulator.address))
        _ = try call("Connect", on: "org.bluez.Device1", at: device, connection)
        return (simulator, connection)
    }

    @discardableResult
    private func call(
        _ member: String, on interface: String = "org.bluez.GattCharacteristic1", at path: ObjectPath? = nil,
        _ connection: Connection, body: (inout MessageWriter) -> Void = { _ in }
    ) throws -> Message {
        let answered = expectation(description: "\(member) is answered")
        let answer = Locked<Result<Message, DBusError>?>(nil)
        let message = Message.call(
            destination: "org.bluez", path: path ?? sensor, interface: interface, member: member, body: body)
        connection.call(message) { result in
            answer.withLock { $0 = result }
            answered.fulfill()
        }
        wait(for: [answered], timeout: 20)
        return try XCTUnwrap(answer.withLock { $0 }).get()
    }
}
