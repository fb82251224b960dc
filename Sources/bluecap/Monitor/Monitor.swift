import BlueCapKit
import Foundation

/// Follows peripherals: the advertisements of each without a connection, or the values of its characteristics.
struct Monitor: Sendable {
    /// A peripheral, and the characteristics that are followed; none of them for its advertisements.
    typealias Target = (session: RemoteSession, arguments: [AttributeArgument])

    fileprivate struct Source: Sendable {
        let entry: AttributeTree.Characteristic
        var label: String { entry.label }
        let characteristic: Characteristic
        let profile: CharacteristicProfile?
    }

    fileprivate enum Event: Sendable {
        /// The peripheral was found, and its characteristics send values. They have names by their handles.
        case ready(Peripheral, [UInt32: String])
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
        case timeIsOver
        case screen(ScreenEvent)
    }

    private typealias Loop = EventLoop<Event>
    /// Of the events of all peripherals, each with the peripheral's number.
    fileprivate typealias Feed = EventLoop<(origin: Int, event: Event)>

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
    var style: ValueStyle?
    /// Where lines are printed.
    var output = LineOutput()

    /// Returns when enough values have arrived, and if the task is cancelled after the first part of the work.
    func run(_ targets: [Target]) async throws {
        try await targets[0].session.console.run {
            try await Feed.run { feed in
                var (monitor, followed) = (self, [MonitorFollower.Followed]())
                var early: [(Int, Event)] = []
                // One after another, since connecting and scanning disturb each other.
                for (origin, target) in targets.enumerated() {
                    feed.perform {
                        let result = await Result { try await follow(target) { feed.send((origin, $0)) } }
                        if case .failure(let error) = result { feed.send((origin, .failed(error))) }
                    }
                    waiting: for await event in feed {
                        switch event {
                        case (_, .ready(let peripheral, let names)):
                            monitor.style?.names = names
                            let name = targets.count == 1 ? "" : target.session.argument.text
                            followed.append(.init(name: name, peripheral: peripheral))
                            break waiting
                        case (_, .failed(let error)): throw error
                        default: early.append(event)
                        }
                    }
                    guard followed.count > origin else { throw CancellationError() }
                }
                for event in early { feed.send(event) }
                await targets[0].session.console.clear()
                targets[0].session.whenReady()
                try await MonitorFollower(monitor, followed, feed).run()
            }
        } failure: {
            ToolFailure(RemoteFailure.text(for: $0))
        }
    }

    private typealias Send = @Sendable (Event) -> Void

    private func follow(_ target: Target, _ send: @escaping Send) async throws {
        if target.arguments.isEmpty {
            try await target.session.find { manager, peripheral in
                let result = await Result { try await listen(manager, peripheral, send) }
                await manager.endScan()
                try result.get()
            }
        } else {
            try await target.session.run { remote in try await follow(target.arguments, remote, send) }
        }
    }

    /// Throws what fails within the session of the peripheral, which knows the reason.
    private func forward(
        _ loop: Loop, of peripheral: Peripheral, _ names: [UInt32: String], _ send: Send
    ) async throws {
        send(.ready(peripheral, names))
        for await event in loop {
            if case .failed(let error) = event { throw error }
            send(event)
        }
    }

    // MARK: Advertisements

    private func listen(_ manager: CentralManager, _ peripheral: Peripheral, _ send: Send) async throws {
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
            try await forward(loop, of: peripheral, [:], send)
        }
    }

    // MARK: Values

    private func follow(_ arguments: [AttributeArgument], _ remote: Remote, _ send: Send) async throws {
        await remote.console.stage("Subscribing …")
        let sending: CBCharacteristicProperties = [.notify, .indicate]
        try await Loop.run { loop in
            var (sources, readable, names): ([Source], [Source], [UInt32: String]) = ([], [], [:])
            for argument in arguments {
                let (entry, target, profile) = try await remote.find(
                    argument, usableFor: style == nil ? sending.union(.read) : sending)
                guard names[entry.handle] == nil else { continue }
                names[entry.handle] = entry.label
                let source = Source(entry: entry, characteristic: target, profile: profile)
                if style == nil, entry.properties.contains(.read) { readable.append(source) }
                guard !entry.properties.isDisjoint(with: sending) else {
                    loop.perform {
                        while (try? await Task.sleep(for: .seconds(interval))) != nil {
                            if remote.peripheral.state == .connected { read(source, loop, remote.timeout) }
                        }
                    }
                    continue
                }
                sources.append(source)
                try await remote.subscribe(to: target, in: loop, failure: Event.failed) {
                    $0.map { .value($0, source, Date()) } ?? .gap(Date())
                }
            }
            // The newest values at once: the next ones may be sent only when they change.
            for source in readable { read(source, loop, remote.timeout) }
            // A shell restores the link itself, and goes on without the subscriptions.
            guard RemoteSession.shared != nil else {
                loop.observe(remote.events, failure: Event.failed) { .connection($0.connectionEvent, Date()) }
                return try await forward(loop, of: remote.peripheral, names, send)
            }
            let result = await Result { try await forward(loop, of: remote.peripheral, names, send) }
            await cleanUp(within: remote.timeout) { [sources] in
                for source in sources {
                    _ = try? await source.characteristic.stopNotifying(timeout: remote.timeout).value
                }
            }
            try result.get()
        }
    }

    private func read(_ source: Source, _ loop: Loop, _ timeout: Double) {
        loop.perform {
            do {
                let data = try await source.characteristic.read(from: 0, timeout: timeout).value
                loop.send(.value(data, source, Date()))
            } catch {
                loop.send(.unread(source, error))
            }
        }
    }
}

