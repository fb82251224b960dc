public import Foundation

/// Receives what a ``CBPeripheralManager`` reports, in order, on the manager's queue. Only
/// ``peripheralManagerDidUpdateState(_:)`` is required.
public protocol CBPeripheralManagerDelegate: NSObjectProtocol {
    /// The manager's state has changed. Services and advertisements are accepted in `poweredOn`.
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager)
    /// What an earlier process offered and advertised is offered and advertised again. It is the first call of all.
    ///
    /// The dictionary has `CBPeripheralManagerRestoredStateServicesKey`: `[CBMutableService]`;
    /// `CBPeripheralManagerRestoredStateAdvertisementDataKey`: `[String: Any]`.
    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any])
    /// The advertisement is on the air, or failed.
    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?)
    /// A service is offered to centrals, or could not be added.
    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?)
    /// A central has subscribed to a characteristic.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic)
    /// A central has cancelled its subscription, or its link has ended.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic)
    /// A central reads a characteristic that has no fixed value: respond with
    /// ``CBPeripheralManager/respond(to:withResult:)`` within four seconds.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest)
    /// A central writes: respond to the first of the requests, once, within four seconds.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest])
    /// ``CBPeripheralManager/updateValue(_:for:onSubscribedCentrals:)`` has returned `false`, and there is space again.
    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager)
    /// Always called with an error: BlueZ has no L2CAP channels on D-Bus.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?)
    /// Always called with an error: BlueZ has no L2CAP channels on D-Bus.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?)
    /// Never called: BlueZ has no L2CAP channels on D-Bus.
    func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
}

extension CBPeripheralManagerDelegate {
    public func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
        peripheral.usedDefault(
            of: "peripheralManager(_:willRestoreState:)", self,
            "the restored services are offered until they are removed")
    }
    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?
    ) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) {}
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        peripheral.usedDefault(of: "peripheralManager(_:didReceiveRead:)", self, "reads are refused")
        peripheral.respond(to: request, withResult: .requestNotSupported)
    }
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        guard let first = requests.first else { return }
        peripheral.usedDefault(of: "peripheralManager(_:didReceiveWrite:)", self, "writes are refused")
        peripheral.respond(to: first, withResult: .requestNotSupported)
    }
    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) {}
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
    ) {}
}
