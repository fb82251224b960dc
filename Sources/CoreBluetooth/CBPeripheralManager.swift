public import BlueCapKit
public import Dispatch
public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// The peripheral role: offers services to centrals, and advertises.
///
/// It is safe to use from any thread. The delegate is called in order on the queue of the initializer, without one on
/// the main queue.
open class CBPeripheralManager: CBManager {
    private struct Core {
        weak var delegate: (any CBPeripheralManagerDelegate)?
        var services: [CBMutableService] = []
        var centrals = WeakTable<UUID, CBCentral>()
        /// Whether a characteristic has refused an update because its queue was full.
        var isWaitingForSpace = false
        /// Whether the advertisement that was started is that of a time before the adapter was last off.
        var isAdvertisementOld = false
    }

    private let core = Locked(Core())
    let callbacks: DelegateQueue
    private let reports = ReportSequence()
    /// Whether the program has chosen a pairing policy.
    private let hasPolicy: Bool

    /// The same manager in BlueCap's interface.
    public let blueCap: PeripheralManager

    private static let defaults = Locked(PeripheralManager.Configuration())

    /// The configuration of the managers that the process creates from now on without one; their options precede. If its
    /// policy is `PairingPolicy.reject`, as at first, that of a manager becomes `PairingPolicy.justWorks` when a service is
    /// added that needs encryption. An invalid value makes each `add` and `startAdvertising` fail.
    public static var defaultConfiguration: PeripheralManager.Configuration {
        get { defaults.withLock { $0 } }
        set { defaults.withLock { $0 = newValue } }
    }

    /// Creates a manager without a delegate, whose callbacks run on the main queue.
    public convenience override init() { self.init(delegate: nil, queue: nil) }

