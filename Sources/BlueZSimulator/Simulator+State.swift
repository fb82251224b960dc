import Foundation

/// What a test looks at.
extension Simulator {
    /// What was asked of the simulator and what it said, up to now.
    public var statistics: Statistics { stage.look(\.statistics) }

    /// Whether the daemon runs.
    package var isDaemonRunning: Bool { stage.look(\.isAlive) }

    /// The adapters on the bus, by their number; none while the daemon is dead.
    public var adapters: [AdapterState] {
        stage.look { simulation in
            guard simulation.isAlive else { return [] }
            return simulation.daemon.adapters.sorted { $0.key < $1.key }.map { _, adapter in
                AdapterState(
                    path: adapter.path, address: adapter.hardware.address,
                    alias: adapter.alias ?? adapter.hardware.name,
                    isPowered: adapter.isPowered, isDiscovering: adapter.isDiscovering,
                    isScanning: adapter.kernelScans && !adapter.isDeaf, isDiscoverable: adapter.isDiscoverable)
            }
        }
    }

    /// Who has a part in discovery, scanning clients first; empty when every client has cleaned up after itself.
    public var discoverySessions: [DiscoverySessionState] {
        stage.look { simulation in
            simulation.daemon.adapters.sorted { $0.key < $1.key }.flatMap { _, adapter in
                adapter.scanning.map { $0.state(on: adapter, isScanning: true) }
                    + adapter.waiting.map { $0.state(on: adapter, isScanning: false) }
            }
        }
    }

    /// The paths of the devices on the bus, in the order they came.
    public var devices: [String] {
        stage.look { simulation in
            guard simulation.isAlive else { return [] }
            return simulation.daemon.devices.values.sorted { $0.sequence < $1.sequence }.map(\.path)
        }
    }

    /// Who is in the room, whether it is heard or not.
    public var peripherals: [VirtualPeripheral] { stage.look(\.radio.peripherals) }
}

extension DiscoverySession {
    fileprivate func state(on adapter: Adapter, isScanning: Bool) -> DiscoverySessionState {
        DiscoverySessionState(client: owner, adapter: adapter.path, isScanning: isScanning, filter: filter?.sent)
    }
}
