public import BlueCapKit
public import Foundation

/// A command, from ``Topics/command`` or the page.
public struct CommandRequest: Hashable, Sendable {
    /// The identifier that the reply has: 1 to 64 characters.
    public let id: String
    /// What to do.
    public let action: Action
    /// The topic of the reply; `nil` for ``Topics/reply``.
    public let replyTo: String?

    /// What to do.
    public enum Action: Hashable, Sendable {
        /// Connect, and keep the link.
        case connect(PeripheralSelector)
        /// End the link.
        case disconnect(PeripheralSelector)
        /// Read a value; the reply has it.
        case read(PeripheralSelector, service: CBUUID, characteristic: CBUUID)
        /// Write a value of at most ``CommandRequest/valueLimit`` bytes.
        case write(PeripheralSelector, service: CBUUID, characteristic: CBUUID, value: Data)
        /// Subscribe; the values are published as those of the configuration.
        case subscribe(PeripheralSelector, service: CBUUID, characteristic: CBUUID)
        /// End a subscription that a command has begun.
        case unsubscribe(PeripheralSelector, service: CBUUID, characteristic: CBUUID)
        /// Switch scanning on or off.
        case scan(isOn: Bool)
    }

    /// The commands.
    public enum Command: String, Hashable, Sendable, CaseIterable {
        case connect, disconnect, read, write, subscribe, unsubscribe, scanOn, scanOff
    }

    /// The largest value of a characteristic in bytes (Bluetooth Core Specification, volume 3, part F, 3.2.9).
    public static let valueLimit = 512
    /// The largest identifier in characters.
    public static let idLimit = 64

    /// Creates a request of the program itself. The members are not checked.
    public init(id: String, action: Action, replyTo: String? = nil) {
        (self.id, self.action, self.replyTo) = (id, action, replyTo)
    }

    /// The command.
    public var command: Command {
        switch action {
        case .connect: .connect
        case .disconnect: .disconnect
        case .read: .read
        case .write: .write
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .scan(let isOn): isOn ? .scanOn : .scanOff
        }
    }

    /// The peripheral; `nil` for scanning.
    public var peripheral: PeripheralSelector? {
        switch action {
        case .connect(let peripheral), .disconnect(let peripheral), .read(let peripheral, _, _),
            .write(let peripheral, _, _, _), .subscribe(let peripheral, _, _), .unsubscribe(let peripheral, _, _):
            peripheral
        case .scan: nil
        }
    }

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - data: The JSON object. Unknown members, and members that the command does not use, are refused.
    ///   - topics: The topics of the gateway, which decide where replies may go.
    ///   - sizeLimit: The largest size in bytes.
    /// - Throws: ``CommandRequestError``, with the identifier and the topic of the reply if these could be read.
    public init(json data: Data, topics: Topics, sizeLimit: Int = 4_096) throws(CommandRequestError) {
        guard data.count <= sizeLimit else {
            throw CommandRequestError("The request has \(data.count) bytes; at most \(sizeLimit) are allowed.")
        }
        guard let object = try? JSONDecoder().decode([String: AnyMember].self, from: data) else {
            throw CommandRequestError("The request is not a JSON object in UTF-8.")
        }
        var id: String?
        var replyTo: String?
        func refuse(_ reason: String) -> CommandRequestError { CommandRequestError(reason, id: id, replyTo: replyTo) }
        func text(_ member: Member) throws(CommandRequestError) -> String? {
            switch object[member.rawValue] {
            case nil: return nil
            case .text(let text)?: return text
            case .other?: throw refuse("The member \"\(member)\" must be a text.")
            }
        }
        func required(_ member: Member, _ command: Command) throws(CommandRequestError) -> String {
            guard let text = try text(member) else { throw refuse("The command \(command) requires \"\(member)\".") }
            return text
        }
        // The identifier and the topic come first, so that each later refusal reaches the sender.
        if let given = try text(.id) {
            guard (1...Self.idLimit).contains(given.count), given.utf8.count <= 4 * Self.idLimit,
                PayloadText.name(given) == given
            else {
                throw refuse("\"id\" must have 1 to \(Self.idLimit) characters and no control characters.")
            }
            id = given
        }
        if let given = try text(.replyTo) {
            guard topics.allowsReply(to: given) else {
                throw refuse(
                    "\"replyTo\" must be \(topics.reply), or begin with \(topics.reply)/ or \(topics.prefix)/reply/, "
                        + "have no wildcards and at most 256 bytes.")
            }
            replyTo = given
        }
        guard let id else { throw refuse("The member \"id\" is missing.") }
        guard let word = try text(.command) else { throw refuse("The member \"command\" is missing.") }
        guard let command = Command(rawValue: word) else {
            let all = Command.allCases.map(\.rawValue)
            let question = EditedText.nearest(to: word, of: all).map { " Did you mean \"\($0)\"?" } ?? ""
            throw refuse("The command is unknown.\(question) Allowed: \(all.joined(separator: ", ")).")
        }
        let allowed = Self.members(of: command)
        for name in object.keys.sorted() where !allowed.contains(where: { $0.rawValue == name }) {
            let shown = EditedText.quoted(name)
            let question =
                EditedText.nearest(to: name, of: allowed.map(\.rawValue))
                .map { " Did you mean \"\($0)\"?" } ?? ""
            throw refuse("The command \(command) has no member \(shown).\(question)")
        }
        func peripheral() throws(CommandRequestError) -> PeripheralSelector {
            guard let selector = PeripheralSelector(try required(.peripheral, command)) else {
                throw refuse(
                    "\"peripheral\" must be an address such as C0:FF:EE:00:18:0D, or a name of 1 to 248 bytes.")
            }
            return selector
        }
        func uuid(_ member: Member) throws(CommandRequestError) -> CBUUID {
            guard let uuid = CBUUID(validating: try required(member, command)) else {
                throw refuse("\"\(member)\" must be a UUID of 4, 8 or 32 hexadecimal digits (8-4-4-4-12).")
            }
            return uuid
        }
        let action: Action
        switch command {
        case .scanOn: action = .scan(isOn: true)
        case .scanOff: action = .scan(isOn: false)
        case .connect: action = .connect(try peripheral())
        case .disconnect: action = .disconnect(try peripheral())
        case .read:
            action = .read(try peripheral(), service: try uuid(.service), characteristic: try uuid(.characteristic))
        case .subscribe:
            action = .subscribe(
                try peripheral(), service: try uuid(.service), characteristic: try uuid(.characteristic))
        case .unsubscribe:
            action = .unsubscribe(
                try peripheral(), service: try uuid(.service), characteristic: try uuid(.characteristic))
        case .write:
            guard let value = PayloadBytes.data(try required(.value, command)), value.count <= Self.valueLimit else {
                throw refuse("\"value\" must be 0 to \(Self.valueLimit) bytes in pairs of hexadecimal digits.")
            }
            action = .write(
                try peripheral(), service: try uuid(.service), characteristic: try uuid(.characteristic), value: value)
        }
        self.init(id: id, action: action, replyTo: replyTo)
    }

