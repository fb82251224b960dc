import BlueCapBlueZ
import BlueCapDBus

/// From facts to findings. Each property has the findings about one subject; the texts say what to do.
extension DiagnosisFacts {
    typealias Finding = BlueCapDiagnosis.Finding

    var findings: [Finding] {
        aboutProcess + aboutBus + aboutDaemon + aboutVersion + adapters.flatMap(about) + aboutKernel
    }

    /// One finding, as a list.
    private func finding(
        _ severity: BlueCapDiagnosis.Severity, _ subject: String, _ found: String, advice: String? = nil
    ) -> [Finding] { [Finding(severity: severity, subject: subject, found: found, advice: advice)] }

    private var aboutProcess: [Finding] {
        guard let machine else { return [] }
        guard let container = machine.container else {
            return finding(.ok, "process", "It runs as the user \(machine.user), outside of a container.")
        }
        return finding(
            .note, "process", "It runs in a container (\(container)), as the user \(machine.user) of the container.",
            advice:
                "A container uses the host's bluetoothd: mount /run/dbus, and run as a user that exists on the host too."
        )
    }

    private var aboutBus: [Finding] {
        switch availability {
        case .connecting:
            finding(.problem, "bus", "The bus has not replied in time.", advice: "Look at `systemctl status dbus`.")
        case .noBus(let error):
            finding(
                .problem, "bus", "There is no connection to the bus (\(error.message)).",
                advice: machine.map(adviceOnBus) ?? "Check the address of the bus.")
        case .refused(let error):
            finding(
                .problem, "bus", "The bus does not allow this process to call bluetoothd (\(error.message)).",
                advice:
                    "Look at the policy in bluetooth.conf in /usr/share/dbus-1/system.d or /etc/dbus-1/system.d. If "
                    + "it names a group, such as bluetooth, add the user to it (`sudo usermod -aG bluetooth USER`) and log "
                    + "in again.")
        case .noDaemon, .loading, .notLoaded, .ready:
            finding(.ok, "bus", "The bus replies, and admits this process.")
        }
    }

    private func adviceOnBus(_ machine: Machine) -> String {
        if let socket = machine.socket, !socket.exists {
            return machine.container == nil
                ? "\(socket.path) does not exist: start dbus (`systemctl start dbus`), or correct DBUS_SYSTEM_BUS_ADDRESS."
                : "\(socket.path) does not exist in the container: mount its folder from the host, for example "
                    + "with `-v /run/dbus:/run/dbus:ro`."
        }
        if let socket = machine.socket, !socket.isWritable {
            return "The user \(machine.user) may not write to \(socket.path): look at its permissions"
                + (machine.container == nil ? "." : ", and at the user that the container runs as.")
        }
        return "The address is \(machine.busAddress): check that a bus serves it (`systemctl status dbus`)."
    }

    private var aboutDaemon: [Finding] {
        switch availability {
        case .connecting, .noBus, .refused: []
        case .noDaemon:
            finding(
                .problem, "bluetoothd", "It does not run.",
                advice: "Start it with `systemctl start bluetooth`; if it is missing, install the package bluez.")
        case .loading, .notLoaded:
            finding(
                .problem, "bluetoothd", "It has the name org.bluez, and does not reply.",
                advice: "Restart it with `systemctl restart bluetooth`; `journalctl -u bluetooth` shows its log.")
        case .ready: finding(.ok, "bluetoothd", "It runs and replies.")
        }
    }

    // MARK: The version

    private var aboutVersion: [Finding] {
        guard availability == .ready, !adapters.isEmpty else { return [] }
        guard let version = capabilities.version else {
            return finding(
                .note, "version",
                "BlueZ hides its version (DeviceID in main.conf); the library finds out what it needs to know.")
        }
        let experimental = capabilities.experimental ? ", with experimental interfaces" : ""
        let not = Self.tested.contains(version.description) ? "" : "not "
        let isOld = version < BluetoothCapabilities.Version(5, 55)
        return finding(
            isOld ? .warning : .ok, "version",
            "BlueZ \(version)\(experimental); the library is \(not)tested with it.",
            advice: isOld ? "The library's facts begin with 5.55: install a newer BlueZ." : nil)
            + KnownFault.all.filter { $0.versions.contains(version) }
            .flatMap { finding(.note, "version", $0.found, advice: $0.advice) }
    }

    /// Documentation/Testing.md has the results.
    static let tested = ["5.66", "5.82", "5.87"]

    /// A fault of some versions of BlueZ that a program or its user can notice.
    struct KnownFault {
        let versions: ClosedRange<BluetoothCapabilities.Version>
        let found: String
        let advice: String?
        /// A part of the sentence of Documentation/BlueZNotes.md that has the fact.
        let source: String

        /// The newest version of which the facts are known, and those after it.
        private static let open = BluetoothCapabilities.Version(5, 9_999)

