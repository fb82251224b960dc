import BlueCapKit
public import Foundation
import BlueCapGATT

/// The domain of ``CBError`` as an `NSError`.
public let CBErrorDomain = "CBErrorDomain"
/// The domain of `CBATTError` as an `NSError`.
public let CBATTErrorDomain = "CBATTErrorDomain"

/// Why an operation failed that the Attribute Protocol has no code for.
public struct CBError: CustomNSError, Hashable, Sendable {
    /// The reason of an error, with Apple's number.
    public enum Code: Int, Hashable, Sendable {
        /// An error for which Core Bluetooth has no code; see ``CBError/underlyingError``.
        case unknown = 0
        /// An argument, an option, a service or an advertisement is not valid.
        case invalidParameters = 1
        /// The service, the characteristic or the descriptor no longer exists.
        case invalidHandle = 2
        /// The peripheral is not connected. Not reported on Linux.
        case notConnected = 3
        /// The advertisement is too long, or the adapter has no space for another one.
        case outOfSpace = 4
        /// The operation was ended by this computer, such as a connection by `cancelPeripheralConnection(_:)`.
        case operationCancelled = 5
        /// The connection, or an operation over it, has timed out.
        case connectionTimeout = 6
        /// The link has ended, by the peripheral or for an unknown reason.
        case peripheralDisconnected = 7
        /// BlueZ has refused the service.
        case uuidNotAllowed = 8
        /// The manager is advertising already.
        case alreadyAdvertising = 9
        /// The attempt to connect failed.
        case connectionFailed = 10
        /// There are too many connections. Not reported on Linux: see ``connectionFailed``.
        case connectionLimitReached = 11
        /// BlueZ does not have the device, or there is no adapter with power.
        case unknownDevice = 12
        /// BlueZ, the adapter or this library does not support the operation.
        case operationNotSupported = 13
        /// The peripheral has lost the keys of its bond with this computer.
        case peerRemovedPairingInformation = 14
        /// The pairing has timed out.
        case encryptionTimedOut = 15
        /// There are too many bonds. Not reported on Linux.
        case tooManyLEPairedDevices = 16
        /// Not reported on Linux, which has no such limit.
        case leGattExceededBackgroundNotificationLimit = 17
        /// Not reported on Linux, which has no such limit.
        case leGattNearBackgroundNotificationLimit = 18

        /// Apple's first spelling of ``unknownDevice``.
        public static var unkownDevice: Code { .unknownDevice }

        /// Makes `catch CBError.connectionTimeout` and `case CBError.connectionTimeout:` match.
        public static func ~= (pattern: Code, error: any Error) -> Bool { (error as? CBError)?.code == pattern }
    }

    /// The reason.
    public let code: Code
    /// The error of BlueCapKit that was the cause; `nil` if there was none.
    public let underlyingError: (any Error)?
    /// The description that the program has given; `nil` for Apple's.
    private let text: String?

