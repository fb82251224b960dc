public import BlueCapKit
import Foundation

/// The configuration of a gateway: what its file says, with the defaults of the absent keys.
///
/// The keys are declared in the initializers of this type, each once; ``keys`` is their table.
public struct GatewayConfiguration: Hashable, Sendable {
    /// The gateway's name in topics.
    public var name: String
    /// The first level, or the first levels, of all topics.
    public var topicPrefix: String
    /// The least severe messages that are logged.
    public var logLevel: LogLevel
    /// The broker.
    public var broker: Broker
    /// The adapter, and what is published of advertisements.
    public var radio: Radio
    /// The peripherals to which the gateway connects.
    public var peripherals: [PeripheralEntry]
    /// The commands that are executed.
    public var commands: CommandRules
    /// What is kept for the broker.
    public var store: Store
    /// The page; `nil` if there is none.
    public var page: Page?
    /// The messages for Home Assistant; `nil` if there are none.
    public var homeAssistant: HomeAssistantOptions?
    /// How several gateways share the peripherals; `nil` if each connects its own.
    public var claims: Claims?
    /// The bounds of what is kept in memory.
    public var limits: Limits

    /// The severities of log messages, as in swift-log.
    public enum LogLevel: String, Hashable, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// The broker.
    public struct Broker: Hashable, Sendable {
        /// The addresses, which are tried in turn: at least one.
        public var addresses: [BrokerAddress]
        /// The identifier of the session.
        public var clientIdentifier: String
        /// The user name; `nil` for none.
        public var user: String?
        /// The place of the password; `nil` for none.
        public var password: SecretSource?
        /// The certificates of the authorities for TLS; `nil` for those of the system.
        public var authorityFile: String?
        /// The gateway's certificate; `nil` for none.
        public var certificateFile: String?
        /// The key of that certificate; present if the certificate is.
        public var keyFile: String?
        /// The interval of keep-alive packets. The broker sends the will after 1.5 times this interval without a packet.
        public var keepAlive: Duration
    }

    /// The adapter, and what is published of advertisements.
    public struct Radio: Hashable, Sendable {
        /// `hci0`, or an address; `nil` for the first adapter.
        public var adapter: String?
        /// Whether the gateway scans from its start.
        public var scan: Bool
        /// The place of the keys of sensors that encrypt their readings; `nil` for none.
        public var bindKeys: SecretSource?
        /// Which advertisements are published.
        public var filter: AdvertisementFilter
        /// When the advertisements of a peripheral are published again.
        public var throttle: ThrottleOptions
    }

    /// When the advertisements of a peripheral are published again.
    public struct ThrottleOptions: Hashable, Sendable {
        /// The shortest time between two messages.
        public var minimumInterval: Duration
        /// The change of the strength, in dB, at which a message is sent.
        public var strengthChange: Int
        /// The longest time between two messages of a peripheral that is received.
        public var heartbeat: Duration

        /// Creates the options.
        public init(minimumInterval: Duration, strengthChange: Int, heartbeat: Duration) {
            (self.minimumInterval, self.strengthChange, self.heartbeat) = (minimumInterval, strengthChange, heartbeat)
        }
    }

    /// A peripheral of the configuration.
    public struct PeripheralEntry: Hashable, Sendable {
        /// The address or the exact name.
        public var selector: PeripheralSelector
        /// Whether the gateway keeps a link to the peripheral.
        public var connect: Bool
        /// The characteristics whose values are published.
        public var characteristics: [CharacteristicEntry]
    }

    /// A characteristic of the configuration.
    public struct CharacteristicEntry: Hashable, Sendable {
        /// The service.
        public var service: CBUUID
        /// The characteristic.
        public var uuid: CBUUID
        /// How values are obtained.
        public var mode: Mode
        /// How values are decoded.
        public var format: ValueFormat

        /// How values are obtained.
        public enum Mode: Hashable, Sendable {
            /// By notifications or indications.
            case notify
            /// By reading at an interval.
            case read(every: Duration)
        }
    }

    /// The commands that are executed.
    public struct CommandRules: Hashable, Sendable {
        /// The largest number of commands in a second.
        public var rate: Int
        /// Whether scanning may be switched on and off.
        public var scan: Bool
        /// What is allowed; everything else is refused.
        public var allow: [Rule]

