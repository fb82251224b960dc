import BlueCapKit
import Foundation

/// What happens to a peripheral that is served: all that is printed of it.
enum ServingEvent: Sendable {
    struct Attribute: Equatable, Sendable {
        var service: CBUUID
        var uuid: CBUUID
        var name: String?
    }

    /// What is served, and what is advertised.
    case serving(services: [PeripheralModel.Service], advertisements: [AdvertisingData])
    case connected(Who)
    case disconnected(Who)
    case subscribed(Attribute, Who)
    case unsubscribed(Attribute, Who)
    case read(Attribute, AttributeValue, Who)
    case written(Attribute, AttributeValue, Who, CBATTError.Code)
    case sent(Attribute, AttributeValue)
    case pairingRequested(PairingNeed, Who)
    case paired(Who, isBonded: Bool)
    case pairingFailed(Who, String)
    case finished(Summary)

    /// What a pairing needs from this side.
    struct PairingNeed: Equatable, Sendable {
        fileprivate let name: String, verb: String

        init(_ kind: PairingRequest.Kind) {
            (name, verb) =
                switch kind {
                case .displayPasskey: ("display", "wants to pair, with a passkey from here")
                case .confirm: ("compare", "wants to pair, and shows a number to compare")
                case .enterPasskey: ("enter", "wants to pair, and shows a passkey")
                case .authorize: ("authorize", "wants to pair")
                }
        }
    }

    /// The central, by its address; `nil` if BlueZ does not report it.
    struct Who: Equatable, Sendable {
        var address: String?

        init(_ address: String?) { self.address = address }

        init(_ central: Central) { address = central.address?.description }

        var text: String { address ?? "a central" }
    }

    struct Summary: Equatable, Sendable {
        var services = 0
        var connections = 0
        var subscriptions = 0
        var reads = 0
        var writes = 0
        var updates = 0
        var seconds = 0.0

        fileprivate var counts: KeyValuePairs<String, Int> {
            [
                "connection": connections, "subscription": subscriptions, "read": reads, "write": writes,
                "update": updates,
            ]
        }

        mutating func count(_ event: ServingEvent) {
            switch event {
            case .connected: connections += 1
            case .subscribed: subscriptions += 1
            case .read: reads += 1
            case .written: writes += 1
            case .sent: updates += 1
            case .serving(let offered, _): services = offered.count
            case .disconnected, .unsubscribed, .pairingRequested, .paired, .pairingFailed, .finished: break
            }
        }
    }
}

// MARK: Lines

extension ServingEvent {
    /// The event's name for programs and its verb for people, with what they are about.
    private var facts: (name: String, verb: String, who: Who?, attribute: Attribute?, value: AttributeValue?) {
        switch self {
        case .serving: ("serving", "", nil, nil, nil)
        case .connected(let who): ("connected", "connected", who, nil, nil)
        case .disconnected(let who): ("disconnected", "disconnected", who, nil, nil)
        case .subscribed(let attribute, let who): ("subscribed", "subscribed to", who, attribute, nil)
        case .unsubscribed(let attribute, let who): ("unsubscribed", "unsubscribed from", who, attribute, nil)
        case .read(let attribute, let value, let who): ("read", "read", who, attribute, value)
        case .written(let attribute, let value, let who, _): ("write", "wrote", who, attribute, value)
        case .sent(let attribute, let value): ("update", "were sent", nil, attribute, value)
        case .pairingRequested(let need, let who): ("pairing-requested", need.verb, who, nil, nil)
        case .paired(let who, let isBonded):
            ("paired", isBonded ? "paired" : "paired, without a bond", who, nil, nil)
        case .pairingFailed(let who, let why): ("pairing-failed", "did not pair: \(why)", who, nil, nil)
        case .finished: ("finished", "", nil, nil, nil)
        }
    }

    /// Returns the event's line of the output; `nil` if it has none.
    func line(_ format: Format, at date: Date, in timeZone: TimeZone = .local) -> String? {
        if format == .json { return JSON(members(at: date)).text }
        let (_, verb, who, attribute, value) = facts
        guard !verb.isEmpty else { return nil }
        var text = verb
        if let attribute { text += " " + DisplayText.safe(attribute.name ?? attribute.uuid.uuidString) }
        if let value { text += ": " + value.text }
        if case .written(_, _, _, let result) = self, result != .success { text += "; refused: \(result)" }
        let subject = who.map(\.text) ?? "all subscribers"
        // As wide as an address, so that the following column is aligned.
        return "\(Wording.clock(date, in: timeZone))  \(DisplayText.padded(subject, to: 17))  \(text)"
    }

    private func members(at date: Date) -> JSON.Members {
        let (name, _, who, attribute, value) = facts
        var members: JSON.Members = [("event", JSON(name)), ("time", JSON(Wording.timestamp(date)))]
        if let who { members.append(("central", JSON(who.address))) }
        if let attribute {
            members += [
                ("service", JSON(attribute.service.uuidString)),
                ("characteristic", JSON(attribute.uuid.uuidString)), ("name", JSON(attribute.name)),
            ]
        }
        if let value { members += value.members }
        switch self {
        case .serving(let services, let advertisements):
            members += [
                ("services", JSON(services.map(\.uuid.uuidString))),
                ("advertisements", JSON(advertisements.map(\.json))),
            ]
        case .written(_, _, _, let result):
            members.append(("error", result == .success ? .null : JSON("\(result)")))
        case .pairingRequested(let need, _): members.append(("needs", JSON(need.name)))
        case .paired(_, let isBonded): members.append(("bonded", JSON(isBonded)))
        case .pairingFailed(_, let why): members.append(("error", JSON(why)))
        case .finished(let summary):
            members = [("event", JSON(name))] + summary.counts.map { ($0.key + "s", JSON($0.value)) }
            members.append(("seconds", JSON(seconds: summary.seconds)))
        case .connected, .disconnected, .subscribed, .unsubscribed, .read, .sent: break
        }
        return members
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
            return "Serving \(services.map(\.label).joined(separator: ", "))"
                + (name.map { " as \"\(DisplayText.safe($0))\"" } ?? "") + ". Ctrl-C ends it."
        case .finished(let summary):
            // Without a service there is nothing to count but connections.
            let counts = summary.counts.prefix(summary.services > 0 ? 5 : 1)
            return counts.map { Wording.count($0.value, $0.key) }.joined(separator: ", ")
                + " in " + Wording.tenths(summary.seconds)
        case .connected, .disconnected, .subscribed, .unsubscribed, .read, .written, .sent, .pairingRequested, .paired,
            .pairingFailed:
            return nil
        }
    }
}
