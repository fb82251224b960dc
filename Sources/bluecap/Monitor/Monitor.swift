import BlueCapKit
import Foundation

/// Follows one peripheral: its advertisements without a connection, or the values of its characteristics.
struct Monitor: Sendable {
    fileprivate struct Source: Sendable {
        let label: String
        let characteristic: Characteristic
        let profile: CharacteristicProfile?
    }

    fileprivate enum Event: Sendable {
        case value(Data, Source, Date)
        /// Values may be missing.
        case gap(Date)
        case strength(Int, Date)
        /// A value could not be read.
        case unread(Source, any Error)
        /// The peripheral has been silent for long.
        case silent(Date)
        case state(ManagerState, String, Date)
        case connection(ConnectionEvent, Date)
        case failed(any Error)
        case readIsDue(Source)
        case timeIsOver
        case screen(ScreenEvent)
    }

    fileprivate typealias Loop = EventLoop<Event>

    let session: RemoteSession
    /// In seconds.
    var interval = 1.0
    /// In seconds.
    var window = 60.0
    /// The number of values; `nil` for no limit.
    let count: Int?
    /// In seconds; `nil` for no limit.
    let duration: Double?
    let format: Format
    /// How the values that are sent are printed, for `notify`; `nil` if the numbers in all values are plotted.
    var form: ValueForm?

    /// Returns when enough values have arrived, and if the task is cancelled after the first part of the work.
    func run(_ arguments: [AttributeArgument]) async throws {
        if arguments.isEmpty {
            try await session.find { manager, peripheral in
                let result = await Result { try await listen(manager, peripheral) }
                await manager.endScan()
                try result.get()
            }
        } else {
            try await session.run { remote in try await follow(arguments, remote) }
        }
    }

    // MARK: Advertisements

    private func listen(_ manager: CentralManager, _ peripheral: Peripheral) async throws {
        let identifier = peripheral.identifier
        try await Loop.run { loop in
            loop.observe(manager.whenPeripheralsExpire()) { $0.identifier == identifier ? .silent(Date()) : nil }
            loop.observe(manager.whenStateChanges()) { _ in
                let (state, explanation) = manager.standing
                return .state(state, explanation, Date())
            }
            let sightings = manager.startScanning(options: ScanOptions(allowsDuplicates: true))
            loop.observe(sightings, failure: Event.failed) {
                $0.identifier == identifier ? $0.rssi.map { .strength($0, Date()) } : nil
            }
            try await MonitorFollower(self, peripheral, loop).run()
        }
    }

    // MARK: Values

    private func follow(_ arguments: [AttributeArgument], _ remote: Remote) async throws {
        await session.console.stage("Subscribing …")
        let directory = try await remote.discover()
        let sending: CBCharacteristicProperties = [.notify, .indicate]
        try await Loop.run { loop in
            var readable: [Source] = []
            for argument in arguments {
                let (entry, target, profile) = try await remote.find(
                    argument, in: directory, usableFor: form == nil ? sending.union(.read) : sending)
                let source = Source(label: entry.label, characteristic: target, profile: profile)
                if form == nil, entry.properties.contains(.read) { readable.append(source) }
                guard !entry.properties.isDisjoint(with: sending) else {
                    loop.send(.readIsDue(source), after: interval)
                    continue
                }
                try await remote.subscribe(to: target, in: loop, failure: Event.failed) {
                    $0.map { .value($0, source, Date()) } ?? .gap(Date())
                }
            }
            // The newest values at once: the next ones may be sent only when they change.
            for source in readable { read(source, loop) }
            loop.observe(remote.events, failure: Event.failed) { .connection($0.connectionEvent, Date()) }
            try await MonitorFollower(self, remote.peripheral, loop).run()
        }
    }

    fileprivate func read(_ source: Source, _ loop: Loop) {
        loop.perform {
            do {
                let data = try await source.characteristic.read(from: 0, timeout: session.timeout).value
                loop.send(.value(data, source, Date()))
            } catch {
                loop.send(.unread(source, error))
            }
        }
    }
}

