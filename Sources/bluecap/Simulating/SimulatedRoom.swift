import ArgumentParser
import BlueZSimulator
import Dispatch

/// A simulator on a bus of its own, for the length of one command.
struct SimulatedRoom: Sendable {
    private let simulator: Simulator
    private let adapterCount: Int

    /// - Parameters:
    ///   - room: The virtual peripherals; `nil` for the usual ones.
    ///   - adapters: The number of adapters.
    ///   - bluez: The version of BlueZ that is simulated.
    /// - Throws: ``ToolFailure`` if no bus can be started.
    init(_ room: Room?, adapters: Int = 1, bluez: BlueZVersion? = nil) throws {
        adapterCount = adapters
        // A crowd of a million takes seconds.
        let notice = DispatchWorkItem { Output.remark("Preparing the virtual peripherals …") }
        if Output.error.isTerminal {
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience, execute: notice)
        }
        defer { notice.cancel() }
        do {
            simulator = try Simulator.onPrivateBus(
                room: room ?? .furnished, adapters: (0..<adapters).map { VirtualAdapter(index: $0) },
                bluez: bluez ?? .default)
        } catch {
            throw ToolFailure(error.description)
        }
    }

    /// Seconds that this may take without a message.
    private static let patience = 0.6

    /// The address of the bus.
    var address: String { simulator.address }

    /// Adds a virtual central at each adapter.
    func sendVisitor() {
        for number in 0..<adapterCount { Visitor.send(to: number, of: simulator) }
    }

    /// Opens a socket over which other processes inject faults, at a path, or in the directory of the private bus.
    ///
    /// - Throws: ``ToolFailure`` if it cannot be opened.
    func openControl(at path: String?) throws -> ControlSocket {
        guard let path = path ?? simulator.controlPath else {
            throw ToolFailure("The simulator has no directory for a control socket: give a path with --control.")
        }
        return try ControlSocket(at: path, FaultDesk(simulator))
    }

    /// Ends the simulator and its bus.
    func end() { simulator.end() }

    static let help = ArgumentHelp(
        "The virtual peripherals: room, empty, crowd:N or a JSON file.", valueName: "file|name")

    static let versionHelp = ArgumentHelp(
        "The version of BlueZ that is simulated: 5.55 to 5.87, or head. (default: \(BlueZVersion.default))",
        valueName: "version")

    /// Reads a version of BlueZ on the command line.
    @Sendable static func version(_ text: String) throws -> BlueZVersion {
        guard let version = BlueZVersion(text) else {
            throw ValidationError("It is not a version of BlueZ, such as 5.72.")
        }
        let known = BlueZVersion.known
        guard version >= known.lowerBound else {
            throw ValidationError("The simulator knows BlueZ \(known.lowerBound) and newer.")
        }
        guard version <= known.upperBound else {
            throw ValidationError("The simulator knows BlueZ up to 5.87, and its development version as \"head\".")
        }
        return version
    }

    /// Reads a set of virtual peripherals on the command line.
    @Sendable static func room(_ name: String) throws -> Room {
        do {
            return try Room.named(name)
        } catch {
            throw ValidationError(error.description)
        }
    }
}
