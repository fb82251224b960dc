import BlueCapKit

/// Which peripheral a command is about, and how it is reached.
struct RemoteRequest: Sendable {
    /// The bus of a simulated room; `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    var peripheral: PeripheralArgument
    /// Seconds for finding and connecting it together, and then for each answer.
    var timeout: Double
    /// Whether a lost link is to be brought back.
    var isPersistent = false

    var managerOptions: [String: Any] {
        var options: [String: Any] = [:]
        options[CentralManagerOptionBusAddressKey] = busAddress
        options[CentralManagerOptionAdapterKey] = adapter
        return options
    }
}