/// Takes the events of a monitor one by one to its display.
private struct MonitorFollower {
    let monitor: Monitor
    let peripheral: Peripheral
    let loop: Monitor.Loop
    var display: LiveDisplay<MonitorPlot>
    private var values = 0
    private var watch = RadioWatch()
    private var isConnected = true
    /// The characteristics without numbers of which the user was told.
    private var numberless: Set<String> = []

    init(_ monitor: Monitor, _ peripheral: Peripheral, _ loop: Monitor.Loop) {
        (self.monitor, self.peripheral, self.loop) = (monitor, peripheral, loop)
        let name = peripheral.knownName.map { DisplayText.name($0) + "  " } ?? ""
        let board = MonitorBoard(title: name + peripheral.address, window: monitor.window)
        display = LiveDisplay(board, monitor.format, in: loop) { .screen($0) }
    }

    /// Returns when enough values have arrived, the time is over, or the task is cancelled.
    consuming func run() async throws {
        await monitor.session.console.clear()
        try display.begin()
        if let duration = monitor.duration { loop.send(.timeIsOver, after: duration) }
        for await event in loop {
            if case .timeIsOver = event { break }
            try handle(event)
            if values == monitor.count { break }
        }
        let end = ValueEvent.finished(values: values, seconds: display.seconds)
        try display.end(summary: end.remark(.lines)) { end.line($0) }
        if monitor.format == .lines, let remark = end.remark(.lines) { display.remark(remark) }
    }

    private mutating func handle(_ event: Monitor.Event) throws {
        switch event {
        case .value(let data, let source, let date):
            values += 1
            let value = AttributeValue(data, profile: source.profile)
            if let form = monitor.form { return try display.show { ValueEvent.value(value, date).line($0, form) } }
            let quantities = Quantity.all(in: value, label: source.label)
            for (series, quantity) in quantities { try add(quantity, to: series, date) }
            if let rssi = peripheral.rssi {
                try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", date)
            }
            guard quantities.isEmpty, numberless.insert(source.label).inserted else { return }
            display.remark("The values of \(source.label) contain no number: `bluecap notify` prints them.")
        case .gap(let date):
            if monitor.form != nil { try beginGap(ValueEvent.gap(date).remark(.lines) ?? "", date) }
        case .strength(let rssi, let date):
            values += 1
            display.board.endGap(at: display.seconds)
            try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", date)
            for value in Sighting(peripheral).readings.flatMap(\.values) {
                guard case .number(let number) = value.value else { continue }
                try add(Quantity(number: number, unit: value.unit), to: value.label, date)
            }
        case .unread(let source, let error):
            // The loss of the link is reported as such.
            guard isConnected, peripheral.state == .connected else { return }
            display.remark("\(source.label): \(RemoteFailure.text(for: error))")
        case .silent(let date): try beginGap("The peripheral no longer advertises, or is out of range.", date)
        case .state(let state, let explanation, let date):
            guard let remark = watch.remark(state, explanation) else { return }
            if state == .poweredOn { display.remark(remark) } else { try beginGap(remark, date) }
        case .connection(.disconnect, let date):
            isConnected = false
            let remark = "The link was lost; trying to bring it back."
            if monitor.form == nil { try beginGap(remark, date) } else { display.remark(remark) }
            peripheral.reconnect()
        case .connection(.timeout, _): peripheral.reconnect()
        case .connection(.connect, _):
            defer { isConnected = true }
            guard !isConnected, monitor.form == nil else { return }
            display.board.endGap(at: display.seconds)
            display.remark("The link is back.")
        case .connection(.forceDisconnect, _), .connection(.giveUp, _): break
        case .failed(let error): throw error
        case .readIsDue(let source):
            if isConnected { monitor.read(source, loop) }
            loop.send(.readIsDue(source), after: monitor.interval)
        case .screen(let event): try display.handle(event)
        case .timeIsOver: break
        }
    }

    private mutating func add(_ quantity: Quantity, to series: String, _ date: Date) throws {
        display.board.add(quantity, to: series, at: display.seconds)
        try display.show { ValueEvent.sample(series: series, quantity, date).line($0) }
    }

    private mutating func beginGap(_ remark: String, _ date: Date) throws {
        display.board.beginGap(at: display.seconds)
        display.remark(remark)
        try display.show { ValueEvent.gap(date).line($0) }
    }
}
