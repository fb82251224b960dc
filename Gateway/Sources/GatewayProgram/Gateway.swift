import BlueCapCipher
import BlueCapKit
import BlueCapMetrics
import Foundation
public import GatewayCore
import GatewayBroker
public import GatewayPage
import GatewayRadio
import GatewayStore
public import Logging
public import ServiceLifecycle
import Synchronization

/// A gateway: its radio, its store, its connection to the broker and its page.
///
/// Events of the radio and of the broker are decided by ``GatewayDesk``, under one lock; what it orders is executed in the sequence
/// of the decisions.
public final class Gateway: ServiceLifecycle.Service {
    /// The version, which is the library's.
    public static let version = "0.2.0"
    /// The shortest time from the beginning of one transaction of the store to that of the next one: each costs processor time
    /// and a write to the disk, also if it stores one value. The first value after a pause does not wait.
    private static let storeInterval = Duration.milliseconds(25)
    /// How many values wait for the store at most.
    private static let waitingValues = 20_000
    /// How many values are submitted to the courier together: fewer than ``Courier/Options/waiting``, and with fewer bytes.
    private static let storedTogether = 1_000

    private let configuration: GatewayConfiguration
    private let logger: Logger
    private let manager: CentralManager
    private let outbox: Outbox
    private let transport: MosquittoTransport
    private let courier: Courier
    private let board: StatusBoard
    private let prometheus: PrometheusMetrics
    private let metrics: GatewayMetrics
    private let intake = ValueIntake<NewValue, IntakeKey>(limit: waitingValues)
    private let desk: Mutex<GatewayDesk>
    private let commands: CommandQueue
    private let token = Mutex(Courier.freeTokens.lowerBound)
    private let radio = Mutex<Radio?>(nil)
    /// Why Bluetooth or the broker cannot be used, as was last logged.
    private let reasons = Mutex<[Part: String]>([:])
    private let ending = Atomic(false)
    private var hasEnded: Bool { ending.load(ordering: .relaxed) }
    private let onPage: @Sendable (UInt16) -> Void

    private enum Part: Hashable {
        case bluetooth, broker
    }

    /// Creates a gateway; nothing is sent before ``run()``.
    ///
    /// - Parameters:
    ///   - configuration: What it does.
    ///   - busAddress: The D-Bus address of BlueZ's bus; `nil` for the system bus.
    ///   - logger: Receives what happens.
    ///   - metrics: What the page exports besides its own numbers. The gateway records its metrics in it, and so does
    ///     each library if it is the system's factory.
    ///   - onPage: Called with the port of the page when it can be reached.
    /// - Throws: An error that says what is to be changed: an unusable store, a secret that cannot be read, a wrong option.
    public init(
        _ configuration: GatewayConfiguration, busAddress: String? = nil, logger: Logger,
        metrics: PrometheusMetrics = PrometheusMetrics(), onPage: @escaping @Sendable (UInt16) -> Void = { _ in }
    ) throws {
        (self.configuration, self.logger, self.onPage) = (configuration, logger, onPage)
        prometheus = metrics
        self.metrics = GatewayMetrics(metrics)
        let bindKeys = try configuration.radio.bindKeys.map { source in
            try Self.secret(of: "radio.bindKeysFile") { (try source.readBindKeys(), try LibCrypto.ccm()) }
        }
        let desk = GatewayDesk(configuration, bindKeys: bindKeys)
        manager = try CentralManager(
            configuration: .init(busAddress: busAddress, adapter: configuration.radio.adapter, logger: logger))
        outbox = try Outbox(
            path: configuration.store.path,
            limits: OutboxLimits(bytes: configuration.store.maximumSize, age: configuration.store.maximumAge),
            logger: logger)
        var options = MosquittoOptions(
            addresses: configuration.broker.addresses,
            clientIdentifier: configuration.broker.clientIdentifier)
        options.keepAlive = Int(configuration.broker.keepAlive / .seconds(1))
        options.user = configuration.broker.user
        options.password = try configuration.broker.password.map { source in
            try Self.secret(of: "broker.passwordFile") { try source.read() }.withText { $0 }
        }
        options.security = MosquittoSecurity(
            authorityFile: configuration.broker.authorityFile, certificateFile: configuration.broker.certificateFile,
            keyFile: configuration.broker.keyFile)
        // One more than the courier uses.
        options.limits.inFlight = max(2, configuration.limits.inFlight)
        options.will = BrokerMessage(
            topic: desk.topics.state, payload: desk.state(.offline, date: Date()).json, isRetained: true)
        do {
            transport = try MosquittoTransport(options: options, logger: logger)
        } catch {
            throw GatewayError("broker: \(error)")
        }
        var courierOptions = Courier.Options()
        // The rest of the transport's window is for commands, claims and states.
        courierOptions.window = max(1, configuration.limits.inFlight * 3 / 4)
        courier = Courier(outbox: outbox, transport: transport, options: courierOptions, logger: logger)
        board = StatusBoard(
            gateway: configuration.name, version: Self.version,
            broker: configuration.broker.addresses.map(\.description).joined(separator: ", "))
        commands = CommandQueue(configuration)
        self.desk = Mutex(desk)
        let followed = configuration.peripherals.map { entry in
            FollowedDevice(
                entry.selector,
                characteristics: entry.characteristics.map { characteristic in
                    let identifier = CharacteristicIdentifier(
                        uuid: characteristic.uuid, service: ServiceIdentifier(uuid: characteristic.service))
                    return WatchedCharacteristic(identifier, mode: characteristic.mode)
                })
        }
        let radio = Radio(manager, followed: followed, isScanning: configuration.radio.scan) { [weak self] event in
            self?.received(event)
        }
        self.radio.withLock { $0 = radio }
    }