        static let all = [
            KnownFault(
                versions: .init(5, 0) ... .init(5, 75),
                found:
                    "It sends each value that a program serves to all subscribed centrals: one alone is possible from 5.76.",
                advice: nil, source: "that central only (`gatt_notify_cb(…, client->att)`)"),
            KnownFault(
                versions: .init(5, 67)...open,
                found: "A read whose pairing failed may stay without a reply; the library ends it by its time-out.",
                advice: "Pair before the first read of a protected value.",
                source: "Reads without a reply after failed pairing: 5.67 to HEAD"),
            KnownFault(
                versions: .init(5, 69)...open,
                found:
                    "When a central without a bond leaves, BlueZ closes the notification socket of another one; the library "
                    + "sends by the other way, which is not affected.",
                advice: nil, source: "an unbonded central that leaves closes another central's socket"),
            KnownFault(
                versions: .init(5, 87) ... .init(5, 87),
                found:
                    "bluetoothd ends itself if a program filters a scan by services, or removes a connected device. This "
                    + "library does neither, other programs may.",
                advice: "If bluetoothd restarts now and then, find the program that does so.",
                source: "crashes on a `UUIDs` discovery filter"),
        ]
    }

    // MARK: Adapters

    private func about(_ adapter: Adapter) -> [Finding] {
        func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        func finding(
            _ severity: BlueCapDiagnosis.Severity, _ found: String, advice: String? = nil
        ) -> [Finding] { self.finding(severity, "adapter \(adapter.name)", found, advice: advice) }
        let isUsed = adapter.name == used
        var findings: [Finding] = []
        if adapter.isPowered {
            let limits = (adapter.canServe ? "" : ", cannot serve") + (adapter.canAdvertise ? "" : ", cannot advertise")
            findings += finding(
                .ok,
                "\(adapter.address): on\(limits), \(count(adapter.linkCount, "link")), \(count(adapter.bondCount, "bond"))."
            )
        } else if adapter.isBlocked {
            findings += finding(
                isUsed ? .problem : .warning, "\(adapter.address): blocked.",
                advice: "Unblock it with `rfkill unblock bluetooth`, or with the computer's switch for radios.")
        } else {
            findings += finding(
                isUsed ? .problem : .warning, "\(adapter.address): off.",
                advice:
                    "Switch it on with `bluetoothctl power on`; AutoEnable=true in /etc/bluetooth/main.conf does so "
                    + "at each start.")
        }
        if adapter.isDiscovering {
            findings += finding(
                .note, "A program scans with it, this one or another.",
                advice: "A scan slows connections down, and may hide advertisements from others.")
        }
        if adapter.socketCount > 0 {
            findings += finding(
                .note, "Other programs use \(count(adapter.socketCount, "characteristic")) through a socket.",
                advice: "This program can neither subscribe to those over a socket nor receive their values.")
        }
        return findings
    }

    /// The name of the adapter that a manager uses.
    private var used: String? {
        var choice = AdapterChoice(wanted: wanted)
        return choice.choose(from: adapters.map { .init(name: $0.name, address: $0.address) })?.name
    }

    // MARK: The kernel

    private var aboutKernel: [Finding] {
        var findings: [Finding] = []
        let controllers = machine?.controllers.joined(separator: ", ") ?? ""
        if availability == .ready, let wanted, !adapters.isEmpty, used == nil {
            findings += finding(
                .problem, "adapter \(wanted)", "There is no such adapter.",
                advice: "Choose among \(adapters.map(\.name).joined(separator: ", ")).")
        }
        if availability == .ready, adapters.isEmpty {
            findings += finding(
                .problem, "adapter", "bluetoothd has no Bluetooth adapter.",
                advice: controllers.isEmpty
                    ? adviceWithoutController
                    : "The kernel has \(controllers): restart bluetoothd, and look at `journalctl -u bluetooth`.")
        }
        guard let machine else { return findings }
        if let kernel = machine.kernel {
            findings += finding(
                .ok, "kernel",
                "Linux \(kernel)\(machine.model.map { " on \($0)" } ?? ""), with "
                    + "\(controllers.isEmpty ? "no Bluetooth controller" : controllers).")
        }
        for one in machine.switches where one.isBlockedByHardware || one.isBlockedBySoftware {
            findings += finding(
                .warning, "rfkill",
                "\(one.name) is blocked by \(one.isBlockedByHardware ? "a switch of the computer" : "software").",
                advice: one.isBlockedByHardware
                    ? "Use the switch or the key for radios." : "Unblock it with `rfkill unblock bluetooth`.")
        }
        return findings
    }

    private var adviceWithoutController: String {
        if machine?.model?.hasPrefix("Raspberry Pi") == true {
            return
                "Check that /boot/firmware/config.txt does not contain dtoverlay=disable-bt, that the service hciuart runs, "
                + "and look at `dmesg | grep -i bluetooth`."
        }
        return machine?.container == nil
            ? "Plug one in; `dmesg | grep -i bluetooth` shows missing drivers or firmware, `rfkill list` a blocked radio."
            : "The host has none, or its bluetoothd does not run."
    }
}
