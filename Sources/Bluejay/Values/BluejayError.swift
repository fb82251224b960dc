public import BlueCapKit
public import Foundation

/// The reason why a request to ``Bluejay`` failed. A later version may add cases.
///
/// If the peripheral, the radio or BlueZ is the cause, the request fails with an error of BlueCapKit, such as
/// `CharacteristicError.readFailed` or `PeripheralError.connectionFailed`.
public enum BluejayError: Swift.Error, Hashable, Swift.Sendable {
    /// Bluetooth is off, blocked, or not present.
    case bluetoothUnavailable
    /// There is a scan already.
    case multipleScanNotSupported
    /// There is a connection already, or an attempt at one.
    case multipleConnectNotSupported
    /// A disconnection was requested already.
    case multipleDisconnectNotSupported
    /// The connection was not established in time.
    case connectionTimedOut
    /// There is no connection, or it was lost before the request was complete.
    case notConnected
    /// The peripheral does not have the service.
    case missingService(ServiceIdentifier)
    /// The service does not have the characteristic.
    case missingCharacteristic(CharacteristicIdentifier)
    /// The application cancelled it: `cancelEverything`.
    case cancelled
    /// The application disconnected.
    case explicitDisconnect
    /// The operation was requested after a disconnection that is queued.
    case disconnectQueued
    /// No value arrived in time.
    case listenTimedOut
    /// There are only `count` bytes, which does not fit with `length` bytes from `start` on.
    case dataOutOfBounds(start: Int, length: Int, count: Int)
    /// The bytes are no UTF-8.
    case invalidText(Data)
    /// Neither BlueZ nor this Bluejay has a peripheral with this identifier.
    case unexpectedPeripheral(PeripheralIdentifier)
    /// A background task is running; other requests are refused until it has ended.
    case backgroundTaskRunning
    /// A background task is running already.
    case multipleBackgroundTaskNotSupported
    /// The outer Bluejay was called inside its own background task.
    case calledInsideBackgroundTask
    /// The synchronized peripheral was used outside its background task.
    case notInBackgroundTask
    /// There is a listen to the characteristic already, which may not be replaced.
    case multipleListenTrapped
    /// Another listen has replaced this one.
    case multipleListenReplaced
    /// A flush without an idle window would never end.
    case indefiniteFlush
    /// The value needs a pairing: there is none and the pairing policy does not allow it, or it is one without a passkey
    /// and the value needs one with.
    case pairingRequired(RequiredSecurity)
    /// The pairing has failed, or the end of a bond; also if an operation needed it, or a connection.
    case pairingFailed(PairingError)
    /// Bluejay has not been started, or has been stopped.
    case stopped
}

extension BluejayError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .bluetoothUnavailable:
            "Bluetooth is not available: wait for bluetoothAvailable(true) of a ConnectionObserver, "
                + "or switch the adapter on with `bluetoothctl power on`."
        case .multipleScanNotSupported:
            "There is a scan already: end it with stopScanning() or with the action .stop before the next."
        case .multipleConnectNotSupported:
            "Bluejay is connected or connecting already: disconnect() first, or cancelEverything() to end the attempt."
        case .multipleDisconnectNotSupported:
            "A disconnection was requested already: wait for its completion."
        case .connectionTimedOut:
            "The connection was not established within its time-out: the peripheral is out of range, off, or connected to "
                + "another central."
        case .notConnected:
            "There is no connection to a peripheral, or it was lost: call connect(_:) again, "
                + "or wait for connected(to:) if Bluejay reconnects."
        case .missingService(let service):
            "The peripheral does not have the service \(service)."
        case .missingCharacteristic(let characteristic):
            "The peripheral does not have the characteristic \(characteristic)."
        case .cancelled:
            "The application has cancelled the request."
        case .explicitDisconnect:
            "The application has disconnected."
        case .disconnectQueued:
            "A disconnection is queued before this operation: request it on the next connection."
        case .listenTimedOut:
            "No value arrived within the time-out of the listen."
        case .dataOutOfBounds(let start, let length, let count):
            "There are \(count) bytes, which does not fit with \(length) from \(start) on: the peripheral sent a value of "
                + "another length."
        case .invalidText(let data):
            "These bytes are no UTF-8: \(data.map { String($0, radix: 16) }.joined(separator: " "))."
        case .unexpectedPeripheral(let identifier):
            "There is no peripheral \(identifier): scan for it first."
        case .backgroundTaskRunning:
            "A background task is running: wait for its completion."
        case .multipleBackgroundTaskNotSupported:
            "A background task is running already: run one at a time."
        case .calledInsideBackgroundTask:
            "Inside a background task use its SynchronizedPeripheral, not the outer Bluejay."
        case .notInBackgroundTask:
            "A SynchronizedPeripheral can be used only in its background task: on its thread, until it returns."
        case .multipleListenTrapped:
            "The characteristic is listened to already: call endListen(to:) first, "
                + "or begin the first listen with multipleListenOption: .replaceable."
        case .multipleListenReplaced:
            "Another listen to the same characteristic has replaced this one."
        case .indefiniteFlush:
            "A flush requires an idle window of more than zero seconds."
        case .pairingRequired(.encryption):
            "The value needs a pairing: call pair(), or start Bluejay with the pairing policy .justWorks or .ask."
        case .pairingRequired(.authentication), .pairingRequired(.secureConnections):
            "The value needs a pairing with a passkey or a comparison of numbers, and the peripheral is paired without: "
                + "call unpair(_:), connect, and pair() with the pairing policy .ask."
        case .pairingFailed(let error):
            switch error {
            case .notAllowed: "\(error.cause()). Start Bluejay with the pairing policy .justWorks or .ask."
            case .rejected(by: .policy):
                "\(error.cause()). It accepts no request of this kind, or there was no PairingObserver."
            case .keyMissing, .alreadyPaired:
                "\(error.cause()). If it is the one that the user means, call unpair(_:), scan for it, connect, and pair()."
            default: error.description
            }
        case .stopped:
            "Bluejay has not been started, or has been stopped: call start()."
        }
    }
}