    /// Runs until the task is cancelled or graceful shutdown begins. Then it ends its links, publishes what is stored as far as the
    /// broker takes it, and publishes that it is offline.
    ///
    /// - Throws: If the page cannot be served.
    public func run() async throws {
        for filter in desk.withLock(\.filters) { transport.subscribe(filter) }
        // They end one after another, so each has a task of its own.
        let link = Task { await transport.run() }
        let listening = Task { for await event in transport.events { await received(event) } }
        let sending = Task { await courier.run() }
        let storing = Task { await store() }
        let executing = Task { await commands.run { [self] in await execute($0) } }
        let ticking = Task { await tick() }
        let measuring = Task { await MetricsReporter(manager, factory: prometheus).run(every: .seconds(5)) }
        let radio = radio.withLock(\.self)
        let receiving = Task { await radio?.run() }
        let result = await Result { try await serveUntilShutdown() }
        ending.store(true, ordering: .relaxed)
        commands.end()
        receiving.cancel()
        await executing.value
        await receiving.value
        intake.finish()
        await storing.value
        ticking.cancel()
        await ticking.value
        measuring.cancel()
        await measuring.value
        await publishEnd()
        link.cancel()
        await link.value
        sending.cancel()
        await sending.value
        await listening.value
        outbox.close()
        try result.get()
    }

    /// Publishes that the gateway is offline. After an end in order the broker sends no will, so this is tried for as long as the
    /// transport may be full of stored values.
    private func publishEnd() async {
        desk.withLock { $0.retained.set($0.topics.state, $0.state(.offline, date: Date()).json) }
        let limit = uptime + .seconds(2)
        while uptime < limit {
            let isDone = desk.withLock { desk in
                desk.retained.flush { try publish($0) }
                return desk.retained.isFlushed || !desk.isConnected
            }
            if isDone { return }
            // A task that is cancelled would not wait.
            await Task { try? await Task.sleep(for: .milliseconds(10)) }.value
        }
        logger.warning("the broker takes no more messages; its subscribers do not learn that the gateway has ended")
    }

    private func serveUntilShutdown() async throws {
        guard let settings = configuration.page else {
            try? await gracefulShutdown()
            return
        }
        var page = GatewayPage.Configuration()
        (page.address, page.port, page.hosts) = (settings.address, settings.port, settings.hosts)
        page.token = try settings.token.map { source in
            try Self.secret(of: "page.tokenFile") { try source.read() }.withText { $0 }
        }
        let server = try GatewayPage(
            configuration: page, board: board, metrics: prometheus, command: { [self] in await commandOfPage($0) },
            onListening: onPage)
        try await cancelWhenGracefulShutdown {
            do { try await server.run() } catch is CancellationError {}
        }
    }

    private static func secret<Value>(of key: String, _ read: () throws -> Value) throws(GatewayError) -> Value {
        do {
            return try read()
        } catch {
            throw GatewayError("\(key): \(error)")
        }
    }

