import BlueZSimulator

/// A fault to cause in a simulator, or to end; written as words, such as `lose-link C0:5A:17:00:18:0D`.
enum Fault: Equatable, Sendable {
    case killDaemon
    case startDaemon
    /// Kills the daemon, and starts it again so many seconds later.
    case restartDaemon(after: Double)
    case powerOff(adapter: Int)
    case powerOn(adapter: Int)
    case rfkill(Bool, adapter: Int)
    case removeAdapter(Int)
    case addAdapter(Int)
    case denyAccess(Bool)
    case slowReplies(Double)
    /// Refuses calls of a method, `nil` for any.
    case refuseCalls(Int, of: String?, DaemonError)
    case ignoreCalls(Int, of: String?)
    case failDiscovery(Int)
    case stopDiscovery(adapter: Int, isAnnounced: Bool)
    case outOfRange(Bool, VirtualAddress)
    case loseLink(VirtualAddress)
    case loseLinkAfter(VirtualAddress, requests: Int)
    case refuseConnections(VirtualAddress, Int)
    case loseConnections(VirtualAddress, Int)
    case silence(VirtualAddress, Bool)
    case slowAnswers(VirtualAddress, Double)
    case forgetDevice(VirtualAddress)

    /// How a fault is written, and how its words are read.
    struct Form: Sendable {
        let name: String
        /// The words after the name.
        let parameters: String
        let summary: String
        let read: @Sendable (inout FaultWords) throws -> Fault

        init(
            _ name: String, takes parameters: String = "", _ summary: String,
            _ read: @escaping @Sendable (inout FaultWords) throws -> Fault
        ) {
            (self.name, self.parameters, self.summary, self.read) = (name, parameters, summary, read)
        }

        var usage: String { parameters.isEmpty ? name : "\(name) \(parameters)" }
    }

    /// All faults, in the order of the help.
    static let forms: [Form] = [
        Form("restart-daemon", takes: "[SECONDS]", "bluetoothd ends, and starts again after 1 s.") { words in
            .restartDaemon(after: try words.seconds(or: 1))
        },
        Form("kill-daemon", "bluetoothd ends.") { _ in .killDaemon },
        Form("start-daemon", "bluetoothd starts.") { _ in .startDaemon },
        Form("power-off", takes: "[ADAPTER]", "The adapter is switched off.") { words in
            .powerOff(adapter: try words.adapter())
        },
        Form("power-on", takes: "[ADAPTER]", "The adapter is switched on.") { words in
            .powerOn(adapter: try words.adapter())
        },
        Form("rfkill-block", takes: "[ADAPTER]", "rfkill blocks the adapter.") { words in
            .rfkill(true, adapter: try words.adapter())
        },
        Form("rfkill-unblock", takes: "[ADAPTER]", "rfkill unblocks it; it is switched on.") { words in
            .rfkill(false, adapter: try words.adapter())
        },
        Form("remove-adapter", takes: "[ADAPTER]", "The adapter is unplugged.") { words in
            .removeAdapter(try words.adapter())
        },
        Form("add-adapter", takes: "[ADAPTER]", "An adapter is plugged in.") { words in
            .addAdapter(try words.adapter())
        },
        Form("deny-access", "Every call is refused.") { _ in .denyAccess(true) },
        Form("allow-access", "Calls are accepted again.") { _ in .denyAccess(false) },
        Form("slow-replies", takes: "SECONDS", "Every reply is late; 0 ends it.") { words in
            .slowReplies(try words.seconds())
        },
        Form("refuse-call", takes: "METHOD [ERROR [TEXT]]", "The next call of a method fails.") { words in
            .refuseCalls(1, of: try words.method(), try words.error())
        },
        Form("ignore-call", takes: "METHOD", "The next call of a method gets no reply.") { words in
            .ignoreCalls(1, of: try words.method())
        },
        Form("fail-discovery", takes: "[COUNT]", "The next attempts to scan fail.") { words in
            .failDiscovery(try words.count(or: 1))
        },
        Form("stop-discovery", takes: "[ADAPTER]", "Discovering becomes false without a call.") { words in
            .stopDiscovery(adapter: try words.adapter(), isAnnounced: true)
        },
        Form("deafen", takes: "[ADAPTER]", "A scan continues, and finds nothing more.") { words in
            .stopDiscovery(adapter: try words.adapter(), isAnnounced: false)
        },
        Form("out-of-range", takes: "ADDRESS", "A peripheral is out of range.") { words in
            .outOfRange(true, try words.address())
        },
        Form("in-range", takes: "ADDRESS", "It is back.") { words in .outOfRange(false, try words.address()) },
        Form("lose-link", takes: "ADDRESS", "Its link is lost.") { words in .loseLink(try words.address()) },
        Form("lose-link-after", takes: "ADDRESS REQUESTS", "Its link is lost instead of a response.") { words in
            .loseLinkAfter(try words.address(), requests: try words.count())
        },
        Form("refuse-connections", takes: "ADDRESS [COUNT]", "The next attempts to connect fail.") { words in
            .refuseConnections(try words.address(), try words.count(or: 1))
        },
        Form("lose-connections", takes: "ADDRESS [COUNT]", "The next links are lost once they are up.") { words in
            .loseConnections(try words.address(), try words.count(or: 1))
        },
        Form("silence", takes: "ADDRESS", "It sends no responses.") { words in .silence(try words.address(), true) },
        Form("end-silence", takes: "ADDRESS", "It sends responses again.") { words in
            .silence(try words.address(), false)
        },
        Form("slow-answers", takes: "ADDRESS SECONDS", "Its responses are late; 0 ends it.") { words in
            .slowAnswers(try words.address(), try words.seconds())
        },
        Form("forget-device", takes: "ADDRESS", "Its objects on the bus are removed.") { words in
            .forgetDevice(try words.address())
        },
    ]

