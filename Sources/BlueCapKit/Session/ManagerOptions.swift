import Foundation
import GATT

/// The `options` of a manager of either role, read once. A wrong value is kept as `problem`, because an initializer
/// cannot fail.
struct ManagerOptions<Failure: SessionError> {
    /// `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    /// The identifier under which the state is kept; `nil` if it is not kept.
    var restoreIdentifier: String?
    /// `nil` for the usual folder.
    var stateFolder: String?
    var pairingPolicy = PairingPolicy.reject
    /// An option of the central role.
    var maximumPeripherals = 16_384
    /// An option of the central role.
    var keepsLinks = false
    var problem: Failure?

    /// - Parameter readOthers: Reads the options of one role.
    init(
        _ options: [String: Any]?, busAddress: String, adapter: String, restoreIdentifier: String, stateFolder: String,
        pairingPolicy: String, readOthers: (inout Self, OptionReader) throws -> Void = { _, _ in }
    ) {
        let options = OptionReader(options)
        do {
            self.busAddress = try options.string(busAddress)
            self.adapter = try options.string(adapter)
            self.pairingPolicy = try options.pairingPolicy(pairingPolicy) ?? .reject
            try readOthers(&self, options)
            self.restoreIdentifier = try options.string(restoreIdentifier, takes: "a String that is not empty") {
                !$0.isEmpty
            }
            self.stateFolder = try options.string(stateFolder, takes: "a String with an absolute path") {
                $0.hasPrefix("/")
            }
        } catch {
            problem = .invalidOption("\(error)")
        }
    }
}

extension ManagerOptions<CentralManagerError> {
    init(_ options: [String: Any]?) {
        self.init(
            options, busAddress: CentralManagerOptionBusAddressKey, adapter: CentralManagerOptionAdapterKey,
            restoreIdentifier: CBCentralManagerOptionRestoreIdentifierKey,
            stateFolder: CentralManagerOptionStateDirectoryKey,
            pairingPolicy: CentralManagerOptionPairingPolicyKey
        ) { result, options in
            let key = CentralManagerOptionMaximumPeripheralsKey
            if let count = try options.integer(key, in: 1...1_000_000, unit: "peripherals") {
                result.maximumPeripherals = count
            }
            result.keepsLinks = try options.bool(CentralManagerOptionKeepsLinksKey) == true
        }
    }
}
