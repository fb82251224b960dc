// The one queue through which everything goes that a stream's handlers may notice.
//
// At any time at most one thread delivers. It is the only one to call handlers and, while it delivers, the only one to
// change who they are. Others leave what they have in the inbox and go on; the delivering thread takes it up in order.

extension FutureStream {
    /// Called by the thread that set `delivering`: gives `element` to the handlers, then whatever came meanwhile.
    @inlinable
    func deliver(_ element: Try<T>) {
        let thread = ThreadWork.current
        guard thread.mayNest else { return postpone(.element(element), on: thread) }
        thread.enter()
        if let soleHandler {
            soleHandler._withUnsafeGuaranteedRef { $0.receive(element) }
        } else {
            handlers.receive(element)
        }
        if !state.change(from: Flag.watched | Flag.delivering, to: Flag.watched) { deliverInbox() }
        thread.leave()
    }

    /// The same with elements that arrive together.
    @inlinable
    func deliver(contentsOf batch: [Try<T>]) {
        let thread = ThreadWork.current
        guard thread.mayNest else { return postpone(.batch(batch), on: thread) }
        thread.enter()
        if let soleHandler {
            soleHandler._withUnsafeGuaranteedRef { $0.receive(contentsOf: batch) }
        } else {
            handlers.receive(contentsOf: batch)
        }
        if !state.change(from: Flag.watched | Flag.delivering, to: Flag.watched) { deliverInbox() }
        thread.leave()
    }

    /// Called under the lock, which it gives back: delivers `event`, or leaves it to the thread that is delivering.
    @usableFromInline
    func push(_ event: Event, _ flags: UInt32) {
        inbox.append(event)
        state.unlock(flags | Flag.delivering | Flag.more)
        if flags & Flag.delivering == 0 { deliverInbox(on: ThreadWork.current) }
    }

    /// Has those that were cancelled let go, by the thread that is delivering if there is one.
    func removeCancelled() {
        let flags = state.lock()
        hasCancelled = true
        state.unlock(flags | Flag.delivering | Flag.more)
        if flags & Flag.delivering == 0 { deliverInbox(on: ThreadWork.current) }
    }

    /// Puts an event that is due before all others back, for when the stack has unwound.
    @usableFromInline @inline(never)
    func postpone(_ event: Event, on thread: UnsafeMutablePointer<ThreadWork>) {
        state.withLock { _ in
            let later = inbox.elements
            inbox = Ring()
            inbox.append(event)
            for event in later { inbox.append(event) }
        }
        thread.postpone(self)
    }

    private func deliverInbox(on thread: UnsafeMutablePointer<ThreadWork>) {
        guard thread.mayNest else { return thread.postpone(self) }
        thread.enter()
        deliverInbox()
        thread.leave()
    }

    /// Delivers what is in the inbox until it is empty, and then ends delivering.
    @usableFromInline @inline(never)
    func deliverInbox() {
        while true {
            let flags = state.lock()
            if hasCancelled {
                hasCancelled = false
                let before = handlers
                replaceHandlers(with: before.withoutCancelled())
                state.unlock(flags)
                withExtendedLifetime(before) {}
                continue
            }
            guard let event = inbox.removeFirst() else {
                let rest = flags & ~(Flag.delivering | Flag.more | Flag.watched)
                return state.unlock(handlers.isEmpty ? rest : rest | Flag.watched)
            }
            if case .handler(let handler, _) = event { replaceHandlers(with: handlers.adding(handler)) }
            // Before anything is delivered, so that a stream that feeds this one need not ask who else holds it.
            state.unlock(handlers.isEmpty ? flags : flags | Flag.watched)
            deliver(event)
        }
    }

    /// Called under the lock, by the thread that is delivering.
    private func replaceHandlers(with handlers: StreamHandlers<T>) {
        self.handlers = handlers
        if case .one(let handler) = handlers {
            soleHandler = .passUnretained(handler)
        } else {
            soleHandler = nil
        }
    }

    private func deliver(_ event: Event) {
        switch event {
        case .element(let element):
            handlers.receive(element)
        case .batch(let batch):
            handlers.receive(contentsOf: batch)
        case .handler(let handler, let kept):
            if !kept.isEmpty { handler.receive(contentsOf: kept) }
            if hasDeliveredFinish { finishHandlers() }
        case .finish:
            finishHandlers()
        }
    }

    /// Whether the stream is finished and nothing of it is left in the inbox, so that a handler just added hears the end.
    private var hasDeliveredFinish: Bool {
        state.withLock { flags in
            flags & Flag.finished != 0
                && !inbox.elements.contains { if case .finish = $0 { true } else { false } }
        }
    }

    private func finishHandlers() {
        let finished = handlers
        for handler in finished.all { handler.finish() }
        state.withLock { _ in replaceHandlers(with: .none) }
        withExtendedLifetime(finished) {}
    }
}

extension FutureStream: Delivering {
    @usableFromInline
    func deliverPostponed() {
        let thread = ThreadWork.current
        thread.enter()
        deliverInbox()
        thread.leave()
    }
}

/// The handlers a stream has: nearly always none or one, and then there is no array.
@usableFromInline
enum StreamHandlers<T> {
    case none
    case one(StreamHandler<T>)
    case many([StreamHandler<T>])

    @inlinable
    var isEmpty: Bool {
        if case .none = self { true } else { false }
    }

    var all: [StreamHandler<T>] {
        switch self {
        case .none: []
        case .one(let handler): [handler]
        case .many(let handlers): handlers
        }
    }

    init(_ handlers: [StreamHandler<T>]) {
        switch handlers.count {
        case 0: self = .none
        case 1: self = .one(handlers[0])
        default: self = .many(handlers)
        }
    }

    func adding(_ handler: StreamHandler<T>) -> StreamHandlers<T> {
        StreamHandlers(all + [handler])
    }

    func named(_ token: CancelToken) -> [StreamHandler<T>] {
        all.filter { $0.token == token }
    }

    func withoutCancelled() -> StreamHandlers<T> {
        StreamHandlers(all.filter { !$0.isCancelled })
    }

    @inlinable
    func receive(_ element: Try<T>) {
        switch self {
        case .none: break
        case .one(let handler): handler.receive(element)
        case .many(let handlers): for handler in handlers { handler.receive(element) }
        }
    }

    @inlinable
    func receive(contentsOf batch: [Try<T>]) {
        switch self {
        case .none: break
        case .one(let handler): handler.receive(contentsOf: batch)
        case .many(let handlers): for handler in handlers { handler.receive(contentsOf: batch) }
        }
    }
}
