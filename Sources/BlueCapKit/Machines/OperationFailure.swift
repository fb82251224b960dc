import BlueCapBlueZ
import BlueCapGATT

/// Why an operation on an attribute failed, before it is translated to a documented error.
enum OperationFailure: Error, Hashable {
    case timedOut
    /// Its caller no longer waits.
    case withdrawn
    /// The link was lost, or did not exist.
    case linkLost
    /// The link was lost, since the peripheral or the adapter no longer has the keys of the bond.
    case keysMissing(PairingError)
    /// The application ended the link.
    case linkEnded
    /// The peripheral no longer has the attribute.
    case invalidated
    /// Another program, or another operation, uses the attribute: a later attempt may succeed.
    case busy(BlueZError)
    case refused(BlueZError)
    /// The link is not encrypted, or not with the keys that the attribute needs.
    case needsSecurity(BlueZError)
    /// BlueZ did not reply, and the peripheral is not paired: BlueZ forgets an operation whose pairing has failed (5.67 and
    /// later), and its link may be unusable.
    case unanswered(BlueZError)

    /// The meaning of an error of BlueZ for an operation.
    init(_ error: BlueZError) {
        self =
            switch error.cause {
            case .inProgress: .busy(error)
            case .notConnected, .disconnected, .serviceGone: .linkLost
            // `Failed` has many reasons. These are BlueZ's texts if there is no link, and if the link is lost before
            // the peer has replied (src/gatt-client.c).
            case .failed where error.message == "Not connected" || error.message == "Operation failed": .linkLost
            case .unknownObject, .unknownMethod: .invalidated
            case .noReply: .timedOut
            case _ where error.isLackOfSecurity: .needsSecurity(error)
            default: .refused(error)
            }
    }
}

extension OperationFailure {
    /// The documented error if the cause is the end of the link.
    var linkError: PeripheralError {
        switch self {
        case .keysMissing(let error): .pairing(error)
        case .linkEnded: .forcedDisconnect
        default: .disconnected
        }
    }

    /// Whether the value seems to need another security of the link.
    var isAboutSecurity: Bool {
        switch self {
        case .needsSecurity, .unanswered: true
        case .timedOut, .withdrawn, .linkLost, .keysMissing, .linkEnded, .invalidated, .busy, .refused: false
        }
    }
}

extension PeripheralFailure {
    /// Creates the documented error of a failed operation on an attribute.
    /// - Parameter isPaired: Whether the link is encrypted, so that a lack of security means one of authentication.
    init(_ failure: OperationFailure, _ request: AttributeState.Request, isPaired: Bool = false) {
        if case .read = request {
            self.init(failure, isPaired: isPaired, timeout: .readTimeout, refusal: CharacteristicError.readFailed)
        } else {
            self.init(failure, isPaired: isPaired, timeout: .writeTimeout, refusal: CharacteristicError.writeFailed)
        }
    }

    /// Creates the documented error for a refusal of `AcquireWrite`.
    init(acquiring error: BlueZError) {
        self.init(OperationFailure(error), timeout: .writeTimeout) { failure in
            if error.cause == .notSupported { return .writeNotSupported }
            return error.cause == .notPermitted && error.message == "Write acquired"
                ? .acquiredByOther(failure) : .writeFailed(failure)
        }
    }

    /// Creates the documented error for a refusal of `StartNotify` or `AcquireNotify`.
    init(subscribing error: BlueZError) {
        self.init(OperationFailure(error), timeout: .notifyTimeout) { failure in
            switch error.cause {
            // Another program has the socket, or requests it while others have a session.
            case .inProgress: .acquiredByOther(failure)
            case .notPermitted where error.message == "Notify acquired": .acquiredByOther(failure)
            case .notSupported: .notifyNotSupported
            default: .notifyFailed(failure)
            }
        }
    }

    private init(
        _ failure: OperationFailure, isPaired: Bool = false, timeout: CharacteristicError,
        refusal: (BusError) -> CharacteristicError
    ) {
        self =
            switch failure {
            case .linkLost, .keysMissing, .linkEnded: .peripheral(failure.linkError)
            case .invalidated: .characteristic(.invalidated)
            case .timedOut: .characteristic(timeout)
            case .withdrawn: .cancelled
            case .busy(let error), .refused(let error): .characteristic(refusal(BusError(error)))
            case .needsSecurity(let error), .unanswered(let error):
                .characteristic(.pairingRequired(isPaired ? .authentication : .encryption, BusError(error)))
            }
    }
}

extension BlueZError {
    /// The refusal of an operation on a value with an earlier one that BlueZ has forgotten.
    static func operationForgotten(isPaired: Bool) -> BlueZError {
        BlueZError(
            name: "org.bluez.Error.InProgress",
            message:
                "BlueZ has forgotten an earlier operation on this value, and accepts others when it has removed the "
                + "device: " + (isPaired ? "call repair()" : "connect again, or pair()"))
    }

    /// The refusal of an operation on a protected value after a pairing that has failed. BlueZ is not called.
    static let pairingHasFailed = BlueZError(
        name: "org.bluez.Error.NotPermitted",
        message: "A pairing has failed on this link, and the value needs one: call pair(), or connect again")

    /// Whether an operation was refused because of the link's security. `NotAuthorized` is not about security.
    fileprivate var isLackOfSecurity: Bool {
        // BlueZ has one text for the codes 0x05, 0x0C and 0x0F.
        if cause == .notPermitted, message == "Not paired" { return true }
        return [0x05, 0x0C, 0x0F].contains(attCode)
    }
}

extension BusError {
    init(_ error: BlueZError) {
        self.init(
            name: error.name, message: error.message,
            attError: error.attCode.flatMap { CBATTError.Code(rawValue: Int($0)) })
    }
}
