import DBus
import Futures
import Reactor

extension BlueZClient {
    private struct Weak {
        weak var client: BlueZClient?
    }

    private static let clients = Locked<[String: Weak]>([:])

    /// The client for a bus, made if there is none: one connection and one discovery session per adapter and process,
    /// however many managers there are.
    ///
    /// - Parameter address: What D-Bus writes, `"unix:path=…"` or `"loopback:name=…"`; `nil` for the system bus.
    package static func shared(at address: String? = nil) -> BlueZClient {
        let address = address.map { BusAddress.custom($0) } ?? .system
        let text = address.resolved()
        let bus = LoopbackBus.at(address: text)
        return clients.withLock { clients in
            // A test may end a loopback bus and make another of the same name on another loop.
            if let client = clients[text]?.client, bus == nil || bus?.loop === client.loop { return client }
            let client = BlueZClient(address: .custom(text), loop: bus?.loop ?? ThreadLoop(name: "bluetooth"))
            clients = clients.filter { $0.value.client != nil }
            clients[text] = Weak(client: client)
            return client
        }
    }
}
