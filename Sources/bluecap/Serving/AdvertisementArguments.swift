import ArgumentParser
import BlueCapKit
import Foundation

/// `0x004C=0215…`: a company's identifier and its data.
struct ManufacturerArgument: ExpressibleByArgument, Equatable, Sendable {
    let company: UInt16
    let data: Data

    init?(argument: String) {
        guard let (name, data) = ArgumentText.assignment(argument), let company = ArgumentText.number(name) else {
            return nil
        }
        (self.company, self.data) = (company, data)
    }
}

/// `180F=64` or `Battery=64`: a service and its data.
struct ServiceDataArgument: ExpressibleByArgument, Equatable, Sendable {
    let service: CBUUID
    let data: Data

    init?(argument: String) {
        guard let (name, data) = ArgumentText.assignment(argument), let service = ServiceArgument(argument: name) else {
            return nil
        }
        (self.service, self.data) = (service.uuid, data)
    }
}

/// What a device is: a number, such as 0x00C0, or the assigned numbers' word for it, such as Watch.
struct AppearanceArgument: ExpressibleByArgument, Equatable, Sendable {
    let value: UInt16

    init?(argument: String) {
        guard let value = ArgumentText.number(argument) ?? Self.appearance(named: argument) else { return nil }
        self.value = value
    }

    /// Categories first: their number is that of their kind "generic".
    private static func appearance(named name: String) -> UInt16? {
        let categories = stride(from: UInt16(0), through: 0xFFC0, by: 64)
        return (Array(categories) + Array(0x03C1...0x03C8)).first {
            AssignedNumbers.appearanceName($0)?.lowercased() == name.lowercased()
        }
    }
}

/// `100` or `100-200`: milliseconds between two advertisements.
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

/// `a1b2…`: bytes.
struct BytesArgument: ExpressibleByArgument, Equatable, Sendable {
    let data: Data

    init?(argument: String) {
        guard let data = ArgumentText.bytes(argument) else { return nil }
        self.data = data
    }
}

enum ArgumentText {
    /// Sixteen bits, decimal or `0x…`.
    static func number(_ text: String) -> UInt16? {
        guard text.first?.isNumber == true else { return nil }
        return text.lowercased().hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
    }

    /// Hexadecimal digits in pairs, at least one.
    static func bytes(_ text: String) -> Data? {
        guard let data = try? ValueForm.hex.data(of: text, profile: nil), !data.isEmpty else { return nil }
        return data
    }

    /// A name, and the bytes behind the equals sign.
    static func assignment(_ text: String) -> (name: String, data: Data)? {
        guard let sign = text.firstIndex(of: "="),
            let data = try? ValueForm.hex.data(of: String(text[text.index(after: sign)...]), profile: nil)
        else { return nil }
        return (String(text[..<sign]), data)
    }
}
