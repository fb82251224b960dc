import BlueZSimulator
import Foundation
import GatewayTestSupport
import XCTest

/// A gateway's process with a simulated BlueZ, whose device counts, and a broker.
final class GatewayStage {
    static let address: VirtualAddress = "C0:FF:EE:00:00:01"
    static let topic = "bluecap/attic/value/c0ffee000001/180d/2a37"

    let simulator: Simulator
    let broker: MosquittoBroker
    let directory: TemporaryDirectory
    private(set) var process: ServerProcess?
    private var starts = 0

    /// The device notifies a number, which counts from 0 for each subscription, at this interval in seconds.
    init(every interval: TimeInterval) async throws {
        simulator = try Simulator.onPrivateBus(room: .empty)
        simulator.add(
            VirtualPeripheral(
                Self.address, advertisement: Advertisement(localName: "Tag"), interval: 0.1,
                services: [
                    VirtualService(
                        "180D",
                        characteristics: [
                            VirtualCharacteristic("2A37", [.notify], notifications: .counter(size: 4, every: interval)),
                            VirtualCharacteristic("2A39", [.write], value: []),
                            VirtualCharacteristic("2A38", [.read], value: [1]),
                        ])
                ]))
        broker = try await MosquittoBroker()
        directory = try TemporaryDirectory()
    }

    func start() throws {
        starts += 1
        let configuration = """
            name: attic
            logLevel: warning
            broker: {addresses: ["\(broker.address)"], keepAlive: 5s}
            peripherals:
              - name: Tag
                characteristics: [{service: 180D, uuid: 2A37, as: uint32}]
            commands:
              allow: [{peripheral: Tag, read: ["180D/2A38"]}]
            store: {path: \(directory.path("store.sqlite"))}
            page: {enabled: false}
            claims: {enabled: false}
            """
        let file = try directory.write("gateway.yaml", configuration)
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("bluecap-gateway")
        process = try ServerProcess(
            program.path, ["--config", file], environment: ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address],
            log: directory.url.appendingPathComponent("gateway-\(starts).log"))
    }

    /// Ends the gateway's process at once.
    func kill() { process?.end() }

    /// Ends the gateway in order.
    func stop() async throws { try await process?.terminate(limit: .seconds(30)) }

    func end() {
        process?.end()
        broker.kill()
        simulator.end()
    }
}

/// A stored message as a subscriber receives it.
struct Delivered: Decodable, Equatable {
    var sequence: Int
    var repeated: Bool?
    var raw: String?
    var reason: String?
    var dropped: Int?

    /// The number that the device has sent.
    var number: UInt32? {
        guard let raw, raw.utf8.count == 8 else { return nil }
        return UInt32(raw, radix: 16)?.byteSwapped
    }
}

extension [Delivered] {
    /// Fails unless the first deliveries are all numbers from 1 on in their order, each later one is marked, and between gaps
    /// the device's numbers follow one another. A broker that was killed may itself deliver a message again, as it was.
    func expectComplete(brokerWasKilled: Bool = false, line: UInt = #line) {
        var highest = 0
        var first: [Int: Delivered] = [:]
        var last: UInt32?
        for message in self {
            if message.sequence <= highest {
                if brokerWasKilled, message == first[message.sequence] { continue }
                XCTAssertEqual(message.repeated, true, "\(message.sequence) came again, without a mark", line: line)
                continue
            }
            XCTAssertEqual(message.sequence, highest + 1, "after \(highest)", line: line)
            highest = message.sequence
            first[highest] = message
            if message.reason != nil {
                last = nil
            } else {
                if let last { XCTAssertEqual(message.number, last + 1, "the device's number", line: line) }
                last = message.number
            }
        }
    }
}
