public import BlueCapKit
public import Foundation

/// Names a peripheral, and can be kept for another day.
///
/// The identifier is made of the peripheral's address: it is the same on every run and every machine, unless the peripheral
/// changes its address for privacy. The name is for people and does not count where two are compared.
public struct PeripheralIdentifier: Swift.Sendable, Codable {
    public let uuid: UUID
    public let name: String

    /// - Parameters:
    ///   - uuid: The identifier of the peripheral, as `Peripheral.identifier` has it.
    ///   - name: `nil` is shown as "Unknown".
    public init(uuid: UUID, name: String?) {
        self.uuid = uuid
        self.name = name ?? "Unknown"
    }

    public init(_ peripheral: Peripheral) {
        self.init(uuid: peripheral.identifier, name: peripheral.name)
    }
}

extension PeripheralIdentifier: Hashable, CustomStringConvertible {
    public static func == (left: PeripheralIdentifier, right: PeripheralIdentifier) -> Bool { left.uuid == right.uuid }

    public func hash(into hasher: inout Hasher) { hasher.combine(uuid) }

    public var description: String { "\(name) (\(uuid))" }
}
