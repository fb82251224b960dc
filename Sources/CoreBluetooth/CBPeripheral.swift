public import BlueCapKit
public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// A channel of the Logical Link Control and Adaptation Protocol. BlueZ has no such channels for programs, so there are
/// no objects of this class.
open class CBL2CAPChannel: NSObject {
    /// The device at the other end.
    open var peer: CBPeer! { nil }
    /// The bytes that the device sends.
    open var inputStream: InputStream! { nil }
    /// The bytes for the device.
    open var outputStream: OutputStream! { nil }
    /// The number of the channel's protocol and service.
    open var psm: CBL2CAPPSM { 0 }

    override init() { super.init() }
}

/// A remote peripheral that a ``CBCentralManager`` has discovered or retrieved.
///
/// A manager has one object for each peripheral. As on iOS the program must retain it while it is used: if it is
/// released, the connection is ended, with a message. The properties can be read on any thread.
open class CBPeripheral: CBPeer {
    private typealias StartDelay = (number: Int, timer: ManagerTimer?)

    private struct Fields {
        weak var delegate: (any CBPeripheralDelegate)?
        var services: [CBService]?
        /// The objects of the attributes that were discovered, until the peripheral no longer has the attribute.
        var attributes: [AttributeID: CBAttribute] = [:]
        /// Whether the delegate was called with `didConnect`, and not yet with `didDisconnectPeripheral`.
        var isConnected = false
        /// The number of the request for a connection; `nil` without one.
        var request: Int?
        var lastRequest = 0
        /// Why the link is about to end, if BlueCapKit has reported that already.
        var failure: (any Error)?
        /// Whether a lost link that the delegate does not know of yet is made again; `nil` without one.
        var reconnectsAfterLoss: Bool?
        /// Whether an earlier process has connected, so that the next connection is not reported.
        var isRestored = false
        /// The wait before a request.
        var startDelay: StartDelay?
        var followsServices = false
        /// The name that the delegate knows.
        var lastName: String?
        /// The strength of the newest advertisement that the manager has reported.
        var lastRSSI: Int?
        /// Writes without response that BlueZ has not accepted yet.
        var pendingWrites = 0
        /// Whether there have been too many of them, and the delegate has to be called when there are fewer.
        var isFull = false
    }

    /// How many writes without response may wait for BlueZ until ``canSendWriteWithoutResponse`` is false.
    static let writeLimit = 32

    /// The services that iOS uses itself and does not show to programs: Generic Access and Generic Attribute.
    private static let hiddenServices: Set = [CBUUID(0x1800), CBUUID(0x1801)]

    /// BlueCapKit's object for the same peripheral, for what Core Bluetooth does not have.
    public let blueCap: Peripheral

    private let owner: Handle<CBCentralManager>
    let callbacks: DelegateQueue
    private let reports = ReportSequence()
    private let fields = Locked(Fields())

    init(_ blueCap: Peripheral, of manager: CBCentralManager) {
        self.blueCap = blueCap
        owner = Handle(manager)
        callbacks = manager.callbacks
        super.init(identifier: blueCap.identifier)
        sighted(rssi: blueCap.rssi)
    }

    deinit {
        guard let manager else { return }
        // The program may have another object by now.
        guard !manager.hasObject(of: blueCap), blueCap.state != .disconnected else { return }
        CBManager.misuse(
            "Cancelling connection for unused peripheral \(identifier), did you forget to keep a reference to it?")
        blueCap.disconnect()
    }

    var manager: CBCentralManager? { owner.object }

    /// Receives the peripheral's events. It is not retained.
    open var delegate: (any CBPeripheralDelegate)? {
        get { fields.withLock { $0.delegate } }
        set { fields.withLock { $0.delegate = newValue } }
    }

    /// The name that the peripheral has advertised, or the one that was read from it; `nil` if there is none.
    open var name: String? { blueCap.advertisements.localName }

    /// Deprecated by Apple; see ``readRSSI()``.
    open var rssi: NSNumber? {
        let rssi = blueCap.rssi ?? fields.withLock { $0.lastRSSI }
        return rssi.map { NSNumber(value: $0) }
    }