    /// Reads a fault.
    ///
    /// - Throws: ``ToolFailure``; for an unknown name it lists all names.
    init(_ words: [String]) throws {
        let names = Self.forms.map(\.name).joined(separator: ", ")
        guard let name = words.first else { throw ToolFailure("Name a fault; there are: \(names).") }
        guard let form = Self.forms.first(where: { $0.name == name }) else {
            throw ToolFailure("There is no fault \"\(name)\"; there are: \(names).")
        }
        var rest = FaultWords(form: form, words: words.dropFirst())
        self = try form.read(&rest)
        if let stranger = rest.words.first { throw rest.misuse("\"\(stranger)\" is one word too many") }
    }

    /// The list of all faults for a help text.
    static var list: String {
        let width = forms.map(\.usage.count).max() ?? 0
        return forms.map { "  \(DisplayText.padded($0.usage, to: width))  \($0.summary)" }.joined(separator: "\n")
    }
}

/// The words after a fault's name, read one after another.
struct FaultWords {
    let form: Fault.Form
    fileprivate(set) var words: ArraySlice<String>

    init(form: Fault.Form, words: ArraySlice<String>) {
        self.form = form
        self.words = words
    }

    fileprivate func misuse(_ why: String) -> ToolFailure { ToolFailure("\(why): write `\(form.usage)`.") }

    /// `hci1`, or `1`; `hci0` if none is given.
    mutating func adapter() throws -> Int {
        guard let word = words.popFirst() else { return 0 }
        let digits = word.hasPrefix("hci") ? String(word.dropFirst(3)) : word
        guard let number = Int(digits), (0...15).contains(number) else {
            throw misuse("\"\(word)\" is not an adapter from hci0 to hci15")
        }
        return number
    }

    mutating func address() throws -> VirtualAddress {
        guard let word = words.popFirst() else { throw misuse("A peripheral's address is missing") }
        guard let address = VirtualAddress(word) else { throw misuse("\"\(word)\" is not an address") }
        return address
    }

    mutating func count(or usual: Int? = nil) throws -> Int {
        guard let word = words.popFirst() else {
            guard let usual else { throw misuse("A number is missing") }
            return usual
        }
        guard let number = Int(word), (1...1_000_000).contains(number) else {
            throw misuse("\"\(word)\" is not a whole number from 1 to 1000000")
        }
        return number
    }

    mutating func seconds(or usual: Double? = nil) throws -> Double {
        guard let word = words.popFirst() else {
            guard let usual else { throw misuse("A number of seconds is missing") }
            return usual
        }
        guard let number = Double(word), (0...3600).contains(number) else {
            throw misuse("\"\(word)\" is not a number of seconds from 0 to 3600")
        }
        return number
    }

    /// The name of a method; `nil` for `any`.
    mutating func method() throws -> String? {
        guard let word = words.popFirst() else { throw misuse("The name of a method, or any, is missing") }
        guard word.utf8.allSatisfy({ $0 != UInt8(ascii: ".") }), !word.isEmpty else {
            throw misuse("\"\(word)\" is not a method, such as Connect")
        }
        return word == "any" ? nil : word
    }

    /// A D-Bus error: its name, and a text up to the end of the line.
    mutating func error() throws -> DaemonError {
        guard let name = words.popFirst() else { return .failed("Operation failed") }
        let elements = name.split(separator: ".", omittingEmptySubsequences: false)
        // The D-Bus specification's names of errors: two elements or more, of letters, digits and underscores.
        let isName =
            elements.count > 1 && name.utf8.count < 256
            && elements.allSatisfy { element in
                element.first?.isNumber == false
                    && element.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
            }
        guard isName else { throw misuse("\"\(name)\" is not an error name, such as org.bluez.Error.Failed") }
        let text = words.joined(separator: " ")
        words = []
        return DaemonError(name: name, message: text.isEmpty ? "Operation failed" : text)
    }
}
