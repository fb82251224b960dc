public import Foundation
public import BlueCapFutures
public import BlueCapGATT

// Functions of the documents' other revisions. Most differ from the function with the same name only in the value of the future, of
// which the later revisions have none. Disfavoured: a call whose type is not written is one of the recommended functions.

extension Future {
    /// The same future without the value.
    fileprivate var withoutValue: Future<Void> { map(context: ImmediateContext()) { _ in } }
}

extension CentralManager {
    /// Variant from the latest revision of the documents: succeeds without a value, whether or not a state was saved.
    @_disfavoredOverload
    public func whenStateRestored() -> Future<Void> { session.restoredPromise.future.withoutValue }

    /// Variant from the earliest revision of the documents: `duration` is the `timeout`.
    public func startScanning(
        capacity: Int = .max, duration: TimeInterval, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(capacity: capacity, timeout: duration, options: options)
    }

    /// Variant from the earliest revision of the documents: `duration` is the `timeout`.
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]?, capacity: Int = .max, duration: TimeInterval, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(forServiceUUIDs: uuids, capacity: capacity, timeout: duration, options: options)
    }
}

extension Peripheral {
    /// Variant from the latest revision of the documents: each connection is a success, and every other event is a
    /// failure, ``PeripheralError/connectionTimeout``, ``PeripheralError/disconnected`` or
    /// ``PeripheralError/forcedDisconnect``. When no retries remain, the last element is the failure that used up the
    /// retries.
    @_disfavoredOverload
    @discardableResult
    public func connect(
        timeoutRetries: UInt = UInt.max, disconnectRetries: UInt = UInt.max,
        connectionTimeout: TimeInterval = TimeInterval.infinity, capacity: Int = Int.max
    ) -> FutureStream<Void> {
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        let promise = StreamPromise<Void>(capacity: capacity)
        connect(timeoutRetries, disconnectRetries, connectionTimeout, ConnectionStream(promise, of: self))
        return promise.stream
    }

    /// Variant with only the two arguments that the latest document declares, so that it can be referenced as a
    /// function value: `Peripheral.connect(connectionTimeout:capacity:)`.
    @_disfavoredOverload
    @discardableResult
    public func connect(
        connectionTimeout: TimeInterval = TimeInterval.infinity, capacity: Int = Int.max
    ) -> FutureStream<Void> {
        connect(
            timeoutRetries: UInt.max, disconnectRetries: UInt.max, connectionTimeout: connectionTimeout,
            capacity: capacity)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Void> {
        discoverServices(nil, timeout: timeout)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Void> {
        (discoverServices(services, timeout: timeout) as Future<Peripheral>).withoutValue
    }

    /// Discovers the services with these UUIDs, or all services if the list is empty or `nil`, and all of their
    /// characteristics.
    ///
    /// The text of the earliest document names this function.
    ///
    /// - Returns: This peripheral. The future fails with the first failure of `discoverServices` and
    ///   `Service.discoverAllCharacteristics`.
    @discardableResult
    public func discoverPeripheralServices(services: [CBUUID]?) -> Future<Peripheral> {
        discoverServices(services).flatMap(context: ImmediateContext()) { peripheral -> Future<Peripheral> in
            peripheral.services.filtered(by: services).reduce(Future(value: peripheral)) { discovered, service in
                discovered.flatMap(context: ImmediateContext()) { _ -> Future<Service> in
                    service.discoverAllCharacteristics()
                }.map(context: ImmediateContext()) { _ in peripheral }
            }
        }
    }
}

extension Service {
    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverAllCharacteristics(timeout: TimeInterval = .infinity) -> Future<Void> {
        discoverCharacteristics(nil, timeout: timeout)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverCharacteristics(
        _ characteristics: [CBUUID]?, timeout: TimeInterval = .infinity
    ) -> Future<Void> {
        (discoverCharacteristics(characteristics, timeout: timeout) as Future<Service>).withoutValue
    }
}

// MARK: - Characteristics and descriptors

extension Characteristic {
    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.read(offset: 0), timeout, yielding: ())
    }

    /// Variant without a label, as in the example of the earliest document.
    @_disfavoredOverload  // `characteristic.read` without a call is ``read(timeout:)``
    @discardableResult
    public func read(_ timeout: TimeInterval) -> Future<Characteristic> { read(timeout: timeout) }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        submit(.write(value, type, offset: 0), timeout, yielding: ())
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        (write(string: stringValue, timeout: timeout, type: type) as Future<Characteristic>).withoutValue
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(data: value.serialize(), timeout: timeout, type: type)
    }

