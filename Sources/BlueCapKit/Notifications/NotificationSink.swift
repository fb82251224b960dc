import Foundation
import Futures

/// A stream that receives the notifications of a characteristic, in one of the forms that the documents have.
///
/// It holds the stream and not its user: a stream that nobody holds and nobody listens to is given up.
struct NotificationSink: Sendable {
    /// Hands values over together, in their order; `nil` stands for a gap.
    let deliver: @Sendable ([Data?]) -> Void
    let fail: @Sendable (any Error) -> Void
    let finish: @Sendable () -> Void
    /// Whether nobody will ever look at the stream. Asked where values are delivered.
    let isForgotten: @Sendable () -> Bool

    /// - Parameters:
    ///   - element: What a value is in this form.
    ///   - gap: What a gap is in this form.
    init<T: Sendable>(
        _ stream: FutureStream<T>, gap: Try<T>, element: @escaping @Sendable (Data) -> T
    ) {
        // Unchecked: `isForgotten`, the one part of it that must not be asked on two threads at once, is asked where
        // values are delivered, and that is one place at a time.
        nonisolated(unsafe) let link = StreamLink(stream)
        deliver = { values in
            link.send(contentsOf: values.map { value in value.map { .success(element($0)) } ?? gap })
        }
        fail = { link.send(contentsOf: [.failure($0)]) }
        finish = { link.finish() }
        isForgotten = { link.isAbandoned() }
    }
}
