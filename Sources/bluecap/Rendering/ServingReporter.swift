import BlueCapKit
import Foundation

/// Turns what centrals do to a peripheral of ours into lines, for people or for programs.
struct ServingReporter: Sendable {
    var isJSON: Bool
    var time = EventTime()

    /// As wide as an address, so that what follows stands in a column.
    private static let centralWidth = 17

    /// A line of the output; `nil` where it is none of the output's business.
    func line(for event: ServingEvent, at date: Date) -> String? {
        isJSON ? object(for: event, at: date) : text(for: event, at: date)
    }

    /// A remark for people on standard error; `nil` where nothing needs to be said.
    func remark(for event: ServingEvent) -> String? {
        guard !isJSON else { return nil }
        switch event {
        case .serving(let services, let advertisements):
            guard !services.isEmpty else {
                let texts = advertisements.map(AdvertisementWording.text).joined(separator: "; ")
                return "Advertising \(texts). Ctrl-C ends it."
            }
            let name = advertisements.first?.localName
            return "Serving \(services.map { $0.name ?? $0.uuid.uuidString }.joined(separator: ", "))"
                + (name.map { " as \"\(DisplayText.safe($0))\"" } ?? "") + ". Ctrl-C ends it."
        case .finished(let summary) where summary.services == 0:
            return Self.count(summary.connections, "connection") + " in " + EventTime.tenths(summary.seconds)
        case .finished(let summary):
            let parts = [
                Self.count(summary.connections, "connection"),
                Self.count(summary.subscriptions, "subscription"), Self.count(summary.reads, "read"),
                Self.count(summary.writes, "write"), Self.count(summary.updates, "update"),
            ]
            return parts.joined(separator: ", ") + " in " + EventTime.tenths(summary.seconds)
        case .connected, .disconnected, .subscribed, .unsubscribed, .read, .written, .sent: return nil
        }
    }

    /// What a terminal shows while nothing happens.
    func status(present: [ServingEvent.Who], _ summary: ServingEvent.Summary) -> String {
        guard !present.isEmpty else { return "Nobody is connected …" }
        let names = present.map { $0.address ?? "a central" }.joined(separator: ", ")
        guard summary.updates > 0 else { return "\(names) \(present.count == 1 ? "is" : "are") connected …" }
        return
            "\(names) \(present.count == 1 ? "is" : "are") connected, \(Self.count(summary.updates, "update")) sent …"
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    // MARK: For people

    private func text(for event: ServingEvent, at date: Date) -> String? {
        switch event {
        case .serving, .finished: nil
        case .connected(let who): text(date, who, "connected")
        case .disconnected(let who): text(date, who, "disconnected")
        case .subscribed(let attribute, let who): text(date, who, "subscribed to \(label(attribute))")
        case .unsubscribed(let attribute, let who): text(date, who, "unsubscribed from \(label(attribute))")
        case .read(let attribute, let value, let who): text(date, who, "read \(label(attribute)): \(text(value))")
        case .written(let attribute, let value, let who, .success):
            text(date, who, "wrote \(label(attribute)): \(text(value))")
        case .written(let attribute, let value, let who, let refusal):
            text(date, who, "wrote \(label(attribute)): \(text(value)); refused: \(refusal)")
        case .sent(let attribute, let value):
            text(date, "all subscribers", "were sent \(label(attribute)): \(text(value))")
        }
    }

    private func text(_ date: Date, _ who: ServingEvent.Who, _ what: String) -> String {
        text(date, who.address ?? "a central", what)
    }

    private func text(_ date: Date, _ who: String, _ what: String) -> String {
        "\(time.clock(date))  \(DisplayText.padded(who, to: Self.centralWidth))  \(what)"
    }

    private func text(_ value: AttributeValue) -> String {
        value.data.isEmpty
            ? "(empty)" : ValueForm.auto.text(of: value) ?? ValueForm.hexadecimal(value.data)
    }

    private func label(_ attribute: ServingEvent.Attribute) -> String {
        DisplayText.safe(attribute.name ?? attribute.uuid.uuidString)
    }

    // MARK: For programs

    private func object(for event: ServingEvent, at date: Date) -> String {
        switch event {
        case .serving(let services, let advertisements):
            var line = object("serving", date)
            line.add("services", services.map(\.uuid.uuidString))
            line.add("advertisements", advertisements.map(AdvertisementWording.object))
            return line.closed
        case .connected(let who): return object("connected", date, who).closed
        case .disconnected(let who): return object("disconnected", date, who).closed
        case .subscribed(let attribute, let who): return object("subscribed", date, who, attribute).closed
        case .unsubscribed(let attribute, let who): return object("unsubscribed", date, who, attribute).closed
        case .read(let attribute, let value, let who): return object("read", date, who, attribute, value).closed
        case .written(let attribute, let value, let who, let result):
            var line = object("write", date, who, attribute, value)
            line.add("error", result == .success ? nil : "\(result)")
            return line.closed
        case .sent(let attribute, let value):
            var line = object("update", date)
            add(attribute, to: &line)
            value.add(to: &line)
            return line.closed
        case .finished(let summary):
            var line = JSONObject()
            line.add("event", "finished")
            line.add("connections", summary.connections)
            line.add("subscriptions", summary.subscriptions)
            line.add("reads", summary.reads)
            line.add("writes", summary.writes)
            line.add("updates", summary.updates)
            line.add("seconds", seconds: summary.seconds)
            return line.closed
        }
    }

    private func object(_ event: String, _ date: Date) -> JSONObject {
        var line = JSONObject()
        line.add("event", event)
        line.add("time", time.timestamp(date))
        return line
    }

    private func object(_ event: String, _ date: Date, _ who: ServingEvent.Who) -> JSONObject {
        var line = object(event, date)
        line.add("central", who.address)
        return line
    }

    private func object(
        _ event: String, _ date: Date, _ who: ServingEvent.Who, _ attribute: ServingEvent.Attribute,
        _ value: AttributeValue? = nil
    ) -> JSONObject {
        var line = object(event, date, who)
        add(attribute, to: &line)
        value?.add(to: &line)
        return line
    }

    private func add(_ attribute: ServingEvent.Attribute, to line: inout JSONObject) {
        line.add("service", attribute.service.uuidString)
        line.add("characteristic", attribute.uuid.uuidString)
        line.add("name", attribute.name)
    }
}
