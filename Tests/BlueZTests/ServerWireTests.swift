import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import TestBasics
import XCTest

@testable import BlueCapBlueZ

/// The same over a real `dbus-daemon`, which passes our descriptors to a daemon on another connection.
final class ServerWireTests: XCTestCase, StartsPrograms {
    private let level = ServerCharacteristic(
        id: ServerAttributeID(2), uuid: CBUUID(string: "2A19"), flags: [.read, .notify], givesNotifySocket: true)

    func testAnApplicationIsRegisteredReadAndReceivedOverABus() throws {
        let bus = try PrivateBus()
        let registration = Locked<Message?>(nil)
        let daemon = Connection.open(.custom(bus.address))
        daemon.answerCalls { call in
            switch call.member {
            case "GetManagedObjects":
                daemon.send(
                    .reply(to: call) { writer in
                        BlueZMessages.write([(BlueZMessages.adapterPath, BlueZMessages.adapter())], &writer)
                    })
            case "RegisterApplication":
                registration.withLock { $0 = call }
                daemon.send(.reply(to: call))
            default:
                daemon.send(.reply(to: call))
            }
        }
        let named = expectation(description: "the daemon has its name")
        daemon.requestName("org.bluez") { _ in named.fulfill() }
        wait(for: [named], timeout: 60)

        let delegate = RecordingDelegate()
        let client = BlueZClient.shared(at: bus.address)
        let registered = expectation(description: "the application is registered")
        let service = ServerService(
            id: ServerAttributeID(1), uuid: CBUUID(string: "180F"), characteristics: [level])
        let application = ServerApplication(service, on: .hci0, client: client, delegate: delegate) {
            state in
            if state == .registered { registered.fulfill() }
        }
        wait(for: [registered], timeout: 60)
        let call = try XCTUnwrap(registration.withLock { $0 })
        var reader = call.reader
        let characteristic = try XCTUnwrap(reader.objectPath()).appending("service0").appending("char0")

        var read = try ask("ReadValue", of: characteristic, call.sender, daemon).reader
        XCTAssertEqual(read.bytes(), [1, 2, 3])

        // The reply to a later call on the same connection shows that the bus has the match rule.
        let received = expectation(description: "the value came")
        let subscription = daemon.subscribe(
            MatchRule(interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged")
        ) { signal in
            var reader = signal.reader
            guard reader.string() == "org.bluez.GattCharacteristic1" else { return }
            reader.dictionary { entry in
                if entry.string() == "Value", entry.variant({ $0.bytes() }) == [98] { received.fulfill() }
            }
        }
        var acquired = try ask("AcquireNotify", of: characteristic, call.sender, daemon).reader
        let socket = try XCTUnwrap(acquired.descriptor())
        XCTAssertEqual(acquired.uint16(), 23)
        let sent = expectation(description: "the bus has taken the value")
        let source = RecordingSource { sent.fulfill() }
        source.add(ServerUpdate(Data([98])))
        application.sendUpdates(of: ServerAttributeID(2), from: source)
        wait(for: [received, sent], timeout: 60)
        XCTAssertEqual(try ServerScene.packets(socket), [], "A value for all goes over the bus.")

        subscription.cancel()
        let ended = expectation(description: "the application has ended")
        application.end { ended.fulfill() }
        wait(for: [ended], timeout: 60)
        XCTAssertEqual(source.outcomes, ["sent [98]"])
        XCTAssertEqual(delegate.log, ["read 2", "+2", "-2"])
        daemon.close()
    }

    private func ask(
        _ member: String, of path: ObjectPath, _ owner: String?, _ daemon: Connection
    ) throws -> Message {
        let answered = expectation(description: "\(member) is answered")
        let answer = Locked<Result<Message, DBusError>?>(nil)
        let message = Message.call(
            destination: owner, path: path, interface: "org.bluez.GattCharacteristic1", member: member
        ) { BlueZMessages.write(properties: ServerScene.peer, &$0) }
        daemon.call(message) { result in
            answer.withLock { $0 = result }
            answered.fulfill()
        }
        wait(for: [answered], timeout: 60)
        return try XCTUnwrap(answer.withLock { $0 }).get()
    }
}