    /// The state of the connection.
    open var state: CBPeripheralState {
        let state = blueCap.state
        return state == .disconnected && fields.withLock { $0.startDelay != nil } ? .connecting : state
    }

    /// The services that were discovered on this connection; `nil` before.
    open var services: [CBService]? { fields.withLock { $0.services } }

    /// Whether the program may make writes without response. If it is false, BlueZ has not accepted earlier ones yet,
    /// and `peripheralIsReady(toSendWriteWithoutResponse:)` will be called.
    open var canSendWriteWithoutResponse: Bool { fields.withLock { !$0.isFull } }

    /// Always false: Linux does not have Apple's notification service.
    open var ancsAuthorized: Bool { false }

    override open var description: String {
        "<CBPeripheral: \(ObjectIdentifier(self)), identifier = \(identifier), name = \(name ?? "(null)"), "
            + "mtu = \(blueCap.mtu ?? 0), state = \(state)>"
    }

    // MARK: Discovering

    /// Discovers services; `nil` for all.
    open func discoverServices(_ serviceUUIDs: [CBUUID]?) {
        guard isConnected(for: "discoverServices") else { return }
        finish(blueCap.discoverServices(serviceUUIDs) as Future<Void>) { [self] result, error in
            var error = error
            // A peripheral without services is not an error in Core Bluetooth.
            if case PeripheralError.noServices? = result.error { error = nil }
            if error == nil {
                let shown = blueCap.services.filter { $0.isPrimary && !Self.hiddenServices.contains($0.uuid) }
                let services = shown.map(object)
                fields.withLock { $0.services = services }
            }
            nameMayHaveChanged()
            delegate?.peripheral(self, didDiscoverServices: error)
        }
    }

