import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

/// Several gateways that report one device over a broker that delays messages.
final class ReporterTests: XCTestCase {
    /// Gateways and a broker in virtual time: each connection keeps its order, and delays what it carries.
    private struct Network {
        struct Gateway {
            var value: HomeAssistant
            var toBroker: [(due: Duration, message: BrokerMessage)] = []
            var fromBroker: [(due: Duration, message: BrokerMessage)] = []
            var isConnected = false
            var rssi: Int?
        }

        var generator: SeededNumbers
        var time = Duration.zero
        var gateways: [String: Gateway] = [:]
        var retained: [String: Data] = [:]
        var reporters: [String] = []
        let device = devices(1)[0]
        let start = Date(timeIntervalSince1970: 1_772_366_400)

        init(seed: UInt64) { generator = SeededNumbers(seed) }

        mutating func add(_ name: String) {
            let value = HomeAssistant(
                .init(prefix: "homeassistant", absentAfter: .seconds(60), removeAfter: .seconds(86_400)),
                topics: Topics(prefix: "bluecap", gateway: name), deviceLimit: 10, version: "1")
            gateways[name] = Gateway(value: value)
            connect(name)
        }

        mutating func connect(_ name: String) {
            gateways[name]?.isConnected = true
            handle(name, .connected)
            accept(BrokerMessage(topic: "bluecap/\(name)/state", payload: state(.online, name)))
            for (topic, payload) in retained.sorted(by: { $0.key < $1.key }) {
                deliver(BrokerMessage(topic: topic, payload: payload), to: name)
            }
        }

        /// The connection ends: what was under way is lost, and the broker publishes the will.
        mutating func disconnect(_ name: String) {
            guard gateways[name]?.isConnected == true else { return }
            gateways[name]?.toBroker = []
            gateways[name]?.fromBroker = []
            gateways[name]?.isConnected = false
            handle(name, .disconnected)
            accept(BrokerMessage(topic: "bluecap/\(name)/state", payload: state(.offline, name)))
        }

        private func state(_ state: GatewayStatePayload.State, _ name: String) -> Data {
            GatewayStatePayload(state: state, gateway: name, version: "1", time: start).json
        }

        private mutating func handle(_ name: String, _ event: HomeAssistant.Event) {
            let (time, start) = (time, start)
            gateways[name]?.value.handle(event, at: time, date: start.addingTimeInterval(time / .seconds(1)))
        }

        private mutating func delay(after last: Duration?) -> Duration {
            max(time + .milliseconds(Int.random(in: 0...800, using: &generator)), last ?? .zero)
        }

        private mutating func deliver(_ message: BrokerMessage, to name: String) {
            let due = delay(after: gateways[name]?.fromBroker.last?.due)
            gateways[name]?.fromBroker.append((due, message))
        }

        private mutating func accept(_ message: BrokerMessage) {
            if message.topic == "bluecap/device/\(device)",
                let payload = try? JSONDecoder().decode(
                    DevicePayload.self, from: message.payload), reporters.last != payload.gateway
            {
                reporters.append(payload.gateway)
            }
            retained[message.topic] = message.payload.isEmpty ? nil : message.payload
            for name in gateways.keys.sorted() where gateways[name]?.isConnected == true { deliver(message, to: name) }
        }

        mutating func step() {
            time += .milliseconds(250)
            for name in gateways.keys.sorted() {
                while let first = gateways[name]?.toBroker.first, first.due <= time {
                    gateways[name]?.toBroker.removeFirst()
                    accept(first.message)
                }
                while let first = gateways[name]?.fromBroker.first, first.due <= time {
                    gateways[name]?.fromBroker.removeFirst()
                    handle(name, .received(first.message))
                }
                if let rssi = gateways[name]?.rssi, Int.random(in: 0..<4, using: &generator) == 0 {
                    let noisy = rssi + Int.random(in: -3...3, using: &generator)
                    handle(
                        name,
                        .reading(
                            device,
                            ReadingPayload(
                                format: "x", rssi: noisy,
                                readings: [
                                    .init(
                                        "temperature", .number(Double(Int.random(in: 20...25, using: &generator))),
                                        unit: "°C")
                                ])))
                }
                handle(name, .tick)
                let time = time
                for pending in gateways[name]?.value.pending(limit: 3, at: time) ?? [] {
                    gateways[name]?.value.sent(pending, at: time)
                    let due = delay(after: gateways[name]?.toBroker.last?.due)
                    gateways[name]?.toBroker.append((due, pending.message))
                }
            }
        }

        mutating func pass(_ seconds: Int) { for _ in 0..<(seconds * 4) { step() } }
    }

    /// Random strengths, lost connections and restarts; then a quiet time, after which the best gateway is the only reporter.
    func testTheGatewaysAgreeOnOneReporterAfterEachDisturbance() throws {
        let runs = ProcessInfo.processInfo.environment["BLUECAP_LONG"] == "1" ? 2_000 : 100
        print("seed \(SeededNumbers.seed), \(runs) runs")
        for run in 0..<runs {
            var network = Network(seed: SeededNumbers.seed &+ UInt64(run))
            let names = Array(
                ["attic", "barn", "cellar", "garden"].prefix(Int.random(in: 2...4, using: &network.generator)))
            for name in names { network.add(name) }
            for name in names { network.gateways[name]?.rssi = Int.random(in: -90 ... -50, using: &network.generator) }
            network.pass(5)
            for _ in 0..<Int.random(in: 1...4, using: &network.generator) {
                let name = names.randomElement(using: &network.generator) ?? ""
                switch Int.random(in: 0..<4, using: &network.generator) {
                case 0:
                    network.disconnect(name)
                    network.pass(Int.random(in: 0...20, using: &network.generator))
                    network.connect(name)
                case 1:
                    network.disconnect(name)
                    network.pass(Int.random(in: 0...20, using: &network.generator))
                    network.add(name)
                    network.gateways[name]?.rssi = Int.random(in: -90 ... -50, using: &network.generator)
                case 2: network.gateways[name]?.rssi = nil
                default: network.gateways[name]?.rssi = Int.random(in: -90 ... -50, using: &network.generator)
                }
                network.pass(Int.random(in: 0...15, using: &network.generator))
            }
            // One gateway is clearly the best.
            let best = names.randomElement(using: &network.generator) ?? ""
            for name in names {
                network.gateways[name]?.rssi =
                    name == best ? -45 : Int.random(in: -90 ... -62, using: &network.generator)
            }
            network.pass(60)
            let reporters = names.filter { network.gateways[$0]?.value.reports(network.device) ?? false }
            XCTAssertEqual(reporters, [best], "run \(run)")
            let before = network.reporters.count
            network.pass(60)
            XCTAssertEqual(
                network.reporters.count, before, "run \(run): the reporter changes although nothing else does")
            // What the broker keeps is the best gateway's.
            let state = try JSONDecoder().decode(
                DevicePayload.self, from: try XCTUnwrap(network.retained["bluecap/device/\(network.device)"]))
            XCTAssertEqual(state.gateway, best, "run \(run)")
            let configs = network.retained.filter { $0.key.hasPrefix("homeassistant/") }
            XCTAssertEqual(configs.count, 3, "run \(run)")
            for (topic, payload) in configs {
                XCTAssertTrue(
                    String(decoding: payload, as: UTF8.self).contains("bluecap/\(best)/state"), "run \(run): \(topic)")
            }
        }
    }
}
