import BlueCapKit
import Foundation

/// The full-screen program: a table of what advertises, and the services and values of the peripherals that the user connects to.
struct Explorer: Sendable {
    fileprivate enum Event: Sendable {
        case input
        case screen(ScreenEvent)
        /// What has happened with the peripherals.
        case change(@Sendable (inout ExplorerSession) -> Void)
    }

    fileprivate typealias Loop = EventLoop<Event>

    let radio: Radio
    /// In seconds, for a connection and for each response.
    let timeout: Double

    /// Runs until the user quits or the task is cancelled, and ends the scan and the links that it made.
    ///
    /// - Throws: ``ToolFailure`` without a usable adapter, or if the terminal cannot draw.
    func run() async throws {
        try await radio.withCentral { manager in
            await radio.console.clear()
            try await Loop.run { loop in
                var session = ExplorerSession(self, manager, loop)
                let result = await Result { try await session.run() }
                FullScreen.close()
                await end(session.remotes, of: manager)
                if case .failure(let error) = result, !(error is CancellationError) { throw error }
            }
        }
    }

    /// Ends the scan, and the links that were made on a real bus, and returns when BlueZ has confirmed that.
    private func end(_ remotes: [Remote], of manager: CentralManager) async {
        await cleanUp(within: RemoteSession.farewell) {
            await withDiscardingTaskGroup { group in
                group.addTask { await manager.endScan() }
                for remote in remotes where !remote.isForeign && radio.busAddress == nil {
                    group.addTask { await remote.disconnect() }
                }
            }
        }
    }
}

/// Takes the events one by one to the state, performs what the keys ask for, and draws.
private struct ExplorerSession {
    private struct Link {
        let remote: Remote
        var directory: AttributeDirectory?
        /// The characteristics whose values are observed already.
        var observed: Set<ObjectIdentifier> = []
        /// Ends the reading of several values.
        var stopReading: (@Sendable () -> Void)?
        /// Whether a pairing is under way: it may replace the link, and nothing else must be sent then.
        var isPairing = false
    }

    /// What was sighted since the last frame. A crowd reports far more often than frames are drawn.
    private final class Inbox: Sendable {
        private let sighted = Locked<[UUID: Peripheral]>([:])

        /// Returns whether it was empty.
        func add(_ peripheral: Peripheral) -> Bool {
            sighted.withLock { sighted in
                sighted[peripheral.identifier] = peripheral
                return sighted.count == 1
            }
        }

        func take() -> [UUID: Peripheral] {
            sighted.withLock { sighted in
                defer { sighted = [:] }
                return sighted
            }
        }
    }

    /// In seconds, for the response to one of several reads.
    private static let patience = 5.0

    private let explorer: Explorer
    private let manager: CentralManager
    private let loop: Explorer.Loop
    private let terminal = Terminal.present
    private let clock = Stopwatch()
    private let inbox = Inbox()
    private var state = ExplorerState()
    private var pace = RedrawPace(shortest: 0.25)
    private var watch = RadioWatch()
    private var peripherals: [UUID: Peripheral] = [:]
    private var links: [UUID: Link] = [:]
    private var requests: [Int: PairingRequest] = [:]
    private var questionCount = 0

    init(_ explorer: Explorer, _ manager: CentralManager, _ loop: Explorer.Loop) {
        (self.explorer, self.manager, self.loop) = (explorer, manager, loop)
    }

    var remotes: [Remote] { links.values.map(\.remote) }

    /// Returns when the user quits, or the task is cancelled.
    mutating func run() async throws {
        LiveScreen.watchTerminal(close: FullScreen.close) { [loop] in loop.send(.screen($0)) }
        try FullScreen.open(terminal)
        let input = FullScreen.watchInput { [loop] in loop.send(.input) }
        observe()
        try draw()
        for await event in loop {
            switch event {
            case .input:
                let keys = FullScreen.keys()
                input.resume()
                for key in keys {
                    guard let effect = state.press(key) else { continue }
                    if effect == .quit { return }
                    perform(effect)
                }
                try draw()
            case .screen(.frameIsDue): if pace.rang(at: clock.seconds) { try draw() }
            case .screen(.resized):
                FullScreen.resize()
                try draw()
            case .screen(.resumed):
                FullScreen.reopen()
                FullScreen.resize()
                try draw()
            case .change(let change):
                change(&self)
                if let delay = pace.changed(at: clock.seconds) { loop.send(.screen(.frameIsDue), after: delay) }
            }
        }
    }