    /// Discovers the services that a service includes; `nil` for all.
    open func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
        guard let known = usable(service.service, service, for: "discoverIncludedServices") else { return }
        // BlueZ discovers them with the services.
        finish(blueCap.discoverServices([known.uuid]) as Future<Void>) { [self] _, error in
            if error == nil {
                let included = known.includedServices.filter { includedServiceUUIDs?.contains($0.uuid) ?? true }
                    .map(object)
                service.fields.withLock { $0.includedServices = included }
            }
            delegate?.peripheral(self, didDiscoverIncludedServicesFor: service, error: error)
        }
    }

    /// Discovers characteristics of a service; `nil` for all.
    open func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
        guard let known = usable(service.service, service, for: "discoverCharacteristics") else { return }
        finish(known.discoverCharacteristics(characteristicUUIDs) as Future<Void>) { [self] _, error in
            if error == nil {
                let found = known.characteristics.map { object($0, of: service) }
                service.fields.withLock { $0.characteristics = found }
            }
            delegate?.peripheral(self, didDiscoverCharacteristicsFor: service, error: error)
        }
    }

    /// Discovers all descriptors of a characteristic.
    open func discoverDescriptors(for characteristic: CBCharacteristic) {
        guard let known = usable(characteristic.characteristic, characteristic, for: "discoverDescriptors")
        else { return }
        // BlueZ discovers them with the services.
        finish(blueCap.discoverServices(known.service.map { [$0.uuid] }) as Future<Void>) { [self] _, error in
            if error == nil {
                let found = known.descriptors.map { object($0, of: characteristic) }
                characteristic.fields.withLock { $0.descriptors = found }
            }
            delegate?.peripheral(self, didDiscoverDescriptorsFor: characteristic, error: error)
        }
    }

    private func object(_ service: Service) -> CBService {
        object(service.id) {
            CBService(uuid: service.uuid, isPrimary: service.isPrimary, service: service, peripheral: self)
        }
    }

    private func object(_ characteristic: Characteristic, of service: CBService) -> CBCharacteristic {
        let object = object(characteristic.id) {
            CBCharacteristic(
                uuid: characteristic.uuid, properties: characteristic.properties, value: nil,
                characteristic: characteristic, service: service)
        }
        // A subscription of an earlier process, which BlueCapKit resumes on this link. That may not have happened yet: the
        // program discovers services as soon as the state is `poweredOn`.
        if characteristic.isSubscribed, !object.fields.withLock({ $0.isReceiving }) {
            object.fields.withLock { $0.isNotifying = true }
            receive(object)
        }
        return object
    }

    private func object(_ descriptor: Descriptor, of characteristic: CBCharacteristic) -> CBDescriptor {
        object(descriptor.id) {
            CBDescriptor(uuid: descriptor.uuid, value: nil, descriptor: descriptor, characteristic: characteristic)
        }
    }

    /// Returns the object of an attribute, which is the same one for as long as the peripheral has the attribute. On the
    /// delegate's queue.
    private func object<Attribute: CBAttribute>(_ id: AttributeID, _ new: () -> Attribute) -> Attribute {
        if let known = fields.withLock({ $0.attributes[id] }) as? Attribute { return known }
        let object = new()
        fields.withLock { $0.attributes[id] = object }
        return object
    }

    // MARK: Values

    /// Reads the value of a characteristic; `didUpdateValueFor` reports it.
    open func readValue(for characteristic: CBCharacteristic) {
        guard let known = usable(characteristic.characteristic, characteristic, for: "readValue") else { return }
        finish(known.read(from: 0)) { [self] result, error in
            if let value = result.value { characteristic.fields.withLock { $0.value = value } }
            delegate?.peripheral(self, didUpdateValueFor: characteristic, error: error)
        }
    }

    /// Writes the value of a characteristic.
    ///
    /// With response `didWriteValueFor` reports the result. Without response nothing is reported, and no write is
    /// discarded while the link is up, also if ``canSendWriteWithoutResponse`` is false.
    open func writeValue(_ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType) {
        guard let known = usable(characteristic.characteristic, characteristic, for: "writeValue") else { return }
        if type == .withoutResponse { return writeWithoutResponse(data, to: known) }
        finish(known.write(data: data, type: .withResponse) as Future<Void>) { [self] _, error in
            delegate?.peripheral(self, didWriteValueFor: characteristic, error: error)
        }
    }

    private func writeWithoutResponse(_ data: Data, to characteristic: Characteristic) {
        fields.withLock { fields in
            fields.pendingWrites += 1
            if fields.pendingWrites >= Self.writeLimit { fields.isFull = true }
        }
        let peripheral = Retained(self)
        let write: Future<Void> = characteristic.write(data: data, type: .withoutResponse)
        write.onComplete(context: callbacks) { result in
            let peripheral = peripheral.value
            let isReady = peripheral.fields.withLock { fields in
                fields.pendingWrites -= 1
                guard fields.isFull, fields.pendingWrites <= Self.writeLimit / 2 else { return false }
                fields.isFull = false
                return fields.isConnected
            }
            if case .failure(let error as CharacteristicError) = result { CBManager.log("\(error)") }
            if isReady, peripheral.blueCap.state == .connected {
                peripheral.delegate?.peripheralIsReady(toSendWriteWithoutResponse: peripheral)
            }
        }
    }

    /// Returns how many bytes can be written at once.
    open func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        blueCap.maximumWriteValueLength(for: type)
    }

    /// Subscribes to the values of a characteristic, or ends the subscription; `didUpdateNotificationStateFor` reports
    /// the result. The end of the link ends the subscription.
    open func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
        guard let known = usable(characteristic.characteristic, characteristic, for: "setNotifyValue") else { return }
        if enabled { receive(characteristic) }
        let change: Future<Void> = enabled ? known.startNotifying() : known.stopNotifying()
        finish(change) { [self] _, error in
            if error == nil { characteristic.fields.withLock { $0.isNotifying = enabled } }
            delegate?.peripheral(self, didUpdateNotificationStateFor: characteristic, error: error)
        }
    }

    /// Passes the values of a characteristic to the delegate, from now on and on later links.
    private func receive(_ characteristic: CBCharacteristic) {
        guard !characteristic.fields.replace(\.isReceiving, with: true), let known = characteristic.characteristic
        else { return }
        let (peripheral, object) = (Handle(self), Handle(characteristic))
        let values: FutureStream<Data?> = known.receiveNotificationUpdates(capacity: 0)
        values.onComplete(context: callbacks) { result in
            guard let object = object.object, let peripheral = peripheral.object else { return }
            switch result {
            case .success(let value?):
                object.fields.withLock { $0.value = value }
                peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: object, error: nil)
            case .success(nil): break  // a gap is a link that was lost, which the delegate knows
            case .failure(let error): peripheral.subscriptionEnded(object, error)
            }
        }
    }

    /// A subscription could not be resumed, or the characteristic no longer exists, which `didModifyServices` reports.
    private func subscriptionEnded(_ characteristic: CBCharacteristic, _ error: any Error) {
        let wasNotifying = characteristic.fields.replace(\.isNotifying, with: false)
        guard wasNotifying, characteristic.characteristic?.isValid == true else { return }
        delegate?.peripheral(
            self, didUpdateNotificationStateFor: characteristic, error: coreBluetoothError(error))
    }

    /// Reads the value of a descriptor; `didUpdateValueFor` reports it.
    open func readValue(for descriptor: CBDescriptor) {
        guard let known = usable(descriptor.descriptor, descriptor, for: "readValue") else { return }
        finish(known.read() as Future<Descriptor>) { [self] _, error in
            if error == nil {
                let value = Retained(CBDescriptor.value(known.dataValue ?? Data(), of: known.uuid))
                descriptor.fields.withLock { $0.value = value.value }
            }
            delegate?.peripheral(self, didUpdateValueFor: descriptor, error: error)
        }
    }

    /// Writes the value of a descriptor; `didWriteValueFor` reports the result.
    ///
    /// The client characteristic configuration (2902) is written with ``setNotifyValue(_:for:)`` only.
    open func writeValue(_ data: Data, for descriptor: CBDescriptor) {
        guard let known = usable(descriptor.descriptor, descriptor, for: "writeValue") else { return }
        guard known.uuid != CBUUID(string: CBUUIDClientCharacteristicConfigurationString) else {
            return CBManager.misuse(
                "Cannot write Client Characteristic Configuration descriptors using this method, use setNotifyValue")
        }
        finish(known.write(data: data) as Future<Void>) { [self] _, error in
            delegate?.peripheral(self, didWriteValueFor: descriptor, error: error)
        }
    }

    /// Reports the signal strength of the newest advertisement, which may be old: BlueZ does not measure that of the
    /// link, and removes that of the advertisement when the scan ends.
    open func readRSSI() {
        guard isConnected(for: "readRSSI") else { return }
        finish(blueCap.readRSSI()) { [self] result, error in
            var (strength, error) = (result.value.map { NSNumber(value: $0) }, error)
            if case PeripheralError.rssiUnavailable? = result.error, let rssi { (strength, error) = (rssi, nil) }
            delegate?.peripheral(self, didReadRSSI: strength ?? 127, error: error)
        }
    }

    /// Fails with `CBError.operationNotSupported`: BlueZ has no such channels for programs.
    open func openL2CAPChannel(_ PSM: CBL2CAPPSM) {
        guard isConnected(for: "openL2CAPChannel") else { return }
        finish(Future<Void>(error: CBError(.operationNotSupported))) { [self] _, error in
            delegate?.peripheral(self, didOpen: nil, error: error)
        }
    }

    // MARK: Helpers

    /// Calls `report` with the result of an operation and with Core Bluetooth's error for it, on the delegate's queue, after
    /// the results of all earlier operations.
    private func finish<T: Sendable>(
        _ future: Future<T>, _ report: @escaping (_ result: Try<T>, _ error: (any Error)?) -> Void
    ) {
        reports.add(future, on: callbacks) { report($0, $0.error.map(coreBluetoothError)) }
    }

    /// Returns whether there is a link, and reports a misuse if there is none.
    private func isConnected(for command: String) -> Bool {
        if blueCap.state == .connected { return true }
        CBManager.misuse("\(self) can only accept commands while in the connected state (\(command))")
        return false
    }

    /// Returns BlueCapKit's object of an attribute if there is a link and the attribute belongs to this peripheral, and
    /// reports a misuse otherwise.
    private func usable<Known: PeripheralAttribute>(
        _ known: Known?, _ attribute: CBAttribute, for command: String
    ) -> Known? {
        guard isConnected(for: command) else { return nil }
        if let known, known.peripheral == blueCap { return known }
        CBManager.misuse("\(attribute) is not an attribute of \(self)")
        return nil
    }

    /// Keeps the strength of an advertisement, if BlueZ has reported one.
    func sighted(rssi: Int?) {
        if let rssi { fields.withLock { $0.lastRSSI = rssi } }
    }

    /// Calls the delegate if the name differs from the last one; on the delegate's queue.
    func nameMayHaveChanged() {
        let new = name
        if let old = fields.replace(\.lastName, with: new), old != new { delegate?.peripheralDidUpdateName(self) }
    }
}

