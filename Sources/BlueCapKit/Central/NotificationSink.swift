import Foundation
import Futures

/// A stream that receives the notifications of a characteristic, in one of the forms of the documents.
///
/// It references the stream, not the subscriber: a stream without other references and handlers is abandoned.
struct NotificationSink: Sendable {
    /// Delivers values together, in their order; `nil` is a gap.
    let deliver: @Sendable ([Data?]) -> Void
    let fail: @Sendable (any Error) -> Void
    let finish: @Sendable () -> Void
    /// Whether the stream has no reader and cannot get one. Called only on the context that delivers values.
    let isForgotten: @Sendable () -> Bool

    /// - Parameters:
    ///   - element: Converts a value to an element of the stream.
    ///   - gap: Converts a gap to an element of the stream.
    init<T: Sendable>(
        _ stream: FutureStream<T>, gap: Try<T>, element: @escaping @Sendable (Data) -> T
    ) {
        // Unchecked: only `isForgotten` must not be called on two threads at once. It is called on the context that
        // delivers values, which is one thread at a time.
        nonisolated(unsafe) let link = StreamLink(stream)
        deliver = { values in
            link.send(contentsOf: values.map { value in value.map { .success(element($0)) } ?? gap })
        }
        fail = { link.send(contentsOf: [.failure($0)]) }
        finish = { link.finish() }
        isForgotten = { link.isAbandoned() }
    }
}