    private enum Member: String {
        case id, command, peripheral, service, characteristic, value, replyTo
    }

    private static func members(of command: Command) -> [Member] {
        switch command {
        case .scanOn, .scanOff: [.id, .command, .replyTo]
        case .connect, .disconnect: [.id, .command, .replyTo, .peripheral]
        case .read, .subscribe, .unsubscribe: [.id, .command, .replyTo, .peripheral, .service, .characteristic]
        case .write: [.id, .command, .replyTo, .peripheral, .service, .characteristic, .value]
        }
    }

    private enum AnyMember: Decodable {
        case text(String)
        case other

        init(from decoder: any Decoder) throws {
            let text = try? decoder.singleValueContainer().decode(String.self)
            self = text.map { .text($0) } ?? .other
        }
    }
}

/// Why a request was refused before it was compared with the rules.
public struct CommandRequestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence that says what to do.
    public let reason: String
    /// The request's identifier, if it could be read.
    public let id: String?
    /// The topic for the reply, if it could be read and is allowed.
    public let replyTo: String?

    init(_ reason: String, id: String? = nil, replyTo: String? = nil) {
        (self.reason, self.id, self.replyTo) = (reason, id, replyTo)
    }

    /// The reason.
    public var description: String { reason }
}

/// The reply to a command, on its topic or ``Topics/reply``.
public struct CommandReply: Payload {
    /// The identifier of the request; absent if it could not be read.
    public var id: String?
    /// The gateway.
    public var gateway: String
    /// When the reply was created.
    public var time: String
    /// What the command returned; absent if it failed.
    public var result: Result?
    /// Why it failed; absent if it did not.
    public var error: Failure?

    /// What a command returned: empty for all but `read`.
    public struct Result: Payload {
        /// The bytes in hexadecimal.
        public var raw: String?
        /// The parts of the value by name, if the format is known.
        public var decoded: [String: PayloadValue]?
        /// The units of the parts that have one.
        public var units: [String: String]?

        /// The result of a command that returns nothing.
        public init() {}

        /// The result of a read.
        public init(_ value: ValuePayload) { (raw, decoded, units) = (value.raw, value.decoded, value.units) }
    }

    /// Why a command failed.
    public struct Failure: Payload, Error {
        /// The kind of failure.
        public var code: Code
        /// One sentence.
        public var reason: String

        /// Creates a failure; the reason is shortened to 512 characters.
        public init(_ code: Code, _ reason: String) { (self.code, self.reason) = (code, String(reason.prefix(512))) }
    }

    /// The kinds of failures.
    public enum Code: String, Hashable, Sendable, Codable, CaseIterable {
        /// The request is malformed.
        case invalidRequest
        /// No rule of the configuration allows the command.
        case notAllowed
        /// More commands arrived than the rate or the queue allows; try again later.
        case tooManyRequests
        /// No peripheral with this address or name is known.
        case unknownPeripheral
        /// The command needs a link, and there is none.
        case notConnected
        /// Another gateway has the claim to the peripheral.
        case claimedElsewhere
        /// The peripheral has no such characteristic, or it does not permit the operation.
        case notSupported
        /// The peripheral did not respond in time.
        case timedOut
        /// Another failure, which the reason describes.
        case failed
    }

    /// Creates the reply to a request that succeeded.
    public init(to request: CommandRequest, gateway: String, result: Result = Result(), time: Date) {
        (id, self.gateway, self.time, self.result) = (request.id, gateway, PayloadTime.text(time), result)
    }

    /// Creates the reply to a request that failed.
    public init(to request: CommandRequest, gateway: String, failure: Failure, time: Date) {
        (id, self.gateway, self.time, error) = (request.id, gateway, PayloadTime.text(time), failure)
    }

    /// Creates the reply to a request that could not be read.
    public init(to error: CommandRequestError, gateway: String, time: Date) {
        (id, self.gateway, self.time) = (error.id, gateway, PayloadTime.text(time))
        self.error = Failure(.invalidRequest, error.reason)
    }
}
