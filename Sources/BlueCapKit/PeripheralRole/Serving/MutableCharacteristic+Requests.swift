import BlueZ
public import Foundation
public import Futures
public import GATT

// Requests of centrals: each is answered once, whatever happens.

extension MutableCharacteristic {
    // MARK: Asking for them

    /// Begins to hand the writes of centrals over to the application, which answers each with
    /// ``respondToRequest(_:withResult:)``, and sets the value itself where it agrees.
    ///
    /// What is not answered within 4 seconds is refused with `unlikelyError`: `bluetoothd` gives 5 and does so itself
    /// then. So is what a stream with too small a capacity had no room for. While nobody asks for writes they are refused at
    /// once with `requestNotSupported`. Long writes come as one value, of up to 510 bytes, or 512 with BlueZ 5.69 and later.
    ///
    /// Writes without response come too, and an answer to one goes nowhere. A characteristic with the property
    /// `writeWithoutResponse` cannot refuse a write: of its writes BlueZ grants all, with response or without, before it
    /// asks.
    ///
    /// - Parameter capacity: How many requests the stream keeps for handlers that are added later.
    /// - Returns: The requests with the centrals they came from. A second call answers the same stream. It ends with
    ///   ``stopRespondingToWriteRequests()`` and when the service is removed; it stays over restarts of `bluetoothd`. It
    ///   fails with ``MutableCharacteristicError/unconfigured`` where the service was not added.
    public func startRespondingToWriteRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> {
        startResponding(\.writes, capacity)
    }

    /// Ends handing over writes: the stream ends. Those that were handed over can still be answered.
    public func stopRespondingToWriteRequests() { stopResponding(\.writes) }

    /// Begins to hand the reads of centrals over to the application, which answers each with
    /// ``respondToRequest(_:withValue:)``, or with ``respondToRequest(_:withResult:)``: `success` answers with ``value``.
    ///
    /// Otherwise as ``startRespondingToWriteRequests(capacity:)``. While nobody asks for reads they are answered with
    /// ``value``. A long read is one request, however many packets it takes.
    public func startRespondingToReadRequests(
        capacity: Int = Int.max
    ) -> FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> {
        startResponding(\.reads, capacity)
    }

    /// Ends handing over reads: the stream ends, and ``value`` answers again.
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

    /// Answers a request, once.
    ///
    /// - Parameters:
    ///   - request: One of this characteristic's stream.
    ///   - result: `success`, or why not. BlueZ can express `readNotPermitted` for reads, `writeNotPermitted` for writes,
    ///     `requestNotSupported`, `invalidOffset`, `insufficientAuthorization`, `invalidAttributeValueLength` and the
    ///     application's own 0x80 to 0x9F; everything else reaches the central as `unlikelyError`.
    /// - Returns: Whether this was the answer; `false` where the request was answered before, by the application or because
    ///   its time was up, where it expects none, and where it is not of this characteristic.
    @discardableResult
    public func respondToRequest(
        _ request: any CBATTRequestInjectable, withResult result: CBATTError.Code
    ) -> Bool {
        answer(request) { answer, isRead in
            guard result == .success else { return answer.refuse(result) }
            return answer.succeed(isRead ? value ?? Data() : Data())
        }
    }

    /// Answers a read with a value, which need not be the characteristic's. A write is granted by it.
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

    /// From now on a manager offers it, by this registration.
    func begin(_ session: PeripheralManagerSession, _ application: ServerApplication?) {
        let old = core.withLock { core in
            core.session = session
            defer { core.application = application }
            return core.application
        }
        withExtendedLifetime(old) {}
    }

    /// No manager offers it any more: everything that waits for something is told so.
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