    /// Creates a manager without options.
    public convenience init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager with options.
    ///
    /// - Parameters:
    ///   - delegate: Receives the callbacks; it is not retained.
    ///   - queue: Where it is called; `nil` for the main queue.
    ///   - options: `CBPeripheralManagerOptionRestoreIdentifierKey`. The rest is that of ``defaultConfiguration``.
    ///     `CBPeripheralManagerOptionShowPowerAlertKey` has no effect.
    public init(
        delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]?
    ) {
        let own = options?[Self.configurationKey] as? PeripheralManager.Configuration
        let configuration = own ?? Self.defaultConfiguration
        let options = CBManager.options(options, of: "Peripheral")
        hasPolicy =
            own != nil || configuration.pairingPolicy != .reject
            || options["PeripheralManagerOptionPairingPolicyKey"] != nil
        callbacks = DelegateQueue(queue)
        blueCap = PeripheralManager(queue: callbacks.queue, options: options, over: configuration)
        super.init()
        self.delegate = delegate
        guard configuration.restoreIdentifier != nil || options[CBPeripheralManagerOptionRestoreIdentifierKey] != nil
        else {
            followState()
            return
        }
        let handle = Handle(self)
        blueCap.whenStateRestored().onComplete(context: callbacks) { outcome in
            guard let self = handle.object else { return }
            switch outcome {
            case .success(let advertised): self.restored(advertised)
            case .failure(let error): Self.log("\(error)")
            }
            self.followState()
        }
    }

    /// Creates a manager with a configuration of BlueCapKit, in place of the default one. Its pairing policy does not change
    /// when services are added.
    /// - Throws: `ConfigurationError` if the configuration has an invalid value.
    public convenience init(
        delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?,
        configuration: PeripheralManager.Configuration
    ) throws(ConfigurationError) {
        try configuration.check()
        self.init(delegate: delegate, queue: queue, options: [Self.configurationKey: configuration])
    }

    /// Receives the callbacks. It is not retained.
    open var delegate: (any CBPeripheralManagerDelegate)? {
        get { core.withLock { $0.delegate } }
        set { core.withLock { $0.delegate = newValue } }
    }

    // MARK: State

    private func followState() {
        let handle = Handle(self)
        blueCap.whenStateChanges().onSuccess(context: callbacks) { state in
            guard let self = handle.object else { return }
            if state != .poweredOn { self.core.withLock { $0.isAdvertisementOld = true } }
            self.setState(CBManagerState(state))
            self.callbacks.observers.check()
            self.delegate?.peripheralManagerDidUpdateState(self)
        }
    }

    private func restored(_ advertised: PeripheralAdvertisements) {
        let services = blueCap.services.map { CBMutableService(restored: $0) }
        var advertisement = advertised.packet
        advertisement[CBAdvertisementDataIsConnectable] = nil  // the program did not set it
        guard !services.isEmpty || !advertisement.isEmpty else { return }
        core.withLock { $0.services = services }
        var state: [String: Any] = [CBPeripheralManagerRestoredStateServicesKey: services]
        if !advertisement.isEmpty { state[CBPeripheralManagerRestoredStateAdvertisementDataKey] = advertisement }
        for service in services {
            allowPairing(for: service)
            follow(service)
        }
        delegate?.peripheralManager(self, willRestoreState: state)
    }

    /// Calls the delegate with the result of an operation, after those of all earlier operations.
    private func report<T: Sendable>(
        _ future: Future<T>,
        _ call: @escaping (CBPeripheralManager, (any CBPeripheralManagerDelegate)?, (any Error)?) -> Void
    ) {
        reports.add(future, on: callbacks) { [weak self] result in
            if let self { call(self, self.delegate, result.error.map(coreBluetoothError)) }
        }
    }

    // MARK: Advertising

    /// Whether the manager advertises.
    open var isAdvertising: Bool { state == .poweredOn && blueCap.isAdvertising }

    /// Advertises a name and services.
    ///
    /// ``CBPeripheralManagerDelegate/peripheralManagerDidStartAdvertising(_:error:)`` is called when the advertisement is
    /// on the air. BlueZ cannot put services into Apple's overflow area: of services that do not fit, the last ones are
    /// left out, and a name of more than 29 bytes is shortened.
    ///
    /// - Parameter advertisementData: `CBAdvertisementDataLocalNameKey`: `String`;
    ///   `CBAdvertisementDataServiceUUIDsKey`: `[CBUUID]`. Other keys have no effect.
    open func startAdvertising(_ advertisementData: [String: Any]?) {
        guard isReady(for: "startAdvertising") else { return }
        if core.replace(\.isAdvertisementOld, with: false) { blueCap.stopAdvertising() }
        let name = advertisementData?[CBAdvertisementDataLocalNameKey] as? String ?? ""
        let uuids = advertisementData?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
        let data = AdvertisingData.fitting(localName: name, serviceUUIDs: uuids)
        report(blueCap.startAdvertising(data.localName ?? "", uuids: data.serviceUUIDs)) {
            $1?.peripheralManagerDidStartAdvertising($0, error: $2)
        }
    }

    /// Ends the advertisement.
    open func stopAdvertising() {
        blueCap.stopAdvertising()
        callbacks.propertyChanged()
    }

    // MARK: Services

    /// Offers a service; ``CBPeripheralManagerDelegate/peripheralManager(_:didAdd:error:)`` has the outcome.
    open func add(_ service: CBMutableService) {
        guard isReady(for: "add") else { return }
        let isNew = core.withLock { core in
            guard !core.services.contains(where: { $0 === service }) else { return false }
            core.services.append(service)
            return true
        }
        guard isNew else { return Self.misuse("service \(service.uuid) was added before: remove it first") }
        if let problem = service.problem {
            Self.misuse(problem)
            forget(service)
            return report(Future<Void>(error: CBError(.invalidParameters))) {
                $1?.peripheralManager($0, didAdd: service, error: $2)
            }
        }
        let made = service.make()
        allowPairing(for: service)
        follow(service)
        report(blueCap.add(made)) { manager, delegate, error in
            if error != nil { manager.forget(service) }
            delegate?.peripheralManager(manager, didAdd: service, error: error)
        }
    }

    /// Removes a service. Its subscribers are not reported as unsubscribed.
    open func remove(_ service: CBMutableService) {
        guard forget(service) else { return Self.misuse("service \(service.uuid) was not added") }
        if let made = service.blueCap { blueCap.remove(made) }
    }

    /// Returns whether the service was known.
    @discardableResult
    private func forget(_ service: CBMutableService) -> Bool {
        core.withLock { core in
            guard let place = core.services.firstIndex(where: { $0 === service }) else { return false }
            core.services.remove(at: place)
            return true
        }
    }

    /// Removes all services.
    open func removeAllServices() {
        core.replace(\.services, with: [])
        blueCap.removeAllServices()
    }

    /// A service whose values need encryption can only be used by centrals that pair. Other services do not make this
    /// machine accept pairings.
    private func allowPairing(for service: CBMutableService) {
        if !hasPolicy, service.mutableCharacteristics.contains(where: \.needsPairing) {
            blueCap.pairingPolicy = .justWorks
        }
    }

    /// Receives the requests and subscriptions of a service.
    private func follow(_ service: CBMutableService) {
        let handle = Handle(self)
        for characteristic in service.mutableCharacteristics {
            guard let made = characteristic.blueCap else { continue }
            let served = Handle(characteristic)
            for isRead in characteristic.isDynamic ? [true, false] : [false] {
                made.requests(isRead: isRead).onSuccess(context: callbacks) { request in
                    guard let self = handle.object, let served = served.object else { return }
                    self.requested(request, for: served)
                }
            }
            made.whenSubscribersChange().onSuccess(context: callbacks) { centrals in
                guard let self = handle.object, let served = served.object else { return }
                self.subscribersChanged(of: served, to: centrals)
            }
        }
    }

    // MARK: Centrals

    /// Has no effect: BlueZ leaves the parameters of a link to the central.
    open func setDesiredConnectionLatency(_ latency: CBPeripheralManagerConnectionLatency, for central: CBCentral) {}

    private func central(_ central: Central) -> CBCentral {
        let known = core.withLock { $0.centrals.object(central.identifier) { CBCentral(central) } }
        known.changed(to: central)
        return known
    }

    private func subscribersChanged(of characteristic: CBMutableCharacteristic, to centrals: [Central]) {
        let (new, left) = characteristic.subscribersChanged(to: centrals.map { central($0) })
        for central in left {
            delegate?.peripheralManager(self, central: central, didUnsubscribeFrom: characteristic)
        }
        for central in new { delegate?.peripheralManager(self, central: central, didSubscribeTo: characteristic) }
    }

    // MARK: Requests

    private func requested(
        _ event: (request: ATTRequest, central: Central),
        for characteristic: CBMutableCharacteristic
    ) {
        let request = CBATTRequest(event.request, of: central(event.central), for: characteristic)
        guard let delegate else { return respond(to: request, withResult: .requestNotSupported) }
        if request.isRead {
            delegate.peripheralManager(self, didReceiveRead: request)
        } else {
            delegate.peripheralManager(self, didReceiveWrite: [request])
        }
    }

    /// Responds to a request, once.
    ///
    /// - Parameters:
    ///   - request: A read, with its `value` set if the result is success; or the first of the writes.
    ///   - result: `success`, or why not. `MutableCharacteristic.respondToRequest(_:withResult:)` lists the errors that
    ///     BlueZ can send; everything else reaches the central as `unlikelyError`.
    open func respond(to request: CBATTRequest, withResult result: CBATTError.Code) {
        guard let made = (request.characteristic as? CBMutableCharacteristic)?.blueCap else { return }
        if result == .success, request.isRead {
            made.respondToRequest(request.blueCap, withValue: request.value ?? Data())
        } else {
            made.respondToRequest(request.blueCap, withResult: result)
        }
    }

    // MARK: Updates

    /// Sends a value to the centrals that have subscribed.
    ///
    /// As on iOS, a value is cut that is longer than a central's ``CBCentral/maximumUpdateValueLength``, and centrals that have
    /// not subscribed are ignored. A value of more than 512 bytes is cut for all, with a message in the program's log.
    ///
    /// - Parameters:
    ///   - value: At most 512 bytes.
    ///   - characteristic: A characteristic of a service that was added.
    ///   - centrals: Those of its subscribers that receive the value; `nil` for all. Some of several need BlueZ 5.76 or
    ///     later.
    /// - Returns: `false` if the queue is full, and only then:
    ///   ``CBPeripheralManagerDelegate/peripheralManagerIsReady(toUpdateSubscribers:)`` follows. A value that cannot be sent
    ///   for another reason, which a repetition would not change, is reported in the program's log.
    open func updateValue(
        _ value: Data, for characteristic: CBMutableCharacteristic, onSubscribedCentrals centrals: [CBCentral]?
    ) -> Bool {
        guard let made = characteristic.blueCap else {
            Self.misuse("characteristic \(characteristic.uuid) belongs to no service that was added")
            return true
        }
        var value = value
        if value.count > AttributeProtocol.longestValue {
            Self.log(
                "updateValue of characteristic \(characteristic.uuid): the value has \(value.count) bytes; the first "
                    + "\(AttributeProtocol.longestValue) are sent. See maximumUpdateValueLength.")
            value = Data(value.prefix(AttributeProtocol.longestValue))
        }
        do {
            if let chosen = characteristic.someOnly(centrals) {
                if !chosen.isEmpty { try made.update(withData: value, for: chosen.map(\.blueCap)) }
            } else {
                try made.update(withData: value)
            }
        } catch MutableCharacteristicError.updateQueueFull {
            waitForSpace(in: made)
            return false
        } catch {
            Self.log("updateValue of characteristic \(characteristic.uuid): \(error.localizedDescription)")
        }
        return true
    }

    private func waitForSpace(in characteristic: MutableCharacteristic) {
        guard !core.replace(\.isWaitingForSpace, with: true) else { return }
        let handle = Handle(self)
        characteristic.whenUpdatesSent().onComplete(context: callbacks) { _ in
            guard let self = handle.object else { return }
            self.core.withLock { $0.isWaitingForSpace = false }
            self.delegate?.peripheralManagerIsReady(toUpdateSubscribers: self)
        }
    }

    // MARK: L2CAP

    /// Fails with `CBError.operationNotSupported`: BlueZ has no L2CAP channels on D-Bus.
    open func publishL2CAPChannel(withEncryption encryptionRequired: Bool) {
        report(Future<Void>(error: CBError(.operationNotSupported))) {
            $1?.peripheralManager($0, didPublishL2CAPChannel: 0, error: $2)
        }
    }

    /// Fails with `CBError.operationNotSupported`: BlueZ has no L2CAP channels on D-Bus.
    open func unpublishL2CAPChannel(_ PSM: CBL2CAPPSM) {
        report(Future<Void>(error: CBError(.operationNotSupported))) {
            $1?.peripheralManager($0, didUnpublishL2CAPChannel: PSM, error: $2)
        }
    }
}

extension AdvertisingData {
    /// Returns an advertisement without what does not fit: the end of the name, the last services.
    fileprivate static func fitting(localName: String, serviceUUIDs: [CBUUID]) -> AdvertisingData {
        var data = AdvertisingData(localName: localName.isEmpty ? nil : localName, serviceUUIDs: serviceUUIDs)
        while case .failure(PeripheralManagerError.advertisementTooLong(let field, _)) = Result(catching: data.check) {
            if field == .localName, data.localName?.isEmpty == false {
                data.localName?.removeLast()
            } else if data.serviceUUIDs.popLast() == nil {
                return data
            }
        }
        return data
    }
}
