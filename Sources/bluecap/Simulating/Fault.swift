import BlueZSimulator
import Foundation

/// A fault to cause in a simulator, or to end; written as words, such as `lose-link C0:5A:17:00:18:0D`.
///
/// Only the values of its form's parameters have a meaning.
struct Fault: Sendable {
    /// The words of one value.
    enum Parameter: Sendable {
        /// `hci1`, or `1`; `hci0` if it is missing.
        case adapter
        /// The address of a peripheral.
        case address
        /// A whole number under this name in the help; required if `or` is `nil`.
        case count(_ name: String = "COUNT", or: Int? = nil)
        /// Required if `or` is `nil`.
        case seconds(or: Double? = nil)
        /// A loss of strength.
        case decibels
        /// The name of a method, or `any`.
        case method
        /// A D-Bus error: its name, and a text up to the end of the line.
        case error

        fileprivate var usage: String {
            switch self {
            case .adapter: "[ADAPTER]"
            case .address: "ADDRESS"
            case .count(let name, let usual): usual == nil ? name : "[\(name)]"
            case .seconds(let usual): usual == nil ? "SECONDS" : "[SECONDS]"
            case .decibels: "DECIBELS"
            case .method: "METHOD"
            case .error: "[ERROR [TEXT]]"
            }
        }
    }

    /// How a fault is written, and how it is caused.
    struct Form: Sendable {
        let name: String
        let parameters: [Parameter]
        let summary: String
        let cause: @Sendable (FaultInjector, Fault) throws -> Void

        init(
            _ name: String, takes parameters: [Parameter] = [], _ summary: String,
            cause: @escaping @Sendable (FaultInjector, Fault) throws -> Void
        ) {
            (self.name, self.parameters, self.summary, self.cause) = (name, parameters, summary, cause)
        }

        var usage: String { ([name] + parameters.map(\.usage)).joined(separator: " ") }
    }

    /// All faults, in the order of the help.
    static let forms: [Form] = [
        Form("restart-daemon", takes: [.seconds(or: 1)], "bluetoothd ends, and starts again after 1 s.") {
            try $0.restart(after: $1.seconds)
        },
        Form("kill-daemon", "bluetoothd ends.") { injector, _ in try injector.kill() },
        Form("start-daemon", "bluetoothd starts.") { injector, _ in try injector.start() },
        Form("power-off", takes: [.adapter], "The adapter is switched off.") {
            $0.simulator.simulatePowerOff(adapter: try $0.present($1.adapter))
        },
        Form("power-on", takes: [.adapter], "The adapter is switched on.") {
            $0.simulator.simulatePowerOn(adapter: try $0.present($1.adapter))
        },
        Form("rfkill-block", takes: [.adapter], "rfkill blocks the adapter.") {
            $0.simulator.simulateRfkill(true, adapter: try $0.present($1.adapter))
        },
        Form("rfkill-unblock", takes: [.adapter], "rfkill unblocks it; it is switched on.") {
            $0.simulator.simulateRfkill(false, adapter: try $0.present($1.adapter))
        },
        Form("remove-adapter", takes: [.adapter], "The adapter is unplugged.") {
            $0.simulator.simulateAdapterRemoval(try $0.present($1.adapter))
        },
        Form("add-adapter", takes: [.adapter], "An adapter is plugged in.") {
            $0.simulator.simulateAdapterAddition(VirtualAdapter(index: try $0.absent($1.adapter)))
        },
        Form("deny-access", "Every call is refused.") { injector, _ in injector.simulator.simulateAccessDenied(true) },
        Form("allow-access", "Calls are accepted again.") { injector, _ in
            injector.simulator.simulateAccessDenied(false)
        },
        Form("slow-replies", takes: [.seconds()], "Every reply is late; 0 ends it.") {
            $0.simulator.simulateSlowReplies(by: $1.seconds)
        },
        Form("refuse-call", takes: [.method, .error], "The next call of a method fails.") {
            $0.simulator.simulateRefusedCalls(of: $1.method, error: $1.error)
        },
        Form("ignore-call", takes: [.method], "The next call of a method gets no reply.") {
            $0.simulator.simulateUnansweredCalls(of: $1.method)
        },
        Form("fail-discovery", takes: [.count(or: 1)], "The next attempts to scan fail.") {
            $0.simulator.simulateStartDiscoveryFailures($1.count)
        },
        Form("stop-discovery", takes: [.adapter], "Discovering becomes false without a call.") {
            $0.simulator.simulateDiscoveryDeath(isAnnounced: true, adapter: try $0.present($1.adapter))
        },
        Form("deafen", takes: [.adapter], "A scan continues, and finds nothing more.") {
            $0.simulator.simulateDiscoveryDeath(isAnnounced: false, adapter: try $0.present($1.adapter))
        },
        Form("out-of-range", takes: [.address], "A peripheral is out of range.") {
            $0.simulator.simulateOutOfRange(true, of: try $0.present($1.address))
        },
        Form("in-range", takes: [.address], "It is back.") {
            $0.simulator.simulateOutOfRange(false, of: try $0.present($1.address))
        },
        Form("attenuate", takes: [.address, .decibels, .adapter], "It is weaker at an adapter; 0 ends it.") {
            $0.simulator.simulateAttenuation(
                of: try $0.present($1.address), by: $1.decibels, adapter: try $0.present($1.adapter))
        },
        Form("lose-link", takes: [.address], "Its link is lost.") {
            $0.simulator.simulateLinkLoss(of: try $0.linked($1.address))
        },
        Form("lose-link-after", takes: [.address, .count("REQUESTS")], "Its link is lost instead of a response.") {
            $0.simulator.simulateDropAfter(requests: $1.count, of: try $0.present($1.address))
        },
        Form("refuse-connections", takes: [.address, .count(or: 1)], "The next attempts to connect fail.") {
            $0.simulator.simulateConnectFailures($1.count, of: try $0.present($1.address))
        },
        Form("lose-connections", takes: [.address, .count(or: 1)], "The next links are lost once they are up.") {
            $0.simulator.simulateConnectReplyThenDrop($1.count, of: try $0.present($1.address))
        },
        Form("silence", takes: [.address], "It sends no responses.") {
            $0.simulator.simulateSilence(true, of: try $0.present($1.address))
        },
        Form("end-silence", takes: [.address], "It sends responses again.") {
            $0.simulator.simulateSilence(false, of: try $0.present($1.address))
        },
        Form("slow-answers", takes: [.address, .seconds()], "Its responses are late; 0 ends it.") {
            $0.simulator.simulateLateAnswers(by: $1.seconds, of: try $0.present($1.address))
        },
        Form("late-objects", takes: [.address, .seconds(or: 0.005)], "Its objects follow ServicesResolved; 0 ends it.")
        {
            $0.simulator.simulateLateObjects(by: $1.seconds, of: try $0.present($1.address))
        },
        Form("lose-keys", takes: [.address], "It loses the keys of its bonds.") {
            $0.simulator.simulateKeyLoss(of: try $0.present($1.address))
        },
        Form("fail-pairing", takes: [.address, .count(or: 1)], "The next pairings with it fail.") {
            $0.simulator.simulatePairingFailures($1.count, of: try $0.present($1.address))
        },
        Form("forget-device", takes: [.address], "Its objects on the bus are removed.") {
            $0.simulator.simulateDeviceRemoval(of: try $0.known($1.address))
        },
    ]