    private func observe() {
        loop.observe(manager.whenStateChanges()) { _ in .change { $0.stateChanged() } }
        loop.observe(manager.whenPeripheralsExpire()) { peripheral in
            .change { _ = $0.state.board.expire(peripheral.identifier) }
        }
        loop.observe(manager.whenPairingIsRequested()) { request in .change { $0.ask(request) } }
        for peripheral in manager.retrieveConnectedPeripherals(withServices: []) { _ = inbox.add(peripheral) }
        let sightings = manager.startScanning(options: ScanOptions(allowsDuplicates: true))
        loop.observe(sightings) { error in
            .change { $0.state.say(ToolFailure.text(of: error), isError: true) }
        } _: { [inbox] in
            inbox.add($0) ? .change { _ in } : nil
        }
    }

    /// Does work beside the loop, and passes its result on.
    private func begin<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value,
        then pass: @escaping @Sendable (inout ExplorerSession, Result<Value, any Error>) -> Void
    ) {
        loop.perform { [loop] in
            let result = await Result { try await work() }
            loop.send(.change { pass(&$0, result) })
        }
    }

    private mutating func draw() throws {
        let now = clock.seconds
        for (identifier, peripheral) in inbox.take() {
            peripherals[identifier] = peripheral
            _ = state.board.see(Sighting(peripheral), at: now)
        }
        // The board forgets devices whose addresses are random.
        if peripherals.count > 2 * state.board.count + 100 {
            peripherals = peripherals.filter { state.board[$0.key] != nil || state.devices[$0.key] != nil }
        }
        if let delay = pace.drew(at: now) { loop.send(.screen(.frameIsDue), after: delay) }
        state.size = Terminal.size()
        let view = ExplorerView(terminal.page, state.layout)
        let frame = view.frame(&state, at: now)
        FullScreen.draw(frame.lines, cursor: frame.cursor)
    }

    // MARK: Events

    private mutating func stateChanged() {
        let (present, explanation) = manager.standing
        if let remark = watch.remark(present, explanation) { state.say(remark, isError: present != .poweredOn) }
    }

    private mutating func failed(_ error: any Error, _ identifier: UUID) {
        state.devices[identifier]?.activity = nil
        report(error, of: identifier)
    }

    private mutating func report(_ error: any Error, of identifier: UUID) {
        guard let peripheral = peripherals[identifier] else { return }
        let failure = RemoteFailure.ofPairing(error, peripheral, RemoteFailure.Circumstances())
        state.say("\(peripheral.name): \(failure?.description ?? RemoteFailure.text(for: error))", isError: true)
    }

    /// Continues over the present link, which may be another one than before the pairing.
    private mutating func endPairing(_ identifier: UUID) {
        guard links[identifier]?.isPairing == true, let remote = links[identifier]?.remote else { return }
        links[identifier]?.isPairing = false
        state.devices[identifier]?.activity = nil
        if remote.peripheral.state == .connected {
            discover(identifier, remote)
        } else {
            remote.peripheral.reconnect()
        }
    }

    private mutating func connection(_ event: ConnectionEvent, _ identifier: UUID) {
        guard let link = links[identifier], state.devices[identifier]?.link != .ended else { return }
        guard !link.isPairing else { return }
        let isFirst = state.devices[identifier]?.link == .connecting
        switch event {
        case .connect:
            if state.devices[identifier]?.link == .lost {
                state.say("The link to \(link.remote.peripheral.name) is back.")
            }
            state.devices[identifier]?.link = .connected
            discover(identifier, link.remote)
        case .timeout where isFirst, .giveUp:
            state.devices[identifier]?.link = .ended
            report(PeripheralError.connectionTimeout, of: identifier)
            link.remote.peripheral.disconnect()
        case .timeout: link.remote.peripheral.reconnect()
        case .disconnect:
            state.devices[identifier]?.link = .lost
            state.devices[identifier]?.activity = nil
            state.say("The link to \(link.remote.peripheral.name) was lost; trying to bring it back.", isError: true)
            link.remote.peripheral.reconnect()
        case .forceDisconnect: break
        }
    }

    private mutating func discovered(_ directory: AttributeDirectory, _ identifier: UUID) {
        guard var device = state.devices[identifier] else { return }
        var tree = directory.tree
        tree.name = peripherals[identifier]?.knownName ?? device.tree?.name
        // The values that were read before the link was lost remain until they are read again.
        for handle in tree.readable {
            tree[readingOf: handle] = device.tree?[readingOf: handle] ?? .none
        }
        device.tree = tree
        let live = device.live
        device.live = []
        state.devices[identifier] = device
        links[identifier]?.directory = directory
        for handle in live { perform(.notify(identifier, handle, true)) }
        // A value whose read has ended the link is not read again by itself, unless the link can be encrypted now.
        perform(.read(identifier, tree.readable.filter { tree.isPaired || !tree[readingOf: $0].hasFailed }))
    }

    private mutating func ask(_ request: PairingRequest) {
        questionCount += 1
        let number = questionCount
        let kind: ExplorerState.Question.Kind =
            switch request.kind {
            case .displayPasskey: .display
            case .enterPasskey: .passkey
            case .confirm, .authorize: .agree
            }
        requests[number] = request
        state.ask(.init(number: number, kind: kind, text: request.question))
        begin {
            try await request.whenEnded().value
        } then: { session, _ in
            session.requests[number] = nil
            session.state.withdrawQuestion(number)
        }
    }

    // MARK: Effects

    private mutating func perform(_ effect: ExplorerState.Effect) {
        switch effect {
        case .connect(let identifier): connect(identifier)
        case .disconnect(let identifier):
            state.devices[identifier]?.link = .ended
            state.devices[identifier]?.live = []
            state.devices[identifier]?.activity = nil
            if let remote = links.removeValue(forKey: identifier)?.remote { remote.peripheral.disconnect() }
        case .read(let identifier, let handles): read(handles, identifier)
        case .notify(let identifier, let handle, let isOn): notify(identifier, handle, isOn)
        case .write(let identifier, let handle, let text, let form): write(identifier, handle, text, form)
        case .pair(let identifier):
            guard state.devices[identifier]?.link == .connected, let remote = links[identifier]?.remote else {
                return state.say("Connect first.", isError: true)
            }
            links[identifier]?.stopReading?()
            links[identifier]?.isPairing = true
            state.devices[identifier]?.activity = "Pairing …"
            // Values that need a pairing do not cause one: the user pairs with a key.
            begin(remote.pair) { session, result in
                session.endPairing(identifier)
                switch result {
                case .success: session.state.say("Paired.")
                case .failure(let error): session.report(error, of: identifier)
                }
            }
        case .answer(let question, let answer):
            guard let request = requests.removeValue(forKey: question.number) else { return }
            switch answer {
            case .yes: request.confirm()
            case .passkey(let passkey): request.enter(passkey)
            case .no: request.reject()
            }
        case .copy(let text): FullScreen.copy(text)
        case .redraw: FullScreen.resize()
        case .quit: break
        }
    }

    private mutating func connect(_ identifier: UUID) {
        guard let peripheral = peripherals[identifier] else { return }
        let remote = Remote(
            peripheral, of: manager, connectionTimeout: explorer.timeout, timeout: explorer.timeout, isPersistent: true,
            console: explorer.radio.console)
        links[identifier] = Link(remote: remote)
        loop.observe(remote.events) { error in
            .change { $0.failed(error, identifier) }
        } _: { event in
            .change { $0.connection(event.connectionEvent, identifier) }
        }
    }

    private mutating func discover(_ identifier: UUID, _ remote: Remote) {
        state.devices[identifier]?.activity = "Discovering …"
        remote.directory.withLock { $0 = nil }
        begin(remote.discover) { session, result in
            switch result {
            case .success(let directory): session.discovered(directory, identifier)
            case .failure(let error): session.failed(error, identifier)
            }
        }
    }

    /// Does work with the discovered attributes of a connected peripheral.
    private mutating func work(
        _ activity: String, _ identifier: UUID,
        _ body: @escaping @Sendable (Remote, AttributeDirectory) async throws -> Void
    ) {
        guard state.devices[identifier]?.link == .connected, let link = links[identifier],
            let directory = link.directory
        else { return state.say("There is no link to this peripheral.", isError: true) }
        state.devices[identifier]?.activity = activity
        begin {
            try await body(link.remote, directory)
        } then: { session, result in
            session.state.devices[identifier]?.activity = nil
            if case .failure(let error) = result { session.report(error, of: identifier) }
        }
    }

    /// Reads values one after the other. Several are read until a pairing begins, the link is lost, or all are to be read again.
    private mutating func read(_ handles: [UInt32], _ identifier: UUID) {
        let isStopped = Locked(false)
        if handles.count > 1 {
            links[identifier]?.stopReading?()
            links[identifier]?.stopReading = { isStopped.withLock { $0 = true } }
        }
        work("Reading …", identifier) { [loop] remote, directory in
            // Of a protected value BlueZ may send nothing, while the user waits for the others.
            let limit = min(Self.patience, remote.timeout)
            for handle in handles {
                guard let read = directory.readers[handle], !isStopped.withLock({ $0 }) else { continue }
                let result = await Result { try await read(limit) }
                let reading = AttributeTree.Reading(result)
                loop.send(.change { $0.state.devices[identifier]?.tree?[readingOf: handle] = reading })
                // Among several values, those that need a pairing say so in their lines.
                if handles.count == 1 { _ = try result.get() }
                if reading.hasFailed, remote.peripheral.state != .connected { return }
            }
        }
    }

    private mutating func notify(_ identifier: UUID, _ handle: UInt32, _ isOn: Bool) {
        guard let target = links[identifier]?.directory?.characteristics[handle]?.target else { return }
        if isOn, links[identifier]?.observed.insert(ObjectIdentifier(target)).inserted == true {
            let values: FutureStream<(characteristic: Characteristic, data: Data?)> =
                target.receiveNotificationUpdates()
            loop.observe(values) { _, data in
                data.map { data in .change { $0.received(data, identifier, handle) } }
            }
        }
        work(isOn ? "Subscribing …" : "Unsubscribing …", identifier) { [loop] remote, _ in
            let change: Future<Characteristic> =
                isOn ? target.startNotifying(timeout: remote.timeout) : target.stopNotifying(timeout: remote.timeout)
            _ = try await change.value
            loop.send(.change { $0.state.devices[identifier]?.setLive(handle, isOn) })
        }
    }

    private mutating func write(_ identifier: UUID, _ number: UInt32, _ text: String, _ form: ValueForm) {
        guard let argument = AttributeArgument(argument: AttributeArgument.text(of: number)),
            let remote = links[identifier]?.remote, state.devices[identifier]?.link == .connected
        else { return wrote(identifier, number, .failure(PeripheralError.disconnected)) }
        begin {
            try await remote.write(to: argument, withoutResponse: false) { try form.data(of: text, profile: $0) }.value
        } then: {
            $0.wrote(identifier, number, $1)
        }
    }

    private mutating func wrote(_ identifier: UUID, _ handle: UInt32, _ result: Result<AttributeValue, any Error>) {
        switch result {
        case .success(let value):
            state.form = nil
            state.say("Written: \(value.text)")
            guard case .characteristic(let entry)? = state.devices[identifier]?.tree?.attribute(handle),
                entry.properties.contains(.read)
            else { return }
            read([handle], identifier)
        case .failure(let error):
            state.form?.isSent = false
            state.say(RemoteFailure.text(for: error), isError: true)
        }
    }

    private mutating func received(_ data: Data, _ identifier: UUID, _ handle: UInt32) {
        let value = AttributeValue(data, profile: links[identifier]?.directory?.characteristics[handle]?.profile)
        state.devices[identifier]?.tree?[readingOf: handle] = .value(value)
    }
}
