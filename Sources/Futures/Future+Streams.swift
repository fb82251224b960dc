// From a future to a stream.

extension Future {
    /// A stream of what the stream that `mapping` returns for the value keeps and gets; it ends when that one does.
    ///
    /// If this future fails, or `mapping` throws, the error is the only element. The stream keeps `capacity` elements.
    @preconcurrency @inlinable
    public func flatMap<M>(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> FutureStream<M>
    ) -> FutureStream<M> {
        let mapped = FutureStream<M>(capacity: capacity)
        let handler = Handler<T>.completion { outcome in
            switch outcome {
            case .success(let value):
                do { mapped.follow(try mapping(value)) } catch { mapped.end(with: .failure(error)) }
            case .failure(let error):
                mapped.end(with: .failure(error))
            }
        }
        add(handler, context: context, token: cancelToken)
        return mapped
    }

    /// A stream of what the stream that `recovery` returns for the error keeps and gets; it ends when that one does.
    ///
    /// If this future succeeds, the value is the only element, and if `recovery` throws, what it throws is. The stream
    /// keeps `capacity` elements.
    @preconcurrency @inlinable
    public func recoverWith(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> FutureStream<T>
    ) -> FutureStream<T> {
        let recovered = FutureStream<T>(capacity: capacity)
        let handler = Handler<T>.completion { outcome in
            switch outcome {
            case .success:
                recovered.end(with: outcome)
            case .failure(let error):
                do { recovered.follow(try recovery(error)) } catch { recovered.end(with: .failure(error)) }
            }
        }
        add(handler, context: context, token: cancelToken)
        return recovered
    }
}

extension FutureStream {
    /// Gets what `source` keeps and gets, on the thread that delivers it, and ends when it does.
    @usableFromInline
    func follow(_ source: FutureStream<T>) {
        source.add(.transforming(into: self) { $0 })
    }

    /// Gets one more element, the last.
    @usableFromInline
    func end(with element: Try<T>) {
        send(element)
        finish()
    }
}
