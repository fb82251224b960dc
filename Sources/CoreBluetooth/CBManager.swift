import BlueCapKit
public import Foundation
import BlueCapFutures

/// Whether Bluetooth can be used now.
public enum CBManagerState: Int, Hashable, Sendable {
    /// There is no reply yet from the bus or `bluetoothd`.
    case unknown = 0
    /// `bluetoothd` was there and has ended.
    case resetting = 1
    /// There is no bus, no `bluetoothd` on it, or no adapter.
    case unsupported = 2
    /// The bus does not permit this process to communicate with `bluetoothd`.
    case unauthorized = 3
    /// The adapter is off, or blocked by rfkill.
    case poweredOff = 4
    /// The manager can be used.
    case poweredOn = 5

    init(_ state: ManagerState) {
        self =
            switch state {
            case .unknown: .unknown
            case .resetting: .resetting
            case .unsupported: .unsupported
            case .unauthorized: .unauthorized
            case .poweredOff: .poweredOff
            case .poweredOn: .poweredOn
            }
    }
}

/// Whether the user has allowed the program to use Bluetooth. Linux does not ask: it is always `allowedAlways`, and a
/// process that D-Bus does not allow to use `bluetoothd` gets the state `unauthorized`.
public enum CBManagerAuthorization: Int, Hashable, Sendable {
    /// The user was not asked yet. Not reported on Linux.
    case notDetermined = 0
    /// The program may not use Bluetooth. Not reported on Linux.
    case restricted = 1
    /// The user has refused. Not reported on Linux.
    case denied = 2
    /// The program may use Bluetooth.
    case allowedAlways = 3
}

/// What managers of both roles have in common.
open class CBManager: NSObject {
    private let reported = Locked(CBManagerState.unknown)

    /// The state that was reported to the delegate last; `unknown` until the first report.
    open var state: CBManagerState { reported.withLock { $0 } }

    /// Always `allowedAlways`; see ``CBManagerAuthorization``.
    open class var authorization: CBManagerAuthorization { .allowedAlways }

    /// Deprecated by Apple in favour of the class property.
    open var authorization: CBManagerAuthorization { Self.authorization }

    override public init() { super.init() }

    /// Sets ``state``; on the delegate's queue, just before the delegate is called.
    func setState(_ state: CBManagerState) { reported.withLock { $0 = state } }

    // MARK: On Linux

    private static let defaults = Locked(Retained<[String: Any]>([:]))

    /// Options of all managers that the process creates from now on; an option that a manager is created with precedes, and
    /// these precede the default configurations. An option that both roles have counts for both, under the key of either.
    @available(
        *, deprecated, message: "Use defaultConfiguration of CBCentralManager and of CBPeripheralManager."
    )
    public static var defaultOptions: [String: Any] {
        get { defaults.withLock { $0 }.value }
        set {
            let new = Retained(newValue)
            defaults.withLock { $0 = new }
        }
    }

    /// The key under which an initializer with a configuration passes it to the one with options, so that a subclass need
    /// override only that one.
    static let configurationKey = "BlueCapConfiguration"

    /// Returns the options of a new manager: its own, then the defaults, under the key of either role. None if it is created
    /// with a configuration.
    static func options(_ own: [String: Any]?, of role: String) -> [String: Any] {
        if own?[configurationKey] != nil { return [:] }
        let options = defaults.withLock { $0 }.value.merging(own ?? [:]) { _, own in own }
        let other = role == "Central" ? "Peripheral" : "Central"
        let others = options.map {
            ($0.key.replacingOccurrences(of: "\(other)Manager", with: "\(role)Manager"), $0.value)
        }
        return options.merging(others) { own, _ in own }
    }

    /// A closure in a structure: stored bare in the generic `Locked`, it would be wrapped in another closure by each access,
    /// and the 40,000th message would call through 40,000 of them.
    private struct LogHandler {
        let receive: @Sendable (String) -> Void
    }

    private static let logHandler = Locked<LogHandler?>(nil)

    /// Receives the messages of ``log(_:)`` instead of standard error; for tests.
    package static func setLogHandler(_ handler: (@Sendable (String) -> Void)?) {
        logHandler.withLock { $0 = handler.map { LogHandler(receive: $0) } }
    }

    /// Writes a message to standard error, for what Core Bluetooth has no callback for.
    static func log(_ text: String) {
        if let handler = logHandler.withLock({ $0 }) { return handler.receive(text) }
        try? FileHandle.standardError.write(contentsOf: Data("[CoreBluetooth] \(text)\n".utf8))
    }

    /// Reports a call that the program must not make, in the form of Apple's message. The call has no other effect
    /// unless its documentation says so.
    static func misuse(_ text: String) { log("API MISUSE: \(text)") }

    private let missingMethods = Locked<Set<String>>([])

    /// Reports, once for each method, that the default implementation of a delegate's method was called although there was
    /// something to do for the program's.
    ///
    /// Swift on Linux cannot call a method that only a subclass of the conforming class has.
    func usedDefault(of method: String, _ delegate: any NSObjectProtocol, _ consequence: String) {
        guard missingMethods.withLock({ $0.insert(method).inserted }) else { return }
        Self.log(
            "\(type(of: delegate)) has no \(method), so the default implementation was called: \(consequence). If a subclass "
                + "has the method, declare it also in the class that conforms to the protocol, so that it can be overridden."
        )
    }

    /// Returns whether the state is `poweredOn`, and reports a misuse if it is not.
    func isReady(for command: String) -> Bool {
        if state == .poweredOn { return true }
        Self.misuse("\(self) can only accept \(command) while in the powered on state")
        return false
    }

    override open var description: String { "<\(type(of: self)): \(ObjectIdentifier(self))>" }
}

/// A remote device.
open class CBPeer: NSObject, NSCopying {
    private let id: UUID

    /// The identifier of the device. It is derived from the address, and is the same in every process and on every
    /// machine.
    open var identifier: UUID { id }

    init(identifier: UUID) { id = identifier }

    /// Returns the object itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

// MARK: - Deprecated by Apple

/// The name of ``CBManagerState`` before iOS 10.
public typealias CBCentralManagerState = CBManagerState
/// The name of ``CBManagerState`` before iOS 10.
public typealias CBPeripheralManagerState = CBManagerState

/// The authorization of the peripheral role before iOS 13; see ``CBManagerAuthorization``.
public enum CBPeripheralManagerAuthorizationStatus: Int, Hashable, Sendable {
    /// The user was not asked yet. Not reported on Linux.
    case notDetermined = 0
    /// The program may not use Bluetooth. Not reported on Linux.
    case restricted = 1
    /// The user has refused. Not reported on Linux.
    case denied = 2
    /// The program may use Bluetooth.
    case authorized = 3
}

extension CBPeripheralManager {
    /// Returns `authorized`; see ``CBManagerAuthorization``.
    public class func authorizationStatus() -> CBPeripheralManagerAuthorizationStatus { .authorized }
}
