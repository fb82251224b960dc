import BlueCapKit
import Foundation

/// One scan, from the wait for the adapter to the last line.
struct Scan: Sendable {
    private enum Event: Sendable {
        case sighted(Sighting, Date)
        case fellSilent(UUID, Date)
        case stateChanged
        case failed(any Error)
        case timeIsOver
        case screen(ScreenEvent)
    }

    let radio: Radio
    var services: [CBUUID] = []
    var weakestRSSI: Int?
    var filter = ScanFilter()
    /// After how many peripherals the scan ends, which without them is a failure; `nil` for no limit.
    var count: Int?
    /// In seconds; `nil` for a scan without end.
    var duration: Double?
    /// Whether every sighting has a line, and not only those that are news.
    var includesDuplicates = false
    /// Whether statistics follow the last line.
    var showsStatistics = false
    let format: Format
    /// Where lines are printed.
    var output = LineOutput()

    /// Scans until the time is over or the task is cancelled, and returns when BlueZ has confirmed the scan's end.
    ///
    /// - Throws: ``ToolFailure`` if there is no usable adapter, the scan fails, or the output cannot be written.
    func run() async throws {
        let manager = try CentralManager(configuration: radio.centralConfiguration)
        try await EventLoop<Event>.run { loop in
            var display = LiveDisplay<ScanTable>(ScanBoard(), format, in: loop) { .screen($0) }
            display.lines = output
            // Elsewhere a peripheral is discovered once, and counted.
            if format != .table || count != nil || showsStatistics { display.board.memory = .infinity }
            var failure: (any Error)?
            var seconds = 0.0
            do {
                try await radio.waitUntilUsable(manager.whenStateChanges()) { manager.standing }
                do { try await follow(manager, &display, loop) } catch { failure = error }
                seconds = display.seconds
                await manager.endScan()
            } catch is CancellationError {}
            do {
                try finish(&display, seconds, restarts: manager.statistics.scanRestarts)
            } catch {
                failure = failure ?? error
            }
            let isComplete = display.board.count >= count ?? 0
            // The end of a scan that was cancelled, or after its reader has left, is no failure, unless it was to wait.
            if let failure, !isComplete || !(failure is CancellationError) { throw failure }
            guard !isComplete else { return }
            try Task.checkCancellation()
            throw ToolFailure(
                "\(display.board.count) of \(Wording.count(count ?? 0, "peripheral")) found in \(Wording.tenths(seconds)).",
                "`bluecap scan` without filters lists what is in range.")
        }
    }

    private func follow(
        _ manager: CentralManager, _ display: inout LiveDisplay<ScanTable>, _ loop: EventLoop<Event>
    ) async throws {
        try display.begin()
        loop.observe(manager.whenStateChanges()) { _ in .stateChanged }
        loop.observe(manager.whenPeripheralsExpire()) { .fellSilent($0.identifier, Date()) }
        // Duplicates are always requested: a name may come after the first sighting, and the table shows the latest signal.
        let options = ScanOptions(allowsDuplicates: true, rssiThreshold: weakestRSSI, pattern: filter.prefix)
        let sightings = manager.startScanning(forServiceUUIDs: services, options: options)
        loop.observe(sightings, failure: Event.failed) { .sighted(Sighting($0), Date()) }
        if let duration { loop.send(.timeIsOver, after: duration) }
        var state = RadioWatch()
        for await event in loop {
            switch event {
            case .sighted(let sighting, let date):
                guard filter.accepts(sighting) else { continue }
                let event = display.board.see(sighting, at: display.seconds)
                try display.show { event.line($0, at: date, includesDuplicates: includesDuplicates) }
                if display.board.count == count { return }
            case .fellSilent(let identifier, let date):
                if let event = display.board.expire(identifier) { try display.show { event.line($0, at: date) } }
            case .stateChanged:
                let (present, explanation) = manager.standing
                if let remark = state.remark(present, explanation) { display.remark(remark) }
            case .failed(let error): throw radio.failure(ToolFailure.text(of: error), status: 1)
            case .timeIsOver: return
            case .screen(let event): try display.handle(event)
            }
        }
    }

    private func finish(_ display: inout LiveDisplay<ScanTable>, _ seconds: Double, restarts: Int) throws {
        let end = ScanEvent.finished(peripherals: display.board.count, seconds: seconds)
        let date = Date()
        let summary = end.line(.lines, at: date) ?? ""
        try display.end(summary: summary) { end.line($0, at: date) }
        if end.line(format, at: date) == nil { display.remark(summary) }
        guard showsStatistics else { return }
        let statistics = ScanStatistics(display.board, seconds: seconds, restarts: restarts)
        if format == .json {
            try display.show { _ in statistics.json(at: date).text }
        } else {
            try Output.error.write(statistics.text)
        }
    }
}

extension CentralManager {
    /// How long BlueZ may take to confirm the scan's end, in seconds.
    private static let stopPatience = 5.0

    /// Ends the scan, and waits until BlueZ has confirmed that.
    func endScan() async {
        stopScanning()
        await cleanUp(within: Self.stopPatience) { _ = try? await self.whenScanningStopped().value }
    }
}
