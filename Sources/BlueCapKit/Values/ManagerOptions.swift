import GATT

/// The `options` of a manager, read once. A wrong value is kept as `problem`, since an initializer cannot fail.
struct ManagerOptions {
    /// `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    var maximumPeripherals = 16_384
    var keepsLinks = false
    /// Under which name the state is kept; `nil` where it is not.
    var restoreIdentifier: String?
    /// `nil` for the usual folder.
    var stateFolder: String?
    var problem: CentralManagerError?

    init(_ options: [String: Any]?) {
        let options = OptionReader(options)
        do {
            busAddress = try options.string(CentralManagerOptionBusAddressKey)
            adapter = try options.string(CentralManagerOptionAdapterKey)
            maximumPeripherals =
                try options.integer(CentralManagerOptionMaximumPeripheralsKey, in: 1...1_000_000, unit: "peripherals")
                ?? maximumPeripherals
            keepsLinks = try options.bool(CentralManagerOptionKeepsLinksKey) ?? keepsLinks
            restoreIdentifier = try options.string(
                CBCentralManagerOptionRestoreIdentifierKey, where: "that is not empty"
            ) {
                !$0.isEmpty
            }
            stateFolder = try options.string(CentralManagerOptionStateDirectoryKey, where: "with an absolute path") {
                $0.hasPrefix("/")
            }
        } catch {
            problem = error as? CentralManagerError
        }
    }
}
