import BlueCapKit
import Foundation

/// A peripheral that a command is connected to.
struct Remote: Sendable {
    typealias Events = FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>

    let peripheral: Peripheral
    /// The name when it was found; `nil` if it had none. BlueZ replaces it during the connection by one that it reads.
    let name: String?
    /// In seconds, for each response.
    let timeout: Double
    /// Whether a lost link is restored.
    let isPersistent: Bool
    /// Whether another program has made the link.
    let isForeign: Bool
    let console: Console
    let manager: CentralManager
    /// The attributes of the present link, after the first discovery.
    let directory = Locked<AttributeDirectory?>(nil)
    /// Set to true with the first request of a pairing.
    fileprivate let wasAsked = Locked(false)
    private let newest: Locked<Events>

    /// Starts to connect.
    ///
    /// - Parameter connectionTimeout: The time limit of the first connection, in seconds.
    init(
        _ peripheral: Peripheral, of manager: CentralManager, connectionTimeout: Double, timeout: Double,
        isPersistent: Bool, console: Console
    ) {
        (self.peripheral, self.timeout, self.console, self.manager) = (peripheral, timeout, console, manager)
        self.isPersistent = isPersistent
        isForeign = manager.retrieveConnectedPeripherals(withServices: []).contains(peripheral)
        name = peripheral.knownName
        newest = Locked(Self.connect(to: peripheral, within: connectionTimeout, isPersistent: isPersistent))
    }

    /// The events of its connection, from the beginning.
    var events: Events { newest.withLock { $0 } }

    // MARK: The link

    private static func connect(to peripheral: Peripheral, within limit: Double, isPersistent: Bool) -> Events {
        let retries: UInt = isPersistent ? .max : 0
        return peripheral.connect(
            timeoutRetries: retries, disconnectRetries: retries, connectionTimeout: max(1, limit))
    }

    func waitForLink() async throws {
        for await outcome in events.outcomes {
            switch try outcome.get().connectionEvent {
            case .connect: return
            case .timeout, .giveUp: throw PeripheralError.connectionTimeout
            case .disconnect: throw PeripheralError.disconnected
            case .forceDisconnect: throw PeripheralError.forcedDisconnect
            }
        }
        // The loop ends if the task was cancelled.
        throw CancellationError()
    }

    /// Ends the link, and returns when BlueZ has confirmed that. Without that, the next command would find a link that is about
    /// to end.
    func disconnect() async {
        peripheral.disconnect()
        // Earlier events come first, and are skipped.
        for await case .success((_, let event)) in events.outcomes where event == .forceDisconnect { break }
    }

    /// Replaces the link, also if it is lost.
    ///
    /// - Throws: `PeripheralError.disconnected` if another program has made the link, which is not ended.
    func replaceLink() async throws {
        if peripheral.state == .connected {
            guard !isForeign else { throw PeripheralError.disconnected }
            await disconnect()
            try Task.checkCancellation()
        }
        directory.withLock { $0 = nil }
        let events = Self.connect(to: peripheral, within: timeout, isPersistent: isPersistent)
        newest.withLock { $0 = events }
        try await waitForLink()
    }

    /// Pairs, with questions if the manager's policy rejects pairings, as that of a shell may.
    func pair() async throws {
        let usual = manager.pairingPolicy
        if usual == .reject { manager.pairingPolicy = .ask }
        defer { manager.pairingPolicy = usual }
        _ = try await peripheral.pair(timeout: timeout).value
    }

    /// Returns the failure of an operation, for people at a command line.
    func failure(of error: any Error) -> ToolFailure {
        let error =
            RemoteFailure.mayLackSecurity(error) ? RemoteFailure.ofSecurity(error, peripheral, circumstances) : error
        return error as? ToolFailure ?? RemoteFailure.ofPairing(error, peripheral, circumstances)
            ?? ToolFailure(RemoteFailure.text(for: error))
    }

    fileprivate var circumstances: RemoteFailure.Circumstances {
        let (state, explanation) = manager.standing
        return RemoteFailure.Circumstances(
            wasAsked: wasAsked.withLock { $0 }, obstacle: state == .poweredOn ? nil : explanation)
    }

    // MARK: Attributes

    /// Returns the attributes, which are discovered once for a link: who follows the link forgets them when it is lost.
    func discover() async throws -> AttributeDirectory {
        if let known = directory.withLock({ $0 }) { return known }
        let found = try await AttributeDirectory(of: peripheral, timeout: timeout)
        directory.withLock { $0 = found }
        return found
    }

