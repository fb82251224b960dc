import BlueZ
public import Foundation
public import Futures
public import GATT
import Reactor

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
        answer(request) { answer in
            switch (answer, result) {
            case (.write(let answer), .success): answer.succeed()
            case (.write(let answer), _): answer.refuse(result)
            case (.read(let answer), .success): answer.succeed(self.value ?? Data())
            case (.read(let answer), _): answer.refuse(result)
            }
        }
    }

    /// Answers a read with a value, which need not be the characteristic's. A write is granted by it.
    ///
    /// - Returns: As ``respondToRequest(_:withResult:)``.
    @discardableResult
    public func respondToRequest(_ request: any CBATTRequestInjectable, withValue value: Data) -> Bool {
        answer(request) { answer in
            switch answer {
            case .write(let answer): answer.succeed()
            case .read(let answer): answer.succeed(value)
            }
        }
    }

    private func answer(_ request: any CBATTRequestInjectable, _ give: (Answer) -> Bool) -> Bool {
        guard let request = request as? ATTRequest, request.characteristic == number, let open = request.number,
            let answer = core.withLock({ $0.ledger.answered(open) ? $0.answers.removeValue(forKey: open) : nil })
        else { return false }
        return give(answer)
    }

    // MARK: What happens; on the loop

    func readArrived(
        _ request: ServerReadRequest, from central: Central, _ answer: ServerAnswer<Data>,
        _ session: PeripheralManagerSession
    ) {
        guard permissionEnabled([.readable, .readEncryptionRequired]) else {
            return _ = answer.refuse(.readNotPermitted)
        }
        guard let (stream, number) = open(\.reads, .read(answer), session) else {
            return _ = answer.succeed(value ?? Data())
        }
        hand(over: number, offset: request.offset, value: nil, expectsAnswer: true, central, stream, session)
    }

    func writeArrived(
        _ request: ServerWriteRequest, from central: Central, _ answer: ServerAnswer<Void>,
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
        guard let (stream, number) = open(\.writes, .write(answer), session) else {
            return _ = answer.refuse(.requestNotSupported)
        }
        hand(
            over: number, offset: request.offset, value: request.value, expectsAnswer: true, central, stream, session)
    }

    /// Keeps the answer until it is given; `nil` where nobody wants to give one.
    private func open(
        _ kind: KeyPath<Core, StreamPromise<Request>?>, _ answer: Answer, _ session: PeripheralManagerSession
    ) -> (StreamPromise<Request>, RequestLedger.Number)? {
        let now = session.loop.now
        let opened = core.withLock { core -> (StreamPromise<Request>, RequestLedger.Number, Double?)? in
            guard let stream = core[keyPath: kind] else { return nil }
            let (number, timer) = core.ledger.arrived(at: now)
            core.answers[number] = answer
            return (stream, number, timer)
        }
        guard let (stream, number, timer) = opened else { return nil }
        if let timer { watch(after: timer, session.loop) }
        return (stream, number)
    }

    private func hand(
        over number: RequestLedger.Number?, offset: Int, value: Data?, expectsAnswer: Bool, _ central: Central,
        _ stream: StreamPromise<Request>, _ session: PeripheralManagerSession
    ) {
        let request = ATTRequest(
            characteristicUUID: uuid, offset: offset, value: value, expectsAnswer: expectsAnswer,
            characteristic: self.number, number: number)
        session.complete { stream.success((request: request, central: central)) }
    }

    /// Goes on when a manager ends: the next one's requests are watched over by the same timer.
    private func watch(after seconds: Double, _ loop: any EventLoop) {
        loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            let now = loop.now
            let (expired, timer) = core.withLock { core in
                let (numbers, timer) = core.ledger.timerFired(at: now)
                return (numbers.compactMap { core.answers.removeValue(forKey: $0) }, timer)
            }
            Self.refuse(expired)
            if let timer { watch(after: timer, loop) }
        }
    }

    static func refuse(_ answers: [Answer]) {
        for answer in answers {
            switch answer {
            case .read(let answer): answer.refuse(.unlikelyError)
            case .write(let answer): answer.refuse(.unlikelyError)
            }
        }
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
            var answers: [Answer] = []
            var streams: [StreamPromise<Request>] = []
            var subscribers: StreamPromise<[any CBCentralInjectable]>?
            var waiting: [Promise<Void>] = []
            var updates: [ServerUpdate] = []
            var session: PeripheralManagerSession?
            var application: ServerApplication?
        }
        let left = core.withLock { core -> Left in
            var left = Left()
            left.answers = core.ledger.closeAll().compactMap { core.answers.removeValue(forKey: $0) }
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
        Self.refuse(left.answers)
        session.complete {
            for promise in left.waiting { promise.failure(MutableCharacteristicError.unconfigured) }
            for promise in left.streams { promise.finish() }
            left.subscribers?.finish()
        }
        withExtendedLifetime(left) {}
    }
}
