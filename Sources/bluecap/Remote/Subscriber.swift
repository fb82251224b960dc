import BlueCapKit
import Dispatch
import Foundation

/// Prints what a subscription brings, until enough has come.
struct Subscriber: Sendable {
    private enum Input: Sendable {
        case value(Data, Date)
        case gap(Date)
        case connection(ConnectionEvent)
        case failed(any Error)
        case timeIsOver
    }

    let reporter: ValueReporter
    let profile: CharacteristicProfile
    /// How many values; `nil` for any number.
    let count: Int?
    /// Seconds; `nil` for until the task is cancelled.
    let duration: Double?
    let link: RemoteSession.Remote

    /// Ends well when enough has come, and where the task was cancelled.
    func run(_ values: FutureStream<(characteristic: Characteristic, data: Data?)>) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let token = CancelToken()
        // Where they come in: a value has the time at which it came, however long it waits to be printed.
        values.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
            switch outcome {
            case .success((_, let data?)): feed.yield(.value(data, Date()))
            case .success((_, nil)): feed.yield(.gap(Date()))
            case .failure(let error): feed.yield(.failed(error))
            }
        }
        link.events.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
            switch outcome {
            case .success((_, let event)): feed.yield(.connection(event))
            case .failure(let error): feed.yield(.failed(error))
            }
        }
        defer {
            values.cancel(token)
            link.events.cancel(token)
        }
        if let duration {
            DispatchQueue.global().asyncAfter(deadline: .now() + duration) { feed.yield(.timeIsOver) }
        }
        let start = DispatchTime.now()
        var received = 0
        loop: for await input in inputs {
            switch input {
            case .value(let data, let date):
                try write(.value(AttributeValue(data, profile: profile), date))
                received += 1
                if received == count { break loop }
            case .gap(let date): try write(.gap(date))
            case .connection(let event): heed(event)
            case .failed(let error): throw error
            case .timeIsOver: break loop
            }
        }
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
        try write(.finished(values: received, seconds: seconds))
    }

    private func heed(_ event: ConnectionEvent) {
        switch event {
        case .connect, .forceDisconnect, .giveUp: break
        case .disconnect:
            Output.error.write("bluecap: The link was lost; trying to bring it back.\n")
            link.peripheral.reconnect()
        case .timeout:
            link.peripheral.reconnect()
        }
    }

    private func write(_ event: ValueReporter.Event) throws {
        if let remark = reporter.remark(for: event) { Output.error.write("bluecap: \(remark)\n") }
        guard let line = reporter.line(for: event) else { return }
        switch Output.standard.write(line + "\n") {
        case .written: break
        case .readerLeft: throw CancellationError()
        case .failed(let code): throw Output.Outcome.failed(code).failure ?? ToolFailure("Cannot write the output.")
        }
    }
}