    /// Finds the characteristic that an argument names. If it can be several, their descriptions are read for the error.
    ///
    /// - Throws: As ``AttributeArgument/find(in:usableFor:descriptions:)``.
    func find(
        _ argument: AttributeArgument, usableFor wanted: CBCharacteristicProperties
    ) async throws -> (entry: AttributeTree.Characteristic, target: Characteristic, profile: CharacteristicProfile?) {
        let directory = try await discover()
        let candidates = argument.candidates(in: directory.tree, usableFor: wanted)
        var descriptions: [UInt32: String] = [:]
        for (_, entry) in candidates where candidates.count > 1 {
            let descriptor = entry.descriptors.first { $0.uuid == CBUUID(string: "2901") }
            guard let read = descriptor.flatMap({ directory.readers[$0.handle] }) else { continue }
            // One that cannot be read is left out.
            descriptions[entry.handle] = try? await read(timeout).text
            try Task.checkCancellation()
        }
        let entry = try argument.find(in: directory.tree, usableFor: wanted, descriptions: descriptions)
        guard let known = directory.characteristics[entry.handle] else { throw CharacteristicError.invalidated }
        return (entry, known.target, known.profile)
    }

    /// Reads values of characteristics and descriptors in the sequence of the arguments, and passes the line of each on.
    ///
    /// - Throws: ``ToolFailure`` if a value does not have the style's form. In JSON it needs none. The failure of one of several
    ///   values names it, and those that were not read.
    func read(
        _ arguments: [AttributeArgument], _ style: ValueStyle, _ write: (String) async throws -> Void
    ) async throws {
        let directory = try await discover()
        var (style, targets) = (style, [any TreeAttribute]())
        for argument in arguments {
            let descriptor = try argument.descriptor(in: directory.tree)
            let entry: any TreeAttribute =
                if let descriptor { descriptor.entry } else {
                    try await find(argument, usableFor: .read).entry
                }
            style.names[entry.handle] = descriptor?.label ?? entry.label
            targets.append(entry)
        }
        for (index, entry) in targets.enumerated() {
            let line: String
            do {
                guard let read = directory.readers[entry.handle] else { throw CharacteristicError.invalidated }
                let value = try await read(timeout)
                guard style.isJSON || style.form.text(of: value) != nil else {
                    throw style.form.misfit(value, of: style.name(of: entry))
                }
                line = style.line(of: value, entry, nil)
            } catch  where !(error is CancellationError) && targets.count > 1 {
                // The shell discovers the attributes again.
                if case CharacteristicError.invalidated = error { throw error }
                let (failure, name) = (failure(of: error), style.name(of: entry))
                let rest = targets[(index + 1)...].map(style.name)
                if style.isJSON {
                    let members = AttributeValue.noMembers + [("error", JSON(failure.description))]
                    try await write(JSON(entry.identity + members).text)
                }
                throw ToolFailure(
                    failure.description.contains(name) ? "\(failure)" : "\(name): \(failure)",
                    rest.isEmpty ? "" : "Not read: \(rest.joined(separator: ", ")).", status: failure.status)
            }
            try await write(line)
        }
    }

    /// Writes a characteristic's value, without response if it has no other write.
    ///
    /// - Parameter data: Returns the value's bytes.
    func write(
        to argument: AttributeArgument, withoutResponse: Bool,
        _ data: (CharacteristicProfile?) throws -> Data
    ) async throws -> (entry: AttributeTree.Characteristic, value: AttributeValue) {
        let wanted: CBCharacteristicProperties =
            withoutResponse ? .writeWithoutResponse : [.write, .writeWithoutResponse]
        let (entry, target, profile) = try await find(argument, usableFor: wanted)
        let data = try data(profile)
        let canConfirm = entry.properties.contains(.write)
        let type: CBCharacteristicWriteType =
            withoutResponse || (!canConfirm && entry.properties.contains(.writeWithoutResponse))
            ? .withoutResponse : .withResponse
        let write: Future<Characteristic> = target.write(data: data, timeout: timeout, type: type)
        _ = try await write.value
        return (entry, AttributeValue(data, profile: profile))
    }