    private func isNew(_ reason: String?, _ part: Part) -> Bool {
        reasons.withLock { reasons in
            defer { reasons[part] = reason }
            return reasons[part] != reason
        }
    }

    // MARK: The radio

    private func received(_ event: RadioEvent) {
        let (date, now) = (Date(), uptime)
        switch event {
        case .report(let report):
            board.reported(report.device, name: report.advertisements.localName, strength: report.rssi)
            let readings = decide { desk in
                let (orders, readings) = desk.received(report, at: now)
                return (orders, readings)
            }
            for reading in readings { board.decoded(report.device, StatusReading.all(of: reading)) }
        case .foreignLink(let device, let name, let rssi):
            decide { ($0.foreignLink(device, name: name, rssi: rssi, at: now), ()) }
        case .link(let device, let change):
            decide { ($0.link(device, change, date: date, at: now), ()) }
            switch change {
            case .connecting: board.link(device, .connecting)
            case .connected: board.link(device, .connected)
            case .lost(let reason), .failed(let reason): board.link(device, .connecting, detail: reason)
            case .ended: board.link(device, .none)
            }
        case .value(let device, let identifier, let data, let date):
            decide { ($0.value(device, identifier, data, date: date, at: now).map { [$0] } ?? [], ()) }
            board.value(
                device, service: identifier.service.uuidString, characteristic: identifier.uuidString,
                text: PayloadBytes.text(data))
        case .gap(let device, let identifier, let reason, let date):
            guard let service = identifier.service.uuid, let characteristic = identifier.uuid else { return }
            metrics.gap(reason)
            let gap = desk.withLock { $0.gap(device, service, characteristic, reason, date) }
            take(gap, .value(device, service: service, characteristic: characteristic))
        case .watchFailed(let device, let identifier, let reason):
            logger.warning("no values of \(identifier.uuidString) of \(device.address): \(reason)")
        case .unavailable(let reason):
            guard isNew(reason, .bluetooth) else { break }
            if let reason {
                logger.warning("Bluetooth cannot be used: \(reason)")
            } else {
                logger.info("Bluetooth can be used")
            }
        }
    }

    private func take(_ value: NewValue, _ key: IntakeKey) {
        guard intake.add(value, key: key) else { return }
        logger.error(
            "values arrive faster than they are stored; those that are missing are published as gaps",
            metadata: ["waiting": "\(Self.waitingValues)"])
    }

    /// Stores what arrives, in groups, until the intake has ended and is empty.
    private func store() async {
        while let group = await intake.next() {
            let begun = ContinuousClock.now
            var values = group.elements
            for (key, count) in group.missing {
                metrics.valuesMissed(count)
                guard case .value(let device, let service, let characteristic) = key else { continue }
                metrics.gap(.overload)
                values.append(desk.withLock { $0.gap(device, service, characteristic, .overload, Date()) })
            }
            await store(values)
            if !intake.isFinished { try? await Task.sleep(until: begun + Self.storeInterval) }
        }
    }

    /// Stores values in parts that the courier takes, each as soon as the store can take it.
    private func store(_ values: [NewValue]) async {
        var rest = values[...]
        var size = Self.storedTogether
        var hasFailed = false
        while !rest.isEmpty {
            do {
                let part = Array(rest.prefix(size))
                try await courier.submit(part)
                rest.removeFirst(part.count)
                if hasFailed { logger.notice("values are stored again") }
                hasFailed = false
            } catch .invalid(let reason) where size == 1 {
                // No later attempt can succeed.
                logger.error("a value is dropped: \(rest[rest.startIndex].topic): \(reason)")
                rest.removeFirst()
                size = Self.storedTogether
            } catch .invalid {
                size = 1
            } catch {
                // Meanwhile the intake takes what it can, and then counts what it could not.
                if !hasFailed { logger.error("values cannot be stored: \(error)") }
                hasFailed = true
                if intake.isFinished {
                    return logger.error("\(rest.count) values are lost at the end")
                }
                await Task { try? await Task.sleep(for: .seconds(1)) }.value
            }
        }
    }

    // MARK: The broker

