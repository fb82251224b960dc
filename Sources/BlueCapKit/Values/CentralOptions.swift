import Foundation
import Logging

// The options that this library adds to those that GATT has from Core Bluetooth. All are keys of the `options`
// dictionaries. A value of the wrong type or range fails with `CentralManagerError.invalidOption`.

/// `CentralManager(options:)`: the D-Bus address of the bus to use, a `String`.
///
/// Without this option the manager uses the system bus (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). Set it to the address
/// of a simulator to use that.
public let CentralManagerOptionBusAddressKey = "CentralManagerOptionBusAddressKey"

/// `CentralManager(options:)`: the adapter to use, a `String`: a name such as `hci0`, or an address such as
/// `00:1A:7D:DA:71:13`.
///
/// Without this option the manager uses the adapter with the lowest number, and keeps it, by its address, while it is
/// present.
///
/// If several adapters have one address, the manager uses the one that it used last, by its name, or else the one with
/// the lowest number. That also holds if the option is their address.
public let CentralManagerOptionAdapterKey = "CentralManagerOptionAdapterKey"

/// `CentralManager(options:)`: the largest number of peripherals that the manager remembers, an `Int` from 1; 16 384
/// without this option.
///
/// If more peripherals are received, the manager first forgets those from which it has received nothing for the longest
/// time.
public let CentralManagerOptionMaximumPeripheralsKey = "CentralManagerOptionMaximumPeripheralsKey"

/// `CentralManager(options:)`: whether links that the manager opened stay up when it is deallocated, a `Bool`; `false`
/// without this option.
///
/// `bluetoothd` keeps a link after the program that requested it has ended, and a connected peripheral no longer
/// advertises, so a scan would not find it. The manager never ends links that other programs opened.
public let CentralManagerOptionKeepsLinksKey = "CentralManagerOptionKeepsLinksKey"

/// `CentralManager(options:)`: what the manager replies when a pairing needs an answer, a ``PairingPolicy``, or the
/// `String` `reject`, `justWorks` or `ask`; ``PairingPolicy/reject`` without this option.
///
/// See ``CentralManager/pairingPolicy``.
public let CentralManagerOptionPairingPolicyKey = "CentralManagerOptionPairingPolicyKey"

/// `CentralManager(options:)`: what the manager logs, a swift-log `Logger`; nothing without this option.
///
/// | level | what is logged |
/// |---|---|
/// | `error` | a scan that BlueZ has refused; a kept state that cannot be restored |
/// | `warning` | Bluetooth cannot be used; attempts to connect are given up; a subscription has failed; a scan was restarted |
/// | `notice` | a link was lost; an attempt timed out; a subscription was resumed, with a gap |
/// | `info` | Bluetooth can be used; scans, links, subscriptions and pairings that begin and end; operations that fail |
/// | `debug` | the steps: attempts, searches, discoveries of services, subscriptions that are requested |
/// | `trace` | each discovered peripheral, read and write, with the length of what is written |
///
/// The metadata has `adapter`, `peripheral` (its address), `service`, `characteristic` and `operation`, where there is one.
/// Values of characteristics, passkeys and keys are never logged. The handler is called on the thread that communicates with
/// the bus, and must return quickly.
public let CentralManagerOptionLoggerKey = "CentralManagerOptionLoggerKey"

/// `CentralManager(options:)`: the folder in which state is kept, a `String` with an absolute path, such as the one
/// that systemd passes to a service in `STATE_DIRECTORY`; `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap` without
/// this option.
///
/// The folder is created if it is missing. The option has an effect only together with
/// `CBCentralManagerOptionRestoreIdentifierKey`. The folder must belong to the user of this process or to root, and
/// must not be writable by others unless it is sticky. A symbolic link is followed only if it belongs to the system, as
/// those of systemd do. Otherwise no state is restored or kept.
public let CentralManagerOptionStateDirectoryKey = "CentralManagerOptionStateDirectoryKey"