/// Takes the events of a monitor one by one to its display.
private struct MonitorFollower {
    struct Followed {
        /// As the command line names it; empty if it is the only one.
        let name: String
        let peripheral: Peripheral
        var watch = RadioWatch()
        var isConnected = true
    }

    let monitor: Monitor
    let loop: Monitor.Feed
    var display: LiveDisplay<MonitorPlot>
    private var followed: [Followed]
    private var values = 0
    /// The characteristics without numbers of which the user was told.
    private var numberless: Set<String> = []

    init(_ monitor: Monitor, _ followed: [Followed], _ loop: Monitor.Feed) {
        (self.monitor, self.followed, self.loop) = (monitor, followed, loop)
        let peripherals = followed.map(\.peripheral)
        let titles = peripherals.map { ($0.knownName.map { DisplayText.name($0) + "  " } ?? "") + $0.address }
        let board = MonitorBoard(title: titles.joined(separator: ", "), window: monitor.window)
        display = LiveDisplay(board, monitor.format, in: loop) { (0, .screen($0)) }
        display.lines = monitor.output
    }

    /// Returns when enough values have arrived, the time is over, or the task is cancelled.
    consuming func run() async throws {
        try display.begin()
        if let duration = monitor.duration { loop.send((0, .timeIsOver), after: duration) }
        for await (origin, event) in loop {
            if case .timeIsOver = event { break }
            try handle(event, of: origin)
            if values == monitor.count { break }
        }
        let end = ValueEvent.finished(values: values, seconds: display.seconds)
        try display.end(summary: end.remark(.lines)) { end.line($0) }
        if monitor.format == .lines, let remark = end.remark(.lines) { display.remark(remark) }
    }

    private mutating func handle(_ event: Monitor.Event, of origin: Int) throws {
        let peripheral = followed[origin].peripheral
        switch event {
        case .value(let data, let source, let date):
            values += 1
            let value = AttributeValue(data, profile: source.profile)
            if let style = monitor.style {
                return try display.show { ValueEvent.value(value, of: source.entry, date).line($0, style) }
            }
            let quantities = Quantity.all(in: value, label: source.label, raw: monitor.format == .json)
            for (series, quantity) in quantities { try add(quantity, to: series, of: origin, date) }
            if let rssi = peripheral.rssi {
                try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", of: origin, date)
            }
            guard quantities.isEmpty, numberless.insert(source.label).inserted else { return }
            remark("The values of \(source.label) contain no number: `bluecap notify` prints them.", of: origin)
        case .gap(let date):
            if monitor.style != nil { try beginGap(ValueEvent.gap(date).remark(.lines) ?? "", of: origin, date) }
        case .strength(let rssi, let date):
            values += 1
            display.board.endGap(of: origin, at: seconds(at: date))
            try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", of: origin, date)
            for value in Sighting(peripheral).readings.flatMap(\.values) {
                guard case .number(let number) = value.value else { continue }
                try add(Quantity(number: number, unit: value.unit), to: value.label, of: origin, date)
            }
        case .unread(let source, let error):
            // The loss of the link is reported as such.
            guard followed[origin].isConnected, peripheral.state == .connected else { return }
            remark("\(source.label): \(RemoteFailure.text(for: error))", of: origin)
        case .silent(let date):
            try beginGap("The peripheral no longer advertises, or is out of range.", of: origin, date)
        case .state(let state, let explanation, let date):
            guard let text = followed[origin].watch.remark(state, explanation) else { return }
            if state == .poweredOn { remark(text, of: origin) } else { try beginGap(text, of: origin, date) }
        case .connection(.disconnect, let date):
            followed[origin].isConnected = false
            if monitor.style == nil {
                try beginGap(Wording.linkIsLost, of: origin, date)
            } else {
                remark(Wording.linkIsLost, of: origin)
            }
            peripheral.reconnect()
        case .connection(.timeout, _): peripheral.reconnect()
        case .connection(.connect, let date):
            defer { followed[origin].isConnected = true }
            guard !followed[origin].isConnected, monitor.style == nil else { return }
            display.board.endGap(of: origin, at: seconds(at: date))
            remark(Wording.linkIsBack, of: origin)
        case .connection(.forceDisconnect, _), .connection(.giveUp, _): break
        case .failed(let error): throw error
        case .screen(let event): try display.handle(event)
        case .ready, .timeIsOver: break
        }
    }

    private mutating func add(_ quantity: Quantity, to series: String, of origin: Int, _ date: Date) throws {
        let name = followed[origin].name
        display.board.add(
            quantity, to: name.isEmpty ? series : "\(name)  \(series)", of: origin, at: seconds(at: date))
        try display.show { ValueEvent.sample(series: series, quantity, date).line($0, of: name) }
    }

    /// The seconds on the axis of time; negative for a value that arrived before the last peripheral was connected.
    private func seconds(at date: Date) -> Double { display.seconds - max(0, Date().timeIntervalSince(date)) }

    private mutating func remark(_ text: String, of origin: Int) {
        display.remark(followed[origin].name.isEmpty ? text : "\(followed[origin].name): \(text)")
    }

    private mutating func beginGap(_ text: String, of origin: Int, _ date: Date) throws {
        display.board.beginGap(of: origin, at: seconds(at: date))
        remark(text, of: origin)
        try display.show { [name = followed[origin].name] in ValueEvent.gap(date).line($0, of: name) }
    }
}
