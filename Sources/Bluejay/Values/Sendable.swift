public import Foundation

/// What can be sent to a peripheral: it knows its own bytes.
///
/// ```swift
/// struct Colour: Sendable {
///     var red: UInt8, green: UInt8, blue: UInt8
///
///     func toBluetoothData() -> Data { Bluejay.combine(sendables: [red, green, blue]) }
/// }
/// ```
///
/// The fixed-width integers, `Data` and `String` conform: integers with their lowest byte first, as Bluetooth has it
/// (`bigEndian` of an integer sends its highest byte first), strings in UTF-8 without a length or an end. `Int` and
/// `UInt` do not, on purpose: their width depends on the machine, and a peripheral expects one width.
///
/// ## Beside Swift's own Sendable
/// In a file that imports Bluejay the name `Sendable` means this protocol, as in the document. Swift's protocol of that
/// name, which says that a value may change threads, is `Swift.Sendable` there; `@Sendable` before a closure is Swift's
/// everywhere.
///
/// ```swift
/// struct Command: Sendable, Swift.Sendable { … }
/// ```
public protocol Sendable {
    /// The bytes, in the order in which they go out.
    func toBluetoothData() -> Data
}

extension Bluejay {
    /// The bytes of all, one after the other.
    ///
    /// ```swift
    /// let request = Bluejay.combine(sendables: [UInt8(0x3A), handle.bigEndian, payload])
    /// ```
    public static func combine(sendables: [any Sendable]) -> Data {
        sendables.reduce(into: Data()) { $0.append($1.toBluetoothData()) }
    }
}
