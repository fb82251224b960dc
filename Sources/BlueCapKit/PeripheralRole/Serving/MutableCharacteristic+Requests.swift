import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
public import BlueCapGATT

// Requests of centrals: each receives one reply.

extension MutableCharacteristic {
    // MARK: Receiving them

    /// Starts to deliver the writes of centrals to the application, which responds to each with
    /// ``respondToRequest(_:withResult:)-(ATTRequest,_)``, and sets the value itself if it accepts it.
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
    ) -> FutureStream<(request: ATTRequest, central: Central)> {
        startResponding(isRead: false, capacity)
    }

    /// Stops delivering writes: the stream ends. The application can still respond to those that were delivered.
    public func stopRespondingToWriteRequests() { stopResponding(isRead: false) }

    /// Starts to deliver the reads of centrals to the application, which responds to each with
    /// ``respondToRequest(_:withValue:)``, or with ``respondToRequest(_:withResult:)-(ATTRequest,_)``, where `success` sends
    /// ``value``.
    ///
    /// Otherwise as ``startRespondingToWriteRequests(capacity:)->FutureStream<(ATTRequest,Central)>``. Without this stream,
    /// centrals read ``value``, or receive `insufficientAuthorization` if the permissions have `authorizationRequired`. A
    /// long read is one request, however many packets it takes.
    public func startRespondingToReadRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: ATTRequest, central: Central)> {
        startResponding(isRead: true, capacity)
    }

    /// Stops delivering reads: the stream ends, and centrals read ``value`` again.
    public func stopRespondingToReadRequests() { stopResponding(isRead: true) }

    private func startResponding(isRead: Bool, _ capacity: Int) -> FutureStream<Request> {
        guard core.withLock({ $0.session != nil }) else { return .failed(MutableCharacteristicError.unconfigured) }
        return requests(isRead: isRead, capacity: max(capacity, 0))
    }

    /// Starts to deliver the reads or the writes, also before the service is added, so that none precedes the stream.
    package func requests(
        isRead: Bool, capacity: Int = Int.max
    ) -> FutureStream<(request: ATTRequest, central: Central)> {
        core.withLock { $0.requests.start(isRead: isRead, capacity: capacity) }
    }

    private func stopResponding(isRead: Bool) {
        let (promise, session) = core.withLock { ($0.requests.stop(isRead: isRead), $0.session) }
        guard let promise else { return }
        if let session { session.complete { promise.finish() } } else { promise.finish() }
    }

    // MARK: Responding

    /// Responds to a request, once.
    ///
    /// - Parameters:
    ///   - request: One of this characteristic's stream.
    ///   - result: `success`, or why not. BlueZ can express `readNotPermitted` for reads, `writeNotPermitted` for
    ///     writes, `requestNotSupported`, `invalidOffset`, `insufficientAuthorization`, `invalidAttributeValueLength`
    ///     and the application's own 0x80 to 0x9F; everything else reaches the central as `unlikelyError`.
    /// - Returns: Whether this was the response; `false` if there was one before, by the application or because the
    ///   time was up, if the request expects none, and if it belongs to another characteristic.
    @discardableResult
    public func respondToRequest(_ request: ATTRequest, withResult result: CBATTError.Code) -> Bool {
        answer(request) { answer, isRead in
            guard result == .success else { return answer.refuse(result) }
            return answer.succeed(isRead ? value ?? Data() : Data())
        }
    }

    /// Responds to a read with a value, which need not be the characteristic's. A write is accepted by it.
    ///
    /// A value of more than 512 bytes refuses the request with `invalidAttributeValueLength`.
    ///
    /// - Returns: As ``respondToRequest(_:withResult:)-(ATTRequest,_)``.
    @discardableResult
    public func respondToRequest(_ request: ATTRequest, withValue value: Data) -> Bool {
        answer(request) { answer, isRead in answer.succeed(isRead ? value : Data()) }
    }

    private func answer(_ request: ATTRequest, _ give: (_ answer: ServerAnswer, _ isRead: Bool) -> Bool) -> Bool {
        guard request.characteristic == id, let number = request.number,
            let answer = core.withLock({ $0.requests.take(number) })
        else { return false }
        return give(answer, request.isRead)
    }

    // MARK: Events; on the loop

    /// The application decides when it receives the value.
    func writeAuthorizationRequested(_ answer: ServerAnswer) {
        let isDelivered = core.withLock { $0.requests.writes != nil }
        _ = isDelivered ? answer.succeed() : answer.refuse(.insufficientAuthorization)
    }

    func requested(_ request: ServerRequest, _ answer: ServerAnswer, _ session: PeripheralManagerSession) {
        let isRead = request.value == nil
        guard permissions.allows(reading: isRead) else {
            return _ = answer.refuse(isRead ? .readNotPermitted : .writeNotPermitted)
        }
        guard isRead || request.expectsAnswer else {
            answer.succeed()
            guard let stream = core.withLock({ $0.requests.writes }) else { return }
            return deliver(request, nil, to: stream, session)
        }
        guard let (number, stream) = core.withLock({ $0.requests.open(answer, isRead: isRead) }) else {
            if permissions.contains(.authorizationRequired) { return _ = answer.refuse(.insufficientAuthorization) }
            return _ = isRead ? answer.succeed(value ?? Data()) : answer.refuse(.requestNotSupported)
        }
        deliver(request, number, to: stream, session)
    }

    private func deliver(
        _ request: ServerRequest, _ number: UInt64?, to stream: StreamPromise<Request>,
        _ session: PeripheralManagerSession
    ) {
        let central = session.central(request.peer)
        let request = ATTRequest(
            characteristicUUID: uuid, offset: request.offset, value: request.value,
            expectsAnswer: request.expectsAnswer, security: permissions.security(reading: request.value == nil),
            characteristic: id, number: number)
        session.complete { stream.success((request: request, central: central)) }
    }

    // MARK: Beginning and end; any thread

    /// A manager offers it from now on, with this registration.
    func begin(_ session: PeripheralManagerSession, _ application: ServerApplication?) {
        core.replace(\.application, with: application)
        core.withLock { $0.session = session }
    }

    /// No manager offers it any more: its requests are refused, its streams end, and waiting calls fail.
    func end(_ session: PeripheralManagerSession) {
        // What is removed under the lock is released after it.
        let (left, (answers, streams)) = core.withLock { core in
            let left = core
            (core.application, core.session, core.subscriberPromise) = (nil, nil, nil)
            (core.whenSent, core.subscribers) = ([], [])
            _ = core.updates.removeAll()
            return (left, core.requests.close())
        }
        for answer in answers { answer.refuse(.unlikelyError) }
        session.complete {
            for promise in left.whenSent { promise.failure(MutableCharacteristicError.unconfigured) }
            for promise in streams { promise.finish() }
            left.subscriberPromise?.finish()
        }
        withExtendedLifetime(left) {}
    }
}

