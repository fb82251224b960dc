import BlueCapBlueZ
import BlueCapFutures
import Foundation
import BlueCapGATT

/// Identifies a scan of a manager.
struct ScanNumber: Hashable, Comparable, Sendable {
    let rawValue: UInt32

    static func < (left: ScanNumber, right: ScanNumber) -> Bool { left.rawValue < right.rawValue }
}

/// The arguments of one call of `startScanning`, checked and ready to compare with sightings.
///
/// Its form in a kept state has the coding keys only.
struct ScanRequest: Equatable, Encodable {
    enum CodingKeys: String, CodingKey { case services, allowsDuplicates, rssiThreshold, pattern, watchdog }

    /// The services of which a peripheral must advertise one to be reported, in ascending order; `nil` for every peripheral.
    var services: [CBUUID]?
    /// Whether to report every sighting, and not only the first.
    var allowsDuplicates = false
    /// The weakest strength to report, in dBm; `nil` for any strength.
    var rssiThreshold: Int?
    /// A prefix of the name or of the address.
    var pattern: String?
    /// The number of seconds without a report after which discovery is restarted; 0 for never.
    var watchdog: TimeInterval = 90
    /// Whether each report carries its own data (`ScanReport`) instead of the peripheral alone.
    var wantsReports = false
    /// How beacons are ranged; `nil` for a scan that reports peripherals.
    var ranging: Ranging?

    init() {}

    /// Checks the arguments; throws `CentralManagerError.invalidOption`, which says what is wrong and which values are accepted.
    init(services: [CBUUID]?, options: ScanOptions, wantsReports: Bool = false) throws(CentralManagerError) {
        do { try options.check() } catch { throw .invalidOption("The scan's \(error.property) \(error.reason).") }
        // As in Core Bluetooth, an empty list means the same as no list: every peripheral.
        self.services = services.flatMap { $0.isEmpty ? nil : Set($0).ordered(by: CBUUID.precedes) }
        allowsDuplicates = options.allowsDuplicates
        rssiThreshold = options.rssiThreshold
        if let text = options.pattern, !text.isEmpty { pattern = Self.normalized(text) }
        watchdog = options.watchdog?.seconds ?? 0
        self.wantsReports = wantsReports
    }

    /// BlueZ compares an address prefix with its own upper-case form, so the prefix is converted to upper case.
    private static func normalized(_ text: String) -> String {
        let looksLikeAddress =
            text.utf8.count <= 17
            && text.utf8.enumerated().allSatisfy { index, byte in
                index % 3 == 2 ? byte == UInt8(ascii: ":") : Character(UnicodeScalar(byte)).isHexDigit
            }
        return looksLikeAddress && text.contains(":") ? text.uppercased() : text
    }

    /// Returns whether this request asks for a sighting with these values.
    func accepts(services advertised: [CBUUID], rssi: Int?, name: String?, address: String) -> Bool {
        if let services, !advertised.contains(where: services.contains) { return false }
        if let rssiThreshold {
            guard let rssi, rssi >= rssiThreshold else { return false }
        }
        guard let pattern else { return true }
        return address.hasPrefix(pattern) || name?.hasPrefix(pattern) == true
    }
}

/// Why the manager restarted a scan's discovery in BlueZ. The scan continued; what was sent during the restart was not
/// received.
public enum ScanRestart: Hashable, Sendable {
    /// No advertisement was received for longer than the watchdog's time of 90 seconds.
    case silence
    /// BlueZ ended the discovery although this program had not requested it.
    case discoveringEnded
    /// The adapter was off or absent, or `bluetoothd` was away, and has returned.
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
