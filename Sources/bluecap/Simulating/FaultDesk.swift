import BlueZSimulator
import Foundation

/// Causes faults, one after another, and returns when clients can see each on the bus. During the pause of a restart, other
/// faults are caused.
final class FaultDesk: Sendable {
    private let simulator: Simulator
    private let turn = NSLock()

    /// How long a fault may take in addition to its own pause, in seconds.
    private static let patience = 10.0

    init(_ simulator: Simulator) { self.simulator = simulator }

    /// - Throws: ``ToolFailure`` if there is no such adapter or peripheral, or if it took too long.
    func perform(_ fault: Fault) throws(ToolFailure) {
        guard case .restartDaemon(let pause) = fault else { return try carryOut(fault) }
        try carryOut(.killDaemon)
        Thread.sleep(forTimeInterval: pause)
        try carryOut(.startDaemon)
    }

    private func carryOut(_ fault: Fault) throws(ToolFailure) {
        turn.lock()
        defer { turn.unlock() }
        switch fault {
        case .killDaemon: try kill()
        case .startDaemon, .restartDaemon: try start()
        case .powerOff(let adapter): simulator.simulatePowerOff(adapter: try present(adapter))
        case .powerOn(let adapter): simulator.simulatePowerOn(adapter: try present(adapter))
        case .rfkill(let isBlocked, let adapter): simulator.simulateRfkill(isBlocked, adapter: try present(adapter))
        case .removeAdapter(let adapter): simulator.simulateAdapterRemoval(try present(adapter))
        case .addAdapter(let adapter):
            try requireDaemon()
            guard !adapters.contains(adapter) else {
                throw ToolFailure("There is an adapter hci\(adapter) already: add one of another number.")
            }
            simulator.simulateAdapterAddition(VirtualAdapter(index: adapter))
        case .denyAccess(let isDenied): simulator.simulateAccessDenied(isDenied)
        case .slowReplies(let seconds): simulator.simulateSlowReplies(by: seconds)
        case .refuseCalls(let count, let member, let error):
            simulator.simulateRefusedCalls(count, of: member, error: error)
        case .ignoreCalls(let count, let member): simulator.simulateUnansweredCalls(count, of: member)
        case .failDiscovery(let count): simulator.simulateStartDiscoveryFailures(count)
        case .stopDiscovery(let adapter, let isAnnounced):
            simulator.simulateDiscoveryDeath(isAnnounced: isAnnounced, adapter: try present(adapter))
        case .outOfRange(let isOut, let address): simulator.simulateOutOfRange(isOut, of: try present(address))
        case .loseLink(let address): simulator.simulateLinkLoss(of: try linked(address))
        case .loseLinkAfter(let address, let requests):
            simulator.simulateDropAfter(requests: requests, of: try present(address))
        case .refuseConnections(let address, let count):
            simulator.simulateConnectFailures(count, of: try present(address))
        case .loseConnections(let address, let count):
            simulator.simulateConnectReplyThenDrop(count, of: try present(address))
        case .silence(let address, let isSilent): simulator.simulateSilence(isSilent, of: try present(address))
        case .slowAnswers(let address, let seconds):
            simulator.simulateLateAnswers(by: seconds, of: try present(address))
        case .forgetDevice(let address): simulator.simulateDeviceRemoval(of: try known(address))
        }
        guard simulator.waitUntilDone(limit: Self.patience) else { throw Self.overdue }
    }

    // MARK: The daemon

    private func kill() throws(ToolFailure) {
        try requireDaemon()
        simulator.simulateDaemonDeath()
        guard simulator.waitForOwner(false, limit: Self.patience) else { throw Self.overdue }
    }

    private func start() throws(ToolFailure) {
        simulator.simulateDaemonReturn()
        guard simulator.waitForOwner(true, limit: Self.patience) else { throw Self.overdue }
    }

    private func requireDaemon() throws(ToolFailure) {
        guard simulator.isDaemonRunning else { throw ToolFailure("bluetoothd is not running; start-daemon starts it.") }
    }

    private static let overdue = ToolFailure("The simulator did not do that within \(Int(patience)) s.")

    // MARK: Adapters and peripherals

    private var adapters: [Int] { simulator.adapters.compactMap { Int($0.path.dropFirst("/org/bluez/hci".count)) } }

    private func present(_ adapter: Int) throws(ToolFailure) -> Int {
        try requireDaemon()
        guard adapters.contains(adapter) else {
            let names = adapters.map { "hci\($0)" }.joined(separator: ", ")
            throw ToolFailure(
                "There is no adapter hci\(adapter); there \(names.isEmpty ? "is none" : "are: \(names)").")
        }
        return adapter
    }

    private func present(_ address: VirtualAddress) throws(ToolFailure) -> VirtualAddress {
        let peripherals = simulator.peripherals
        guard peripherals.contains(where: { $0.address == address }) else {
            let some = peripherals.prefix(12).map {
                "\($0.address)" + ($0.name.map { " (\(DisplayText.name($0)))" } ?? "")
            }
            let list = some.isEmpty ? "there is none" : "there are: " + some.joined(separator: ", ")
            throw ToolFailure(
                "There is no peripheral \(address); \(list)\(peripherals.count > some.count ? " and others" : "").")
        }
        return address
    }

    private func linked(_ address: VirtualAddress) throws(ToolFailure) -> VirtualAddress {
        guard simulator.links.contains(where: { $0.address == address }) else {
            throw ToolFailure("There is no link to \(address): connect to it first.")
        }
        return address
    }

    private func known(_ address: VirtualAddress) throws(ToolFailure) -> VirtualAddress {
        let name = "/dev_" + address.description.replacingOccurrences(of: ":", with: "_")
        guard simulator.devices.contains(where: { $0.hasSuffix(name) }) else {
            throw ToolFailure("bluetoothd has no object of a device \(address): scan for it first.")
        }
        return address
    }
}