        /// What is allowed for some peripherals.
        public struct Rule: Hashable, Sendable {
            /// The peripherals that the rule is for.
            public var peripheral: PeripheralPattern
            /// Whether `connect` and `disconnect` are allowed.
            public var connect: Bool
            /// What may be read.
            public var read: [CharacteristicPattern]
            /// What may be written.
            public var write: [CharacteristicPattern]
            /// To what commands may subscribe, and from what they may unsubscribe.
            public var subscribe: [CharacteristicPattern]
        }
    }

    /// What is kept for the broker.
    public struct Store: Hashable, Sendable {
        /// The database.
        public var path: String
        /// The largest size of what is kept, in bytes.
        public var maximumSize: Int
        /// The largest age of what is kept.
        public var maximumAge: Duration
    }

    /// The page.
    public struct Page: Hashable, Sendable {
        /// The address on which the page listens, in the numeric form of IPv4 or IPv6.
        public var address: String
        /// The port on which the page listens.
        public var port: UInt16
        /// More names under which the page may be requested.
        public var hosts: [String]
        /// The token for commands; `nil` if the page is for reading alone.
        public var token: SecretSource?
    }

    /// The messages for Home Assistant.
    public struct HomeAssistantOptions: Hashable, Sendable {
        /// The prefix of discovery topics.
        public var prefix: String
        /// The time without a report after which a device is shown as absent.
        public var absentAfter: Duration
        /// The time without a report at any gateway after which a device is removed.
        public var removeAfter: Duration

        /// Creates the options.
        public init(prefix: String, absentAfter: Duration, removeAfter: Duration) {
            (self.prefix, self.absentAfter, self.removeAfter) = (prefix, absentAfter, removeAfter)
        }
    }

    /// How several gateways share the peripherals.
    public struct Claims: Hashable, Sendable {
        /// How much stronger, in dB, another gateway must receive a peripheral to take it over.
        public var hysteresis: Int
        /// How long it must be stronger.
        public var duration: Duration
    }

    /// The bounds of what is kept in memory.
    public struct Limits: Hashable, Sendable {
        /// Peripherals of which state is kept.
        public var devices: Int
        /// Links at the same time.
        public var links: Int
        /// Commands that wait for their execution.
        public var commands: Int
        /// The size of a command in bytes; longer ones are refused.
        public var messageSize: Int
        /// Messages that are sent and not acknowledged.
        public var inFlight: Int
    }
}

extension Topics {
    /// Creates the topics of the gateway that a configuration describes.
    public init(_ configuration: GatewayConfiguration) {
        self.init(prefix: configuration.topicPrefix, gateway: configuration.name)
    }
}

// MARK: - Reading

extension GatewayConfiguration {
    /// Reads a file's text.
    ///
    /// - Parameters:
    ///   - yaml: The text, in YAML: at most 256 KiB, without anchors, tags and texts over several lines.
    ///   - file: The file's name, for errors.
    /// - Throws: All faults of the file.
    public init(yaml: String, file: String) throws(GatewayConfigurationError) {
        let log = ConfigurationLog(file: file)
        let root = ConfigurationParser.root(of: yaml, log)
        guard log.problems.isEmpty else { throw GatewayConfigurationError(log.problems) }
        let section = ConfigurationSection(root, log)
        self.init(section)
        section.finish()
        guard log.problems.isEmpty else { throw GatewayConfigurationError(log.problems) }
    }

    /// The table of all keys, in the order of the reference page.
    public static var keys: [ConfigurationKey] {
        let log = ConfigurationLog(file: "")
        _ = GatewayConfiguration(ConfigurationSection(nil, log))
        return log.keys
    }

