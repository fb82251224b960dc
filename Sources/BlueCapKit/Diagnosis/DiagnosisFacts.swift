import BlueCapBlueZ
import BlueCapFutures
import Foundation

/// What ``BlueCapDiagnosis`` knows of a machine, before it draws conclusions.
struct DiagnosisFacts: Equatable {
    struct Adapter: Equatable {
        var name: String
        var address: String
        var isPowered = false
        var isBlocked = false
        var isDiscovering = false
        var canServe = true
        var canAdvertise = true
        /// Devices with a link.
        var linkCount = 0
        /// Devices with a bond.
        var bondCount = 0
        /// Characteristics whose notifications or writes go through a socket of another program.
        var socketCount = 0
    }

    /// An entry of the kernel's list of switches for radios.
    struct Switch: Equatable {
        var name: String
        var isBlockedBySoftware: Bool
        var isBlockedByHardware: Bool
    }

    struct Socket: Equatable {
        var path: String
        var exists = true
        /// Whether this user may connect to it.
        var isWritable = true
    }

    /// What the files of the system show; `nil` if the bus is not the system's.
    struct Machine: Equatable {
        /// The address of the system bus.
        var busAddress = "unix:path=/run/dbus/system_bus_socket"
        /// The address's socket; `nil` if the address names none.
        var socket: Socket?
        /// The kind of the container that the process runs in; `nil` outside of one.
        var container: String?
        var user: UInt32 = 0
        var kernel: String?
        /// The controllers that the kernel knows, such as `hci0`.
        var controllers: [String] = []
        /// The Bluetooth switches.
        var switches: [Switch] = []
        /// The model of a single-board computer.
        var model: String?
    }

    var availability = Availability.ready
    /// The adapter that the options name.
    var wanted: String?
    var adapters: [Adapter] = []
    var capabilities = BluetoothCapabilities()
    var machine: Machine?
}

extension DiagnosisFacts {
    /// - Parameter root: The folder in which the files of the system are.
    init(of manager: CentralManager, wanted: String?, root: String) {
        let session = manager.session
        self.wanted = wanted
        availability = session.client.availability
        capabilities = manager.capabilities
        var other: DaemonCapabilities?
        session.client.withTree { tree in
            for (candidate, key) in AdapterChoice.candidates(in: tree) {
                guard let values = tree[adapter: key] else { continue }
                other = values.capabilities
                var adapter = Adapter(name: candidate.name, address: candidate.address)
                adapter.isPowered = values.isPowered
                adapter.isBlocked = values.powerState == .blocked
                adapter.isDiscovering = values.isDiscovering
                adapter.canServe = values.interfaces.contains(.gattManager)
                adapter.canAdvertise = values.interfaces.contains(.advertisingManager)
                tree.forEachDevice(on: key) { device, values in
                    if values.isConnected { adapter.linkCount += 1 }
                    if values.keepsKeys { adapter.bondCount += 1 }
                    adapter.socketCount += tree.attributes(of: device).count {
                        $0.isNotifyAcquired || $0.isWriteAcquired
                    }
                }
                adapters.append(adapter)
            }
        }
        adapters = adapters.ordered { $0.name < $1.name }
        // Without the adapter in use, another one has the version too.
        if capabilities == BluetoothCapabilities(), let other { capabilities = BluetoothCapabilities(other) }
        if session.configuration.busAddress == nil { machine = Machine(root: root) }
    }
}

extension DiagnosisFacts.Machine {
    /// Reads the files of the system, none of which can keep the reader waiting.
    init(root: String, environment: [String: String] = ProcessInfo.processInfo.environment) {
        let files = FileManager.default
        func path(_ name: String) -> String { root + name }
        func text(_ name: String) -> String? {
            files.contents(atPath: path(name)).map {
                String(decoding: $0.filter { $0 != 0 }, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            }
        }
        func names(in folder: String) -> [String] {
            ((try? files.contentsOfDirectory(atPath: path(folder))) ?? []).ordered()
        }
        if let address = environment["DBUS_SYSTEM_BUS_ADDRESS"], !address.isEmpty { busAddress = address }
        let prefix = "unix:path="
        if busAddress.hasPrefix(prefix), let place = busAddress.dropFirst(prefix.count).split(separator: ",").first {
            let file = root == "/" ? String(place) : root + place.dropFirst()
            socket = DiagnosisFacts.Socket(
                path: String(place), exists: files.fileExists(atPath: file),
                isWritable: files.isWritableFile(atPath: file))
        }
        container =
            if files.fileExists(atPath: path("run/.containerenv")) {
                "podman"
            } else if files.fileExists(atPath: path(".dockerenv")) {
                "docker"
            } else {
                environment["container"]
            }
        user = geteuid()
        kernel = text("proc/sys/kernel/osrelease")
        controllers = names(in: "sys/class/bluetooth").filter { $0.hasPrefix("hci") && !$0.contains(":") }
        switches = names(in: "sys/class/rfkill").compactMap { name in
            guard text("sys/class/rfkill/\(name)/type") == "bluetooth" else { return nil }
            return DiagnosisFacts.Switch(
                name: text("sys/class/rfkill/\(name)/name") ?? name,
                isBlockedBySoftware: text("sys/class/rfkill/\(name)/soft") == "1",
                isBlockedByHardware: text("sys/class/rfkill/\(name)/hard") == "1")
        }
        model = text("proc/device-tree/model")
    }
}
