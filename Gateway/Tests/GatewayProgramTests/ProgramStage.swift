import BlueZSimulator
import Foundation
import GatewayTestSupport
import XCTest

/// The real program with a simulated BlueZ, for tests of what its user sees.
final class ProgramStage {
    let simulator: Simulator
    let directory: TemporaryDirectory
    private var count = 0

    init(adapterIsPowered: Bool = true) throws {
        simulator = try Simulator.onPrivateBus(
            room: .empty, adapters: [VirtualAdapter(isPowered: adapterIsPowered)])
        simulator.add(GatewayStage.device(every: 0.05))
        directory = try TemporaryDirectory()
    }

    /// Starts the program with a configuration, to which the store is added.
    func start(
        _ configuration: String, _ arguments: [String] = [], environment: [String: String] = [:]
    ) throws -> ServerProcess {
        count += 1
        let store =
            configuration.contains("store:") ? "" : "\nstore: {path: \(directory.path("store-\(count).sqlite"))}\n"
        let file = try directory.write("gateway-\(count).yaml", configuration + store)
        return try run(["--config", file] + arguments, environment: environment)
    }

    /// Starts the program.
    func run(_ arguments: [String], environment: [String: String] = [:]) throws -> ServerProcess {
        count += 1
        return try ServerProcess(
            builtProgram("bluecap-gateway"), arguments,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address].merging(environment) { $1 },
            log: directory.url.appendingPathComponent("gateway-\(count).log"))
    }

    func end() { simulator.end() }
}

extension ServerProcess {
    /// All that the program has written.
    var text: String { String(decoding: (try? Data(contentsOf: log)) ?? Data(), as: UTF8.self) }

    /// Waits until the program has written a text.
    func wait(for text: String, limit: Duration = .seconds(20)) async throws {
        try await eventually(limit: limit, "\"\(text)\" in:\n\(self.text)") { self.text.contains(text) }
    }

    /// Waits for the end of the program, and returns its status.
    func status(limit: Duration = .seconds(20)) async throws -> Int32 {
        try await eventually(limit: limit, "the end; it has written: \(text)") { !isRunning }
        let status = try XCTUnwrap(exitStatus)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
    }
}
