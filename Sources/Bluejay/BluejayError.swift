public import BlueCapKit
public import Foundation

/// Why something that ``Bluejay`` was asked for did not succeed.
///
/// Where the peripheral, the radio or BlueZ is the cause, the failure is BlueCapKit's and says which:
/// `CharacteristicError.readFailed`, `PeripheralError.connectionFailed` and so on.
public enum BluejayError: Swift.Error, Hashable, Swift.Sendable {
    /// Bluetooth is off, blocked, or not there.
    case bluetoothUnavailable
    /// There is a scan already.
    case multipleScanNotSupported
    /// There is a connection already, or an attempt at one.
    case multipleConnectNotSupported
    /// A disconnection is on its way already.
    case multipleDisconnectNotSupported
    /// The connection did not come up in time.
    case connectionTimedOut
    /// There is no connection, or it was lost meanwhile.
    case notConnected
    /// The peripheral does not have the service.
    case missingService(ServiceIdentifier)
    /// The service does not have the characteristic.
    case missingCharacteristic(CharacteristicIdentifier)
    /// The application cancelled it: `cancelEverything`.
    case cancelled
    /// The application disconnected.
    case explicitDisconnect
    /// It was asked for behind a disconnection that is queued.
    case disconnectQueued
    /// No value came in time.
    case listenTimedOut
    /// The bytes are not as many as there should be: `length` of them from `start`, of `count`.
    case dataOutOfBounds(start: Int, length: Int, count: Int)
    /// The bytes are no UTF-8.
    case invalidText(Data)
    /// Neither BlueZ nor this Bluejay knows a peripheral with this identifier.
    case unexpectedPeripheral(PeripheralIdentifier)
    /// A background task is running, and nothing else may be asked for until it has ended.
    case backgroundTaskRunning
    /// A background task is running already.
    case multipleBackgroundTaskNotSupported
    /// The outer Bluejay was called inside of its own background task.
    case calledInsideBackgroundTask
    /// The synchronized peripheral was used elsewhere than in the background task that it was given to.
    case notInBackgroundTask
    /// The characteristic is listened to already, and that listen may not be replaced.
    case multipleListenTrapped
    /// Another listen took the place of this one.
    case multipleListenReplaced
    /// A flush without an idle window would never end.
    case indefiniteFlush
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
            "A disconnection is on its way already: wait for its completion."
        case .connectionTimedOut:
            "The connection did not come up within its time-out: the peripheral is out of range, off, or connected to "
                + "somebody else."
        case .notConnected:
            "There is no connection to a peripheral, or it was lost meanwhile: connect(_:) again, "
                + "or wait for connected(to:) where Bluejay reconnects by itself."
        case .missingService(let service):
            "The peripheral does not have the service \(service)."
        case .missingCharacteristic(let characteristic):
            "The peripheral does not have the characteristic \(characteristic)."
        case .cancelled:
            "The application has cancelled it."
        case .explicitDisconnect:
            "The application has disconnected."
        case .disconnectQueued:
            "A disconnection is queued before it: nothing more can be asked of this connection."
        case .listenTimedOut:
            "No value came within the time-out of the listen."
        case .dataOutOfBounds(let start, let length, let count):
            "There are \(count) bytes, which does not fit with \(length) from \(start) on: the peripheral sends another "
                + "value than expected."
        case .invalidText(let data):
            "These bytes are no UTF-8: \(data.map { String($0, radix: 16) }.joined(separator: " "))."
        case .unexpectedPeripheral(let identifier):
            "Nobody here knows a peripheral \(identifier): scan for it first."
        case .backgroundTaskRunning:
            "A background task is running: wait for its completion."
        case .multipleBackgroundTaskNotSupported:
            "A background task is running already: run one at a time."
        case .calledInsideBackgroundTask:
            "Inside of a background task use the SynchronizedPeripheral that it is given, not the outer Bluejay."
        case .notInBackgroundTask:
            "A SynchronizedPeripheral is of use only in the background task that it was given to: on its thread, and until "
                + "it returns."
        case .multipleListenTrapped:
            "The characteristic is listened to already: endListen(to:) first, "
                + "or listen with multipleListenOption: .replaceable in the first place."
        case .multipleListenReplaced:
            "Another listen to the same characteristic has taken the place of this one."
        case .indefiniteFlush:
            "A flush takes an idle window of more than zero seconds."
        case .stopped:
            "Bluejay has not been started, or has been stopped: call start()."
        }
    }
}
