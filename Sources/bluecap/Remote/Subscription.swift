import BlueCapKit
import Foundation

/// What happens while a command waits for a characteristic's values.
enum ValueEvent: Equatable, Sendable {
    case value(AttributeValue, Date)
    /// Values may be missing here: the link was lost and is back.
    case gap(Date)
    case finished(values: Int, seconds: Double)

    /// Returns the event's line of the output; `nil` if it has none.
    func line(_ format: Format, _ form: ValueForm, in timeZone: TimeZone = .current) -> String? {
        guard format == .json else {
            guard case .value(let value, let date) = self else { return nil }
            return "\(Wording.clock(date, in: timeZone))  \(form.line(of: value))"
        }
        let members: JSON.Members =
            switch self {
            case .value(let value, let date):
                [("event", JSON("value")), ("time", JSON(Wording.timestamp(date)))] + value.members
            case .gap(let date): [("event", JSON("gap")), ("time", JSON(Wording.timestamp(date)))]
            case .finished(let values, let seconds):
                [("event", JSON("finished")), ("values", JSON(values)), ("seconds", JSON(seconds: seconds))]
            }
        return JSON(members).text
    }

    /// Returns the event's remark for people on standard error; `nil` if it has none.
    func remark(_ format: Format) -> String? {
        switch self {
        case .value: nil
        case .gap: "The subscription was interrupted and is back; values may be missing here."
        case .finished(let values, let seconds):
            format == .json ? nil : "\(Wording.count(values, "value")) in \(Wording.tenths(seconds))"
        }
    }
}

extension AttributeTree.Characteristic {
    /// Returns the line of a value that was read: the value alone, or an object with the characteristic.
    func line(of value: AttributeValue, _ format: Format, _ form: ValueForm) -> String {
        format == .json ? JSON(identity + value.members).text : form.line(of: value)
    }
}

/// Prints the values of a subscription, until enough have arrived.
struct Subscription: Sendable {
    private enum Input: Sendable {
        case value(Data, Date)
        case gap(Date)
        case connection(ConnectionEvent)
        case failed(any Error)
        case timeIsOver
    }

    let remote: Remote
    let profile: CharacteristicProfile?
    let format: Format
    let form: ValueForm
    /// The number of values; `nil` for no limit.
    let count: Int?
    /// In seconds; `nil` for no limit.
    let duration: Double?

    /// Returns when enough values have arrived, and if the task is cancelled.
    func run(_ values: FutureStream<(characteristic: Characteristic, data: Data?)>) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let token = CancelToken()
        // On the library's thread, so that a value has the time at which it arrived.
        values.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
            switch outcome {
            case .success((_, let data?)): feed.yield(.value(data, Date()))
            case .success((_, nil)): feed.yield(.gap(Date()))
            case .failure(let error): feed.yield(.failed(error))
            }
        }
        remote.events.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
            switch outcome {
            case .success((_, let event)): feed.yield(.connection(event))
            case .failure(let error): feed.yield(.failed(error))
            }
        }
        defer {
            values.cancel(token)
            remote.events.cancel(token)
        }
        let clock = Stopwatch()
        var received = 0
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            if let duration { group.yield(.timeIsOver, to: feed, after: duration) }
            for await input in inputs {
                switch input {
                case .value(let data, let date):
                    try await print(.value(AttributeValue(data, profile: profile), date))
                    received += 1
                    if received == count { return }
                case .gap(let date): try await print(.gap(date))
                case .connection(.disconnect):
                    await remote.console.remark("The link was lost; trying to bring it back.")
                    remote.peripheral.reconnect()
                case .connection(.timeout): remote.peripheral.reconnect()
                case .connection(.connect), .connection(.forceDisconnect), .connection(.giveUp): break
                case .failed(let error): throw error
                case .timeIsOver: return
                }
            }
        }
        try await print(.finished(values: received, seconds: clock.seconds))
    }

    private func print(_ event: ValueEvent) async throws {
        if let remark = event.remark(format) { await remote.console.remark(remark) }
        if let line = event.line(format, form) { try await remote.console.write(line) }
    }
}
