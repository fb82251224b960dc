public import Foundation
public import GATT

/// Peripherals without a scan: those that BlueZ remembers, or has a link to.
///
/// Who is retrieved is in ``CentralManager/peripherals`` from then on. Before `poweredOn` BlueZ has not been asked yet, and
/// there is nobody to retrieve.
extension CentralManager {
    /// The peripherals with these identifiers that BlueZ or this manager knows, in the order of the identifiers.
    ///
    /// BlueZ remembers peripherals that were connected once, also over its own restart, unless they have a private
    /// address and no bond. Identifiers of others are passed over.
    public func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [Peripheral] {
        session.retrievePeripherals(identifiers)
    }

    /// The peripherals that have a link to the adapter, whichever program opened it, and one of these services; all that
    /// have a link where no service is given.
    public func retrieveConnectedPeripherals(withServices services: [CBUUID]) -> [Peripheral] {
        session.retrieveConnectedPeripherals(Set(services))
    }

    /// The peripherals that this manager has discovered or retrieved and that somebody still holds, expired or not.
    public func retrievePeripherals() -> [Peripheral] { session.retrievePeripherals() }
}
