public import Synchronization

/// One who receives the elements of a stream, each once and in order.
///
/// Only the thread that is delivering for the stream calls `receive` and `finish`, so a handler needs no lock of its own
/// unless it hands elements on to another thread.
///
/// One class with closures, not a family of classes: the methods of a generic class that are called through its table
/// are not specialised for the element, closures that were made in specialised code are.
@usableFromInline
final class StreamHandler<T> {
    @usableFromInline let token: CancelToken
    @usableFromInline let cancelled = Atomic<Bool>(false)
    /// What is done with each element.
    @usableFromInline let handler: Handler<T>
    /// What is done with elements that arrive together. A closure also where that is doing it with each: it is made where
    /// the element's type is known, and a loop over elements of an unknown type looks the type up at each.
    @usableFromInline let batchHandler: (StreamHandler<T>, [Try<T>]) -> Void
    @usableFromInline let finished: (() -> Void)?
    @usableFromInline let stopped: (() -> Void)?
    /// The one it hands elements to on a context, who is cancelled with it.
    @usableFromInline let target: StreamHandler<T>?

    @inlinable
    init(
        _ handler: Handler<T>, token: CancelToken = .uncancellable, batch: (([Try<T>]) -> Void)? = nil,
        finished: (() -> Void)? = nil, stopped: (() -> Void)? = nil, target: StreamHandler<T>? = nil
    ) {
        self.handler = handler
        self.token = token
        batchHandler =
            if let batch {
                { receiver, elements in if !receiver.isCancelled { batch(elements) } }
            } else {
                { receiver, elements in for element in elements { receiver.receive(element) } }
            }
        self.finished = finished
        self.stopped = stopped
        self.target = target
    }

    /// Whether nothing is to be received any more; set on any thread.
    @inlinable
    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    @inlinable @inline(__always)
    func receive(_ element: Try<T>) {
        if !isCancelled { handler(element) }
    }

    @inlinable
    func receive(contentsOf batch: [Try<T>]) { batchHandler(self, batch) }

    /// No element comes after this.
    @usableFromInline
    func finish() {
        if !isCancelled { finished?() }
    }

    /// From now on nothing is received. Returns false if that was so already.
    func cancel() -> Bool {
        guard !cancelled.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        _ = target?.cancel()
        stopped?()
        return true
    }

    /// A handler that hands elements to this one on `context`, where at most the latest `limit` wait.
    func dispatched(on context: any ExecutionContext, waiting limit: Int = .max) -> StreamHandler<T> {
        let mailbox = StreamMailbox(self, context: context, limit: limit)
        return StreamHandler(
            .completion { mailbox.put($0) }, token: token, batch: { mailbox.put(contentsOf: $0) },
            finished: { mailbox.finish() }, target: self)
    }
}

extension StreamHandler {
    /// A handler that adds to another stream what `transform` makes of each element, and ends it.
    @inlinable
    static func transforming<M>(
        into stream: FutureStream<M>, token: CancelToken = .uncancellable,
        transform: @escaping (Try<T>) -> Try<M>
    ) -> StreamHandler<T> {
        let link = StreamLink(stream)
        return StreamHandler(
            .completion { link.send(transform($0)) }, token: token, batch: { link.send(contentsOf: $0.map(transform)) },
            finished: { link.finish() })
    }
}

/// What holds a stream that another one feeds, or that a source feeds which would otherwise keep it for ever.
@usableFromInline
package final class StreamLink<T> {
    /// Variable only so that it can be asked whether anybody else holds it.
    private var holder: FutureStream<T>
    /// The same stream, in a constant, so that feeding it costs no look and no counting.
    @usableFromInline let unmanaged: Unmanaged<FutureStream<T>>

    @usableFromInline
    package init(_ stream: FutureStream<T>) {
        holder = stream
        unmanaged = .passUnretained(stream)
    }

    var stream: FutureStream<T> { holder }

    /// A stream that has no handler and that nobody holds will never be looked at: it need not keep anything. This is to
    /// be asked of a stream without a handler.
    @usableFromInline
    func isForgotten() -> Bool {
        isKnownUniquelyReferenced(&holder)
    }

    /// Whether nobody will ever look at the stream. Asked on one thread at a time.
    package func isAbandoned() -> Bool { !stream.isWatched && isForgotten() }

    @inlinable @inline(__always)
    func send(_ element: Try<T>) {
        unmanaged._withUnsafeGuaranteedRef { stream in
            if stream.isWatched || !isForgotten() { stream.send(element) }
        }
    }

    @usableFromInline
    package func send(contentsOf batch: [Try<T>]) {
        if stream.isWatched || !isForgotten() { stream.send(contentsOf: batch) }
    }

    @usableFromInline
    package func finish() {
        stream.finish()
    }
}
