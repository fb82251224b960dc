import BlueZ
import Foundation
import GATT

/// What one call of `startScanning` asks for, checked and ready to compare with what is heard.
struct ScanRequest: Equatable {
    /// Report only who advertises one of these; `nil` for everybody.
    var services: Set<CBUUID>?
    /// Report every sighting, not the first alone.
    var allowsDuplicates = false
    /// dBm; `nil` for any strength.
    var rssiThreshold: Int?
    /// A prefix of the name or the address.
    var pattern: String?
    /// Seconds without a report after which discovery is restarted; `nil` for never.
    var watchdog: TimeInterval? = 90
    /// Whether each report carries its own data (`ScanReport`) instead of the peripheral alone.
    var wantsReports = false

    init() {}

    /// Reads the documented arguments; throws `CentralManagerError.invalidOption` with a sentence that says what is
    /// wrong and what would be right.
    init(services: [CBUUID]?, options: [String: Any]?) throws {
        // As in Core Bluetooth an empty list asks for the same as none: everybody.
        self.services = services.flatMap { $0.isEmpty ? nil : Set($0) }
        let options = OptionReader(options)
        allowsDuplicates = try options.bool(CBCentralManagerScanOptionAllowDuplicatesKey) ?? false
        rssiThreshold = try options.integer(CentralManagerScanOptionRSSIThresholdKey, in: -127...20, unit: "dBm")
        if let text = try options.string(CentralManagerScanOptionPatternKey), !text.isEmpty {
            pattern = Self.normalized(text)
        }
        if let seconds = try options.seconds(CentralManagerScanOptionWatchdogKey) {
            watchdog = seconds == 0 ? nil : seconds
        }
    }

    /// BlueZ compares an address prefix with its own upper-case form, so that is what it must be given.
    private static func normalized(_ text: String) -> String {
        let looksLikeAddress =
            text.utf8.count <= 17
            && text.utf8.enumerated().allSatisfy { index, byte in
                index % 3 == 2 ? byte == UInt8(ascii: ":") : Character(UnicodeScalar(byte)).isHexDigit
            }
        return looksLikeAddress && text.contains(":") ? text.uppercased() : text
    }

    /// Whether a sighting with these values is one that was asked for.
    func accepts(services advertised: [CBUUID], rssi: Int?, name: String?, address: String) -> Bool {
        if let services, !advertised.contains(where: services.contains) { return false }
        if let rssiThreshold {
            guard let rssi, rssi >= rssiThreshold else { return false }
        }
        guard let pattern else { return true }
        return address.hasPrefix(pattern) || name?.hasPrefix(pattern) == true
    }
}

/// Why a scan's discovery had to be started anew in BlueZ. The scan went on; what was sent meanwhile was not heard.
public enum ScanRestart: Hashable, Sendable {
    /// Nobody was heard for longer than the watchdog's time of 90 seconds.
    case silence
    /// BlueZ ended the discovery although nobody here asked for it.
    case discoveringEnded
    /// The adapter was off or away, or `bluetoothd` was, and is back.
    case adapterReturned
    /// BlueZ refused to change the filter of the running discovery.
    case filterRefused

    init(_ reason: ScanRestartReason) {
        self =
            switch reason {
            case .silence: .silence
            case .discoveringEnded: .discoveringEnded
            case .adapterReturned: .adapterReturned
            case .filterRefused: .filterRefused
            }
    }
}
