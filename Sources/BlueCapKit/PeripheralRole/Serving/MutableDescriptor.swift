import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// A descriptor of a characteristic that this program offers.
///
/// Centrals read its ``value`` as it is at that moment. If ``permissions`` let them write, the value changes at once,
/// and ``whenWritten()`` yields it. BlueZ adds 0x2902 to characteristics that notify and 0x2900 to those with extended
/// properties.
public final class MutableDescriptor: Sendable {
    /// The UUID of its type.
    public let uuid: CBUUID
    /// Whether centrals may read and write it, and which security that needs.
    public let permissions: CBAttributePermissions
    let id = ServerAttributeID.next()
    private let core: Locked<Data?>
    private let written = StreamPromise<Data>(capacity: 0)

    /// - Parameters:
    ///   - uuid: The UUID of its type. A service with a descriptor 2900 or 2902, which BlueZ adds, cannot be added.
    ///   - value: At most 512 bytes; `nil` is read as no bytes.
    ///   - permissions: Whether centrals may read and write it, and which security that needs.
    public init(uuid: CBUUID, value: Data? = nil, permissions: CBAttributePermissions = .readable) {
        self.uuid = uuid
        self.permissions = permissions
        core = Locked(value)
    }

    /// Returns a descriptor with a readable description of the value (0x2901; Core Specification, Vol 3, Part G,
    /// 3.3.3.2).
    public static func userDescription(_ text: String) -> MutableDescriptor {
        MutableDescriptor(uuid: CBUUID(string: "2901"), value: Data(text.utf8))
    }

    /// Returns a descriptor with the format of the value (0x2904; Core Specification, Vol 3, Part G, 3.3.3.5).
    ///
    /// - Parameters:
    ///   - format: The number of a type, such as 0x04 for an unsigned byte (Bluetooth Assigned Numbers, 2.4.1).
    ///   - exponent: The power of ten by which the value is multiplied.
    ///   - unit: The 16 bits of a unit's UUID, such as 0x27AD for per cent (Bluetooth Assigned Numbers, 3.5).
    ///   - namespace: 1 for the Bluetooth SIG, which defines the meaning of `description` then.
    ///   - description: What the value describes, by the namespace's numbers, such as 0x0001 for the first of several
    ///     (Bluetooth Assigned Numbers, 2.4.2); 0 is unknown.
    public static func presentationFormat(
        _ format: UInt8, exponent: Int8 = 0, unit: UInt16, namespace: UInt8 = 1, description: UInt16 = 0
    ) -> MutableDescriptor {
        let bytes = [
            format, UInt8(bitPattern: exponent), UInt8(truncatingIfNeeded: unit), UInt8(truncatingIfNeeded: unit >> 8),
            namespace, UInt8(truncatingIfNeeded: description), UInt8(truncatingIfNeeded: description >> 8),
        ]
        return MutableDescriptor(uuid: CBUUID(string: "2904"), value: Data(bytes))
    }

    /// The value that centrals read; `nil` is read as no bytes.
    public var value: Data? {
        get { core.withLock { $0 } }
        set { core.replace(\.self, with: newValue) }
    }

    /// Returns a stream of the values that centrals write. Every call returns the same stream, which keeps no values
    /// for handlers that are added later, and does not end.
    public func whenWritten() -> FutureStream<Data> { written.stream }

    var definition: ServerDescriptor {
        ServerDescriptor(id: id, uuid: uuid, flags: GattFlags(descriptor: permissions))
    }
}

extension MutableDescriptor: ServedAttribute {
    func requested(_ request: ServerRequest, _ answer: ServerAnswer, _ session: PeripheralManagerSession) {
        guard !permissions.contains(.authorizationRequired) else { return writeAuthorizationRequested(answer) }
        answer.succeed(request.value == nil ? value ?? Data() : Data())
        guard let bytes = request.value else { return }
        value = bytes
        session.complete { self.written.success(bytes) }
    }

    func writeAuthorizationRequested(_ answer: ServerAnswer) { answer.refuse(.insufficientAuthorization) }
}
