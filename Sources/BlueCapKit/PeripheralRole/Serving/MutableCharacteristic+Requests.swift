import BlueZ
public import Foundation
public import Futures
public import GATT

// Requests of centrals: each receives one reply.

extension MutableCharacteristic {
    // MARK: Receiving them

    /// Starts to deliver the writes of centrals to the application, which responds to each with
    /// ``respondToRequest(_:withResult:)``, and sets the value itself if it accepts it.
    ///
    /// A request without a response within 4 seconds is refused with `unlikelyError`: `bluetoothd` waits for 5 and then
    /// does the same. So is a request that exceeds the stream's capacity. Without this stream, writes are refused at
    /// once with `requestNotSupported`. Long writes are delivered as one value, of up to 510 bytes, or 512 with BlueZ
    /// 5.69 and later.
    ///
    /// Writes without response are delivered as well, and a response to one has no effect. A characteristic with the
    /// property `writeWithoutResponse` cannot refuse a write: BlueZ accepts all its writes, with response or without,
    /// before it forwards them.
    ///
    /// - Parameter capacity: How many requests the stream keeps for handlers that are added later.
    /// - Returns: The requests with the centrals that sent them. A second call returns the same stream. It ends with
    ///   ``stopRespondingToWriteRequests()`` and when the service is removed, and continues over restarts of
    ///   `bluetoothd`. It fails with ``MutableCharacteristicError/unconfigured`` if the service was not added.
    public func startRespondingToWriteRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> {
        startResponding(\.writes, capacity)
    }

    /// Stops delivering writes: the stream ends. Those that were delivered can still be answered.
    public func stopRespondingToWriteRequests() { stopResponding(\.writes) }

    /// Starts to deliver the reads of centrals to the application, which responds to each with
    /// ``respondToRequest(_:withValue:)``, or with ``respondToRequest(_:withResult:)``, where `success` sends
    /// ``value``.
    ///
    /// Otherwise as ``startRespondingToWriteRequests(capacity:)``. Without this stream, centrals read ``value``. A long
    /// read is one request, however many packets it takes.
    public func startRespondingToReadRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> {
        startResponding(\.reads, capacity)
    }

    /// Stops delivering reads: the stream ends, and centrals read ``value`` again.
    public func stopRespondingToReadRequests() { stopResponding(\.reads) }

    private func startResponding(
        _ kind: WritableKeyPath<Core, StreamPromise<Request>?>, _ capacity: Int
    ) -> FutureStream<Request> {
        core.withLock { core -> FutureStream<Request>? in
            guard core.session != nil else { return nil }
            let promise = core[keyPath: kind] ?? StreamPromise(capacity: max(capacity, 0))
            core[keyPath: kind] = promise
            return promise.stream
        } ?? .failed(MutableCharacteristicError.unconfigured)
    }

    private func stopResponding(_ kind: WritableKeyPath<Core, StreamPromise<Request>?>) {
        let (promise, session) = core.withLock { core in
            defer { core[keyPath: kind] = nil }
            return (core[keyPath: kind], core.session)
        }
        guard let promise else { return }
        if let session { session.complete { promise.finish() } } else { promise.finish() }
    }

    // MARK: Answering

    /// Responds to a request, once.
    ///
    /// - Parameters:
    ///   - request: One of this characteristic's stream.
    ///   - result: `success`, or why not. BlueZ can express `readNotPermitted` for reads, `writeNotPermitted` for writes,
    ///     `requestNotSupported`, `invalidOffset`, `insufficientAuthorization`, `invalidAttributeValueLength` and the
    ///     application's own 0x80 to 0x9F; everything else reaches the central as `unlikelyError`.
    /// - Returns: Whether this was the response; `false` if there was one before, by the application or because the
    ///   time was up, if the request expects none, and if it belongs to another characteristic.
    @discardableResult
    public func respondToRequest(
        _ request: any CBATTRequestInjectable, withResult result: CBATTError.Code
    ) -> Bool {
        answer(request) { answer, isRead in
            guard result == .success else { return answer.refuse(result) }
            return answer.succeed(isRead ? value ?? Data() : Data())
        }
    }

    /// Responds to a read with a value, which need not be the characteristic's. A write is accepted by it.
    ///
    /// - Returns: As ``respondToRequest(_:withResult:)``.
    @discardableResult
    public func respondToRequest(_ request: any CBATTRequestInjectable, withValue value: Data) -> Bool {
        answer(request) { answer, isRead in answer.succeed(isRead ? value : Data()) }
    }

