import BlueZSimulator
import Foundation

/// A fault to cause in a simulator, or to end; written as words, such as `lose-link C0:5A:17:00:18:0D`.
///
/// Only the values of its form's parameters have a meaning.
struct Fault: Sendable {
    /// The words of one value, and what must exist when the fault is caused.
    enum Parameter: Sendable {
        /// `hci1`, or `1`; `hci0` if it is missing.
        case adapter
        /// The number of an adapter that does not exist yet.
        case newAdapter
        /// The address of a virtual peripheral.
        case peripheral
        /// The address of the other end of a link.
        case link
        /// The address of a device that has an object on the bus.
        case device
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
            case .adapter, .newAdapter: "[ADAPTER]"
            case .peripheral, .link, .device: "ADDRESS"
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
        let needsDaemon: Bool
        /// Is called when all that the parameters name exists.
        let cause: @Sendable (Simulator, Fault) -> Void
        /// Is called when the seconds of the fault have passed, during which other faults are caused.
        let sequel: (@Sendable (Simulator) -> Void)?

        init(
            _ name: String, _ parameters: [Parameter], _ summary: String, needsDaemon: Bool = false,
            cause: @escaping @Sendable (Simulator, Fault) -> Void, sequel: (@Sendable (Simulator) -> Void)? = nil
        ) {
            (self.name, self.parameters, self.summary) = (name, parameters, summary)
            (self.needsDaemon, self.cause, self.sequel) = (needsDaemon, cause, sequel)
        }

        var usage: String { ([name] + parameters.map(\.usage)).joined(separator: " ") }
    }

