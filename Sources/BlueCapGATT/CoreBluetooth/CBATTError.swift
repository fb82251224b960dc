public import Foundation

/// An error that the Attribute Protocol defines, with the code of the error response.
public struct CBATTError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The code of the error response.
    public let code: Code

    /// Creates an error with this code.
    public init(_ code: Code) { self.code = code }

    public var description: String { code.description }

    /// The one byte code of an ATT error response (Core Specification, Vol 3, Part F, 3.4.1.1).
    ///
    /// A structure and not an enumeration, because an application may use 0x80 to 0x9F for errors of its own, and a
    /// code that this library does not know is preserved.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: Int

        /// Creates any code of one byte; `nil` for numbers that do not fit in it.
        public init?(rawValue: Int) {
            guard (0...0xFF).contains(rawValue) else { return nil }
            self.rawValue = rawValue
        }

        private init(_ rawValue: Int) { self.rawValue = rawValue }

        /// No error: the result of a request that was granted.
        public static let success = Code(0x00)
        /// The attribute handle is not valid on this server.
        public static let invalidHandle = Code(0x01)
        /// The value cannot be read.
        public static let readNotPermitted = Code(0x02)
        /// The value cannot be written.
        public static let writeNotPermitted = Code(0x03)
        /// The request was malformed.
        public static let invalidPdu = Code(0x04)
        /// The link must be authenticated first.
        public static let insufficientAuthentication = Code(0x05)
        /// The server does not support the request.
        public static let requestNotSupported = Code(0x06)
        /// The offset is past the end of the value.
        public static let invalidOffset = Code(0x07)
        /// The client is not authorized.
        public static let insufficientAuthorization = Code(0x08)
        /// Too many prepared writes are queued.
        public static let prepareQueueFull = Code(0x09)
        /// There is no attribute in the given range of handles.
        public static let attributeNotFound = Code(0x0A)
        /// The attribute cannot be read in parts.
        public static let attributeNotLong = Code(0x0B)
        /// The encryption key is too short.
        public static let insufficientEncryptionKeySize = Code(0x0C)
        /// The value has a length that the attribute does not allow.
        public static let invalidAttributeValueLength = Code(0x0D)
        /// The request failed for a reason that has no code of its own.
        public static let unlikelyError = Code(0x0E)
        /// The link must be encrypted first.
        public static let insufficientEncryption = Code(0x0F)
        /// The attribute type is not a grouping one.
        public static let unsupportedGroupType = Code(0x10)
        /// The server lacks the resources to answer.
        public static let insufficientResources = Code(0x11)

        /// Returns a code of the application's own range (Core Specification, Vol 3, Part F, 3.4.1.1).
        ///
        /// - Parameter number: 0x80 to 0x9F. Any other number, which would have another meaning for the other side, gives
        ///   ``unlikelyError``.
        public static func application(_ number: Int) -> Code {
            let code = Code(number)
            return code.isApplicationError ? code : .unlikelyError
        }

        /// Whether the code belongs to the application's own range, 0x80 to 0x9F.
        public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }

        public var description: String {
            let number = String(format: "0x%02X", rawValue)
            guard let name = Code.names[rawValue] else {
                return isApplicationError ? "application error \(number)" : "ATT error \(number)"
            }
            return "\(name) (\(number))"
        }

        private static let names: [Int: String] = [
            0x00: "success", 0x01: "invalid handle", 0x02: "read not permitted", 0x03: "write not permitted",
            0x04: "invalid PDU", 0x05: "insufficient authentication", 0x06: "request not supported",
            0x07: "invalid offset", 0x08: "insufficient authorization", 0x09: "prepare queue full",
            0x0A: "attribute not found", 0x0B: "attribute not long", 0x0C: "insufficient encryption key size",
            0x0D: "invalid attribute value length", 0x0E: "unlikely error", 0x0F: "insufficient encryption",
            0x10: "unsupported group type", 0x11: "insufficient resources", 0x12: "database out of sync",
            0x13: "value not allowed", 0xFC: "write request rejected",
            0xFD: "client characteristic configuration descriptor improperly configured",
            0xFE: "procedure already in progress", 0xFF: "out of range",
        ]
    }
}

extension CBATTError {
    /// The codes by their short names, as on Apple's platforms: `CBATTError.invalidOffset`.
    public static var success: Code { .success }
    /// The code ``Code/application(_:)``: `CBATTError.application(0x80)`.
    public static func application(_ number: Int) -> Code { .application(number) }
    /// The code ``Code/invalidHandle``.
    public static var invalidHandle: Code { .invalidHandle }
    /// The code ``Code/readNotPermitted``.
    public static var readNotPermitted: Code { .readNotPermitted }
    /// The code ``Code/writeNotPermitted``.
    public static var writeNotPermitted: Code { .writeNotPermitted }
    /// The code ``Code/invalidPdu``.
    public static var invalidPdu: Code { .invalidPdu }
    /// The code ``Code/insufficientAuthentication``.
    public static var insufficientAuthentication: Code { .insufficientAuthentication }
    /// The code ``Code/requestNotSupported``.
    public static var requestNotSupported: Code { .requestNotSupported }
    /// The code ``Code/invalidOffset``.
    public static var invalidOffset: Code { .invalidOffset }
    /// The code ``Code/insufficientAuthorization``.
    public static var insufficientAuthorization: Code { .insufficientAuthorization }
    /// The code ``Code/prepareQueueFull``.
    public static var prepareQueueFull: Code { .prepareQueueFull }
    /// The code ``Code/attributeNotFound``.
    public static var attributeNotFound: Code { .attributeNotFound }
    /// The code ``Code/attributeNotLong``.
    public static var attributeNotLong: Code { .attributeNotLong }
    /// The code ``Code/insufficientEncryptionKeySize``.
    public static var insufficientEncryptionKeySize: Code { .insufficientEncryptionKeySize }
    /// The code ``Code/invalidAttributeValueLength``.
    public static var invalidAttributeValueLength: Code { .invalidAttributeValueLength }
    /// The code ``Code/unlikelyError``.
    public static var unlikelyError: Code { .unlikelyError }
    /// The code ``Code/insufficientEncryption``.
    public static var insufficientEncryption: Code { .insufficientEncryption }
    /// The code ``Code/unsupportedGroupType``.
    public static var unsupportedGroupType: Code { .unsupportedGroupType }
    /// The code ``Code/insufficientResources``.
    public static var insufficientResources: Code { .insufficientResources }
}

/// A read or write request of a central, which the program responds to.
///
/// A protocol, so that tests can define requests of their own.
public protocol CBATTRequestInjectable: Sendable {
    /// The UUID of the characteristic that the request is for.
    var characteristicUUID: CBUUID { get }
    /// The byte of the value at which the request begins; 0 except for values longer than a packet.
    var offset: Int { get }
    /// The bytes that the central wants to write; `nil` in a read request.
    var value: Data? { get }
}

/// A central that is connected to this machine.
///
/// A protocol, so that tests can define centrals of their own.
public protocol CBCentralInjectable: Sendable {
    /// The identifier of the central: the same in each connection, as long as its address is.
    var identifier: UUID { get }
    /// The largest number of bytes that a notification to this central can carry: the link's MTU less 3, and at most
    /// 512, the longest value.
    var maximumUpdateValueLength: Int { get }
}
