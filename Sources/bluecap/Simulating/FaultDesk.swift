import BlueZSimulator
import Foundation

/// Carries faults out, one after another, and returns when each is done: when clients can see it on the bus. While a restart
/// pauses, other faults are carried out.
final class FaultDesk: Sendable {
    private let simulator: Simulator
    private let turn = NSLock()

    /// How long a fault may take beside what it asks for, in seconds.
    private static let patience = 10.0

    init(_ simulator: Simulator) { self.simulator = simulator }

    /// - Throws: ``FaultError`` where there is no such adapter or peripheral, or where it took too long.
    func perform(_ fault: Fault) throws(FaultError) {
        guard case .restartDaemon(let pause) = fault else { return try carryOut(fault) }
        try carryOut(.killDaemon)
        Thread.sleep(forTimeInterval: pause)
        try carryOut(.startDaemon)
    }

    private func carryOut(_ fault: Fault) throws(FaultError) {
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
            guard !adapters.contains(adapter) else { throw FaultError("There is an adapter hci\(adapter) already.") }
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

    private func kill() throws(FaultError) {
        try requireDaemon()
        simulator.simulateDaemonDeath()
        guard simulator.waitForOwner(false, limit: Self.patience) else { throw Self.overdue }
    }

    private func start() throws(FaultError) {
        simulator.simulateDaemonReturn()
        guard simulator.waitForOwner(true, limit: Self.patience) else { throw Self.overdue }
    }

    private func requireDaemon() throws(FaultError) {
        guard simulator.isDaemonRunning else { throw FaultError("bluetoothd is not running; start-daemon starts it.") }
    }

    private static let overdue = FaultError("The simulator did not do that within \(Int(patience)) s.")

    // MARK: What there is

    private var adapters: [Int] { simulator.adapters.compactMap { Int($0.path.dropFirst("/org/bluez/hci".count)) } }

    private func present(_ adapter: Int) throws(FaultError) -> Int {
        try requireDaemon()
        guard adapters.contains(adapter) else {
            let names = adapters.map { "hci\($0)" }.joined(separator: ", ")
            throw FaultError("There is no adapter hci\(adapter); there \(names.isEmpty ? "is none" : "are: \(names)").")
        }
        return adapter
    }

    private func present(_ address: VirtualAddress) throws(FaultError) -> VirtualAddress {
        let peripherals = simulator.peripherals
        guard peripherals.contains(where: { $0.address == address }) else {
            let some = peripherals.prefix(12).map {
                "\($0.address)" + ($0.name.map { " (\(DisplayText.name($0)))" } ?? "")
            }
            let list = some.isEmpty ? "there is none" : "there are: " + some.joined(separator: ", ")
            throw FaultError(
                "The room has no peripheral \(address); \(list)\(peripherals.count > some.count ? " and others" : "").")
        }
        return address
    }

    private func linked(_ address: VirtualAddress) throws(FaultError) -> VirtualAddress {
        guard simulator.links.contains(where: { $0.address == address }) else {
            throw FaultError("There is no link to \(address).")
        }
        return address
    }

    private func known(_ address: VirtualAddress) throws(FaultError) -> VirtualAddress {
        let name = "/dev_" + address.description.replacingOccurrences(of: ":", with: "_")
        guard simulator.devices.contains(where: { $0.hasSuffix(name) }) else {
            throw FaultError("bluetoothd has no object of a device \(address).")
        }
        return address
    }
}
