import BlueCapKit
import Foundation
import Logging

/// One scan, from the wait for the adapter to the last line.
struct Scan: Sendable {
    private enum Input: Sendable {
        case sighted(Sighting)
        case fellSilent(UUID)
        case stateChanged
        case failed(String)
        case timeIsOver
        case frameIsDue
        case terminalChanged
        /// The process continues after it was stopped.
        case resumed
    }

    /// How long BlueZ may take to confirm the scan's end, in seconds.
    private static let stopPatience = 5.0

    let radio: Radio
    var services: [CBUUID] = []
    var weakestRSSI: Int?
    var namePrefix: String?
    /// In seconds; `nil` for a scan without end.
    var duration: Double?
    /// Whether statistics follow the last line.
    var showsStatistics = false

    /// Scans until the time is over or the task is cancelled, and returns when BlueZ has confirmed the scan's end.
    ///
    /// - Throws: ``ToolFailure`` if there is no usable adapter, the scan fails, or the output cannot be written.
    func run(on display: ScanDisplay) async throws {
        let manager = try CentralManager(configuration: radio.centralConfiguration)
        var (display, board, clock) = (display, ScanBoard(), Stopwatch())
        var failure: (any Error)?
        var seconds = 0.0
        do {
            try await radio.waitUntilUsable(manager.whenStateChanges()) { manager.standing }
            clock = Stopwatch()
            do { try await follow(manager, &display, &board, clock) } catch { failure = error }
            seconds = clock.seconds
            await stop(manager)
        } catch var problem as ToolFailure {
            problem.status = 1
            throw problem
        } catch is CancellationError {}
        do {
            try display.show(.finished(peripherals: board.count, seconds: seconds), board, at: clock.seconds)
            if showsStatistics {
                let restarts = manager.statistics.scanRestarts
                let statistics = ScanStatistics(board, seconds: seconds, restarts: restarts)
                if display.format == .json {
                    try Output.standard.write(statistics.json.text + "\n")
                } else {
                    try Output.error.write(statistics.text)
                }
            }
        } catch {
            failure = failure ?? error
        }
        // The end of a scan that was cancelled, or after its reader has left, is no failure.
        if let failure, !(failure is CancellationError) { throw failure }
    }

    private func follow(
        _ manager: CentralManager, _ display: inout ScanDisplay, _ board: inout ScanBoard, _ clock: Stopwatch
    ) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        if display.format == .table {
            LiveScreen.watchTerminal {
                feed.yield(.terminalChanged)
            } resumed: {
                feed.yield(.resumed)
            }
        }
        try display.begin(board)
        start(manager, feed)
        var state = RadioWatch()
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            if let duration { group.yield(.timeIsOver, to: feed, after: duration) }
            if let delay = display.view.takeRedrawDelay() { group.yield(.frameIsDue, to: feed, after: delay) }
            for await input in inputs {
                let now = clock.seconds
                switch input {
                case .sighted(let sighting):
                    let event = board.see(sighting, at: now)
                    try display.show(event, board, at: now)
                case .fellSilent(let identifier):
                    if let event = board.expire(identifier) { try display.show(event, board, at: now) }
                case .stateChanged:
                    let (present, explanation) = manager.standing
                    if let remark = state.remark(present, explanation) { display.remark(remark, at: now) }
                case .failed(let why): throw radio.failure(why, status: 1)
                case .timeIsOver: return
                case .frameIsDue: try display.redraw(board, isForced: false, at: now)
                case .terminalChanged: try display.redraw(board, isForced: true, at: now)
                case .resumed: try display.resume(board, at: now)
                }
                if let delay = display.view.takeRedrawDelay() { group.yield(.frameIsDue, to: feed, after: delay) }
            }
        }
    }

    /// Starts the scan. Events are recorded on the library's thread, so that a sighting has the values of its moment.
    private func start(_ manager: CentralManager, _ feed: AsyncStream<Input>.Continuation) {
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { _ in feed.yield(.stateChanged) }
        manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext()) {
            feed.yield(.fellSilent($0.identifier))
        }
        // Duplicates are always requested: a name may come after the first sighting, and the table shows the latest signal.
        let options = ScanOptions(allowsDuplicates: true, rssiThreshold: weakestRSSI, pattern: namePrefix)
        manager.startScanning(forServiceUUIDs: services, options: options).onComplete(context: ImmediateContext()) {
            switch $0 {
            case .success(let peripheral):
                feed.yield(.sighted(Sighting(peripheral)))
            case .failure(let error): feed.yield(.failed(ToolFailure.text(of: error)))
            }
        }
    }

    private func stop(_ manager: CentralManager) async {
        manager.stopScanning()
        await cleanUp(within: Self.stopPatience) { _ = try? await manager.whenScanningStopped().value }
    }
}
