/// What the bus or `bluetoothd` answered when it refused something: the D-Bus error as it came, never flattened.
public struct BusFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The D-Bus error name, for example `org.bluez.Error.InProgress`.
    public let name: String
    /// The sentence that came with it; it may be empty.
    public let message: String

    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    public var description: String { message.isEmpty ? name : "\(name): \(message)" }
}
