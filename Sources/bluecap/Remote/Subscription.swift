import BlueCapKit
import Foundation

/// What happens while a command waits for the values of a peripheral.
enum ValueEvent: Equatable, Sendable {
    case value(AttributeValue, Date)
    /// A number that a value contains, or the strength of the signal.
    case sample(series: String, Quantity, Date)
    /// Values may be missing here: the link was lost, or the peripheral is out of range.
    case gap(Date)
    case finished(values: Int, seconds: Double)

    /// Returns the event's line of the output; `nil` if it has none.
    func line(_ format: Format, _ form: ValueForm = .auto, in timeZone: TimeZone = .current) -> String? {
        let (name, date, text, members): (String, Date?, String?, JSON.Members) =
            switch self {
            case .value(let value, let date): ("value", date, form.line(of: value), value.members)
            case .sample(let series, let quantity, let date):
                (
                    "sample", date, DisplayText.safe("\(series)  \(quantity.text)"),
                    [
                        ("series", JSON(series)), ("number", JSON(number: quantity.number)),
                        ("unit", JSON(quantity.unit.isEmpty ? nil : quantity.unit)),
                    ]
                )
            case .gap(let date): ("gap", date, nil, [])
            case .finished(let values, let seconds):
                ("finished", nil, nil, [("values", JSON(values)), ("seconds", JSON(seconds: seconds))])
            }
        guard format == .json else {
            return date.flatMap { date in text.map { "\(Wording.clock(date, in: timeZone))  \($0)" } }
        }
        let time = date.map { [("time", JSON(Wording.timestamp($0)))] } ?? []
        return JSON([("event", JSON(name))] + time + members).text
    }

    /// Returns the event's remark for people on standard error; `nil` if it has none.
    func remark(_ format: Format) -> String? {
        switch self {
        case .value, .sample: nil
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
    private enum Event: Sendable {
        case value(Data, Date)
        case gap(Date)
        case connection(ConnectionEvent)
        case failed(any Error)
        case timeIsOver
    }

    let remote: Remote
    let format: Format
    let form: ValueForm
    /// The number of values; `nil` for no limit.
    let count: Int?
    /// In seconds; `nil` for no limit.
    let duration: Double?

    /// Returns when enough values have arrived, and if the task is cancelled after the subscription.
    func run(_ characteristic: AttributeArgument) async throws {
        await remote.console.stage("Subscribing …")
        let (_, target, profile) = try await remote.find(characteristic, usableFor: [.notify, .indicate])
        try await EventLoop<Event>.run { loop in
            try await remote.subscribe(to: target, in: loop, failure: Event.failed) { data in
                data.map { .value($0, Date()) } ?? .gap(Date())
            }
            await remote.console.clear()
            loop.observe(remote.events, failure: Event.failed) { .connection($0.connectionEvent) }
            if let duration { loop.send(.timeIsOver, after: duration) }
            let clock = Stopwatch()
            var received = 0
            events: for await event in loop {
                switch event {
                case .value(let data, let date):
                    try await print(.value(AttributeValue(data, profile: profile), date))
                    received += 1
                    if received == count { break events }
                case .gap(let date): try await print(.gap(date))
                case .connection(.disconnect):
                    await remote.console.remark("The link was lost; trying to bring it back.")
                    remote.peripheral.reconnect()
                case .connection(.timeout): remote.peripheral.reconnect()
                case .connection(.connect), .connection(.forceDisconnect), .connection(.giveUp): break
                case .failed(let error): throw error
                case .timeIsOver: break events
                }
            }
            try await print(.finished(values: received, seconds: clock.seconds))
        }
    }

    private func print(_ event: ValueEvent) async throws {
        if let remark = event.remark(format) { await remote.console.remark(remark) }
        if let line = event.line(format, form) { try await remote.console.write(line) }
    }
}
