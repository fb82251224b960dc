import BlueCapKit

/// What a scan is to look for, in the kit's words.
struct ScanRequest: Sendable {
    /// The bus of a simulated room; `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    var services: [CBUUID] = []
    var weakestRSSI: Int?
    var namePrefix: String?
    /// Seconds; `nil` for until it is interrupted.
    var duration: Double?

    var managerOptions: [String: Any] {
        var options: [String: Any] = [:]
        options[CentralManagerOptionBusAddressKey] = busAddress
        options[CentralManagerOptionAdapterKey] = adapter
        return options
    }

    /// Duplicates are always asked for: a name may come later than the first sighting, and a table lives on the
    /// latest signal. What is printed of them is decided by the output.
    var scanOptions: [String: Any] {
        var options: [String: Any] = [CBCentralManagerScanOptionAllowDuplicatesKey: true]
        options[CentralManagerScanOptionRSSIThresholdKey] = weakestRSSI
        options[CentralManagerScanOptionPatternKey] = namePrefix
        return options
    }
}