    /// All faults, in the order of the help.
    static let forms: [Form] = [
        Form(
            "restart-daemon", [.seconds(or: 1)], "bluetoothd ends, and starts again after 1 s.", needsDaemon: true,
            cause: { simulator, _ in simulator.simulateDaemonDeath() }, sequel: { $0.simulateDaemonReturn() }),
        Form("kill-daemon", [], "bluetoothd ends.", needsDaemon: true) { simulator, _ in
            simulator.simulateDaemonDeath()
        },
        Form("start-daemon", [], "bluetoothd starts.") { simulator, _ in simulator.simulateDaemonReturn() },
        Form("power-off", [.adapter], "The adapter is switched off.") { $0.simulatePowerOff(adapter: $1.adapter) },
        Form("power-on", [.adapter], "The adapter is switched on.") { $0.simulatePowerOn(adapter: $1.adapter) },
        Form("rfkill-block", [.adapter], "rfkill blocks the adapter.") { $0.simulateRfkill(true, adapter: $1.adapter) },
        Form("rfkill-unblock", [.adapter], "rfkill unblocks it; it is switched on.") {
            $0.simulateRfkill(false, adapter: $1.adapter)
        },
        Form("remove-adapter", [.adapter], "The adapter is unplugged.") { $0.simulateAdapterRemoval($1.adapter) },
        Form("add-adapter", [.newAdapter], "An adapter is plugged in.") {
            $0.simulateAdapterAddition(VirtualAdapter(index: $1.adapter))
        },
        Form("deny-access", [], "Every call is refused.") { simulator, _ in simulator.simulateAccessDenied(true) },
        Form("allow-access", [], "Calls are accepted again.") { simulator, _ in simulator.simulateAccessDenied(false) },
        Form("slow-replies", [.seconds()], "Every reply is late; 0 ends it.") {
            $0.simulateSlowReplies(by: $1.seconds)
        },
        Form("refuse-call", [.method, .error], "The next call of a method fails.") {
            $0.simulateRefusedCalls(of: $1.method, error: $1.error)
        },
        Form("ignore-call", [.method], "The next call of a method gets no reply.") {
            $0.simulateUnansweredCalls(of: $1.method)
        },
        Form("fail-discovery", [.count(or: 1)], "The next attempts to scan fail.") {
            $0.simulateStartDiscoveryFailures($1.count)
        },
        Form("stop-discovery", [.adapter], "Discovering becomes false without a call.") {
            $0.simulateDiscoveryDeath(isAnnounced: true, adapter: $1.adapter)
        },
        Form("deafen", [.adapter], "A scan continues, and finds nothing more.") {
            $0.simulateDiscoveryDeath(isAnnounced: false, adapter: $1.adapter)
        },
        Form("out-of-range", [.peripheral], "A peripheral is out of range.") { $0.simulateOutOfRange(of: $1.address) },
        Form("in-range", [.peripheral], "It is back.") { $0.simulateOutOfRange(false, of: $1.address) },
        Form("attenuate", [.peripheral, .decibels, .adapter], "It is weaker at an adapter; 0 ends it.") {
            $0.simulateAttenuation(of: $1.address, by: $1.decibels, adapter: $1.adapter)
        },
        Form("lose-link", [.link], "Its link is lost.") { $0.simulateLinkLoss(of: $1.address) },
        Form("lose-link-after", [.peripheral, .count("REQUESTS")], "Its link is lost instead of a response.") {
            $0.simulateDropAfter(requests: $1.count, of: $1.address)
        },
        Form("refuse-connections", [.peripheral, .count(or: 1)], "The next attempts to connect fail.") {
            $0.simulateConnectFailures($1.count, of: $1.address)
        },
        Form("lose-connections", [.peripheral, .count(or: 1)], "The next links are lost once they are up.") {
            $0.simulateConnectReplyThenDrop($1.count, of: $1.address)
        },
        Form("silence", [.peripheral], "It sends no responses.") { $0.simulateSilence(of: $1.address) },
        Form("end-silence", [.peripheral], "It sends responses again.") { $0.simulateSilence(false, of: $1.address) },
        Form("slow-answers", [.peripheral, .seconds()], "Its responses are late; 0 ends it.") {
            $0.simulateLateAnswers(by: $1.seconds, of: $1.address)
        },
        Form("late-objects", [.peripheral, .seconds(or: 0.005)], "Its objects follow ServicesResolved; 0 ends it.") {
            $0.simulateLateObjects(by: $1.seconds, of: $1.address)
        },
        Form("lose-keys", [.peripheral], "It loses the keys of its bonds.") { $0.simulateKeyLoss(of: $1.address) },
        Form("fail-pairing", [.peripheral, .count(or: 1)], "The next pairings with it fail.") {
            $0.simulatePairingFailures($1.count, of: $1.address)
        },
        Form("forget-device", [.device], "Its objects on the bus are removed.") {
            $0.simulateDeviceRemoval(of: $1.address)
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

    /// The names, if none of them is in a command line.
    static func names(missingIn words: some Sequence<String>) -> [String] {
        let names = forms.map(\.name)
        return words.contains(where: names.contains) ? [] : names
    }

    // MARK: Words

    private func misuse(_ why: String) -> ToolFailure { ToolFailure("\(why). Usage: \(form.usage)") }

    private func number<Number: Comparable>(
        _ text: String, _ range: ClosedRange<Number>, _ noun: String, _ read: (String) -> Number?
    ) throws -> Number {
        if let number = read(text), range.contains(number) { return number }
        let bounds = "\(NumberWording.text(range.lowerBound)) to \(NumberWording.text(range.upperBound))"
        throw misuse("\"\(text)\" is not a \(noun) from \(bounds)")
    }

    private mutating func read(_ parameter: Parameter, from words: inout ArraySlice<String>) throws {
        let word = words.popFirst()
        switch parameter {
        case .adapter, .newAdapter:
            guard let word else { return }
            let digits = word.hasPrefix("hci") ? String(word.dropFirst(3)) : word
            guard let number = Int(digits), (0...15).contains(number) else {
                throw misuse("\"\(word)\" is not an adapter from hci0 to hci15")
            }
            adapter = number
        case .peripheral, .link, .device:
            guard let word else { throw misuse("A peripheral's address is missing") }
            guard let read = VirtualAddress(word) else { throw misuse("\"\(word)\" is not an address") }
            address = read
        case .count(_, let usual):
            guard let text = word ?? usual.map(String.init) else { throw misuse("A number is missing") }
            count = try number(text, 1...1_000_000, "whole number") { Int($0) }
        case .seconds(let usual):
            guard let text = word ?? usual.map({ "\($0)" }) else { throw misuse("A number of seconds is missing") }
            seconds = try number(text, 0...3600, "number of seconds", Double.init(decimal:))
        case .decibels: decibels = try number(word ?? "", 0...147, "number of decibels") { Int($0) }
        case .method:
            guard let word else { throw misuse("The name of a method, or any, is missing") }
            guard !word.contains("."), !word.isEmpty else {
                throw misuse("\"\(word)\" is not a method, such as Connect")
            }
            method = word == "any" ? nil : word
        case .error:
            guard let word else { return }
            // By the D-Bus specification: two elements or more, of letters, digits and underscores.
            guard word.utf8.count < 256, word.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+/) != nil
            else {
                throw misuse("\"\(word)\" is not an error name, such as org.bluez.Error.Failed")
            }
            error = DaemonError(name: word, message: words.isEmpty ? error.message : words.joined(separator: " "))
            words = []
        }
    }
}

/// Causes faults, one after another, and returns when clients can see each on the bus.
final class FaultInjector: Sendable {
    private let simulator: Simulator
    private let turn = NSLock()

