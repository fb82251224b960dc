import BlueCapKit

/// The one loop of a command: what happens in the library, on the terminal, after a time, or in work beside the loop is an event,
/// and one task receives the events one after another. The iteration ends when the task is cancelled.
///
/// ```
/// try await EventLoop<Event>.run { loop in
///     loop.observe(manager.whenStateChanges()) { .state($0) }
///     loop.send(.timeIsOver, after: 10)
///     for await event in loop { … }
/// }
/// ```
final class EventLoop<Event: Sendable>: AsyncSequence, Sendable {
    typealias Work = @Sendable () async -> Void

    private let events: AsyncStream<Event>
    private let feed: AsyncStream<Event>.Continuation
    private let starts: AsyncStream<Work>.Continuation
    private let cancellations = Locked<[@Sendable () -> Void]>([])

    private init(_ starts: AsyncStream<Work>.Continuation) {
        self.starts = starts
        (events, feed) = AsyncStream.makeStream()
    }

    func makeAsyncIterator() -> AsyncStream<Event>.Iterator { events.makeAsyncIterator() }

    /// Calls `body` with a loop. Returns when everything has ended that sends events to it.
    static func run<Result: Sendable>(_ body: (EventLoop) async throws -> Result) async throws -> Result {
        let (works, starts) = AsyncStream.makeStream(of: Work.self)
        let loop = EventLoop(starts)
        defer { for cancel in loop.cancellations.withLock({ $0 }) { cancel() } }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                await withDiscardingTaskGroup { group in
                    for await work in works { group.addTask(operation: work) }
                }
            }
            return try await body(loop)
        }
    }

    func send(_ event: Event) { feed.yield(event) }

    /// Sends an event after so many seconds, unless the loop ends before.
    func send(_ event: Event, after seconds: Double) {
        perform { [feed] in
            guard (try? await Task.sleep(for: .seconds(seconds))) != nil else { return }
            feed.yield(event)
        }
    }

    /// Does work beside the loop. It is cancelled when the loop ends.
    func perform(_ work: @escaping Work) { starts.yield(work) }

    /// Sends an event for each element of a stream; none if it is `nil`. The closures are called on the library's thread, so
    /// that what they read belongs to the moment of the element.
    func observe<Value: Sendable>(
        _ stream: FutureStream<Value>, failure: @escaping @Sendable (any Error) -> Event? = { _ in nil },
        _ event: @escaping @Sendable (Value) -> Event?
    ) {
        let token = CancelToken()
        stream.onComplete(context: ImmediateContext(), cancelToken: token) { [feed] outcome in
            let event =
                switch outcome {
                case .success(let value): event(value)
                case .failure(let error): failure(error)
                }
            if let event { feed.yield(event) }
        }
        cancellations.withLock { $0.append { stream.cancel(token) } }
    }
}