// MARK: - The connection

extension CBPeripheral {
    /// - Parameter reconnects: Whether a lost connection is made again.
    func connect(after delay: TimeInterval, reconnecting reconnects: Bool) {
        fields.withLock { $0.isRestored = false }
        guard delay > 0, let manager else { return connect(reconnecting: reconnects) }
        let (former, number) = fields.withLock { fields in
            fields.lastRequest += 1
            defer { fields.startDelay = (fields.lastRequest, nil) }
            return (fields.startDelay, fields.lastRequest)
        }
        former?.timer?.cancel()
        let peripheral = Handle(self)
        // It can end before the next line.
        let timer = manager.blueCap.timer(after: delay) {
            guard let peripheral = peripheral.object, peripheral.takeStartDelay(number) != nil else { return }
            peripheral.connect(reconnecting: reconnects)
        }
        fields.withLock { if $0.startDelay?.number == number { $0.startDelay?.timer = timer } }
    }

    /// - Parameter number: Only that one; `nil` for any.
    private func takeStartDelay(_ number: Int? = nil) -> StartDelay? {
        fields.withLock { fields in
            guard let delay = fields.startDelay, number == nil || number == delay.number else { return nil }
            fields.startDelay = nil
            return delay
        }
    }

    private func connect(reconnecting reconnects: Bool) {
        takeStartDelay()?.timer?.cancel()
        let peripheral = Handle(self)
        let request = fields.withLock { fields in
            fields.lastRequest += 1
            fields.request = fields.lastRequest
            return fields.lastRequest
        }
        // Without retries the first disconnection ends the request, as in Core Bluetooth.
        let events: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> = blueCap.connect(
            disconnectRetries: reconnects ? .max : 0)
        events.onComplete(context: callbacks) { result in
            switch result {
            case .success(let event):
                peripheral.object?.connectionChanged(event.connectionEvent, request, reconnects)
            case .failure(let error): peripheral.object?.connectionFailed(error)
            }
        }
    }

