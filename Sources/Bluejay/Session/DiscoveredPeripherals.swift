import BlueCapKit
import Foundation

/// The peripherals that scans have found last, by their identifiers; so many that a long-running scan in a crowd does
/// not fill the memory.
struct DiscoveredPeripherals {
    static let limit = 4096

    private var peripherals: [UUID: Peripheral] = [:]
    private var older: [UUID: Peripheral] = [:]

    subscript(identifier: UUID) -> Peripheral? { peripherals[identifier] ?? older[identifier] }

    /// Answers what it has let go of.
    mutating func insert(_ peripheral: Peripheral) -> [UUID: Peripheral] {
        peripherals[peripheral.identifier] = peripheral
        guard peripherals.count > Self.limit / 2 else { return [:] }
        defer { (older, peripherals) = (peripherals, [:]) }
        return older
    }
}