    /// Creates an error. Of `userInfo`, the error under `NSUnderlyingErrorKey` becomes ``underlyingError``, the text under
    /// `NSLocalizedDescriptionKey` the description; the rest is not kept.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        underlyingError = userInfo[NSUnderlyingErrorKey] as? any Error
        text = userInfo[NSLocalizedDescriptionKey] as? String
    }

    /// Creates the error that this one of the domain `CBErrorDomain` is; a code that Apple does not have is `unknown`.
    public init(_nsError error: NSError) {
        self.init(Code(rawValue: error.code) ?? .unknown, userInfo: error.userInfo)
    }

    init(_ code: Code, _ cause: any Error) { self.init(code, userInfo: [NSUnderlyingErrorKey: cause]) }

    public static var errorDomain: String { CBErrorDomain }
    public var errorCode: Int { code.rawValue }

    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: description]
        info[NSUnderlyingErrorKey] = underlyingError
        return info
    }

    /// The dictionary of the error as an `NSError`: the description and the ``underlyingError``.
    public var userInfo: [String: Any] { errorUserInfo }

    public static func == (one: CBError, other: CBError) -> Bool { one.code == other.code }
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension CBError: CustomStringConvertible {
    /// Apple's sentence for the code; and that of the cause, which Apple's errors do not have.
    public var description: String {
        if let text { return text }
        let sentence =
            switch code {
            case .unknown: "Unknown error."
            case .invalidParameters: "One or more parameters were invalid."
            case .invalidHandle: "The specified handle is invalid."
            case .notConnected: "The specified device is not connected."
            case .outOfSpace: "There is not enough space for the operation."
            case .operationCancelled: "The operation was cancelled."
            case .connectionTimeout: "The connection has timed out unexpectedly."
            case .peripheralDisconnected: "The specified device has disconnected from us."
            case .uuidNotAllowed: "The specified UUID is not allowed for this operation."
            case .alreadyAdvertising: "Advertising has already started."
            case .connectionFailed: "The connection has failed unexpectedly."
            case .connectionLimitReached: "The system has reached the maximum number of connections."
            case .unknownDevice: "The specified device is unknown."
            case .operationNotSupported: "The operation is not supported."
            case .peerRemovedPairingInformation: "Peer removed pairing information."
            case .encryptionTimedOut: "Failed to encrypt the connection, the connection has timed out unexpectedly."
            case .tooManyLEPairedDevices: "Too many LE paired devices."
            case .leGattExceededBackgroundNotificationLimit: "The limit of notifications in the background is exceeded."
            case .leGattNearBackgroundNotificationLimit: "The limit of notifications in the background is near."
            }
        return underlyingError.map { "\(sentence) \($0)" } ?? sentence
    }
}

extension CBError {
    /// The codes by their short names: `CBError.connectionTimeout`.
    public static var unknown: Code { .unknown }
    /// The code ``Code/invalidParameters``.
    public static var invalidParameters: Code { .invalidParameters }
    /// The code ``Code/invalidHandle``.
    public static var invalidHandle: Code { .invalidHandle }
    /// The code ``Code/notConnected``.
    public static var notConnected: Code { .notConnected }
    /// The code ``Code/outOfSpace``.
    public static var outOfSpace: Code { .outOfSpace }
    /// The code ``Code/operationCancelled``.
    public static var operationCancelled: Code { .operationCancelled }
    /// The code ``Code/connectionTimeout``.
    public static var connectionTimeout: Code { .connectionTimeout }
    /// The code ``Code/peripheralDisconnected``.
    public static var peripheralDisconnected: Code { .peripheralDisconnected }
    /// The code ``Code/uuidNotAllowed``.
    public static var uuidNotAllowed: Code { .uuidNotAllowed }
    /// The code ``Code/alreadyAdvertising``.
    public static var alreadyAdvertising: Code { .alreadyAdvertising }
    /// The code ``Code/connectionFailed``.
    public static var connectionFailed: Code { .connectionFailed }
    /// The code ``Code/connectionLimitReached``.
    public static var connectionLimitReached: Code { .connectionLimitReached }
    /// The code ``Code/unknownDevice``.
    public static var unknownDevice: Code { .unknownDevice }
    /// Apple's first spelling of ``unknownDevice``.
    public static var unkownDevice: Code { .unknownDevice }
    /// The code ``Code/operationNotSupported``.
    public static var operationNotSupported: Code { .operationNotSupported }
    /// The code ``Code/peerRemovedPairingInformation``.
    public static var peerRemovedPairingInformation: Code { .peerRemovedPairingInformation }
    /// The code ``Code/encryptionTimedOut``.
    public static var encryptionTimedOut: Code { .encryptionTimedOut }
    /// The code ``Code/tooManyLEPairedDevices``.
    public static var tooManyLEPairedDevices: Code { .tooManyLEPairedDevices }
    /// The code ``Code/leGattExceededBackgroundNotificationLimit``.
    public static var leGattExceededBackgroundNotificationLimit: Code { .leGattExceededBackgroundNotificationLimit }
    /// The code ``Code/leGattNearBackgroundNotificationLimit``.
    public static var leGattNearBackgroundNotificationLimit: Code { .leGattNearBackgroundNotificationLimit }
}

