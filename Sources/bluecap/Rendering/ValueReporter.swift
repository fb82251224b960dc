import BlueCapKit
import Foundation

/// Turns values that come one after the other into lines, for people or for programs.
struct ValueReporter: Sendable {
    enum Style: Equatable, Sendable {
        case plain(ValueForm)
        case json
    }

    /// What happens while values are waited for.
    enum Event: Equatable, Sendable {
        case value(AttributeValue, Date)
        /// Values may be missing here: the link was lost and is back.
        case gap(Date)
        case finished(values: Int, seconds: Double)
    }

    let style: Style
    let characteristic: AttributeTree.Characteristic
    let time: EventTime

    init(_ style: Style, of characteristic: AttributeTree.Characteristic, timeZone: TimeZone = .current) {
        self.style = style
        self.characteristic = characteristic
        time = EventTime(timeZone: timeZone)
    }

    /// A value that was read once: the value alone, or an object that says whose it is.
    func line(for value: AttributeValue) -> String {
        switch style {
        case .plain(let form): return text(value, form)
        case .json:
            var line = JSONObject()
            line.add("uuid", characteristic.uuid.uuidString)
            line.add("name", characteristic.name)
            line.add("handle", Int(characteristic.handle))
            value.add(to: &line)
            return line.closed
        }
    }

    /// A line of the output for what happened; `nil` where it is none of the output's business.
    func line(for event: Event) -> String? {
        switch (style, event) {
        case (.plain(let form), .value(let value, let date)):
            return "\(time.clock(date))  \(text(value, form))"
        case (.plain, .gap), (.plain, .finished):
            return nil
        case (.json, .value(let value, let date)):
            var line = self.line("value", date)
            value.add(to: &line)
            return line.closed
        case (.json, .gap(let date)):
            return line("gap", date).closed
        case (.json, .finished(let values, let seconds)):
            var line = JSONObject()
            line.add("event", "finished")
            line.add("values", values)
            line.add("seconds", seconds: seconds)
            return line.closed
        }
    }

    /// A remark for people on standard error; `nil` where nothing needs to be said.
    func remark(for event: Event) -> String? {
        switch event {
        case .value: return nil
        case .gap: return "The subscription was interrupted and is back; values may be missing here."
        case .finished(let values, let seconds):
            guard style != .json else { return nil }
            return "\(values) value\(values == 1 ? "" : "s") in \(EventTime.tenths(seconds))"
        }
    }

    /// A value that the wanted form does not fit is told by its digits, never left out.
    private func text(_ value: AttributeValue, _ form: ValueForm) -> String {
        form.text(of: value) ?? ValueForm.hexadecimal(value.data)
    }

    private func line(_ event: String, _ date: Date) -> JSONObject {
        var line = JSONObject()
        line.add("event", event)
        line.add("time", time.timestamp(date))
        return line
    }
}