extension MutableCharacteristic: ServedAttribute {}

/// The streams of requests that the application has started, and the requests that wait for its response.
struct CentralRequests {
    typealias Request = MutableCharacteristic.Request

    /// The stream of reads, and that of writes, by whether it has reads.
    private var streams: [Bool: StreamPromise<Request>] = [:]
    /// The replies that the application can give. One whose time has passed is removed at the next request.
    private var answers: [UInt64: ServerAnswer] = [:]
    private var lastNumber: UInt64 = 0

    /// The number of requests that wait for a response.
    var count: Int { answers.values.count { $0.isOpen } }

    var writes: StreamPromise<Request>? { streams[false] }

    /// Returns the stream of reads or writes, and starts it if there is none.
    mutating func start(isRead: Bool, capacity: Int) -> FutureStream<Request> {
        let promise = streams[isRead] ?? StreamPromise(capacity: capacity)
        streams[isRead] = promise
        return promise.stream
    }

    /// Returns the stream that ends.
    mutating func stop(isRead: Bool) -> StreamPromise<Request>? { streams.removeValue(forKey: isRead) }

    /// Keeps the reply to a request. Returns its number and the stream of the request, or `nil` if the application has
    /// not started that stream.
    mutating func open(_ answer: ServerAnswer, isRead: Bool) -> (number: UInt64, stream: StreamPromise<Request>)? {
        guard let stream = streams[isRead] else { return nil }
        lastNumber += 1
        answers = answers.filter { $0.value.isOpen }
        answers[lastNumber] = answer
        return (lastNumber, stream)
    }

    mutating func take(_ number: UInt64) -> ServerAnswer? { answers.removeValue(forKey: number) }

    /// Returns the replies that were not sent, in the sequence of their requests, and the streams.
    mutating func close() -> (answers: [ServerAnswer], streams: [StreamPromise<Request>]) {
        defer { (streams, answers) = ([:], [:]) }
        return (answers.ordered { $0.key < $1.key }.map(\.value), [false, true].compactMap { streams[$0] })
    }
}