    /// Subscribes to a characteristic. Until the loop ends it receives an event for each value, and one without data where values
    /// may be missing.
    func subscribe<Event>(
        to target: Characteristic, in loop: EventLoop<Event>, failure: @escaping @Sendable (any Error) -> Event?,
        _ event: @escaping @Sendable (Data?) -> Event?
    ) async throws {
        let values: FutureStream<(characteristic: Characteristic, data: Data?)> = target.receiveNotificationUpdates()
        loop.observe(values, failure: failure) { event($0.data) }
        let subscription: Future<Characteristic> = target.startNotifying(timeout: timeout)
        _ = try await subscription.value
    }
}

extension Radio {
    /// Does a command's work with a central manager that is powered on, or needs no power.
    ///
    /// - Throws: ``ToolFailure``, or `CancellationError`.
    func withCentral(
        _ policy: PairingPolicy = .reject, needsPower: Bool = true, _ work: (CentralManager) async throws -> Void
    ) async throws {
        try await console.run {
            var configuration = centralConfiguration
            configuration.pairingPolicy = policy
            let manager = try CentralManager(configuration: configuration)
            await console.stage("Waiting for Bluetooth …")
            try await waitUntilUsable(manager.whenStateChanges(), needsPower: needsPower) { manager.standing }
            try await work(manager)
        } failure: {
            ToolFailure(RemoteFailure.text(for: $0))
        }
    }
}

/// Finds a peripheral, connects to it, does a command's work with it, and ends the link, also if the work fails or its task is
/// cancelled.
struct RemoteSession: Sendable {
    /// How long the end of a link may take, in seconds; BlueZ takes two.
    static let farewell = 6.0

    let radio: Radio
    var argument: PeripheralArgument
    /// In seconds: for finding and connecting together, and then for each response.
    let timeout: Double
    /// Whether a lost link is restored.
    var isPersistent = false
    let pairing: PairingPlan
    /// Where the reason of the newest rejection of a pairing is kept; `nil` if it ends the work.
    var refusal: Locked<ToolFailure?>?
    /// The connection of a shell, which is used instead of a new one.
    var remote: Remote?
    /// Called when all subscriptions are made.
    var whenReady: @Sendable () -> Void = {}

    /// That of the shell to which the present command belongs.
    @TaskLocal static var shared: RemoteSession?

    var console: Console { radio.console }

    /// - Throws: ``ToolFailure``, or `CancellationError` if the task was cancelled before the work was done.
    func run(_ work: @escaping @Sendable (Remote) async throws -> Void) async throws {
        guard let remote else { return try await radio.withCentral(pairing.policy) { try await use($0, work) } }
        do { try await work(remote) } catch {
            if case CharacteristicError.invalidated = error { remote.directory.withLock { $0 = nil } }
            throw error is CancellationError ? error : remote.failure(of: error)
        }
    }

    private func use(
        _ manager: CentralManager, _ work: @escaping @Sendable (Remote) async throws -> Void
    ) async throws {
        let clock = Stopwatch()
        let peripheral = try await find(with: manager)
        await console.stage("Connecting to \(peripheral.name) …")
        let remote = Remote(
            peripheral, of: manager, connectionTimeout: timeout - clock.seconds, timeout: timeout,
            isPersistent: isPersistent, console: console)
        let result = await Result {
            try await pairing.answerRequests(of: manager, console, remote.wasAsked, keeping: refusal) {
                try await remote.waitForLink()
                do {
                    try await work(remote)
                } catch  where RemoteFailure.mayLackSecurity(error) {
                    throw RemoteFailure.ofSecurity(error, peripheral, remote.circumstances)
                }
            }
        }.mapError {
            peripheral.cancelPairing()
            return RemoteFailure.ofPairing($0, peripheral, remote.circumstances) ?? $0
        }
        noteNames(of: remote)
        // A link of another program is not ended here, and a simulated bus ends together with the command.
        let isKept = radio.keepsLinks && (try? result.get()) != nil
        if !remote.isForeign, !isKept, radio.busAddress == nil { await disconnect(remote) }
        try result.get()
    }

    /// Keeps both names of a bonded device, by which it can be addressed later.
    private func noteNames(of remote: Remote) {
        guard remote.peripheral.isBonded else { return }
        let names = [remote.name, remote.peripheral.knownName].compactMap { $0 }
        KnownNames.file(for: radio)?.change { $0.add(names, of: remote.peripheral.bluetoothAddress) }
    }

