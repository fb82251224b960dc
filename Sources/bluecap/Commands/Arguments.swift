import ArgumentParser
import BlueCapKit
import BlueZSimulator
import Foundation

/// How arguments are read. A wrong argument is refused with what the option takes.
enum Arguments {
    // MARK: Numbers

    /// A whole number: `Arguments.whole(1...16, "adapters")`.
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
            guard let value = Double(decimal: text), range.contains(value) else {
                throw refusal("a number", range, noun)
            }
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

    /// Sixteen bits, decimal or `0x…`.
    private static func sixteenBits(_ text: String) -> UInt16? {
        guard text.first?.isNumber == true else { return nil }
        return text.lowercased().hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
    }

    /// A size in bytes: `500kB`, `10MB`.
    @Sendable static func size(_ text: String) throws -> Int {
        let match = text.wholeMatch(of: /([1-9]\d{0,8})([kMG]?)B?/)
        let unit = match.flatMap { ["k": 1_000, "M": 1_000_000, "G": 1_000_000_000][$0.2] } ?? 1
        return try unwrap(match.flatMap { Int($0.1) }.map { $0 * unit }, "a size, such as 10MB or 500kB")
    }

    /// A passkey, or `-` for standard input.
    @Sendable static func passkey(_ text: String) throws -> PairingPlan.Source {
        if text == "-" { return .lines(InputLines(STDIN_FILENO)) }
        return .option(try unwrap(Passkey(digits: text), "one to six digits, or - for standard input"))
    }

    /// Completes one of these names, or the path of a JSON file at most two folders below.
    static func nameOrFile(_ names: [String]) -> CompletionKind {
        .custom { _, _, prefix in
            let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
            let files = FileManager.default.enumerator(atPath: folder.isEmpty ? "." : folder)
            var (words, rest) = (names, 2000)
            while rest > 0, let path = files?.nextObject() as? String {
                rest -= 1
                if path.hasSuffix(".json") { words.append(folder + path) }
                if path.hasPrefix(".") || path.count(where: { $0 == "/" }) >= 2 { files?.skipDescendants() }
            }
            return words
        }
    }

    /// Returns the adapters that the kernel lists in a folder. Links are there too, such as hci0:64.
    static func adapters(in folder: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
        return (names ?? []).filter { !$0.contains(":") }.sorted()
    }

    // MARK: Advertisements

    /// The assigned services (Assigned Numbers, 3.4), by the names that the completions offer: `heart-rate`.
    private static let services = (0x1800...0x18FF).map { CBUUID(UInt32($0)) }
        .compactMap { uuid in AssignedNumbers.serviceName(uuid).map { (name: plain($0), uuid: uuid) } }

    private static func plain(_ name: String) -> String { name.lowercased().replacing(" ", with: "-") }

    static let serviceNames = CompletionKind.list(services.map(\.name))

    /// A service: `180D`, `0x180D`, a long UUID, or an assigned name, such as `Heart Rate` or `heart-rate`.
    @Sendable static func service(_ text: String) throws -> CBUUID {
        let named = services.first { $0.name == plain(text) }?.uuid
        let suggestion = Suggestion.text(for: plain(text), among: services.map(\.name))
        guard let service = CBUUID(validating: text) ?? named else {
            throw ValidationError("It takes a service by its UUID or its assigned name.\(suggestion)")
        }
        return service
    }

    /// Bytes: `a1b2…`, at least one.
    @Sendable static func bytes(_ text: String) throws -> Data {
        let data = ValueForm.bytes(text)
        return try unwrap(data?.isEmpty == true ? nil : data, "bytes in hexadecimal digits, such as 01a0")
    }

    /// A company's number, or the beginning of the names of companies.
    static func companies(_ text: String) throws -> Set<UInt16> {
        if let number = sixteenBits(text) { return [number] }
        let found = (0...UInt16.max).filter {
            AssignedNumbers.companyName($0)?.lowercased().hasPrefix(text.lowercased()) == true
        }
        let requirement = "a company by its number, such as 0x004C, or by the beginning of a known name, such as Apple"
        return Set(try unwrap(text.isEmpty || found.isEmpty ? nil : found, requirement))
    }

    /// A company's identifier and its data: `0x004C=0215…`.
    @Sendable static func manufacturer(_ text: String) throws -> (company: UInt16, data: Data) {
        let (name, data) = assignment(text)
        let requirement = "a company from 0 to 65535 or in hexadecimal digits, and its data, such as 0xFFFF=0102"
        return (try unwrap(sixteenBits(name), requirement), try unwrap(data, requirement))
    }

    /// A service and its data: `180F=64` or `Battery=64`.
    @Sendable static func serviceData(_ text: String) throws -> (service: CBUUID, data: Data) {
        let (name, data) = assignment(text)
        let requirement = "a service and its data, such as 181A=5908"
        return (try unwrap(try? service(name), requirement), try unwrap(data, requirement))
    }

    /// A sensor and its bind key: `54:48:E6:8F:80:A5=231d…`.
    @Sendable static func key(_ text: String) throws -> (address: BluetoothAddress, key: Data) {
        let (name, data) = assignment(text)
        let requirement = "the address of a sensor, an equals sign, and a key of 32 hexadecimal digits"
        let key = try unwrap(data?.count == 16 ? data : nil, requirement)
        return (try unwrap(BluetoothAddress(name), requirement), key)
    }

    /// An appearance: a number, such as 0x00C0, or its assigned name, such as Watch. Categories come first: a category's
    /// number is that of its generic kind.
    @Sendable static func appearance(_ text: String) throws -> UInt16 {
        let categories = stride(from: UInt16(0), through: 0xFFC0, by: 64)
        let named = (Array(categories) + Array(0x03C1...0x03C8)).first {
            AssignedNumbers.appearanceName($0)?.lowercased() == text.lowercased()
        }
        return try unwrap(
            sixteenBits(text) ?? named, "a number from 0 to 65535, such as 0x00C0, or an assigned name, such as Watch")
    }

    /// The time between two packets in milliseconds, `100` or `100-200`; returned in seconds.
    @Sendable static func interval(_ text: String) throws -> ClosedRange<TimeInterval> {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let bounds = parts.compactMap { Double(decimal: $0) }.filter { (20...10_240).contains($0) }
        guard (1...2).contains(parts.count), bounds.count == parts.count, bounds[0] <= bounds[bounds.count - 1] else {
            throw ValidationError("It takes a time from 20 to 10240 milliseconds, or two such as 100-200.")
        }
        return bounds[0] / 1000...bounds[bounds.count - 1] / 1000
    }

    /// The text before the equals sign, and the bytes after it.
    private static func assignment(_ text: String) -> (name: String, data: Data?) {
        guard let sign = text.firstIndex(of: "=") else { return (text, nil) }
        return (String(text[..<sign]), ValueForm.bytes(String(text[text.index(after: sign)...])))
    }

    private static func unwrap<Value>(_ value: Value?, _ requirement: String) throws -> Value {
        guard let value else { throw ValidationError("It takes \(requirement).") }
        return value
    }
}
