import BlueCapKit
import Foundation

/// What happens to a peripheral that is served: all that is printed of it.
enum ServingEvent: Equatable, Sendable {
    struct Attribute: Equatable, Sendable {
        var service: CBUUID
        var uuid: CBUUID
        var name: String?
    }

    /// What is served, and what is advertised.
    case serving(services: [Service], advertisements: [AdvertisingData])
    case connected(Who)
    case disconnected(Who)
    case subscribed(Attribute, Who)
    case unsubscribed(Attribute, Who)
    case read(Attribute, AttributeValue, Who)
    case written(Attribute, AttributeValue, Who, CBATTError.Code)
    /// A value was sent to the subscribers.
    case sent(Attribute, AttributeValue)
    case finished(Summary)

    struct Service: Equatable, Sendable {
        var uuid: CBUUID
        var name: String?
    }

    /// The central, by its address; `nil` if BlueZ does not report it.
    struct Who: Equatable, Sendable {
        var address: String?

        init(_ address: String?) { self.address = address }

        init(_ central: any CBCentralInjectable) { address = (central as? Central)?.address?.description }

        var text: String { address ?? "a central" }
    }

    struct Summary: Equatable, Sendable {
        /// The number of services that were served.
        var services = 0
        var connections = 0
        var subscriptions = 0
        var reads = 0
        var writes = 0
        var updates = 0
        var seconds = 0.0

        mutating func count(_ event: ServingEvent) {
            switch event {
            case .connected: connections += 1
            case .subscribed: subscriptions += 1
            case .read: reads += 1
            case .written: writes += 1
            case .sent: updates += 1
            case .serving(let offered, _): services = offered.count
            case .disconnected, .unsubscribed, .finished: break
            }
        }
    }
}

// MARK: Lines

extension ServingEvent {
    /// Returns the event's line of the output; `nil` if it has none.
    func line(_ format: Format, at date: Date, in timeZone: TimeZone = .current) -> String? {
        if format == .json { return JSON(members(at: date)).text }
        guard let (who, what) = sentence else { return nil }
        // As wide as an address, so that the following column is aligned.
        return "\(Wording.clock(date, in: timeZone))  \(DisplayText.padded(who, to: 17))  \(what)"
    }

    /// Returns the event's remark for people on standard error; `nil` if it has none.
    func remark(_ format: Format) -> String? {
        guard format != .json else { return nil }
        switch self {
        case .serving(let services, let advertisements):
            guard !services.isEmpty else {
                return "Advertising \(advertisements.map(\.line).joined(separator: "; ")). Ctrl-C ends it."
            }
            let name = advertisements.first?.localName
            return "Serving \(services.map { $0.name ?? $0.uuid.uuidString }.joined(separator: ", "))"
                + (name.map { " as \"\(DisplayText.safe($0))\"" } ?? "") + ". Ctrl-C ends it."
        case .finished(let summary):
            var parts = [Wording.count(summary.connections, "connection")]
            if summary.services > 0 {
                parts += [
                    Wording.count(summary.subscriptions, "subscription"), Wording.count(summary.reads, "read"),
                    Wording.count(summary.writes, "write"), Wording.count(summary.updates, "update"),
                ]
            }
            return parts.joined(separator: ", ") + " in " + Wording.tenths(summary.seconds)
        case .connected, .disconnected, .subscribed, .unsubscribed, .read, .written, .sent: return nil
        }
    }

    /// Who did what, for people.
    private var sentence: (who: String, what: String)? {
        switch self {
        case .serving, .finished: nil
        case .connected(let who): (who.text, "connected")
        case .disconnected(let who): (who.text, "disconnected")
        case .subscribed(let attribute, let who): (who.text, "subscribed to \(attribute.text)")
        case .unsubscribed(let attribute, let who): (who.text, "unsubscribed from \(attribute.text)")
        case .read(let attribute, let value, let who): (who.text, "read \(attribute.text): \(value.text)")
        case .written(let attribute, let value, let who, let result):
            (
                who.text,
                "wrote \(attribute.text): \(value.text)\(result == .success ? "" : "; refused: \(result)")"
            )
        case .sent(let attribute, let value):
            ("all subscribers", "were sent \(attribute.text): \(value.text)")
        }
    }

    private func members(at date: Date) -> JSON.Members {
        func members(
            _ event: String, _ who: Who? = nil, _ attribute: Attribute? = nil, _ value: AttributeValue? = nil
        ) -> JSON.Members {
            [("event", JSON(event)), ("time", JSON(Wording.timestamp(date)))]
                + (who.map { [("central", JSON($0.address))] } ?? []) + (attribute?.members ?? [])
                + (value?.members ?? [])
        }
        switch self {
        case .serving(let services, let advertisements):
            return members("serving") + [
                ("services", JSON(services.map(\.uuid.uuidString))),
                ("advertisements", JSON(advertisements.map(\.json))),
            ]
        case .connected(let who): return members("connected", who)
        case .disconnected(let who): return members("disconnected", who)
        case .subscribed(let attribute, let who): return members("subscribed", who, attribute)
        case .unsubscribed(let attribute, let who): return members("unsubscribed", who, attribute)
        case .read(let attribute, let value, let who): return members("read", who, attribute, value)
        case .written(let attribute, let value, let who, let result):
            return members("write", who, attribute, value)
                + [("error", result == .success ? .null : JSON("\(result)"))]
        case .sent(let attribute, let value): return members("update", nil, attribute, value)
        case .finished(let summary):
            return [
                ("event", JSON("finished")), ("connections", JSON(summary.connections)),
                ("subscriptions", JSON(summary.subscriptions)), ("reads", JSON(summary.reads)),
                ("writes", JSON(summary.writes)), ("updates", JSON(summary.updates)),
                ("seconds", JSON(seconds: summary.seconds)),
            ]
        }
    }
}

extension ServingEvent.Attribute {
    fileprivate var text: String { DisplayText.safe(name ?? uuid.uuidString) }

    fileprivate var members: JSON.Members {
        [("service", JSON(service.uuidString)), ("characteristic", JSON(uuid.uuidString)), ("name", JSON(name))]
    }
}