    private func received(_ event: BrokerEvent) async {
        let (date, now) = (Date(), uptime)
        await courier.handle(event)
        switch event {
        case .connected:
            board.broker(connected: true)
            _ = isNew(nil, .broker)
            logger.notice("connected to the broker \(transport.statistics.address.map { "\($0)" } ?? "")")
            decide { ($0.brokerConnected(date: date, at: now), ()) }
        case .disconnected(let reason):
            board.broker(connected: false, reason: reason)
            // An attempt follows another at least twice a minute: each reason is logged once.
            let level: Logger.Level = hasEnded ? .info : isNew(reason, .broker) ? .warning : .debug
            logger.log(level: level, "not connected to the broker: \(reason)")
            decide { ($0.brokerDisconnected(date: date, at: now), ()) }
        case .acknowledged: break
        case .received(let message):
            if message.topic == desk.withLock(\.topics.command) {
                // A command that a broker has kept was meant for an earlier time.
                if !message.isRetained { take(message.payload) { [self] in reply($0, to: $1) } }
            } else {
                decide { ($0.received(message, date: date, at: now), ()) }
            }
        }
    }

    private func publish(_ message: BrokerMessage) throws(BrokerTransportError) {
        let number = token.withLock { token in
            defer { token = token == .max ? Courier.freeTokens.lowerBound : token + 1 }
            return token
        }
        try transport.publish(message, token: number)
    }

    // MARK: Decisions

    private var uptime: Duration { Outbox.uptime() }

    /// Decides under the lock, and executes the orders before another thread decides.
    @discardableResult
    private func decide<Result>(_ decision: (inout GatewayDesk) -> ([GatewayDesk.Order], Result)) -> Result {
        let radio = radio.withLock(\.self)
        return desk.withLock { desk in
            let (orders, result) = decision(&desk)
            for order in orders {
                switch order {
                case .publish(let message):
                    // Claims are published again by the machine, and advertisements are replaced by later ones.
                    try? publish(message)
                case .store(let value, let key): take(value, key)
                case .log(let level, let text): logger.log(level: level, "\(text)")
                case .connect(let device, let isKept): radio?.connect(device, isKept: isKept)
                case .disconnect(let device):
                    Task { [weak self] in
                        guard await radio?.disconnect(device) == false, let self else { return }
                        decide { ($0.hadNoLink(device, at: uptime), ()) }
                    }
                }
            }
            desk.retained.flush {
                if desk.isConnected { try publish($0) } else { throw BrokerTransportError.notConnected }
            }
            return result
        }
    }

    private func tick() async {
        var count = 0
        while !Task.isCancelled {
            let now = uptime
            let silence = transport.silence
            decide { desk in
                let wasSilent = desk.isBrokerSilent
                let orders = desk.tick(silence: silence, date: Date(), at: now)
                if desk.isBrokerSilent, !wasSilent {
                    logger.warning(
                        "the broker acknowledges nothing; links stay as they are, and none is taken over",
                        metadata: ["duration": "\(silence)"])
                } else if wasSilent, !desk.isBrokerSilent, desk.isConnected {
                    logger.notice("the broker acknowledges again")
                }
                return (orders, ())
            }
            desk.withLock { desk in
                desk.flushHomeAssistant(at: now) { try publish($0) }
            }
            if count % 4 == 0, let statistics = try? await courier.statistics {
                board.queue(
                    depth: statistics.outbox.depth, stored: statistics.stored, acknowledged: statistics.acknowledged,
                    dropped: Int(statistics.outbox.dropped.values.reduce(0, +)))
                metrics.report(statistics, transport.statistics)
            }
            count += 1
            try? await Task.sleep(for: .milliseconds(250))
        }
    }

    // MARK: Commands

