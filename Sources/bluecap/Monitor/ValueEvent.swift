import BlueCapKit
import Foundation

/// What happens while a command waits for the values of a peripheral.
enum ValueEvent: Equatable, Sendable {
    case value(AttributeValue, of: AttributeTree.Characteristic, Date)
    /// A number that a value contains, or the strength of the signal.
    case sample(series: String, Quantity, Date)
    /// Values may be missing here: the link was lost, or the peripheral is out of range.
    case gap(Date)
    case finished(values: Int, seconds: Double)

    /// Returns the event's line of the output; `nil` if it has none. `owner` is the name of one of several peripherals.
    func line(
        _ format: Format, _ style: ValueStyle = ValueStyle(), of owner: String = "", in timeZone: TimeZone = .local
    ) -> String? {
        if case .value(let value, let entry, let date) = self, format != .json {
            return style.line(of: value, entry, date, in: timeZone)
        }
        let (name, date, text, members): (String, Date?, String?, JSON.Members) =
            switch self {
            case .value(let value, let entry, let date):
                ("value", date, nil, entry.identity + style.form.members(of: value))
            case .sample(let series, let quantity, let date):
                (
                    "sample", date,
                    DisplayText.safe("\(owner)\(owner.isEmpty ? "" : "  ")\(series)  \(quantity.text)"),
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
        let peripheral: JSON.Members = owner.isEmpty ? [] : [("peripheral", JSON(owner))]
        return JSON([("event", JSON(name))] + time + peripheral + members).text
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