extension CBATTError: CustomNSError {
    /// Creates an error as Apple's initializer does; the dictionary is not kept.
    public init(_ code: Code, userInfo: [String: Any]) { self.init(code) }

    /// Creates the error that this one of the domain `CBATTErrorDomain` is; a code of more than a byte is `unlikelyError`.
    public init(_nsError error: NSError) { self.init(Code(rawValue: error.code) ?? .unlikelyError) }

    public static var errorDomain: String { CBATTErrorDomain }
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: code.sentence] }
}

extension CBATTError.Code {
    /// Apple's text, which programs compare and show. `flutter_blue_plus` lists the texts as iOS has them, in "List of GATT
    /// Errors as they appear on iOS" of its README; that of code 5 is quoted in many reports of iOS programs.
    fileprivate var sentence: String {
        switch self {
        case .invalidHandle: "The handle is invalid."
        case .readNotPermitted: "Reading is not permitted."
        case .writeNotPermitted: "Writing is not permitted."
        case .invalidPdu: "The command is invalid."
        case .insufficientAuthentication: "Authentication is insufficient."
        case .requestNotSupported: "The request is not supported."
        case .invalidOffset: "The offset is invalid."
        case .insufficientAuthorization: "Authorization is insufficient."
        case .prepareQueueFull: "The prepare queue is full."
        case .attributeNotFound: "The attribute could not be found."
        case .attributeNotLong: "The attribute is not long."
        case .insufficientEncryptionKeySize: "The encryption key size is insufficient."
        case .invalidAttributeValueLength: "The value's length is invalid."
        case .unlikelyError: "Unlikely error."
        case .insufficientEncryption: "Encryption is insufficient."
        case .unsupportedGroupType: "The group type is unsupported."
        case .insufficientResources: "Resources are insufficient."
        default: "Unknown ATT error."
        }
    }

    /// Makes `catch CBATTError.readNotPermitted` and `case CBATTError.readNotPermitted:` match.
    public static func ~= (pattern: Self, error: any Error) -> Bool { (error as? CBATTError)?.code == pattern }
}

// MARK: - Foundation's bridging

/// An error that is an `NSError` of its domain for `as?`, `catch let error as CBError` and `catch CBError.unknown`.
///
/// Programs make such errors for their tests, and pass errors on as `NSError`. Foundation's own error types are bridged in
/// this way on Linux.
public protocol NSErrorBridging: CustomNSError, _ObjectiveCBridgeable where _ObjectiveCType == NSError {
    /// Creates the error that this one of its domain is.
    init(_nsError error: NSError)
}

extension NSErrorBridging {
    public func _bridgeToObjectiveC() -> NSError {
        NSError(domain: Self.errorDomain, code: errorCode, userInfo: errorUserInfo)
    }

    public static func _forceBridgeFromObjectiveC(_ error: NSError, result: inout Self?) {
        _ = _conditionallyBridgeFromObjectiveC(error, result: &result)
    }

    public static func _conditionallyBridgeFromObjectiveC(_ error: NSError, result: inout Self?) -> Bool {
        result = error.domain == errorDomain ? Self(_nsError: error) : nil
        return result != nil
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ error: NSError?) -> Self {
        Self(_nsError: error ?? NSError(domain: errorDomain, code: 0))
    }
}

extension CBError: NSErrorBridging {}
extension CBATTError: NSErrorBridging {}

// MARK: - Errors of BlueCapKit

