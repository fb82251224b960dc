public import Foundation

/// A change of a connection, for ``CBCentralManager/registerForConnectionEvents(options:)``.
public enum CBConnectionEvent: Int, Hashable, Sendable {
    /// The connection has ended.
    case peerDisconnected = 0
    /// The peripheral is connected.
    case peerConnected = 1
}

/// Receives the events of a ``CBCentralManager``, on its queue and in their order.
///
/// All methods except the first are optional: they have default implementations. A class that inherits its conformance
/// must override a method that its superclass has; it cannot add one. If the superclass does not have `willRestoreState`,
/// a message says so, and the manager retains the restored peripherals until their connections end.
public protocol CBCentralManagerDelegate: NSObjectProtocol {
    /// The state has changed. It is called at least once.
    func centralManagerDidUpdateState(_ central: CBCentralManager)

    /// A manager with this restore identifier was active when an earlier process ended. This is the first call.
    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any])

    /// A peripheral was discovered. With `CBCentralManagerScanOptionAllowDuplicatesKey` each of its reports is a call.
    ///
    /// The program must retain the peripheral to connect to it. The data of the advertisement have the `CBAdvertisementData…`
    /// keys. The signal strength is in dBm; 127 if it is unknown.
    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber)

    /// A connection that the manager was asked for has been made.
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral)

    /// A connection that the manager was asked for could not be made. It is not tried again. The error is a ``CBError``, or a
    /// `CBATTError`.
    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?)

    /// The connection has ended. It is called if the delegate does not implement the next method.
    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?)

    /// The connection has ended.
    ///
    /// `timestamp` is in seconds since 2001-01-01 00:00 UTC. If `isReconnecting` is true, the connection is made again: see
    /// `CBConnectPeripheralOptionEnableAutoReconnect`. The error is `nil` after `cancelPeripheralConnection(_:)`.
    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?)

    /// A peripheral has connected or disconnected, after ``CBCentralManager/registerForConnectionEvents(options:)``.
    func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral)

    /// Never called: Linux does not have Apple's notification service.
    func centralManager(_ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral)
}

extension CBCentralManagerDelegate {
    public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        central.usedDefault(
            of: "centralManager(_:willRestoreState:)", self, "the restored connections are kept until they end")
        central.retain(dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? [])
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {}

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {}

    public func centralManager(
        _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
    ) {}

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {}

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?
    ) {
        centralManager(central, didDisconnectPeripheral: peripheral, error: error)
    }

    public func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) {}

    public func centralManager(
        _ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral
    ) {}
}

/// Receives the events of a ``CBPeripheral``, on its manager's queue and in their order.
///
/// All methods are optional: they have default implementations. A class that inherits its conformance must override a
/// method that its superclass has; it cannot add one.
public protocol CBPeripheralDelegate: NSObjectProtocol {
    /// The name has changed: `name` of the peripheral is the new one.
    func peripheralDidUpdateName(_ peripheral: CBPeripheral)

    /// The peripheral has changed its services: these no longer exist, and there may be others. Discover them again.
    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService])

    /// Never called: replaced by the next method in iOS 8.
    func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?)

    /// The result of `readRSSI()`: the signal strength in dBm; 127 after an error.
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?)

    /// The result of `discoverServices(_:)`: `services` of the peripheral contains the services found.
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?)

    /// The result of `discoverIncludedServices(_:for:)`: `includedServices` of the service contains the services found.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?)

    /// The result of `discoverCharacteristics(_:for:)`: `characteristics` of the service contains the characteristics found.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?)

    /// A value was read or notified: `value` of the characteristic is this value during the call.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// The result of a write with response. The error is a `CBATTError` if the peripheral has refused it.
    func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// The result of `setNotifyValue(_:for:)`, or the end of a subscription. `isNotifying` is the state after it.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?)

    /// The result of `discoverDescriptors(for:)`: `descriptors` of the characteristic contains the descriptors found.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?)

    /// The result of a read of a descriptor: `value` of the descriptor is what was read.
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// The result of a write of a descriptor. The error is a `CBATTError` if the peripheral has refused it.
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Writes without response are accepted again after `canSendWriteWithoutResponse` was false.
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral)

    /// The result of `openL2CAPChannel(_:)`: always the error ``CBError/Code/operationNotSupported``, and no channel.
    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
}

extension CBPeripheralDelegate {
    public func peripheralDidUpdateName(_ peripheral: CBPeripheral) {}

    public func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {}

    public func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?) {}

    public func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {}

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?
    ) {}

    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {}

    public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {}
}