    /// Names that no gateway may have, since they are levels of other topics.
    static let reservedNames: Set<String> = ["claim", "device", "reply"]

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 < 0x80 } && text.allSatisfy { $0.isLetter || $0.isNumber || "._-".contains($0) }
            && !reservedNames.contains(text)
    }

    /// The host name, with `-` for characters that a topic's level does not have here.
    private static var hostName: String {
        let name = ProcessInfo.processInfo.hostName.split(separator: ".").first.map(String.init) ?? "gateway"
        let text = String(name.prefix(64).map { isName(String($0)) ? $0 : "-" })
        return isName(text) && !text.isEmpty ? text : "gateway"
    }

    private init(_ root: ConfigurationSection) {
        name = root.value(
            "name",
            .text(
                "name",
                allowed: "a name of 1 to 64 ASCII letters, digits, '.', '_' and '-', other than \(Self.reserved)",
                limit: 64, where: Self.isName),
            default: Self.hostName, defaultText: "the host name",
            "The gateway's name in topics. Each gateway of a broker needs its own.")
        topicPrefix = root.value(
            "topicPrefix",
            .text(
                "topic", allowed: "a topic of 1 to 128 bytes without +, # and $, and without empty levels", limit: 128
            ) {
                Topics.isPlain($0)
            }, default: "bluecap", "The beginning of all topics. Gateways that share peripherals have the same one.")
        logLevel = root.value("logLevel", .word, default: .info, "The least severe messages that are logged.")
        let gateway = name
        broker = root.section("broker") { Broker($0, gateway: gateway) }
        radio = root.section("radio") { Radio($0) }
        peripherals = root.list("peripherals", limit: 1_000) { PeripheralEntry($0) }
        commands = root.section("commands") { CommandRules($0) }
        store = root.section("store") { Store($0) }
        page = root.section("page") { Page($0) }
        homeAssistant = root.section("homeAssistant") { HomeAssistantOptions($0) }
        claims = root.section("claims") { Claims($0) }
        limits = root.section("limits") { Limits($0) }
        var seen: Set<PeripheralSelector> = []
        for entry in peripherals where !seen.insert(entry.selector).inserted {
            root.report(
                "peripherals", "the peripheral \(entry.selector) occurs twice. Put its characteristics in one entry.")
        }
    }

    private static var reserved: String { reservedNames.sorted().joined(separator: ", ") }
}

extension GatewayConfiguration.Broker {
    fileprivate init(_ section: ConfigurationSection, gateway: String) {
        let local = try? BrokerAddress("mqtt://127.0.0.1:1883")
        addresses = section.value(
            "addresses", .list(of: .broker, limit: 16), default: local.map { [$0] } ?? [],
            "The brokers, or the nodes of a cluster, which are tried in turn. `mqtts` uses TLS.")
        if addresses.isEmpty { section.report("addresses", "the list is empty; at least one address is required.") }
        clientIdentifier = section.value(
            "clientIdentifier",
            .text("text", allowed: "a text of 1 to 128 bytes", limit: 128), default: "bluecap-\(gateway)",
            defaultText: "`bluecap-` and the gateway's name",
            "The identifier of the session at the broker. Two clients with the same one disconnect each other.")
        user = section.optional("user", .text(limit: 256), "The user name.")
        password = section.optional(
            "passwordFile", .secret,
            "The file that has the password, in one line; the configuration itself never has it. `credential:NAME` is the file of that name in `$CREDENTIALS_DIRECTORY`."
        )
        keepAlive = section.value(
            "keepAlive", .duration(.seconds(5)...(.seconds(3_600))), default: .seconds(5),
            "The interval of keep-alive packets, in whole seconds. The broker reports the gateway as offline after 1.5 times this time without a packet."
        )
        if keepAlive.components.attoseconds != 0 { section.report("keepAlive", "whole seconds are required.") }
        (authorityFile, certificateFile, keyFile) = section.section("tls") { tls in
            let files = (
                tls.optional(
                    "authorityFile", .path, defaultText: "the system's",
                    "The certificates of the authorities that sign the broker's certificate, in PEM."),
                tls.optional("certificateFile", .path, "The gateway's certificate, in PEM."),
                tls.optional("keyFile", .path, "The key of the gateway's certificate, in PEM, without a passphrase.")
            )
            if (files.1 == nil) != (files.2 == nil) {
                tls.report(nil, "certificateFile and keyFile are required together.")
            }
            return files
        }
        if password != nil, user == nil {
            section.report("passwordFile", "the key \"user\" is required with a password.")
        }
        let hasFiles = authorityFile != nil || certificateFile != nil
        if hasFiles, !addresses.isEmpty, !addresses.contains(where: \.isSecure) {
            section.report("tls", "no address uses TLS. Write mqtts:// instead of mqtt://, or remove the files.")
        }
    }
}