    /// The earliest name of ``write(_:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(value, timeout: timeout, type: type)
    }

    /// The earliest name of ``write(data:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func writeData(
        value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(data: value, timeout: timeout, type: type)
    }

    /// Variant without a label, as in Swift 2.
    @discardableResult
    public func writeData(
        _ value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(data: value, timeout: timeout, type: type)
    }

    /// The earliest name of ``write(string:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func writeString(
        stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(string: stringValue, timeout: timeout, type: type)
    }

    /// Variant without a label, as in Swift 2.
    @discardableResult
    public func writeString(
        _ stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(string: stringValue, timeout: timeout, type: type)
    }

    // MARK: Notifications

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying(over transport: NotificationTransport) -> Future<Void> {
        subscribe(over: transport, yielding: ())
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying(
        over transport: NotificationTransport = .signals, timeout: TimeInterval
    ) -> Future<Void> {
        subscribe(over: transport, timeout: timeout, yielding: ())
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying() -> Future<Void> { subscribe(over: .signals, yielding: ()) }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func stopNotifying() -> Future<Void> { unsubscribe(yielding: ()) }

    /// Variant from the later revisions of the documents: succeeds without a value.
    ///
    /// - Parameter timeout: The time limit in seconds; `nil` means no limit. The parameter is optional so that the
    ///   compiler prefers the variant that returns a characteristic.
    @_disfavoredOverload
    @discardableResult
    public func stopNotifying(timeout: TimeInterval?) -> Future<Void> {
        unsubscribe(timeout: timeout ?? .infinity, yielding: ())
    }

    /// Returns a stream of the values alone; `nil` marks a gap in which values may have been missed. Otherwise the same
    /// as the variant with pairs.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int = .max) -> FutureStream<Data?> {
        receive(capacity) { NotificationSink($0, gap: .success(nil)) { $0 } }
    }

    /// Returns a stream of the values alone; the failure ``CharacteristicError/notificationsInterrupted`` marks a gap
    /// in which values may have been missed. Otherwise the same as the variant with pairs.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int = .max) -> FutureStream<Data> {
        receive(capacity) { NotificationSink($0, gap: .failure(CharacteristicError.notificationsInterrupted)) }
    }

    /// Returns a stream of this characteristic, one element for each value; ``dataValue`` is the newest value.
    ///
    /// Variant from the earliest revision of the documents. The failure
    /// ``CharacteristicError/notificationsInterrupted`` marks a gap in which values may have been missed. Otherwise the
    /// same as the variant with pairs.
    /// - Parameter capacity: The same as in the variant with pairs; `nil` means `Int.max`.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int? = nil) -> FutureStream<Characteristic> {
        receive(capacity ?? .max) {
            NotificationSink($0, gap: .failure(CharacteristicError.notificationsInterrupted)) { _ in self }
        }
    }
}

extension Descriptor {
    /// Variant that succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.read(offset: 0), timeout, yielding: ())
    }

    /// Variant that succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write(data value: Data, timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.write(value, .withResponse, offset: 0), timeout, yielding: ())
    }
}

extension MutableCharacteristic {
    /// Variant of ``startRespondingToWriteRequests(capacity:)->FutureStream<(ATTRequest,Central)>`` with the types of the
    /// documents. Each call returns another stream of the same requests.
    @_disfavoredOverload
    public func startRespondingToWriteRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> {
        startRespondingToWriteRequests(capacity: capacity)
            .map(context: ImmediateContext()) { (request: $0.request, central: $0.central) }
    }

    /// Variant of ``respondToRequest(_:withResult:)-(ATTRequest,_)`` with the type of the documents.
    /// - Returns: `false` also if the request is not an ``ATTRequest``.
    @discardableResult
    public func respondToRequest(
        _ request: any CBATTRequestInjectable, withResult result: CBATTError.Code
    ) -> Bool {
        (request as? ATTRequest).map { respondToRequest($0, withResult: result) } ?? false
    }
}