/// Returns Core Bluetooth's error for one of BlueCapKit: a `CBATTError` if the peripheral refused the operation,
/// otherwise a `CBError`, which contains the cause.
func coreBluetoothError(_ error: any Error) -> any Error {
    switch error {
    case let error as CharacteristicError: coreBluetoothError(error)
    case let error as PairingError: coreBluetoothError(error)
    case let error as PeripheralManagerError: coreBluetoothError(error)
    case let error as BusError: attError(error, .unlikelyError)
    case let error as CBError: error
    case let error as CBATTError: error
    case ServiceError.invalidated: CBError(.invalidHandle, error)
    case PeripheralError.disconnected: CBError(.peripheralDisconnected, error)
    case PeripheralError.forcedDisconnect: CBError(.operationCancelled, error)
    case PeripheralError.connectionTimeout: CBError(.connectionTimeout, error)
    case PeripheralError.connectionFailed: CBError(.connectionFailed, error)
    case PeripheralError.pairing(let cause): coreBluetoothError(cause)
    case PeripheralError.rssiUnavailable: CBError(.operationNotSupported, error)
    case PeripheralError.invalidArgument: CBError(.invalidParameters, error)
    default: CBError(.unknown, error)
    }
}

private func coreBluetoothError(_ error: CharacteristicError) -> any Error {
    switch error {
    case .readFailed(let failure): attError(failure, .readNotPermitted)
    case .writeFailed(let failure): attError(failure, .writeNotPermitted)
    case .notifyFailed(let failure): attError(failure, .requestNotSupported)
    case .readNotSupported: CBATTError(.readNotPermitted)
    case .writeNotSupported: CBATTError(.writeNotPermitted)
    case .notifyNotSupported: CBATTError(.requestNotSupported)
    case .valueTooLong: CBATTError(.invalidAttributeValueLength)
    case .acquiredByOther: CBATTError(.insufficientResources)
    case .pairingRequired(.encryption, let failure): CBATTError(failure.attError ?? .insufficientEncryption)
    case .pairingRequired(_, let failure): CBATTError(failure.attError ?? .insufficientAuthentication)
    case .pairingFailed(let error): coreBluetoothError(error)
    case .invalidated: CBError(.invalidHandle, error)
    case .readTimeout, .writeTimeout, .notifyTimeout: CBError(.connectionTimeout, error)
    default: CBError(.unknown, error)
    }
}

private func coreBluetoothError(_ error: PeripheralManagerError) -> any Error {
    switch error {
    case .isAdvertising: CBError(.alreadyAdvertising, error)
    case .advertisementTooLong, .tooManyAdvertisements: CBError(.outOfSpace, error)
    case .invalidService, .serviceInUse, .invalidOption, .invalidAdvertisement: CBError(.invalidParameters, error)
    case .serviceRefused: CBError(.uuidNotAllowed, error)
    case .servicesNotSupported, .advertisingNotSupported: CBError(.operationNotSupported, error)
    case .serviceRemoved, .advertisingStopped: CBError(.operationCancelled, error)
    default: CBError(.unknown, error)
    }
}

private func coreBluetoothError(_ error: PairingError) -> any Error {
    switch error {
    case .keyMissing: CBError(.peerRemovedPairingInformation, error)
    case .timedOut: CBError(.encryptionTimedOut, error)
    case .linkLost: CBError(.peripheralDisconnected, error)
    case .connectionFailed: CBError(.connectionFailed, error)
    case .notAllowed: CBATTError(.insufficientEncryption)
    case .cancelled, .rejected, .failed, .alreadyPaired, .busy, .unauthorized: CBATTError(.insufficientAuthentication)
    case .unavailable, .removalFailed, .trustFailed: CBError(.unknownDevice, error)
    }
}

/// Returns the ATT error of a refusal.
/// - Parameter notPermitted: The code of BlueZ's error "not permitted", which has no number.
private func attError(_ failure: BusError, _ notPermitted: CBATTError.Code) -> CBATTError {
    if let code = failure.attError { return CBATTError(code) }
    switch failure.name {
    case "org.bluez.Error.NotPermitted": return CBATTError(notPermitted)
    case "org.bluez.Error.NotAuthorized": return CBATTError(.insufficientAuthorization)
    case "org.bluez.Error.NotSupported": return CBATTError(.requestNotSupported)
    case "org.bluez.Error.InvalidOffset": return CBATTError(.invalidOffset)
    case "org.bluez.Error.InvalidValueLength": return CBATTError(.invalidAttributeValueLength)
    default: return CBATTError(.unlikelyError)
    }
}