    /// Finds the peripheral, and does the work with it without a connection.
    ///
    /// - Parameter amongKnown: Whether it may be one that BlueZ knows, and that is not in range.
    /// - Throws: As ``run(_:)``.
    func find(
        amongKnown: Bool = false, _ work: @escaping @Sendable (CentralManager, Peripheral) async throws -> Void
    ) async throws {
        if let remote { return try await work(remote.manager, remote.peripheral) }
        try await radio.withCentral(pairing.policy) {
            try await work($0, try await find(with: $0, amongKnown: amongKnown))
        }
    }

    // MARK: The peripheral

    private enum Event: Sendable {
        case sighted(Peripheral)
        case failed(any Error)
        /// The time of a wait is over, or (`nil`) that of the search.
        case timeIsOver(wait: Int?)
    }

    private func find(with manager: CentralManager, amongKnown: Bool = false) async throws -> Peripheral {
        await console.stage("Looking for \(argument.text) …")
        defer { manager.stopScanning() }
        return try await EventLoop<Event>.run { loop in
            // A connected peripheral does not advertise, and a name may arrive after the first sighting.
            let known =
                amongKnown
                ? manager.retrieveKnownPeripherals() : manager.retrieveConnectedPeripherals(withServices: [])
            for peripheral in known { loop.send(.sighted(peripheral)) }
            let sightings = manager.startScanning(options: ScanOptions(allowsDuplicates: true))
            loop.observe(sightings, failure: Event.failed) { .sighted($0) }
            loop.send(.timeIsOver(wait: nil), after: timeout)
            var search = PeripheralSearch(for: argument, patience: timeout)
            var sighted: [BluetoothAddress: Peripheral] = [:]
            let kept = KnownNames.file(for: radio)?.read() ?? KnownNames()
            // Of a device that BlueZ knows, the first advertisement replaces the name.
            var names = Dictionary(manager.bonds().map { ($0.address, $0.name.map { [$0] } ?? []) }) { first, _ in first
            }
            var waits = 0
            for await event in loop {
                let effect: PeripheralSearch.Effect?
                switch event {
                case .failed(let error): throw error
                case .sighted(let peripheral):
                    let address = peripheral.bluetoothAddress
                    sighted[address] = peripheral
                    if let name = peripheral.knownName, names[address]?.first != name {
                        names[address, default: []].removeAll { $0 == name }
                        names[address, default: []].insert(name, at: 0)
                    }
                    effect = search.discovered(
                        .init(address: address, names: names[address, default: []] + kept[address]))
                // A timer that a later one has replaced.
                case .timeIsOver(let wait?) where wait != waits: continue
                case .timeIsOver: effect = search.decide()
                }
                switch effect {
                case nil: break
                case .wait(let seconds):
                    waits += 1
                    loop.send(.timeIsOver(wait: waits), after: seconds)
                case .decided(let result):
                    if let peripheral = sighted[try result.get().address] { return peripheral }
                }
            }
            throw CancellationError()
        }
    }

    // MARK: The link

    private func disconnect(_ remote: Remote) async {
        await console.stage("Disconnecting …")
        await cleanUp(within: Self.farewell) {
            await remote.disconnect()
            let peripheral = remote.peripheral
            // Else the next command, which knows nothing of the operation, could not use the value.
            guard await peripheral.hasForgottenOperation(), !peripheral.isPaired, !peripheral.isTrusted else { return }
            _ = try? await peripheral.unpair(timeout: Self.farewell).value
        }
    }
}

/// What went wrong with a peripheral, for people at a command line, without the names of the library's functions.
enum RemoteFailure {
    /// What else is known when a pairing has failed.
    struct Circumstances: Sendable {
        /// Whether a pairing needed an answer.
        var wasAsked = false
        /// Why Bluetooth cannot be used; `nil` if it can.
        var obstacle: String?
    }

    static func text(for error: any Error) -> String {
        switch error {
        case PeripheralError.disconnected: "The peripheral has ended the connection, or is out of range: try again."
        case PeripheralError.forcedDisconnect: "The connection was ended."
        case CharacteristicError.readNotSupported: "This characteristic cannot be read."
        case CharacteristicError.writeNotSupported: "This characteristic cannot be written in this way."
        case CharacteristicError.invalidated:
            "The peripheral has changed its services, and this characteristic no longer exists: try again."
        case CharacteristicError.valueTooLong(let count, let maximum):
            maximum < 512
                ? "The value has \(count) bytes, and this link takes at most \(maximum) in a write without response: write it "
                    + "in parts, each with a `bluecap write` of its own."
                : "The value has \(count) bytes, and a value has at most \(maximum): write it in parts."
        case PeripheralError.serviceDiscoveryTimeout, ServiceError.characteristicDiscoveryTimeout:
            "The peripheral's services were not discovered in time: try again, or give it more time with --timeout."
        default: ToolFailure.text(of: error)
        }
    }

