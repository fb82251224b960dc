import ArgumentParser
import BlueZSimulator

/// Numbers on the command line. What is no number, or is out of range, is refused with a sentence that has the range.
enum NumberArgument {
    /// A whole number: `NumberArgument.whole(1...16, "adapters")`.
    ///
    /// - Parameter noun: what is counted or measured; `nil` for a mere number.
    static func whole<Value: FixedWidthInteger & Sendable>(
        _ range: ClosedRange<Value>, _ noun: String? = nil
    ) -> @Sendable (String) throws -> Value {
        { text in
            guard let value = Value(text), range.contains(value) else { throw refusal("a whole number", range, noun) }
            return value
        }
    }

    /// A number, with or without a fraction; never infinite.
    static func number(
        _ range: ClosedRange<Double>, _ noun: String
    ) -> @Sendable (String) throws -> Double {
        { text in
            // The range contains nothing that is not a number.
            guard let value = Double(text), range.contains(value) else { throw refusal("a number", range, noun) }
            return value
        }
    }

    /// Seconds that something lasts: more than none, up to thirty years.
    static let seconds = number(0.001...1e9, "seconds")

    /// Strengths, in dBm, that a controller can report.
    static let strength = whole(-127...20, "dBm")

    private static func refusal<Value>(_ kind: String, _ range: ClosedRange<Value>, _ noun: String?) -> ValidationError
    {
        ValidationError(
            "It takes \(kind)\(noun.map { " of \($0)" } ?? "") from \(NumberWording.text(range.lowerBound)) to "
                + "\(NumberWording.text(range.upperBound)).")
    }
}

extension ExpressibleByArgument where Self: Sendable {
    /// Reads an argument, and refuses it with what it takes.
    static func reading(_ requirement: String) -> @Sendable (String) throws -> Self {
        { text in
            guard let value = Self(argument: text) else { throw ValidationError("It takes \(requirement).") }
            return value
        }
    }
}
