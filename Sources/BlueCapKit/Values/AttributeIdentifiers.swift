import Foundation
public import BlueCapGATT

/// The identifier of a service: its UUID, whether or not a peripheral has the service.
///
/// ```swift
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// ```
///
/// All forms of one UUID identify the same service: `"180D"` and `"0000180d-0000-1000-8000-00805f9b34fb"` are equal. If a
/// peripheral has several services with this UUID, a characteristic may be in any of them, and a request for the service
/// itself fails with ``PeripheralError/ambiguous(_:candidates:)``.
public struct ServiceIdentifier: Hashable, Sendable {
    let spelling: UUIDSpelling

    /// Creates an identifier from text: 4, 8 or 32 hexadecimal digits in either case, the last with hyphens
    /// (8-4-4-4-12).
    ///
    /// Never traps. If the text is not a UUID, ``uuid`` is `nil`, and an operation with the identifier fails with
    /// ``PeripheralError/invalidArgument(_:)``, which contains the text.
    public init(uuid: String) { spelling = UUIDSpelling(uuid) }

    /// Creates an identifier of the services with this UUID.
    public init(uuid: CBUUID) { spelling = .uuid(uuid) }

    /// Creates an identifier from text of unknown origin; returns `nil` if the text is not a UUID.
    public init?(validating text: String) {
        guard let uuid = CBUUID(validating: text) else { return nil }
        self.init(uuid: uuid)
    }

    /// The UUID; `nil` if the text is not a UUID.
    public var uuid: CBUUID? { spelling.uuid }

    /// The shortest form of the UUID; the text itself if it is not a UUID.
    public var uuidString: String { spelling.text }

    /// Returns the UUID, or throws the reason why there is none.
    package func checked() throws(PeripheralError) -> CBUUID { try spelling.checked() }
}

extension ServiceIdentifier: CustomStringConvertible {
    /// `180D (Heart Rate)`
    public var description: String { spelling.uuid.map { $0.named(AssignedNumbers.serviceName) } ?? uuidString }
}

/// A UUID as the user wrote it.
enum UUIDSpelling: Hashable, Sendable {
    case uuid(CBUUID)
    case malformed(String)

    init(_ text: String) { self = CBUUID(validating: text).map { .uuid($0) } ?? .malformed(text) }

    var uuid: CBUUID? { if case .uuid(let uuid) = self { uuid } else { nil } }

    var text: String {
        switch self {
        case .uuid(let uuid): uuid.shortestString
        case .malformed(let text): text
        }
    }

    func checked() throws(PeripheralError) -> CBUUID {
        if let uuid { return uuid }
        throw .invalidArgument("\"\(text)\" is not a Bluetooth UUID: write 4, 8 or 32 hexadecimal digits (8-4-4-4-12).")
    }
}

extension CBUUID {
    /// Returns the UUID, with its name if it has one: `180D (Heart Rate)`.
    func named(_ name: (CBUUID) -> String?) -> String { name(self).map { "\(uuidString) (\($0))" } ?? uuidString }
}

extension [CBUUID] {
    /// Returns all of the UUIDs as part of a sentence; "none" if there are none.
    func listed(_ name: (CBUUID) -> String?) -> String {
        isEmpty ? "none" : map { $0.named(name) }.joined(separator: ", ")
    }
}

/// The identifier of a characteristic: its UUID and that of its service, whether or not a peripheral has them.
///
/// ```swift
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// let bodySensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
/// ```
///
/// If a peripheral has several characteristics with this identifier, an operation uses the one that has the property for
/// it: ``Peripheral`` reads the one that can be read, and subscribes to the one that notifies. If none or more than one has
/// the property, the operation fails with ``PeripheralError/ambiguous(_:candidates:)``. A ``handle`` chooses one.
public struct CharacteristicIdentifier: Hashable, Sendable {
    let spelling: UUIDSpelling
    /// The service that it belongs to.
    public let service: ServiceIdentifier
    /// The handle of its declaration, for a peripheral that has several characteristics with this UUID; initially `nil`.
    ///
    /// Handles differ from peripheral to peripheral, and may change with its firmware. `bluecap explore` and
    /// ``PeripheralAttribute/handle`` have them.
    public var handle: UInt16?

    /// Creates an identifier from text: 4, 8 or 32 hexadecimal digits in either case, the last with hyphens
    /// (8-4-4-4-12).
    ///
    /// Never traps. If the text is not a UUID, ``uuid`` is `nil`, and an operation with the identifier fails with
    /// ``PeripheralError/invalidArgument(_:)``, which contains the text.
    public init(uuid: String, service: ServiceIdentifier) {
        spelling = UUIDSpelling(uuid)
        self.service = service
    }

    /// Creates an identifier.
    ///
    /// - Parameters:
    ///   - uuid: The UUID of the characteristic.
    ///   - service: The identifier of its service.
    public init(uuid: CBUUID, service: ServiceIdentifier) {
        spelling = .uuid(uuid)
        self.service = service
    }

    /// Creates an identifier from text of unknown origin; returns `nil` if the text is not a UUID.
    public init?(validating text: String, service: ServiceIdentifier) {
        guard let uuid = CBUUID(validating: text) else { return nil }
        self.init(uuid: uuid, service: service)
    }

    /// The UUID; `nil` if the text is not a UUID.
    public var uuid: CBUUID? { spelling.uuid }

    /// The shortest form of the UUID; the text itself if it is not a UUID.
    public var uuidString: String { spelling.text }

    /// Returns both UUIDs, or throws the reason why there are none.
    package func checked() throws(PeripheralError) -> (service: CBUUID, characteristic: CBUUID) {
        (try service.checked(), try spelling.checked())
    }
}

extension CharacteristicIdentifier: CustomStringConvertible {
    /// `2A38 of service 180D (Heart Rate)`, and the handle if there is one
    public var description: String {
        "\(uuidString) of service \(service)" + (handle.map { " at 0x" + String(format: "%04x", Int($0)) } ?? "")
    }
}