    /// Returns the failure of a pairing, or of an operation that needs one; `nil` for any other error.
    static func ofPairing(
        _ error: any Error, _ peripheral: Peripheral, _ circumstances: Circumstances
    ) -> ToolFailure? {
        let name = peripheral.knownName ?? "The peripheral"
        let (pair, unpair) = ("`bluecap pair \(peripheral.address)`", "`bluecap unpair \(peripheral.address)`")
        let text: String
        switch error {
        case CharacteristicError.pairingRequired(.encryption, _):
            text = "The value needs an encrypted link: pair first with \(pair), or add --pair ask."
        case CharacteristicError.pairingRequired:
            text =
                "The value needs a pairing with a passkey or a comparison of numbers, and \(name) is paired without: "
                + "\(unpair), then \(pair)."
        case let error as PairingError: text = Self.text(for: error, name, pair, unpair, circumstances)
        case CharacteristicError.pairingFailed(let error), PeripheralError.pairing(let error):
            text = Self.text(for: error, name, pair, unpair, circumstances)
        default: return nil
        }
        return ToolFailure(text, status: ToolFailure.notPaired)
    }

    /// Whether the error of an operation may be due to a lack of security: BlueZ may end the link then, or send no reply.
    static func mayLackSecurity(_ error: any Error) -> Bool {
        switch error {
        case PeripheralError.disconnected, CharacteristicError.readTimeout, CharacteristicError.writeTimeout,
            CharacteristicError.notifyTimeout, CharacteristicError.pairingRequired, CharacteristicError.pairingFailed:
            true
        default: false
        }
    }

    /// Returns the failure of an operation that may have lacked security.
    static func ofSecurity(
        _ error: any Error, _ peripheral: Peripheral, _ circumstances: Circumstances
    ) -> any Error {
        if let failure = ofPairing(error, peripheral, circumstances) { return failure }
        if peripheral.isPaired {
            return ToolFailure(
                text(for: error),
                "If the value needs a pairing with a passkey, `bluecap unpair \(peripheral.address)`, then pair again.")
        }
        if circumstances.wasAsked {
            let failure = BusError(name: "org.bluez.Error.AuthenticationFailed", message: "")
            return ofPairing(PairingError.failed(failure), peripheral, circumstances) ?? error
        }
        return ToolFailure(
            text(for: error), "If the value is protected, pair first: `bluecap pair \(peripheral.address)`.")
    }

    /// What has happened, with advice for the command line.
    static func text(
        for error: PairingError, _ name: String, _ pair: String, _ unpair: String, _ circumstances: Circumstances
    ) -> String {
        let advice: String? =
            switch error {
            case .cancelled: "Try again."
            case .rejected(by: .policy), .notAllowed: "Use --pair ask, or pair with \(pair)."
            case .rejected(by: .peer): "Allow it there, and try again."
            case .timedOut where circumstances.wasAsked:
                "Try again, and answer within 25 s. --timeout gives the command more time."
            case .timedOut: "Try again. --timeout gives the command more time."
            case .linkLost: "Try again, closer to it."
            case .failed: "If it has keys of an earlier bond with this computer, remove them there, and try again."
            case .alreadyPaired: "\(unpair) removes it; then try again."
            case .keyMissing: "If it is the device that you mean, \(unpair), then \(pair)."
            case .busy: "Try again later."
            case .unavailable: circumstances.obstacle
            case .rejected(by: .application), .rejected(by: .system), .connectionFailed, .unauthorized, .removalFailed,
                .trustFailed:
                nil
            }
        return advice.map { "\(error.cause(name)). \($0)" } ?? error.description
    }

    /// The same in a few words, for the line of the attribute that could not be read.
    static func brief(_ error: any Error) -> String {
        switch error {
        case CharacteristicError.readFailed(let failure):
            failure.attError.map { "\($0)" } ?? (failure.message.isEmpty ? failure.name : failure.message)
        case CharacteristicError.readTimeout: "no response"
        case CharacteristicError.pairingRequired(.encryption, _): "needs a pairing"
        case CharacteristicError.pairingRequired: "needs a pairing with a passkey or a number"
        case CharacteristicError.pairingFailed: "pairing failed"
        case PeripheralError.disconnected: "link lost"
        default: text(for: error)
        }
    }
}
