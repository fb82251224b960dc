import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueZSimulator

/// `AcquireNotify` and `AcquireWrite`: what goes over the sockets, and how they begin and end.
final class SocketTests: XCTestCase {
    private func scene() -> (Simulator, BusClient) {
        var strap = GattCast.strap
        strap.services[0].characteristics[2].flags = [.writeWithoutResponse, .write]
        return GattCast.scene(strap)
    }

    private func acquire(_ member: String, _ client: BusClient) throws -> (OwnedDescriptor, UInt16) {
        let path = member == "AcquireWrite" ? GattCast.control : GattCast.rate
        let reply = try XCTUnwrap(client.call(member, at: path)).get()
        var reader = reply.reader
        let descriptor = try XCTUnwrap(reader.descriptor())
        return (descriptor, try XCTUnwrap(reader.uint16()))
    }

    private func packets(_ socket: OwnedDescriptor) throws -> [[UInt8]] {
        let buffer = PacketBuffer(packetSize: 512)
        let descriptor = try XCTUnwrap(socket.rawValue)
        var packets: [[UInt8]] = []
        while !isHungUp(descriptor) || packets.isEmpty,
            case .packets(_, let filled, _) = buffer.receive(descriptor, { packets.append(Array($0)) }), filled > 0
        {}
        return packets.filter { !$0.isEmpty }
    }

    func testValuesGoOverTheSocketAlone() throws {
        let (simulator, client) = scene()
        let (socket, mtu) = try acquire("AcquireNotify", client)
        XCTAssertEqual(mtu, 247)
        client.expectLog("char000b NotifyAcquired=true")
        for number: UInt8 in [1, 2, 2] {
            XCTAssertTrue(simulator.notify(GattCast.strap.address, characteristic: "2A37", value: [number]))
        }
        simulator.run()
        XCTAssertEqual(try packets(socket), [[1], [2], [2]])
        client.expectLog()
    }

    func testWhileAcquiredNobodyElseGetsNotifications() throws {
        let (simulator, client) = scene()
        let (socket, _) = try acquire("AcquireNotify", client)
        let other = BusClient(simulator)
        let acquired = DBusError.bluez("NotPermitted", "Notify acquired")
        XCTAssertEqual(other.error(of: "StartNotify", at: GattCast.rate), acquired)
        XCTAssertEqual(other.error(of: "AcquireNotify", at: GattCast.rate), acquired)
        XCTAssertNil(client.error(of: "StopNotify", at: GattCast.rate))
        client.expectLog("char000b NotifyAcquired=true", "char000b NotifyAcquired=false")
        XCTAssertTrue(isHungUp(try XCTUnwrap(socket.rawValue)))
        XCTAssertNil(other.error(of: "StartNotify", at: GattCast.rate))
        XCTAssertEqual(client.error(of: "AcquireNotify", at: GattCast.rate), .bluez("InProgress", "In Progress"))
    }

    func testIndicationsAreNotGivenAway() {
        let (_, client) = scene()
        XCTAssertEqual(client.error(of: "AcquireNotify", at: GattCast.alarm)?.name, "org.bluez.Error.NotSupported")
    }

    func testEachPacketIsAWriteCommandAndWhatDoesNotFitIsDropped() throws {
        let (simulator, client) = scene()
        let (socket, _) = try acquire("AcquireWrite", client)
        client.expectLog("char0010 WriteAcquired=true")
        let descriptor = try XCTUnwrap(socket.rawValue)
        for count in [3, 245, 0] {
            Array(repeating: UInt8(7), count: count).withUnsafeBytes { XCTAssertNil(sendPacket($0, to: descriptor)) }
        }
        simulator.run()
        XCTAssertEqual(simulator.value(of: "2A39", at: GattCast.strap.address), [7, 7, 7])
        XCTAssertEqual(
            client.write([1], to: GattCast.control, type: "request"),
            .bluez("NotPermitted", "Write acquired"))
        socket.close()
        client.expectLog("char0010 WriteAcquired=false")
        XCTAssertNil(client.write([1], to: GattCast.control, type: "request"))
    }

    func testAClosedSocketEndsTheSubscription() throws {
        let (simulator, client) = scene()
        let (socket, _) = try acquire("AcquireNotify", client)
        socket.close()
        simulator.advance(by: 1)
        XCTAssertEqual(client.takeLog().last, "char000b NotifyAcquired=false")
        XCTAssertEqual(simulator.links.first?.subscriptions, [])
    }

    func testWithTheLinkTheSocketsEndAndDoNotComeBack() throws {
        let (simulator, client) = scene()
        let (notify, _) = try acquire("AcquireNotify", client)
        let (write, _) = try acquire("AcquireWrite", client)
        _ = client.takeLog()
        XCTAssertTrue(simulator.notify(GattCast.strap.address, characteristic: "2A37", value: [9]))
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        client.expectLog(
            "dev_C0_00_00_00_00_01 ServicesResolved=false Connected=false", "char000b NotifyAcquired=false",
            "char0010 WriteAcquired=false")
        XCTAssertTrue(isHungUp(try XCTUnwrap(write.rawValue)))
        let buffer = PacketBuffer(packetSize: 512)
        var last: [UInt8] = []
        _ = buffer.receive(try XCTUnwrap(notify.rawValue)) { if !$0.isEmpty { last = Array($0) } }
        XCTAssertEqual(last, [9], "what was sent before is still there")
        XCTAssertEqual(client.error(of: "AcquireWrite", at: GattCast.control)?.message, "Not connected")
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links.first?.subscriptions, [])
    }

    func testASlowReaderGetsEverythingInOrder() throws {
        let (simulator, client) = scene()
        let (socket, _) = try acquire("AcquireNotify", client)
        let finished = Locked(false)
        simulator.simulateNotifications(count: 10_000, size: 20, of: GattCast.strap.address, characteristic: "2A37") {
            finished.withLock { $0 = true }
        }
        var received: [[UInt8]] = []
        for _ in 0..<1000 where received.count < 10_000 {
            simulator.run()
            XCTAssertLessThan(simulator.waitingPackets, 1000, "the flood waits for the reader")
            received += try packets(socket)
        }
        simulator.run()
        XCTAssertTrue(finished.withLock { $0 })
        XCTAssertEqual(received, (0..<10_000).map { NotificationSource.number($0, size: 20) })
    }

    func testAFloodOfSignalsLosesNothing() {
        let (simulator, client) = scene()
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        _ = client.takeLog()
        simulator.simulateNotifications(count: 5000, size: 2, of: GattCast.strap.address, characteristic: "2A37")
        simulator.run()
        XCTAssertEqual(
            client.takeLog(),
            (0..<5000).map { "char000b Value=" + Hexadecimal.text(NotificationSource.number($0, size: 2)) })
    }
}

extension Simulator {
    /// The number of packets that wait until a socket can take them.
    fileprivate var waitingPackets: Int {
        stage.wire.withLock { $0.sockets.values.map(\.waiting.count).reduce(0, +) }
    }
}
