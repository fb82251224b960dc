import BlueCapKit
import Foundation
import Logging

/// Monitors one peripheral: its advertisements without a connection, or the values of its characteristics.
struct Monitor: Sendable {
    /// How long BlueZ may take to confirm the scan's end, in seconds.
    private static let stopPatience = 5.0

    let session: RemoteSession
    /// In seconds.
    let interval: Double
    /// In seconds.
    let window: Double
    /// The number of values; `nil` for no limit.
    let count: Int?
    /// In seconds; `nil` for no limit.
    let duration: Double?
    let format: Format
    let terminal: Terminal

    /// Returns when enough values have arrived, and if the task is cancelled after the first part of the work.
    func run(_ arguments: [AttributeArgument]) async throws {
        if arguments.isEmpty {
            try await session.find { manager, peripheral in try await listen(manager, peripheral) }
        } else {
            try await session.run { remote in try await follow(arguments, remote) }
        }
    }

    private typealias Feed = AsyncStream<MonitorLoop.Input>.Continuation

    // MARK: Advertisements

    private func listen(_ manager: CentralManager, _ peripheral: Peripheral) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: MonitorLoop.Input.self)
        let identifier = peripheral.identifier
        await session.console.clear()
        var loop = makeLoop(peripheral, inputs, feed)
        manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext()) {
            if $0.identifier == identifier { feed.yield(.silent(Date())) }
        }
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { _ in
            let (state, explanation) = manager.standing
            feed.yield(.state(state, explanation, Date()))
        }
        manager.startScanning(options: ScanOptions(allowsDuplicates: true))
            .onComplete(context: ImmediateContext()) {
                switch $0 {
                case .success(let sighted):
                    guard sighted.identifier == identifier, let rssi = sighted.rssi else { return }
                    feed.yield(.strength(rssi, Date()))
                case .failure(let error): feed.yield(.failed(error))
                }
            }
        do {
            try await loop.run()
        } catch {
            await stop(manager)
            throw error
        }
        await stop(manager)
    }

    private func stop(_ manager: CentralManager) async {
        manager.stopScanning()
        await cleanUp(within: Self.stopPatience) { _ = try? await manager.whenScanningStopped().value }
    }

    // MARK: Values

    private func follow(_ arguments: [AttributeArgument], _ remote: Remote) async throws {
        await session.console.stage("Subscribing …")
        let directory = try await remote.discover()
        let (inputs, feed) = AsyncStream.makeStream(of: MonitorLoop.Input.self)
        let token = CancelToken()
        var loop = makeLoop(remote.peripheral, inputs, feed)
        var streams: [FutureStream<(characteristic: Characteristic, data: Data?)>] = []
        defer {
            for stream in streams { stream.cancel(token) }
            remote.events.cancel(token)
        }
        let sending: CBCharacteristicProperties = [.notify, .indicate]
        for argument in arguments {
            let (entry, target, profile) = try await remote.find(
                argument, in: directory, usableFor: sending.union(.read))
            let source = MonitorLoop.Source(label: entry.label, characteristic: target, profile: profile)
            // The newest value at once: the next one may be sent only when it changes.
            if entry.properties.contains(.read) { loop.readings.append(source) }
            guard !entry.properties.isDisjoint(with: sending) else {
                loop.polled.append(source)
                continue
            }
            let values: FutureStream<(characteristic: Characteristic, data: Data?)> =
                target.receiveNotificationUpdates()
            // On the library's thread, so that a value has the time at which it arrived.
            values.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
                switch outcome {
                case .success((_, let data?)): feed.yield(.value(source.value(data), source.label, Date()))
                case .success((_, nil)): break
                case .failure(let error): feed.yield(.failed(error))
                }
            }
            streams.append(values)
            let subscription: Future<Characteristic> = target.startNotifying(timeout: remote.timeout)
            _ = try await subscription.value
        }
        remote.events.onComplete(context: ImmediateContext(), cancelToken: token) { outcome in
            switch outcome {
            case .success((_, let event)): feed.yield(.connection(event, Date()))
            case .failure(let error): feed.yield(.failed(error))
            }
        }
        await session.console.clear()
        try await loop.run()
    }

    private func makeLoop(
        _ peripheral: Peripheral, _ inputs: AsyncStream<MonitorLoop.Input>, _ feed: Feed
    ) -> MonitorLoop {
        let name = peripheral.knownName.map { DisplayText.name($0) + "  " } ?? ""
        return MonitorLoop(
            monitor: self, peripheral: peripheral, inputs: inputs, feed: feed,
            display: MonitorDisplay(format: format, title: name + peripheral.address, terminal: terminal),
            board: MonitorBoard(window: window))
    }
}

/// Takes the inputs of a monitor one by one to its board and its display.
private struct MonitorLoop {
    struct Source: Sendable {
        let label: String
        let characteristic: Characteristic
        let profile: CharacteristicProfile?

        func value(_ data: Data) -> AttributeValue { AttributeValue(data, profile: profile) }
    }

    enum Input: Sendable {
        case value(AttributeValue, String, Date)
        case strength(Int, Date)
        /// A value could not be read.
        case unread(String, any Error)
        /// The peripheral has been silent for long.
        case silent(Date)
        case state(ManagerState, String, Date)
        case connection(ConnectionEvent, Date)
        case failed(any Error)
        case readIsDue
        case timeIsOver
        case frameIsDue
        case terminalChanged
        /// The process continues after it was stopped.
        case resumed
    }