    /// Takes a command, or replies why it is refused.
    private func take(_ data: Data, _ send: @escaping @Sendable (CommandReply, String?) -> Void) {
        let begin = uptime
        let reply = { @Sendable [metrics] (reply: CommandReply, topic: String?) in
            metrics.replied(reply, after: Outbox.uptime() - begin)
            send(reply, topic)
        }
        let topics = desk.withLock(\.topics)
        let request: CommandRequest
        do {
            request = try CommandRequest(json: data, topics: topics, sizeLimit: configuration.limits.messageSize)
        } catch {
            board.refused("a command", why: error.reason)
            return reply(CommandReply(to: error, gateway: topics.gateway, time: Date()), error.replyTo)
        }
        let known = desk.withLock { desk -> (device: DeviceName?, name: String?) in
            let device = request.peripheral.flatMap { desk.device($0) }
            return (device, device.flatMap { desk.names[$0] })
        }
        let job = CommandQueue.Job(request: request, device: known.device) { [topics] result in
            switch result {
            case .success(let result):
                reply(CommandReply(to: request, gateway: topics.gateway, result: result, time: Date()), request.replyTo)
            case .failure(let failure):
                reply(
                    CommandReply(to: request, gateway: topics.gateway, failure: failure, time: Date()), request.replyTo)
            }
        }
        if let failure = commands.add(job, name: known.name, at: uptime) {
            board.refused(
                "\(request.command.rawValue) \(request.peripheral.map { "\($0)" } ?? "")", why: failure.reason)
            job.finish(.failure(failure))
        }
    }

    private func reply(_ reply: CommandReply, to topic: String?) {
        let message = BrokerMessage(topic: topic ?? desk.withLock(\.topics.reply), payload: reply.json)
        do {
            try publish(message)
        } catch {
            logger.notice("a reply on \(message.topic) was not sent: \(error)")
        }
    }

    private func commandOfPage(_ data: Data) async -> Data {
        await withCheckedContinuation { continuation in
            take(data) { reply, _ in continuation.resume(returning: reply.json) }
        }
    }

    private func execute(_ job: CommandQueue.Job) async -> Result<CommandReply.Result, CommandReply.Failure> {
        guard let radio = radio.withLock(\.self) else { return .failure(.init(.failed, "The gateway is ending.")) }
        if case .scan(let isOn) = job.request.action {
            radio.isScanning = isOn
            decide { desk in
                desk.setScanning(isOn, date: Date())
                return ([], ())
            }
            return .success(.init())
        }
        guard let device = job.device else {
            return .failure(.init(.unknownPeripheral, "The gateway has received no peripheral with this name."))
        }
        do {
            return .success(try await execute(job.request.action, device, radio))
        } catch let failure as CommandReply.Failure {
            return .failure(failure)
        } catch {
            return .failure(CommandReply.Failure(error))
        }
    }

    private func execute(
        _ action: CommandRequest.Action, _ device: DeviceName, _ radio: Radio
    ) async throws -> CommandReply.Result {
        func identifier(_ service: CBUUID, _ characteristic: CBUUID) -> CharacteristicIdentifier {
            CharacteristicIdentifier(uuid: characteristic, service: ServiceIdentifier(uuid: service))
        }
        switch action {
        case .connect:
            try requireHere(device)
            decide { ($0.want(device, at: uptime), ()) }
        case .disconnect:
            decide { ($0.doNotWant(device, at: uptime), ()) }
        case .read(_, let service, let characteristic):
            try requireLinkIfShared(device)
            let data = try await radio.read(device, identifier(service, characteristic))
            let decoder = desk.withLock { $0.decoder(service, characteristic) }
            return .init(ValuePayload(data, source: .read, decoder: decoder))
        case .write(_, let service, let characteristic, let value):
            try requireLinkIfShared(device)
            try await radio.write(value, device, identifier(service, characteristic))
        case .subscribe(_, let service, let characteristic):
            radio.watch(device, WatchedCharacteristic(identifier(service, characteristic), mode: .notify))
        case .unsubscribe(_, let service, let characteristic):
            radio.unwatch(device, identifier(service, characteristic))
        case .scan: break
        }
        return .init()
    }

    private func requireHere(_ device: DeviceName) throws(CommandReply.Failure) {
        if let holder = desk.withLock({ $0.isElsewhere(device) ? $0.claims?.holder(of: device) : nil }) {
            throw .init(
                .claimedElsewhere, "The gateway \(holder) has the link to this peripheral. Send the command to it.")
        }
    }

    /// A gateway that shares its peripherals with others makes no link of its own for a command.
    private func requireLinkIfShared(_ device: DeviceName) throws(CommandReply.Failure) {
        try requireHere(device)
        let isMissing = desk.withLock { $0.claims != nil && $0.links[device] != .connected }
        if isMissing { throw .init(.notConnected, "The gateway has no link to this peripheral. Send connect first.") }
    }
}

/// Why a gateway cannot be made, with the key of the configuration that is to be changed.
struct GatewayError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