extension GatewayConfiguration.Radio {
    fileprivate init(_ section: ConfigurationSection) {
        adapter = section.optional(
            "adapter",
            .text("adapter", allowed: "hci0, hci1, … or an adapter's address", limit: 17) { text in
                DeviceName(text) != nil || text.hasPrefix("hci") && UInt16(text.dropFirst(3)) != nil
            }, defaultText: "the first adapter", "The adapter.")
        scan = section.value(
            "scan", .flag, default: true, "Whether the gateway scans from its start. Commands can change it if allowed."
        )
        bindKeys = section.optional(
            "bindKeysFile", .secret,
            "The file that has the keys of sensors that encrypt their BTHome data, or `credential:NAME`. Each line has an address and a key, such as `A4:C1:38:00:00:01 231d39c1d7cc1ab1aee224cd096db932`; what follows a `#` is a comment."
        )
        filter = section.section("filter") { AdvertisementFilter($0) }
        throttle = section.section("throttle") { throttle in
            let options = GatewayConfiguration.ThrottleOptions(
                minimumInterval: throttle.value(
                    "minimumInterval", .duration(.milliseconds(100)...(.seconds(3_600))), default: .seconds(1),
                    "The shortest time between two advertisement messages of a peripheral."),
                strengthChange: throttle.value(
                    "strengthChange", .number(1...100, unit: "dB"), default: 6,
                    "The change of the strength since the last message at which a message is sent. A change of the data is always sent."
                ),
                heartbeat: throttle.value(
                    "heartbeat", .duration(.seconds(1)...(.seconds(86_400))), default: .seconds(60),
                    "The time after which a message is sent without a change, if the peripheral is received."))
            if options.heartbeat < options.minimumInterval {
                throttle.report("heartbeat", "the heartbeat is shorter than minimumInterval; make it at least as long.")
            }
            return options
        }
    }
}

extension AdvertisementFilter {
    fileprivate init(_ section: ConfigurationSection) {
        self.init(
            names: section.value(
                "names", .list(of: .name), default: [],
                "Publish peripherals with these names. If several of `names`, `addresses`, `services` and `manufacturers` are given, one of them must match; if none is given, all peripherals are published."
            ),
            addresses: Set(
                section.value("addresses", .list(of: .device), default: [], "Publish peripherals with these addresses.")
            ),
            services: Set(
                section.value(
                    "services", .list(of: .uuid), default: [],
                    "Publish peripherals that advertise one of these services, or data for it.")),
            manufacturers: Set(
                section.value(
                    "manufacturers", .list(of: .company), default: [],
                    "Publish peripherals that advertise data of one of these companies.")),
            minimumStrength: section.optional(
                "minimumStrength", .number(-127...20, unit: "dBm"),
                "The weakest strength that is published, also of peripherals that match."))
    }
}

extension GatewayConfiguration.PeripheralEntry {
    fileprivate init?(_ section: ConfigurationSection) {
        let address = section.optional(
            "address", .device, "The peripheral's address. Exactly one of `address` and `name` is required.")
        let name = section.optional(
            "name", .text("name", allowed: "a name of 1 to 248 bytes", limit: 248),
            "The peripheral's exact name. Any peripheral can advertise any name: the address is safer.")
        connect = section.value("connect", .flag, default: true, "Whether the gateway keeps a link to the peripheral.")
        characteristics = section.list("characteristics", limit: 100) { GatewayConfiguration.CharacteristicEntry($0) }
        guard section.mark != nil else { return nil }
        switch (section.has("address"), section.has("name")) {
        case (false, false): section.report(nil, "the key \"address\" or \"name\" is missing.")
        case (true, true): section.report("name", "only one of address and name is allowed.")
        default: break
        }
        if !connect, !characteristics.isEmpty {
            section.report("connect", "characteristics need a link: write connect: true, or remove them.")
        }
        var seen: Set<[CBUUID]> = []
        for entry in characteristics where !seen.insert([entry.service, entry.uuid]).inserted {
            section.report("characteristics", "the characteristic \(Topics.text(of: entry.uuid)) occurs twice.")
        }
        guard let selector = address.map(PeripheralSelector.address) ?? name.map(PeripheralSelector.name) else {
            return nil
        }
        self.selector = selector
    }
}

