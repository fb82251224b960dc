public import GATT

/// Names a characteristic by its UUID and that of its service, whether or not a peripheral has it.
///
/// ```swift
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// let bodySensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
/// ```
///
/// Where a peripheral has several that fit, the first in its table is meant.
public struct CharacteristicIdentifier: Hashable, Sendable {
    let spelling: UUIDSpelling
    /// The service that it belongs to.
    public let service: ServiceIdentifier

    /// From text: 4, 8 or 32 hexadecimal digits in either case, the last with hyphens (8-4-4-4-12).
    ///
    /// Never traps. An operation with an identifier that is no UUID fails with
    /// ``PeripheralError/invalidArgument(_:)``, which shows the text; ``uuid`` is `nil` then.
    public init(uuid: String, service: ServiceIdentifier) {
        spelling = UUIDSpelling(uuid)
        self.service = service
    }

    public init(uuid: CBUUID, service: ServiceIdentifier) {
        spelling = .uuid(uuid)
        self.service = service
    }

    /// From text of unknown origin; `nil` where it is no UUID.
    public init?(validating text: String, service: ServiceIdentifier) {
        guard let uuid = CBUUID(validating: text) else { return nil }
        self.init(uuid: uuid, service: service)
    }

    /// The UUID; `nil` where the text was none.
    public var uuid: CBUUID? { spelling.uuid }

    /// The shortest form of the UUID; the text itself if it was none.
    public var uuidString: String { spelling.text }

    /// Both UUIDs, or why there are none.
    package func checked() throws(PeripheralError) -> (service: CBUUID, characteristic: CBUUID) {
        (try service.checked(), try spelling.checked())
    }
}

extension CharacteristicIdentifier: CustomStringConvertible {
    /// `2A38 of service 180D (Heart Rate)`
    public var description: String { "\(uuidString) of service \(service)" }
}
