import ArgumentParser
import BlueCapKit
import BlueZSimulator
import Foundation

/// Numbers on the command line. A text that is not a number, or is out of range, is refused with the range.
enum NumberArgument {
    /// A whole number: `NumberArgument.whole(1...16, "adapters")`.
    ///
    /// - Parameter noun: What is counted or measured; `nil` for a mere number.
    static func whole<Value: FixedWidthInteger & Sendable>(
        _ range: ClosedRange<Value>, _ noun: String? = nil
    ) -> @Sendable (String) throws -> Value {
        { text in
            guard let value = Value(text), range.contains(value) else { throw refusal("a whole number", range, noun) }
            return value
        }
    }

    /// A number, with or without a fraction; never infinite.
    static func number(_ range: ClosedRange<Double>, _ noun: String) -> @Sendable (String) throws -> Double {
        { text in
            // No range contains "nan".
            guard let value = Double(text), range.contains(value) else { throw refusal("a number", range, noun) }
            return value
        }
    }

    /// A duration: more than zero, up to thirty years.
    static let seconds = number(0.001...1e9, "seconds")

    /// Strengths that a controller can report, in dBm.
    static let strength = whole(-127...20, "dBm")

    private static func refusal<Value>(_ kind: String, _ range: ClosedRange<Value>, _ noun: String?) -> ValidationError
    {
        ValidationError(
            "It takes \(kind)\(noun.map { " of \($0)" } ?? "") from \(NumberWording.text(range.lowerBound)) to "
                + "\(NumberWording.text(range.upperBound)).")
    }

    /// Returns a number of sixteen bits, decimal or `0x…`.
    static func sixteenBits(_ text: some StringProtocol) -> UInt16? {
        guard text.first?.isNumber == true else { return nil }
        return text.lowercased().hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
    }
}

extension ExpressibleByArgument where Self: Sendable {
    /// Reads an argument; a wrong one is refused with the requirement.
    static func reading(_ requirement: String) -> @Sendable (String) throws -> Self {
        { text in
            guard let value = Self(argument: text) else { throw ValidationError("It takes \(requirement).") }
            return value
        }
    }
}

/// A service: `180D`, `0x180D`, a long UUID, or an assigned name.
struct ServiceArgument: ExpressibleByArgument, Equatable, Sendable {
    let uuid: CBUUID

    init?(argument: String) {
        let digits = argument.lowercased().hasPrefix("0x") ? String(argument.dropFirst(2)) : argument
        guard let uuid = CBUUID(validating: digits) ?? Self.uuid(named: argument) else { return nil }
        self.uuid = uuid
    }

    /// Searches the range of the Bluetooth SIG's services: Assigned Numbers, 3.4.
    private static func uuid(named name: String) -> CBUUID? {
        (0x1800...0x18FF).lazy.map { CBUUID(UInt32($0)) }
            .first { AssignedNumbers.serviceName($0)?.lowercased() == name.lowercased() }
    }
}

/// Bytes: `a1b2…`, at least one.
struct BytesArgument: ExpressibleByArgument, Equatable, Sendable {
    let data: Data

    init?(argument: String) {
        guard let data = ValueForm.bytes(argument), !data.isEmpty else { return nil }
        self.data = data
    }
}

/// A company's identifier and its data: `0x004C=0215…`.
struct ManufacturerArgument: ExpressibleByArgument, Equatable, Sendable {
    let company: UInt16
    let data: Data

    init?(argument: String) {
        guard let (name, data) = assignment(argument), let company = NumberArgument.sixteenBits(name) else {
            return nil
        }
        (self.company, self.data) = (company, data)
    }
}

/// A service and its data: `180F=64` or `Battery=64`.
struct ServiceDataArgument: ExpressibleByArgument, Equatable, Sendable {
    let service: CBUUID
    let data: Data

    init?(argument: String) {
        guard let (name, data) = assignment(argument), let service = ServiceArgument(argument: name) else { return nil }
        (self.service, self.data) = (service.uuid, data)
    }
}

/// A name, and the bytes after the equals sign.
private func assignment(_ text: String) -> (name: String, data: Data)? {
    guard let sign = text.firstIndex(of: "="),
        let data = ValueForm.bytes(String(text[text.index(after: sign)...]))
    else { return nil }
    return (String(text[..<sign]), data)
}

/// An appearance: a number, such as 0x00C0, or its assigned name, such as Watch.
struct AppearanceArgument: ExpressibleByArgument, Equatable, Sendable {
    let value: UInt16

    init?(argument: String) {
        guard let value = NumberArgument.sixteenBits(argument) ?? Self.appearance(named: argument) else { return nil }
        self.value = value
    }

    /// Categories first: a category's number is that of its generic kind.
    private static func appearance(named name: String) -> UInt16? {
        let categories = stride(from: UInt16(0), through: 0xFFC0, by: 64)
        return (Array(categories) + Array(0x03C1...0x03C8)).first {
            AssignedNumbers.appearanceName($0)?.lowercased() == name.lowercased()
        }
    }
}

/// The milliseconds between two advertisements: `100` or `100-200`.
struct IntervalArgument: ExpressibleByArgument, Equatable, Sendable {
    /// In seconds.
    let range: ClosedRange<TimeInterval>

    init?(argument: String) {
        let parts = argument.split(separator: "-", omittingEmptySubsequences: false)
        let bounds = parts.compactMap { Double($0) }.filter { (20...10_240).contains($0) }
        guard (1...2).contains(parts.count), bounds.count == parts.count, bounds[0] <= bounds[bounds.count - 1] else {
            return nil
        }
        range = bounds[0] / 1000...bounds[bounds.count - 1] / 1000
    }
}
