import BlueCapDBus
import BlueCapGATT
public import Foundation
import Logging

/// What is invalid in a configuration with which a manager was to be created.
public struct ConfigurationError: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// The name of the property, such as `maximumPeripherals`.
    public let property: String
    /// What the property takes, and the value that it has, such as "takes an Int from 1 to 1000000 peripherals, not 0".
    public let reason: String

    public var description: String { "The configuration's \(property) \(reason)." }
    public var errorDescription: String? { description }
}

/// The values that properties of one kind take, and how a dictionary contains them.
struct OptionType<Value: Sendable>: Sendable {
    /// What an error says about the values.
    let form: String
    let convert: @Sendable (Any) -> Value?
    let accepts: @Sendable (Value) -> Bool

    init(
        _ form: String, from convert: @escaping @Sendable (Any) -> Value? = { $0 as? Value },
        where accepts: @escaping @Sendable (Value) -> Bool = { _ in true }
    ) {
        (self.form, self.convert, self.accepts) = (form, convert, accepts)
    }
}

extension OptionType<String> {
    static let text = Self("a String")
    static let notEmpty = Self("a String that is not empty", where: { !$0.isEmpty })
    static let absolutePath = Self("a String with an absolute path", where: { $0.hasPrefix("/") })
    static let busAddress = Self("a D-Bus address, such as unix:path=/run/bus", where: BusAddress.isWellFormed)
    static let adapter = Self(
        "the name of an adapter, such as hci0, or its address",
        where: { text in
            // A name is the last element of an object path.
            BluetoothAddress(text) != nil
                || !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        })
}

extension OptionType<Int> {
    static func integer(_ range: ClosedRange<Int>, _ unit: String) -> Self {
        Self("an Int from \(range.lowerBound) to \(range.upperBound) \(unit)") {
            ($0 as? Int) ?? ($0 as? NSNumber)?.intValue
        } where: {
            range.contains($0)
        }
    }
}

extension OptionType<Bool> {
    static let bool = Self("a Bool") { ($0 as? Bool) ?? ($0 as? NSNumber)?.boolValue }
}

extension OptionType<Duration> {
    /// A dictionary contains a number of seconds.
    static let seconds = Self("zero or more seconds") { any in
        let number = (any as? Double) ?? (any as? Int).map(Double.init) ?? (any as? NSNumber)?.doubleValue
        return number.flatMap { $0.isFinite ? Duration(seconds: $0) : nil }
    } where: {
        $0 >= .zero
    }
}

extension OptionType<PairingPolicy> {
    static let pairingPolicy = Self("a PairingPolicy, or reject, justWorks or ask") { any in
        let policies: [String: PairingPolicy] = ["reject": .reject, "justWorks": .justWorks, "ask": .ask]
        return any as? PairingPolicy ?? (any as? String).flatMap { policies[$0] }
    }
}

extension OptionType<Logger> {
    static let logger = Self("a Logger of swift-log")
}

/// A property of a configuration, with its key in the documents' dictionaries and the values that it takes.
package struct OptionRule<Root>: Sendable {
    typealias Path<Value> = any WritableKeyPath<Root, Value> & Sendable

    private let property: String
    private let key: String
    private let form: String
    /// Returns the value of the property if it is invalid.
    private let invalid: @Sendable (Root) -> Any?
    /// Sets the property; returns `false` if the value is invalid.
    private let set: @Sendable (inout Root, Any) -> Bool

    init<Value>(_ property: String, _ key: String, _ path: Path<Value>, _ type: OptionType<Value>) {
        self.init(property, key, type, { $0[keyPath: path] }, { $0[keyPath: path] = $1 })
    }

    init<Value>(_ property: String, _ key: String, _ path: Path<Value?>, _ type: OptionType<Value>) {
        self.init(property, key, type, { $0[keyPath: path] }, { $0[keyPath: path] = $1 })
    }

    private init<Value>(
        _ property: String, _ key: String, _ type: OptionType<Value>, _ get: @escaping @Sendable (Root) -> Value?,
        _ set: @escaping @Sendable (inout Root, Value) -> Void
    ) {
        (self.property, self.key, form) = (property, key, type.form)
        invalid = { root in get(root).flatMap { type.accepts($0) ? nil : $0 } }
        self.set = { root, any in
            guard let value = type.convert(any), type.accepts(value) else { return false }
            set(&root, value)
            return true
        }
    }

    /// Throws an error if the property's value is invalid.
    func check(_ root: Root) throws(ConfigurationError) {
        guard let value = invalid(root) else { return }
        throw ConfigurationError(property: property, reason: "takes \(form), not \(Self.text(of: value))")
    }

    /// Sets the property if the dictionary contains its key.
    /// - Returns: What is wrong with the value.
    func read(_ options: [String: Any], into root: inout Root) -> String? {
        guard let any = options[key], !set(&root, any) else { return nil }
        return "The option \(key) takes \(form), not \(Self.text(of: any))."
    }

    private static func text(of value: Any) -> String { "\(value)".isEmpty ? "an empty one" : "\(value)" }
}

/// A structure of options, which the documents' dictionaries can contain too.
package protocol OptionSettable: Sendable {
    static var rules: [OptionRule<Self>] { get }
    /// All defaults.
    static var standard: Self { get }
}

extension OptionSettable {
    /// Throws an error for the first property that is invalid.
    package func check() throws(ConfigurationError) {
        for rule in Self.rules { try rule.check(self) }
    }

    /// Reads a dictionary into options. What follows an invalid value stays as it is.
    /// - Returns: The options, and what is wrong with them.
    static func reading(_ dictionary: [String: Any]?, over base: Self = standard) -> (Self, problem: String?) {
        var result = base
        do { try base.check() } catch { return (standard, error.description) }
        for rule in rules {
            if let problem = rule.read(dictionary ?? [:], into: &result) { return (result, problem) }
        }
        return (result, nil)
    }
}
