import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// A peripheral with attributes of all kinds, and their handles.
enum GattCast {
    static let strap = VirtualPeripheral(
        "C0:00:00:00:00:01", addressType: .random, name: "Strap of the gap",
        advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]),
        services: [
            VirtualService(
                "180D",
                characteristics: [
                    VirtualCharacteristic("2A37", [.notify, .indicate], value: [0, 72]),
                    VirtualCharacteristic("2A38", [.read], value: [1]),
                    VirtualCharacteristic(
                        "2A39", [.write, .writeWithoutResponse, .read], value: [],
                        descriptors: [.description("Control")]),
                    VirtualCharacteristic("2A3A", [.indicate], value: []),
                ])
        ])

    /// The same, stored by BlueZ from an earlier run.
    static let known: VirtualPeripheral = {
        var known = strap
        known.isRemembered = true
        return known
    }()

    static let path: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01"
    static let rate: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char000b"
    static let place: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char000e"
    static let control: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char0010"
    static let controlText: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char0010/desc0012"
    static let alarm: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char0013"

    /// A simulator whose adapter has found the peripheral, and a client that is connected to it unless said otherwise.
    static func scene(
        _ strap: VirtualPeripheral = strap, bluez: BlueZVersion = .v5_66, isConnected: Bool = true
    ) -> (Simulator, BusClient) {
        let simulator = Simulator.inProcess(room: Room(peripherals: [strap]), bluez: bluez)
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 1)
        XCTAssertNil(client.error(of: "StopDiscovery"))
        if isConnected {
            XCTAssertNil(client.error(of: "Connect", at: path))
            simulator.advance(by: 1)
        }
        simulator.run()
        _ = client.takeLog()
        return (simulator, client)
    }
}

/// A call that is under way.
final class PendingCall: Sendable {
    private let answer = Locked<Result<Message, DBusError>?>(nil)

    func settle(_ result: Result<Message, DBusError>) { answer.withLock { $0 = result } }

    /// Nil while there is no answer.
    var succeeded: Bool? {
        answer.withLock { answer in
            switch answer {
            case .success?: true
            case .failure?: false
            case nil: nil
            }
        }
    }

    var error: DBusError? {
        guard case .failure(let error)? = answer.withLock({ $0 }) else { return nil }
        return error
    }

    var bytes: [UInt8]? {
        guard case .success(let reply)? = answer.withLock({ $0 }) else { return nil }
        var reader = reply.reader
        return reader.bytes()
    }
}