    let form: Form
    /// The number of an adapter.
    private(set) var adapter = 0
    private(set) var address: VirtualAddress = "00:00:00:00:00:00"
    private(set) var count = 1
    private(set) var seconds = 0.0
    private(set) var decibels = 0
    /// `nil` for any method.
    private(set) var method: String?
    private(set) var error = DaemonError.failed("Operation failed")

    /// Reads a fault.
    ///
    /// - Throws: ``ToolFailure``; for an unknown name it lists all names.
    init(_ words: [String]) throws {
        let names = Self.forms.map(\.name).joined(separator: ", ")
        guard let name = words.first else { throw ToolFailure("Name a fault; there are: \(names).") }
        guard let form = Self.forms.first(where: { $0.name == name }) else {
            throw ToolFailure("There is no fault \"\(name)\"; there are: \(names).")
        }
        self.form = form
        var rest = words.dropFirst()
        for parameter in form.parameters { try read(parameter, from: &rest) }
        if let unexpected = rest.first { throw misuse("Unexpected argument \"\(unexpected)\"") }
    }

    /// The list of all faults for a help text.
    static var list: String {
        let width = forms.map(\.usage.count).max() ?? 0
        return forms.map { "  \(DisplayText.padded($0.usage, to: width))  \($0.summary)" }.joined(separator: "\n")
    }

    // MARK: Words

    private func misuse(_ why: String) -> ToolFailure { ToolFailure("\(why). Usage: \(form.usage)") }

    private mutating func read(_ parameter: Parameter, from words: inout ArraySlice<String>) throws {
        let word = words.popFirst()
        switch parameter {
        case .adapter:
            guard let word else { return }
            let digits = word.hasPrefix("hci") ? String(word.dropFirst(3)) : word
            guard let number = Int(digits), (0...15).contains(number) else {
                throw misuse("\"\(word)\" is not an adapter from hci0 to hci15")
            }
            adapter = number
        case .address:
            guard let word else { throw misuse("A peripheral's address is missing") }
            guard let read = VirtualAddress(word) else { throw misuse("\"\(word)\" is not an address") }
            address = read
        case .count(_, let usual):
            guard let text = word ?? usual.map(String.init) else { throw misuse("A number is missing") }
            guard let number = Int(text), (1...1_000_000).contains(number) else {
                throw misuse("\"\(text)\" is not a whole number from 1 to 1000000")
            }
            count = number
        case .seconds(let usual):
            guard let text = word ?? usual.map({ "\($0)" }) else { throw misuse("A number of seconds is missing") }
            guard let number = Double(decimal: text), (0...3600).contains(number) else {
                throw misuse("\"\(text)\" is not a number of seconds from 0 to 3600")
            }
            seconds = number
        case .decibels:
            guard let number = word.flatMap(Int.init), (0...147).contains(number) else {
                throw misuse("\"\(word ?? "")\" is not a number of decibels from 0 to 147")
            }
            decibels = number
        case .method:
            guard let word else { throw misuse("The name of a method, or any, is missing") }
            guard !word.contains("."), !word.isEmpty else {
                throw misuse("\"\(word)\" is not a method, such as Connect")
            }
            method = word == "any" ? nil : word
        case .error:
            guard let word else { return }
            guard Self.isErrorName(word) else {
                throw misuse("\"\(word)\" is not an error name, such as org.bluez.Error.Failed")
            }
            error = DaemonError(name: word, message: words.isEmpty ? error.message : words.joined(separator: " "))
            words = []
        }
    }