    private func answer(
        _ request: any CBATTRequestInjectable, _ give: (_ answer: ServerAnswer, _ isRead: Bool) -> Bool
    ) -> Bool {
        guard let request = request as? ATTRequest, request.characteristic == number, let number = request.number,
            let answer = core.withLock({ $0.answers.removeValue(forKey: number) })
        else { return false }
        return give(answer, request.isRead)
    }

    // MARK: What happens; on the loop

    func readArrived(
        _ request: ServerReadRequest, from central: Central, _ answer: ServerAnswer,
        _ session: PeripheralManagerSession
    ) {
        guard permissionEnabled([.readable, .readEncryptionRequired]) else {
            return _ = answer.refuse(.readNotPermitted)
        }
        guard let (stream, number) = open(\.reads, answer) else {
            return _ = answer.succeed(value ?? Data())
        }
        hand(over: number, offset: request.offset, value: nil, expectsAnswer: true, central, stream, session)
    }

    func writeArrived(
        _ request: ServerWriteRequest, from central: Central, _ answer: ServerAnswer,
        _ session: PeripheralManagerSession
    ) {
        guard permissionEnabled([.writeable, .writeEncryptionRequired]) else {
            return _ = answer.refuse(.writeNotPermitted)
        }
        guard request.expectsAnswer else {
            answer.succeed()
            guard let stream = core.withLock({ $0.writes }) else { return }
            return hand(
                over: nil, offset: request.offset, value: request.value, expectsAnswer: false, central, stream, session)
        }
        guard let (stream, number) = open(\.writes, answer) else {
            return _ = answer.refuse(.requestNotSupported)
        }
        hand(
            over: number, offset: request.offset, value: request.value, expectsAnswer: true, central, stream, session)
    }

    /// Keeps the answer until it is given or expires; `nil` if the application does not ask for such requests.
    private func open(
        _ kind: KeyPath<Core, StreamPromise<Request>?>, _ answer: ServerAnswer
    ) -> (StreamPromise<Request>, Number)? {
        let number = Number.next()
        let stream = core.withLock { core -> StreamPromise<Request>? in
            guard let stream = core[keyPath: kind] else { return nil }
            core.answers[number] = answer
            return stream
        }
        guard let stream else { return nil }
        answer.whenExpired { [weak self] in
            let expired = self?.core.withLock { $0.answers.removeValue(forKey: number) }
            withExtendedLifetime(expired) {}
        }
        return (stream, number)
    }

    private func hand(
        over number: Number?, offset: Int, value: Data?, expectsAnswer: Bool, _ central: Central,
        _ stream: StreamPromise<Request>, _ session: PeripheralManagerSession
    ) {
        let request = ATTRequest(
            characteristicUUID: uuid, offset: offset, value: value, expectsAnswer: expectsAnswer,
            characteristic: self.number, number: number)
        session.complete { stream.success((request: request, central: central)) }
    }

    // MARK: Beginning and end; any thread

    /// A manager offers it from now on, with this registration.
    func begin(_ session: PeripheralManagerSession, _ application: ServerApplication?) {
        let old = core.withLock { core in
            core.session = session
            defer { core.application = application }
            return core.application
        }
        withExtendedLifetime(old) {}
    }

    /// No manager offers it any more: its requests are refused, its streams end, and waiting calls fail.
    func end(_ session: PeripheralManagerSession) {
        struct Left {
            var answers: [ServerAnswer] = []
            var streams: [StreamPromise<Request>] = []
            var subscribers: StreamPromise<[any CBCentralInjectable]>?
            var waiting: [Promise<Void>] = []
            var updates: [ServerUpdate] = []
            var session: PeripheralManagerSession?
            var application: ServerApplication?
        }
        let left = core.withLock { core -> Left in
            var left = Left()
            left.answers = core.answers.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value)
            core.answers = [:]
            left.streams = [core.writes, core.reads].compactMap { $0 }
            left.subscribers = core.subscriberPromise
            left.waiting = core.whenSent
            left.updates = core.updates.removeAll()
            left.session = core.session
            left.application = core.application
            core.application = nil
            (core.writes, core.reads, core.subscriberPromise, core.session) = (nil, nil, nil, nil)
            (core.whenSent, core.subscribers) = ([], [])
            return left
        }
        for answer in left.answers { answer.refuse(.unlikelyError) }
        session.complete {
            for promise in left.waiting { promise.failure(MutableCharacteristicError.unconfigured) }
            for promise in left.streams { promise.finish() }
            left.subscribers?.finish()
        }
        withExtendedLifetime(left) {}
    }
}
