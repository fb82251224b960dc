public import BlueCapGATT

/// The error with which the bus or `bluetoothd` refused a request: the D-Bus error, unchanged.
public struct BusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The D-Bus error name, for example `org.bluez.Error.InProgress`.
    public let name: String
    /// The error's message, which may be empty.
    public let message: String
    /// The ATT error code with which the peripheral refused, if the D-Bus error contains it. For some codes
    /// `bluetoothd` uses a D-Bus error name of its own, without the number.
    public let attError: CBATTError.Code?

    /// Creates a failure, for tests of code that handles it.
    ///
    /// - Parameters:
    ///   - name: The D-Bus error name.
    ///   - message: The text of the error.
    ///   - attError: The ATT error code; `nil` if the error contains none.
    public init(name: String, message: String, attError: CBATTError.Code? = nil) {
        self.name = name
        self.message = message
        self.attError = attError
    }

    static let noDevice = BusError(
        name: "org.bluez.Error.DoesNotExist", message: "bluetoothd does not have the device")

    /// Returns why nothing can be requested of BlueZ in a state other than `poweredOn`.
    static func unusable(_ state: ManagerState) -> BusError {
        switch state {
        case .unauthorized:
            BusError(
                name: "org.freedesktop.DBus.Error.AccessDenied",
                message: "The bus does not allow this process to call bluetoothd")
        case .unsupported:
            BusError(
                name: "org.freedesktop.DBus.Error.ServiceUnknown",
                message: "There is no system bus, no bluetoothd on it, or no adapter")
        case .resetting:
            BusError(
                name: "org.freedesktop.DBus.Error.ServiceUnknown",
                message: "The bus, bluetoothd or the adapter has disappeared, and has not returned so far")
        case .unknown:
            BusError(name: "org.bluez.Error.NotReady", message: "bluetoothd has not reported its adapters so far")
        case .poweredOff, .poweredOn:
            BusError(name: "org.bluez.Error.NotReady", message: "The adapter is off")
        }
    }

    public var description: String {
        let text = message.isEmpty ? name : "\(name): \(message)"
        return attError.map { "\(text), \($0)" } ?? text
    }
}

/// The former name of ``BusError``.
@available(*, deprecated, renamed: "BusError")
public typealias BusFailure = BusError