extension GatewayConfiguration.CharacteristicEntry {
    private enum Word: String, CaseIterable {
        case notify, read
    }

    fileprivate init?(_ section: ConfigurationSection) {
        let service = section.required("service", .uuid, "The service.")
        let uuid = section.required("uuid", .uuid, "The characteristic.")
        let word = section.value(
            "mode", .word, default: Word.notify, "Whether values are notified, or read at an interval.")
        let interval = section.optional(
            "interval", .duration(.seconds(1)...(.seconds(86_400))),
            "The time between two reads; required for `mode: read`.")
        format = section.value(
            "as", .format, default: .profile(nil), defaultText: "the profile of the UUIDs, if the library has one",
            "How values are decoded: `raw` (hexadecimal alone), `text` (UTF-8), a little-endian number, or the name of one of the library's profiles, such as `Battery Level`."
        )
        guard section.mark != nil else { return nil }
        if case .profile(let name?) = format, !ValueDecoder.hasProfile(named: name) {
            section.report(
                "as", "the library has no profile named \(EditedText.quoted(name)).\(Self.question(name))")
        }
        switch (word, interval) {
        case (.read, let interval?): mode = .read(every: interval)
        case (.read, nil):
            if !section.has("interval") { section.report("mode", "the key \"interval\" is required with mode: read.") }
            return nil
        case (.notify, _):
            if section.has("interval") { section.report("interval", "an interval is allowed only with mode: read.") }
            mode = .notify
        }
        guard let service, let uuid else { return nil }
        (self.service, self.uuid) = (service, uuid)
    }

    private static func question(_ name: String) -> String {
        let names = ValueDecoder.profileNames + ValueFormat.Simple.allCases.map(\.rawValue)
        return EditedText.nearest(to: name, of: names).map { " Did you mean \"\($0)\"?" } ?? ""
    }
}

extension GatewayConfiguration.CommandRules {
    fileprivate init(_ section: ConfigurationSection) {
        rate = section.value(
            "rate", .number(1...1_000), default: 10, "The largest number of commands in a second; more are refused.")
        scan = section.value("scan", .flag, default: false, "Whether commands may switch scanning on and off.")
        allow = section.list("allow", limit: 1_000) { Rule($0) }
    }
}

extension GatewayConfiguration.CommandRules.Rule {
    fileprivate init?(_ section: ConfigurationSection) {
        let peripheral = section.required(
            "peripheral", .peripheral,
            "The peripherals that the rule is for. A command is refused unless a rule allows it.")
        connect = section.value(
            "connect", .flag, default: false, "Whether the commands connect and disconnect are allowed.")
        read = section.value("read", .list(of: .characteristic), default: [], "The characteristics that may be read.")
        write = section.value(
            "write", .list(of: .characteristic), default: [],
            "The characteristics that may be written. With a name instead of an address, a foreign peripheral that has this name is written too."
        )
        subscribe = section.value(
            "subscribe", .list(of: .characteristic), default: [],
            "The characteristics to which commands may subscribe, and from which they may unsubscribe.")
        guard let peripheral else { return nil }
        self.peripheral = peripheral
    }
}

extension GatewayConfiguration.Store {
    fileprivate init(_ section: ConfigurationSection) {
        path = section.value(
            "path", .path, default: "/var/lib/bluecap-gateway/outbox.sqlite",
            "The database of what the broker has not acknowledged.")
        maximumSize = section.value(
            "maximumSize", .size(1_000_000...1_000_000_000_000), default: 100_000_000,
            "The size of the stored messages above which the oldest are dropped, counted and reported.")
        maximumAge = section.value(
            "maximumAge", .duration(.seconds(60)...(.seconds(86_400 * 3_650))), default: .seconds(7 * 86_400),
            "The age above which messages are dropped.")
    }
}