    func cancel() {
        fields.withLock { $0.request = nil }
        if let delay = takeStartDelay() {
            delay.timer?.cancel()
            let peripheral = Retained(self)
            return callbacks.async { peripheral.value.connectionEnded(nil) }
        }
        if blueCap.state != .disconnected { manager?.retain([self]) }
        blueCap.disconnect()
    }

    /// Follows a connection that an earlier process has made or requested.
    func restore() {
        if blueCap.state == .connected {
            fields.withLock { $0.isRestored = true }
        }
        connect(reconnecting: false)
    }

    // On the delegate's queue.

    private func connectionChanged(_ event: ConnectionEvent, _ request: Int, _ reconnects: Bool) {
        switch event {
        // The program may have called `connect` again since, and the later request is reported.
        case .connect: if fields.withLock({ $0.request == request }) { connected() }
        case .forceDisconnect: connectionEnded(nil)
        case .disconnect, .giveUp, .timeout:
            let wasConnected = fields.withLock { fields in
                guard fields.isConnected else { return false }
                (fields.isConnected, fields.reconnectsAfterLoss) = (false, reconnects)
                return true
            }
            if wasConnected { linkLost() }
            if wasConnected, !reconnects { return }
            // The adapter has lost its power before there was a connection: the request waits for the power.
            switch fields.withLock({ $0.request }) {
            case request: if reconnects { blueCap.reconnect() } else { connect(reconnecting: false) }
            case nil: connectionEnded(nil)
            default: break
            }
        }
    }

