public import BlueCapKit
public import Foundation

/// The identifier of a peripheral, which a program can save for a later run.
///
/// The identifier is derived from the peripheral's address: it is the same on every run and every machine, unless the
/// peripheral changes its address for privacy. The name is for display; comparisons ignore it.
public struct PeripheralIdentifier: Swift.Sendable, Codable {
    /// `Peripheral.identifier` of BlueCapKit.
    public let uuid: UUID
    /// "Unknown" if there was none.
    public let name: String

    /// Creates an identifier from the parts of another one.
    public init(uuid: UUID, name: String?) {
        self.uuid = uuid
        self.name = name ?? "Unknown"
    }

    /// Creates the identifier of a peripheral of BlueCapKit.
    public init(_ peripheral: Peripheral) { self.init(uuid: peripheral.identifier, name: peripheral.name) }
}

extension PeripheralIdentifier: Hashable, CustomStringConvertible {
    public static func == (left: PeripheralIdentifier, right: PeripheralIdentifier) -> Bool { left.uuid == right.uuid }

    public func hash(into hasher: inout Hasher) { hasher.combine(uuid) }

    public var description: String { "\(name) (\(uuid))" }
}
