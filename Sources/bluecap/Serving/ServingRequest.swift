import BlueCapKit
import Foundation

/// What is to be served and advertised, and for how long.
struct ServingRequest: Sendable {
    /// The bus of a simulated room; `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    /// None for who only advertises.
    var services: [PeripheralModel.Service] = []
    /// One after the other, each in an instance of its own.
    var advertisements: [AdvertisingPlan] = []
    /// Seconds; `nil` for until it is interrupted.
    var duration: Double?
    /// Print the values that go out too.
    var showsUpdates = false

    var managerOptions: [String: Any] {
        var options: [String: Any] = [:]
        options[PeripheralManagerOptionBusAddressKey] = busAddress
        options[PeripheralManagerOptionAdapterKey] = adapter
        return options
    }
}