    /// How long a fault may take in addition to its own pause, in seconds.
    private static let patience = 10.0

    init(_ simulator: Simulator) { self.simulator = simulator }

    /// - Throws: ``ToolFailure`` if there is no such adapter or peripheral, or if it took too long.
    func perform(_ fault: Fault) throws {
        turn.lock()
        defer { turn.unlock() }
        if fault.form.needsDaemon { try requireDaemon() }
        for parameter in fault.form.parameters { try check(parameter, of: fault) }
        try waitUntilSeen { fault.form.cause(simulator, fault) }
        guard let sequel = fault.form.sequel else { return }
        turn.unlock()
        Thread.sleep(forTimeInterval: fault.seconds)
        turn.lock()
        try waitUntilSeen { sequel(simulator) }
    }

    private func waitUntilSeen(_ cause: () -> Void) throws {
        let wasRunning = simulator.isDaemonRunning
        cause()
        let isRunning = simulator.isDaemonRunning
        guard simulator.waitUntilDone(limit: Self.patience),
            isRunning == wasRunning || simulator.waitForOwner(isRunning, limit: Self.patience)
        else { throw ToolFailure("The simulator did not do that within \(Int(Self.patience)) s.") }
    }

    private func requireDaemon() throws {
        guard simulator.isDaemonRunning else { throw ToolFailure("bluetoothd is not running; start-daemon starts it.") }
    }

    private var adapters: [Int] { simulator.adapters.compactMap { Int($0.path.dropFirst("/org/bluez/hci".count)) } }

    /// Throws a ``ToolFailure`` if what the parameter names does not exist.
    private func check(_ parameter: Fault.Parameter, of fault: Fault) throws {
        let (adapter, address) = (fault.adapter, fault.address)
        switch parameter {
        case .adapter:
            try requireDaemon()
            guard !adapters.contains(adapter) else { return }
            let names = adapters.map { "hci\($0)" }.joined(separator: ", ")
            throw ToolFailure(
                "There is no adapter hci\(adapter); there \(names.isEmpty ? "is none" : "are: \(names)").")
        case .newAdapter:
            try requireDaemon()
            guard adapters.contains(adapter) else { return }
            throw ToolFailure("There is an adapter hci\(adapter) already: add one of another number.")
        case .peripheral:
            let peripherals = simulator.peripherals
            guard !peripherals.contains(where: { $0.address == address }) else { return }
            let some = peripherals.prefix(12).map {
                "\($0.address)" + ($0.name.map { " (\(DisplayText.name($0)))" } ?? "")
            }
            let list = some.isEmpty ? "there is none" : "there are: " + some.joined(separator: ", ")
            throw ToolFailure(
                "There is no peripheral \(address); \(list)\(peripherals.count > some.count ? " and others" : "").")
        case .link:
            guard !simulator.links.contains(where: { $0.address == address }) else { return }
            throw ToolFailure("There is no link to \(address): connect to it first.")
        case .device:
            let name = "/dev_" + address.description.replacingOccurrences(of: ":", with: "_")
            guard !simulator.devices.contains(where: { $0.hasSuffix(name) }) else { return }
            throw ToolFailure("bluetoothd has no object of a device \(address): scan for it first.")
        case .count, .seconds, .decibels, .method, .error: return
        }
    }
}