extension GatewayConfiguration.Page {
    fileprivate init?(_ section: ConfigurationSection) {
        let isEnabled = section.value("enabled", .flag, default: true, "Whether there is a page.")
        address = section.value(
            "address", .text("address", allowed: "an IPv4 or IPv6 address", limit: 45, where: Self.isAddress),
            default: "127.0.0.1",
            "The address on which the page listens. With an address other than loopback, everybody in the network can read it."
        )
        port = UInt16(
            section.value("port", .number(1...65_535), default: 8_080, "The port on which the page listens."))
        hosts = section.value(
            "hosts",
            .list(
                of: .text("host", allowed: "a host name or address without a port", limit: 255, where: Self.isHost),
                limit: 100), default: [],
            "More names under which the page may be requested, such as that of a proxy. Without them the page accepts on a loopback address only `localhost` and addresses of loopback, and on other addresses each name."
        )
        token = section.optional(
            "tokenFile", .secret, defaultText: "none: the page only shows",
            "The file that has the token with which commands are accepted over HTTP, or `credential:NAME`.")
        guard isEnabled else { return nil }
    }

    /// Letters, digits, `.`, `-` and `_`, or an IPv6 address with or without its brackets.
    private static func isHost(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: ".-_".utf8.contains(byte)
            }
        } || isAddress(text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text)
    }

    private static func isAddress(_ text: String) -> Bool {
        var space = in6_addr()
        return inet_pton(AF_INET, text, &space) == 1 || inet_pton(AF_INET6, text, &space) == 1
    }
}

extension GatewayConfiguration.HomeAssistantOptions {
    fileprivate init?(_ section: ConfigurationSection) {
        let isEnabled = section.value(
            "enabled", .flag, default: false, "Whether discovery messages for Home Assistant are published.")
        prefix = section.value(
            "prefix",
            .text("topic", allowed: "a topic of 1 to 128 bytes without +, # and $", limit: 128) { Topics.isPlain($0) },
            default: "homeassistant", "The prefix of discovery topics, as in Home Assistant's settings.")
        absentAfter = section.value(
            "absentAfter", .duration(.seconds(10)...(.seconds(86_400))), default: .seconds(300),
            "The time without a report after which a device is shown as unavailable. It must exceed the interval at which the device advertises."
        )
        removeAfter = section.value(
            "removeAfter", .duration(.seconds(600)...(.seconds(86_400 * 3_650))), default: .seconds(30 * 86_400),
            "The time without a report at any gateway after which a device is removed from Home Assistant.")
        if removeAfter <= absentAfter { section.report("removeAfter", "removeAfter must be longer than absentAfter.") }
        guard isEnabled else { return nil }
    }
}

extension GatewayConfiguration.Claims {
    fileprivate init?(_ section: ConfigurationSection) {
        let isEnabled = section.value(
            "enabled", .flag, default: true,
            "Whether the gateways of the broker agree which of them connects a peripheral. Without it each connects its own."
        )
        hysteresis = section.value(
            "hysteresis", .number(1...40, unit: "dB"), default: 6,
            "How much stronger another gateway must receive a peripheral to take it over.")
        duration = section.value(
            "duration", .duration(.seconds(1)...(.seconds(3_600))), default: .seconds(10),
            "How long it must be stronger.")
        guard isEnabled else { return nil }
    }
}

extension GatewayConfiguration.Limits {
    fileprivate init(_ section: ConfigurationSection) {
        devices = section.value(
            "devices", .number(1...100_000), default: 2_000,
            "The number of peripherals of which state is kept. Above it, those without a report for the longest time are removed, and Home Assistant gets no further devices."
        )
        links = section.value("links", .number(0...64), default: 5, "The number of links at the same time.")
        commands = section.value(
            "commands", .number(1...10_000), default: 64, "The number of commands that wait; more are refused.")
        messageSize = section.value(
            "messageSize", .size(256...1_048_576), default: 4_096,
            "The size of the JSON of a command, from the broker or the page, above which it is refused.")
        inFlight = section.value(
            "inFlight", .number(1...10_000), default: 100,
            "The number of messages that are sent to the broker and not acknowledged.")
    }
}