/// `startScanning(options:)`: the weakest signal to report, an `Int` in dBm from -127 to 20.
///
/// A sighting without a known strength is never reported while a threshold is set.
public let CentralManagerScanOptionRSSIThresholdKey = "CentralManagerScanOptionRSSIThresholdKey"

/// `startScanning(options:)`: a prefix of the name or of the address that a peripheral must have, a `String`.
///
/// Names are compared with regard to case, addresses without.
public let CentralManagerScanOptionPatternKey = "CentralManagerScanOptionPatternKey"

/// `startScanning(options:)`: the number of seconds without any report after which the discovery is restarted, a
/// number; 90 without this option, 0 for never.
public let CentralManagerScanOptionWatchdogKey = "CentralManagerScanOptionWatchdogKey"

/// Reads an `options` dictionary: returns `nil` for a missing key, and throws an error for a wrong value that says what
/// the key takes.
struct OptionReader {
    private let options: [String: Any]

    init(_ options: [String: Any]?) { self.options = options ?? [:] }

    /// Sets in a configuration what the options contain. What follows a wrong value stays as it is.
    /// - Returns: The configuration, and what is wrong with the options.
    func apply<C>(to configuration: C, _ read: (inout C, OptionReader) throws -> Void) -> (C, problem: String?) {
        var result = configuration
        do {
            try read(&result, self)
            return (result, nil)
        } catch {
            return (result, "\(error)")
        }
    }

    /// Returns a text that `isTaken` accepts; `form` describes such texts.
    func string(
        _ key: String, takes form: String = "a String", _ isTaken: (String) -> Bool = { _ in true }
    ) throws -> String? {
        try value(key, takes: form) { any in (any as? String).flatMap { isTaken($0) ? $0 : nil } }
    }

    func bool(_ key: String) throws -> Bool? {
        try value(key, takes: "a Bool") { ($0 as? Bool) ?? ($0 as? NSNumber)?.boolValue }
    }

    func integer(_ key: String, in range: ClosedRange<Int>, unit: String) throws -> Int? {
        try value(key, takes: "an Int from \(range.lowerBound) to \(range.upperBound) \(unit)") { any in
            guard let number = (any as? Int) ?? (any as? NSNumber)?.intValue, range.contains(number) else { return nil }
            return number
        }
    }

    /// Returns a finite number of seconds, zero or more.
    func seconds(_ key: String) throws -> TimeInterval? {
        try value(key, takes: "a number of seconds, zero or more") { any in
            guard let number = (any as? Double) ?? (any as? Int).map(Double.init) ?? (any as? NSNumber)?.doubleValue,
                number.isFinite, number >= 0
            else { return nil }
            return number
        }
    }

    // MARK: The rules that several readers apply; `key` is a key of a dictionary or the name of a property

    func maximumPeripherals(_ key: String) throws -> Int? {
        try integer(key, in: 1...1_000_000, unit: "peripherals")
    }

    func restoreIdentifier(_ key: String) throws -> String? {
        try string(key, takes: "a String that is not empty") { !$0.isEmpty }
    }

    func stateDirectory(_ key: String) throws -> String? {
        try string(key, takes: "a String with an absolute path") { $0.hasPrefix("/") }
    }

    func rssiThreshold(_ key: String) throws -> Int? { try integer(key, in: -127...20, unit: "dBm") }

    func pairingPolicy(_ key: String) throws -> PairingPolicy? {
        try value(key, takes: "a PairingPolicy, or reject, justWorks or ask") { any in
            let policies: [String: PairingPolicy] = ["reject": .reject, "justWorks": .justWorks, "ask": .ask]
            return any as? PairingPolicy ?? (any as? String).flatMap { policies[$0] }
        }
    }

    func logger(_ key: String) throws -> Logger? { try value(key, takes: "a Logger of swift-log") { $0 as? Logger } }

    private func value<T>(_ key: String, takes form: String, _ read: (Any) -> T?) throws -> T? {
        guard let any = options[key] else { return nil }
        guard let value = read(any) else {
            throw CentralManagerError.invalidOption("The option \(key) takes \(form), not \(any).")
        }
        return value
    }
}
