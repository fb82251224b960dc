import BlueCapKit
import Foundation
public import GatewayCore
import GatewayBroker
import GatewayPage
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

    private let configuration: GatewayConfiguration
    private let logger: Logger
    private let manager: CentralManager
    private let outbox: Outbox
    private let transport: MosquittoTransport
    private let courier: Courier
    private let board: StatusBoard
    private let metrics = PrometheusMetrics()
    private let intake = ValueIntake<NewValue, IntakeKey>(limit: waitingValues)
    private let desk: Mutex<GatewayDesk>
    private let commands: CommandQueue
    private let token = Mutex(Courier.freeTokens.lowerBound)
    private let radio = Mutex<Radio?>(nil)
    private let onPage: @Sendable (UInt16) -> Void

    /// Creates a gateway; nothing is sent before ``run()``.
    ///
    /// - Parameters:
    ///   - configuration: What it does.
    ///   - busAddress: The D-Bus address of BlueZ's bus; `nil` for the system bus.
    ///   - logger: Receives what happens.
    ///   - onPage: Called with the port of the page when it can be reached.
    /// - Throws: An error that says what is to be changed: an unusable store, a secret that cannot be read, a wrong option.
    public init(
        _ configuration: GatewayConfiguration, busAddress: String? = nil, logger: Logger,
        onPage: @escaping @Sendable (UInt16) -> Void = { _ in }
    ) throws {
        (self.configuration, self.logger, self.onPage) = (configuration, logger, onPage)
        let desk = GatewayDesk(configuration)
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
        options.password = try configuration.broker.password?.read().withText { $0 }
        options.security = MosquittoSecurity(
            authorityFile: configuration.broker.authorityFile, certificateFile: configuration.broker.certificateFile,
            keyFile: configuration.broker.keyFile)
        options.limits.inFlight = configuration.limits.inFlight
        options.will = BrokerMessage(
            topic: desk.topics.state, payload: desk.state(.offline, date: Date()).json, isRetained: true)
        transport = try MosquittoTransport(options: options, logger: logger)
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
                    return switch characteristic.mode {
                    case .notify: WatchedCharacteristic(identifier, mode: .notify)
                    case .read(let interval): WatchedCharacteristic(identifier, mode: .read(every: interval))
                    }
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
        let radio = radio.withLock(\.self)
        let receiving = Task { await radio?.run() }
        let result = await Result { try await serveUntilShutdown() }
        commands.end()
        receiving.cancel()
        await executing.value
        await receiving.value
        intake.finish()
        await storing.value
        ticking.cancel()
        await ticking.value
        desk.withLock { desk in
            desk.retained.set(desk.topics.state, desk.state(.offline, date: Date()).json)
            desk.retained.flush { try publish($0) }
        }
        link.cancel()
        await link.value
        sending.cancel()
        await sending.value
        await listening.value
        outbox.close()
        try result.get()
    }

    private func serveUntilShutdown() async throws {
        guard let settings = configuration.page else {
            try? await gracefulShutdown()
            return
        }
        var page = GatewayPage.Configuration()
        (page.address, page.port) = (settings.address, settings.port)
        page.token = try settings.token?.read().withText { $0 }
        let server = try GatewayPage(
            configuration: page, board: board, metrics: metrics, command: { [self] in await commandOfPage($0) },
            onListening: onPage)
        try await cancelWhenGracefulShutdown {
            do { try await server.run() } catch is CancellationError {}
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
            decide { ($0.value(device, identifier, data, date).map { [$0] } ?? [], ()) }
            board.value(
                device, service: identifier.service.uuidString, characteristic: identifier.uuidString,
                text: PayloadBytes.text(data))
        case .gap(let device, let identifier, let reason, let date):
            guard let service = identifier.service.uuid, let characteristic = identifier.uuid else { return }
            let gap = desk.withLock { $0.gap(device, service, characteristic, reason, date) }
            intake.add(gap, key: .value(device, service: service, characteristic: characteristic))
        case .watchFailed(let device, let identifier, let reason):
            logger.warning(
                "no values of a characteristic",
                metadata: [
                    "device": "\(device)", "characteristic": "\(identifier.uuidString)", "reason": "\(reason)",
                ])
        case .unavailable(let reason?): logger.warning("Bluetooth cannot be used", metadata: ["reason": "\(reason)"])
        case .unavailable(nil): logger.info("Bluetooth can be used")
        }
    }

    /// Stores what arrives, in groups, until the intake has ended and is empty.
    private func store() async {
        while let group = await intake.next() {
            let begun = ContinuousClock.now
            var values = group.elements
            for key in group.missing.keys {
                guard case .value(let device, let service, let characteristic) = key else { continue }
                values.append(desk.withLock { $0.gap(device, service, characteristic, .overload, Date()) })
            }
            while true {
                do {
                    _ = try await courier.submit(values)
                    break
                } catch {
                    // Meanwhile the intake takes what it can, and then counts what it could not.
                    logger.error("values cannot be stored", metadata: ["reason": "\(error)"])
                    if intake.isFinished { return }
                    await Task { try? await Task.sleep(for: .seconds(1)) }.value
                }
            }
            if !intake.isFinished { try? await Task.sleep(until: begun + Self.storeInterval) }
        }
    }

    // MARK: The broker

    private func received(_ event: BrokerEvent) async {
        let (date, now) = (Date(), uptime)
        await courier.handle(event)
        switch event {
        case .connected:
            board.broker(connected: true)
            logger.info("connected to the broker")
            decide { ($0.brokerConnected(date: date, at: now), ()) }
        case .disconnected(let reason):
            board.broker(connected: false, reason: reason)
            logger.warning("not connected to the broker", metadata: ["reason": "\(reason)"])
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
                case .store(let value, let key): intake.add(value, key: key)
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
            decide { ($0.tick(date: Date(), at: now), ()) }
            desk.withLock { desk in
                desk.flushHomeAssistant(at: now) { try publish($0) }
            }
            if count % 4 == 0, let statistics = try? await courier.statistics {
                board.queue(
                    depth: statistics.outbox.depth, stored: statistics.stored, acknowledged: statistics.acknowledged,
                    dropped: Int(statistics.outbox.dropped.values.reduce(0, +)))
            }
            count += 1
            try? await Task.sleep(for: .milliseconds(250))
        }
    }

    // MARK: Commands

    /// Takes a command, or replies why it is refused.
    private func take(_ data: Data, reply: @escaping @Sendable (CommandReply, String?) -> Void) {
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
            logger.notice("a reply was not sent", metadata: ["topic": "\(message.topic)", "reason": "\(error)"])
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

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