    /// Whether it is an error's name by the D-Bus specification: two elements or more, of letters, digits and underscores.
    private static func isErrorName(_ name: String) -> Bool {
        let elements = name.split(separator: ".", omittingEmptySubsequences: false)
        return elements.count > 1 && name.utf8.count < 256
            && elements.allSatisfy { element in
                element.first?.isNumber == false
                    && element.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
            }
    }
}

/// Causes faults, one after another, and returns when clients can see each on the bus.
final class FaultInjector: Sendable {
    let simulator: Simulator
    private let turn = NSLock()

    /// How long a fault may take in addition to its own pause, in seconds.
    private static let patience = 10.0

    init(_ simulator: Simulator) { self.simulator = simulator }

    /// - Throws: ``ToolFailure`` if there is no such adapter or peripheral, or if it took too long.
    func perform(_ fault: Fault) throws {
        turn.lock()
        defer { turn.unlock() }
        try fault.form.cause(self, fault)
        guard simulator.waitUntilDone(limit: Self.patience) else { throw Self.overdue }
    }

    private static let overdue = ToolFailure("The simulator did not do that within \(Int(patience)) s.")

    // MARK: The daemon

    fileprivate func kill() throws {
        try requireDaemon()
        simulator.simulateDaemonDeath()
        guard simulator.waitForOwner(false, limit: Self.patience) else { throw Self.overdue }
    }

    fileprivate func start() throws {
        simulator.simulateDaemonReturn()
        guard simulator.waitForOwner(true, limit: Self.patience) else { throw Self.overdue }
    }

    /// During the pause, other faults are caused.
    fileprivate func restart(after pause: Double) throws {
        try kill()
        turn.unlock()
        Thread.sleep(forTimeInterval: pause)
        turn.lock()
        try start()
    }

    private func requireDaemon() throws {
        guard simulator.isDaemonRunning else { throw ToolFailure("bluetoothd is not running; start-daemon starts it.") }
    }

    // MARK: Adapters and peripherals

    private var adapters: [Int] { simulator.adapters.compactMap { Int($0.path.dropFirst("/org/bluez/hci".count)) } }

    fileprivate func present(_ adapter: Int) throws -> Int {
        try requireDaemon()
        guard adapters.contains(adapter) else {
            let names = adapters.map { "hci\($0)" }.joined(separator: ", ")
            throw ToolFailure(
                "There is no adapter hci\(adapter); there \(names.isEmpty ? "is none" : "are: \(names)").")
        }
        return adapter
    }

    fileprivate func absent(_ adapter: Int) throws -> Int {
        try requireDaemon()
        guard !adapters.contains(adapter) else {
            throw ToolFailure("There is an adapter hci\(adapter) already: add one of another number.")
        }
        return adapter
    }

    fileprivate func present(_ address: VirtualAddress) throws -> VirtualAddress {
        let peripherals = simulator.peripherals
        guard peripherals.contains(where: { $0.address == address }) else {
            let some = peripherals.prefix(12).map {
                "\($0.address)" + ($0.name.map { " (\(DisplayText.name($0)))" } ?? "")
            }
            let list = some.isEmpty ? "there is none" : "there are: " + some.joined(separator: ", ")
            throw ToolFailure(
                "There is no peripheral \(address); \(list)\(peripherals.count > some.count ? " and others" : "").")
        }
        return address
    }

    fileprivate func linked(_ address: VirtualAddress) throws -> VirtualAddress {
        guard simulator.links.contains(where: { $0.address == address }) else {
            throw ToolFailure("There is no link to \(address): connect to it first.")
        }
        return address
    }

    fileprivate func known(_ address: VirtualAddress) throws -> VirtualAddress {
        let name = "/dev_" + address.description.replacingOccurrences(of: ":", with: "_")
        guard simulator.devices.contains(where: { $0.hasSuffix(name) }) else {
            throw ToolFailure("bluetoothd has no object of a device \(address): scan for it first.")
        }
        return address
    }
}