    private func connected() {
        reportLoss()
        followServices()
        nameMayHaveChanged()
        let (isNews, isNewLink) = fields.withLock { fields in
            defer { (fields.isRestored, fields.isConnected) = (false, true) }
            return (!fields.isRestored, !fields.isConnected)
        }
        guard isNews, let manager else { return }
        if isNewLink { manager.report(.peerConnected, of: self) }
        manager.delegate?.centralManager(manager, didConnect: self)
    }

    private func linkLost() {
        let isFailureKnown = fields.withLock { $0.failure != nil }
        switch blueCap.disconnectDetail?.cause {
        case .timeout, .remote, .authentication: reportLoss()
        case .local, .suspend, .unspecified, nil:
            if let manager, !isFailureKnown { manager.linkLost(of: self) } else { reportLoss() }
        }
    }

    /// Reports a lost link, unless it has been reported.
    func reportLoss() {
        guard let isReconnecting = fields.replace(\.reconnectsAfterLoss, with: nil) else { return }
        manager?.lossReported(of: self)
        connectionEnded(fields.replace(\.failure, with: nil) ?? lossError, isReconnecting: isReconnecting)
    }

    private func connectionFailed(_ error: any Error) {
        // BlueCapKit refuses to end a connection that does not exist; Core Bluetooth ignores the call.
        manager?.release(self)
        if case PeripheralError.disconnected = error { return }
        reportLoss()
        let error = coreBluetoothError(error)
        let isConnected = fields.withLock { fields in
            if fields.isConnected { fields.failure = error }
            return fields.isConnected
        }
        guard !isConnected, let manager else { return }
        manager.delegate?.centralManager(manager, didFailToConnect: self, error: error)
    }

    private func connectionEnded(_ error: (any Error)?, isReconnecting: Bool = false) {
        reportLoss()
        invalidateServices()
        guard let manager else { return }
        manager.release(self)
        manager.report(.peerDisconnected, of: self)
        manager.delegate?.centralManager(
            manager, didDisconnectPeripheral: self, timestamp: Date().timeIntervalSinceReferenceDate,
            isReconnecting: isReconnecting, error: error)
    }

    /// Why the link was lost, as BlueZ reports it.
    private var lossError: CBError {
        if blueCap.disconnectReason == .adapterLost || manager?.state != .poweredOn { return CBError(.unknown) }
        return switch blueCap.disconnectDetail?.cause {
        case .timeout: CBError(.connectionTimeout)
        case .authentication: CBError(.peerRemovedPairingInformation)
        case .local, .suspend: CBError(.operationCancelled)
        case .remote, .unspecified, nil: CBError(.peripheralDisconnected)
        }
    }

    /// As on iOS the end of a link invalidates the attributes, and ends the subscriptions.
    private func invalidateServices() {
        let attributes = fields.withLock { fields in
            fields.isConnected = false
            fields.services = nil
            return fields.attributes
        }
        for attribute in attributes.values {
            switch attribute {
            case let service as CBService:
                service.fields.withLock { ($0.includedServices, $0.characteristics) = (nil, nil) }
            case let characteristic as CBCharacteristic:
                let isReceiving = characteristic.fields.withLock { fields in
                    (fields.isNotifying, fields.descriptors) = (false, nil)
                    return fields.isReceiving
                }
                // BlueCapKit would resume it on the next link.
                if isReceiving { _ = characteristic.characteristic?.stopNotifying() as Future<Void>? }
            default: break
            }
        }
    }

    // MARK: Changed services

    private func followServices() {
        guard !fields.replace(\.followsServices, with: true) else { return }
        let peripheral = Handle(self)
        blueCap.whenServicesChange().onSuccess(context: callbacks) { _ in peripheral.object?.servicesChanged() }
    }

    /// Removes the attributes that the peripheral no longer has, and reports the services that have lost any.
    private func servicesChanged() {
        let gone = fields.withLock { $0.attributes }.filter { $0.value.known?.isValid == false }
        let known = fields.withLock { fields in
            defer {
                for id in gone.keys { fields.attributes[id] = nil }
                fields.services = fields.services?.filter { $0.service?.isValid == true }
            }
            return fields.services ?? []
        }
        let changed = Set(gone.values.compactMap(\.owner))
        delegate?.peripheral(self, didModifyServices: known.filter(changed.contains))
    }
}
