/// The `options` of a manager, read once. A wrong value is kept as `problem`, since an initializer cannot fail.
struct ManagerOptions {
    /// `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    var maximumPeripherals = 16_384
    var keepsLinks = false
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
        } catch {
            problem = error as? CentralManagerError
        }
    }
}
