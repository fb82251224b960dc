import BlueCapKit
import Foundation
import BlueCapFutures

/// What a stream brought: values, gaps and failures in their order.
final class NotificationJournal: Sendable {
    enum Entry: Equatable {
        case value([UInt8])
        case gap
        case failure(String)

        static func number(_ byte: UInt8) -> Entry { .value([byte]) }
    }

    private let state = Locked<[Entry]>([])

    var entries: [Entry] { state.withLock { $0 } }
    var values: [[UInt8]] {
        entries.compactMap { if case .value(let bytes) = $0 { bytes } else { nil } }
    }
    var bytes: [UInt8] { values.compactMap(\.first) }

    private func write(_ entry: Entry) { state.withLock { $0.append(entry) } }

    private func write(_ error: any Error) { write(.failure("\(error)")) }

    private func write(_ data: Data?) { write(data.map { .value(Array($0)) } ?? .gap) }

    func watch(
        _ stream: FutureStream<(characteristic: Characteristic, data: Data?)>,
        context: any ExecutionContext = ImmediateContext()
    ) {
        stream.onSuccess(context: context) { _, data in self.write(data) }
        stream.onFailure(context: context) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Data?>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Data>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Characteristic>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0.dataValue) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }
}
