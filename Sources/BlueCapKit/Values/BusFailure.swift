public import GATT

/// What the bus or `bluetoothd` answered when it refused something: the D-Bus error as it came, never flattened.
public struct BusFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The D-Bus error name, for example `org.bluez.Error.InProgress`.
    public let name: String
    /// The sentence that came with it; it may be empty.
    public let message: String
    /// The code with which the peripheral refused, where the error tells one: `bluetoothd` puts some of them under a
    /// name of its own and gives no number.
    public let attError: CBATTError.Code?

    public init(name: String, message: String, attError: CBATTError.Code? = nil) {
        self.name = name
        self.message = message
        self.attError = attError
    }

    public var description: String {
        let text = message.isEmpty ? name : "\(name): \(message)"
        return attError.map { "\(text), \($0)" } ?? text
    }
}
