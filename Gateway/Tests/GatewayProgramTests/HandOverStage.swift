import BlueZSimulator
import Foundation
import GatewayTestSupport
import Synchronization

/// Three gateways, each a process with an adapter of its own, and one device that walks among them and counts.
final class HandOverStage {
    static let address: VirtualAddress = "C0:FF:EE:00:00:02"
    static let names = ["attic", "cellar", "garden"]
    /// Where the gateways are, in metres along the way.
    static let places = [0.0, 20, 40]

    let simulator: Simulator
    let links = LinkCounter()
    private let directory: TemporaryDirectory
    private let brokers: [String]
    private let prefix: String
    private(set) var processes: [ServerProcess] = []
    /// The numbers that the device has sent over a link.
    private(set) var sent: [UInt32] = []
    private var number: UInt32 = 0
    private var place = -1.0

    /// - Parameters:
    ///   - brokers: The broker's addresses.
    ///   - prefix: That of all topics, unique on the broker.
    ///   - seed: Determines the changes of the device's strength.
    init(brokers: [String], prefix: String, seed: UInt64) throws {
        (self.brokers, self.prefix) = (brokers, prefix)
        let adapters = Self.names.indices.map { index in
            VirtualAdapter(index: index, name: Self.names[index])
        }
        simulator = try Simulator.onPrivateBus(room: .empty, adapters: adapters)
        directory = try TemporaryDirectory()
        var device = VirtualPeripheral(
            Self.address, rssi: .walk(around: -45, spread: 3, seed: seed),
            advertisement: Advertisement(localName: "Tag"), interval: 0.1,
            services: [VirtualService("180D", characteristics: [VirtualCharacteristic("2A37", [.notify])])])
        device.advertisesWhileConnected = true
        // It would accept a second link: that there is none is for the gateways to decide.
        device.linkLimit = 3
        simulator.add(device, behavior: links)
    }

    func start() throws {
        for (index, name) in Self.names.enumerated() {
            let configuration = """
                name: \(name)
                topicPrefix: \(prefix)
                logLevel: info
                broker:
                  addresses: [\(brokers.map { "\"\($0)\"" }.joined(separator: ", "))]
                  clientIdentifier: \(prefix)-\(name)
                  keepAlive: 5s
                radio: {adapter: hci\(index)}
                peripherals:
                  - name: Tag
                    characteristics: [{service: 180D, uuid: 2A37, as: uint32}]
                store: {path: \(directory.path("\(name).sqlite"))}
                page: {enabled: false}
                """
            let file = try directory.write("\(name).yaml", configuration)
            processes.append(
                try ServerProcess(
                    builtProgram("bluecap-gateway"), ["--config", file],
                    environment: ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address],
                    log: directory.url.appendingPathComponent("\(name).log")))
        }
    }

    /// The strength in dBm at a gateway of a device that is at a place, without its own changes.
    static func strength(at place: Double, of gateway: Int) -> Double { -45 - loss(at: place, of: gateway) }

    private static func loss(at place: Double, of gateway: Int) -> Double {
        30 * log10(max(1, abs(place - places[gateway])))
    }

    /// Moves the device.
    func move(to place: Double) {
        guard place != self.place else { return }
        self.place = place
        for index in Self.places.indices {
            simulator.simulateAttenuation(
                of: Self.address, by: Int(Self.loss(at: place, of: index).rounded()), adapter: index)
        }
    }

    /// The device sends its next number, if a gateway is subscribed.
    func sendNumber() {
        let bytes = withUnsafeBytes(of: number.littleEndian, Array.init)
        if simulator.notify(Self.address, characteristic: "2A37", value: bytes) { sent.append(number) }
        number += 1
    }

    /// The gateways that have a link to the device.
    var linked: [Int] { simulator.links.map(\.adapter) }

    /// Ends the gateways in order.
    func stop() async throws {
        for process in processes { process.signal(SIGTERM) }
        for process in processes { try await process.terminate(limit: .seconds(30)) }
    }

    func end() {
        for process in processes { process.end() }
        simulator.end()
    }

    /// The ends of what the gateways have logged.
    var logs: String {
        zip(Self.names, processes).map { name, process in "--- \(name)\n\(process.output)" }.joined(separator: "\n")
    }
}

/// Counts the links of a device at the moments at which they begin and end.
final class LinkCounter: PeripheralBehavior {
    private let state = Mutex((now: 0, most: 0, begun: 0))

    var most: Int { state.withLock(\.most) }
    var begun: Int { state.withLock(\.begun) }

    func linkChanged(of peripheral: VirtualPeripheral, isUp: Bool, at seconds: TimeInterval) {
        state.withLock { state in
            state.now += isUp ? 1 : -1
            state.most = max(state.most, state.now)
            state.begun += isUp ? 1 : 0
        }
    }
}