    let monitor: Monitor
    let peripheral: Peripheral
    let inputs: AsyncStream<Input>
    let feed: AsyncStream<Input>.Continuation
    var display: MonitorDisplay
    var board: MonitorBoard
    /// What is read now.
    var readings: [Source] = []
    /// What is read at each interval.
    var polled: [Source] = []
    private var clock = Stopwatch()
    private var values = 0
    private var watch = RadioWatch()
    private var isConnected = true
    /// The characteristics without numbers of which the user was told.
    private var numberless: Set<String> = []

    init(
        monitor: Monitor, peripheral: Peripheral, inputs: AsyncStream<Input>,
        feed: AsyncStream<Input>.Continuation, display: MonitorDisplay, board: MonitorBoard
    ) {
        (self.monitor, self.peripheral, self.inputs, self.feed) = (monitor, peripheral, inputs, feed)
        (self.display, self.board) = (display, board)
    }

    /// Returns when enough values have arrived, the time is over, or the task is cancelled.
    mutating func run() async throws {
        clock = Stopwatch()
        if monitor.format == .table {
            LiveScreen.watchTerminal { [feed] in
                feed.yield(.terminalChanged)
            } resumed: { [feed] in
                feed.yield(.resumed)
            }
        }
        do {
            try display.begin(board)
            try await takeInputs()
        } catch {
            if monitor.format == .table { try? Output.standard.write(LiveScreen.end) }
            throw error
        }
        try display.show(.finished(values: values, seconds: clock.seconds), board, at: clock.seconds)
    }

    private mutating func takeInputs() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            if let duration = monitor.duration { group.yield(.timeIsOver, to: feed, after: duration) }
            if !polled.isEmpty { group.yield(.readIsDue, to: feed, after: monitor.interval) }
            startTasks(in: &group)
            for await input in inputs {
                switch input {
                case .timeIsOver: return
                case .readIsDue:
                    if isConnected { readings = polled }
                    group.yield(.readIsDue, to: feed, after: monitor.interval)
                default: try handle(input)
                }
                if values == monitor.count { return }
                startTasks(in: &group)
            }
        }
    }

    private mutating func startTasks(in group: inout ThrowingDiscardingTaskGroup<any Error>) {
        if let delay = display.view.takeRedrawDelay() { group.yield(.frameIsDue, to: feed, after: delay) }
        for source in readings {
            group.addTask { [feed, timeout = monitor.session.timeout] in
                do {
                    let read: Characteristic = try await source.characteristic.read(timeout: timeout).value
                    feed.yield(.value(source.value(read.dataValue ?? Data()), source.label, Date()))
                } catch {
                    feed.yield(.unread(source.label, error))
                }
            }
        }
        readings = []
    }

    private mutating func handle(_ input: Input) throws {
        let now = clock.seconds
        switch input {
        case .value(let value, let label, let date):
            values += 1
            let quantities = Quantity.all(in: value, label: label)
            for (series, quantity) in quantities { try add(quantity, to: series, date, at: now) }
            if let rssi = peripheral.rssi {
                try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", date, at: now)
            }
            guard quantities.isEmpty, numberless.insert(label).inserted else { return }
            display.remark("The values of \(label) contain no number: `bluecap notify` prints them.", at: now)
        case .strength(let rssi, let date):
            values += 1
            board.endGap(at: now)
            try add(Quantity(number: Double(rssi), unit: "dBm"), to: "RSSI", date, at: now)
        case .unread(let label, let error):
            // The loss of the link is reported as such.
            guard isConnected, peripheral.state == .connected else { return }
            display.remark("\(label): \(RemoteFailure.text(for: error))", at: now)
        case .silent(let date): try beginGap("The peripheral no longer advertises, or is out of range.", date, at: now)
        case .state(let state, let explanation, let date):
            guard let remark = watch.remark(state, explanation) else { return }
            if state == .poweredOn {
                display.remark(remark, at: now)
            } else {
                try beginGap(remark, date, at: now)
            }
        case .connection(.disconnect, let date):
            isConnected = false
            try beginGap("The link was lost; trying to bring it back.", date, at: now)
            peripheral.reconnect()
        case .connection(.timeout, _): peripheral.reconnect()
        case .connection(.connect, _):
            guard !isConnected else { return }
            isConnected = true
            board.endGap(at: now)
            display.remark("The link is back.", at: now)
        case .connection(.forceDisconnect, _), .connection(.giveUp, _): break
        case .failed(let error): throw error
        case .frameIsDue: try display.redraw(board, isForced: false, at: now)
        case .terminalChanged: try display.redraw(board, isForced: true, at: now)
        case .resumed: try display.resume(board, at: now)
        case .readIsDue, .timeIsOver: break
        }
    }

    private mutating func add(_ quantity: Quantity, to series: String, _ date: Date, at now: Double) throws {
        board.add(quantity, to: series, at: now)
        try display.show(.sample(series: series, quantity, date), board, at: now)
    }

    private mutating func beginGap(_ remark: String, _ date: Date, at now: Double) throws {
        board.beginGap(at: now)
        display.remark(remark, at: now)
        try display.show(.gap(date), board, at: now)
    }
}
