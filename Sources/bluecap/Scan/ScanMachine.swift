import Foundation

/// A scan from the first question to the last line, as a value.
///
/// | phase | event | goes to | effects |
/// |---|---|---|---|
/// | waiting | radio ready | scanning | start scan and clock |
/// | waiting | radio unusable | ended | end, failed |
/// | waiting | patience over | ended | end, failed |
/// | waiting | interrupt, reader left | ended | finished (0) and end |
/// | scanning | sighting, expiry | | report |
/// | scanning | radio away, or back | | notice |
/// | scanning | interrupt, time over, reader left, scan failed | stopping | stop scan |
/// | stopping | discovery is off, or its end overdue | ended | finished and end |
///
/// Times are seconds on a monotonic clock, given with each event.
struct ScanMachine {
    /// Whether the radio can be used.
    enum Radio: Equatable, Sendable {
        case ready
        /// Gone for the moment; it comes back by itself.
        case away(String)
        /// Not to be used: what is wrong, and what helps.
        case unusable(String)
    }

    enum Event: Equatable, Sendable {
        case radio(Radio)
        case sighted(Sighting)
        case fellSilent(UUID)
        /// The scan's stream failed.
        case scanFailed(String)
        /// BlueZ has confirmed that our discovery is off.
        case discoveryIsOff
        /// Nobody has said for long whether the radio can be used.
        case patienceIsOver(String)
        /// BlueZ does not confirm it; our discovery ends with us.
        case stopIsOverdue
        case timeIsOver
        case interrupted
        /// Nobody reads the output any more.
        case readerLeft
    }

    enum Ending: Equatable, Sendable {
        case asked
        case readerLeft
        case failed(String)
    }

    enum Effect: Equatable {
        case startScan
        /// Tells the time, once, after so many seconds.
        case startClock(Double)
        case report(ScanEvent)
        /// One line for people, not part of the output.
        case notice(String)
        case stopScan
        case end(Ending)
    }

    private enum Phase: Equatable {
        case waiting
        case scanning(since: Double)
        case stopping(Ending, ScanSummary)
        case ended
    }

    private struct Acquaintance {
        var sighting: Sighting
        var isAbout = true
    }

    private let duration: Double?
    private var phase: Phase = .waiting
    private var known: [UUID: Acquaintance] = [:]
    private var isRadioAway = false

    /// - Parameter duration: seconds that the scan lasts; `nil` for until it is interrupted.
    init(duration: Double?) { self.duration = duration }

    mutating func handle(_ event: Event, at now: Double) -> [Effect] {
        switch phase {
        case .waiting: handleWhileWaiting(event, at: now)
        case .scanning(let start): handleWhileScanning(event, since: start, at: now)
        case .stopping(let ending, let summary): handleWhileStopping(event, ending, summary)
        case .ended: []
        }
    }

    private mutating func handleWhileWaiting(_ event: Event, at now: Double) -> [Effect] {
        switch event {
        case .radio(.ready):
            phase = .scanning(since: now)
            return [.startScan] + (duration.map { [.startClock($0)] } ?? [])
        case .radio(.unusable(let why)):
            phase = .ended
            return [.end(.failed(why))]
        case .interrupted:
            phase = .ended
            return [.report(.finished(ScanSummary(peripherals: 0, seconds: 0))), .end(.asked)]
        case .readerLeft:
            phase = .ended
            return [.end(.readerLeft)]
        case .radio(.away(let why)):
            return [.notice(why)]
        case .patienceIsOver(let why):
            phase = .ended
            return [.end(.failed(why))]
        case .sighted, .fellSilent, .scanFailed, .discoveryIsOff, .timeIsOver, .stopIsOverdue:
            return []
        }
    }

    private mutating func handleWhileScanning(_ event: Event, since start: Double, at now: Double) -> [Effect] {
        switch event {
        case .sighted(let sighting):
            return [.report(meet(sighting))]
        case .fellSilent(let identifier):
            guard let lost = known[identifier], lost.isAbout else { return [] }
            known[identifier]?.isAbout = false
            return [.report(.expired(lost.sighting))]
        case .radio(.ready):
            guard isRadioAway else { return [] }
            isRadioAway = false
            return [.notice("Bluetooth is back; the scan goes on.")]
        case .radio(.away(let why)), .radio(.unusable(let why)):
            isRadioAway = true
            return [.notice(why + " The scan goes on when it is back.")]
        case .scanFailed(let why):
            return stop(.failed(why), since: start, at: now)
        case .timeIsOver, .interrupted:
            return stop(.asked, since: start, at: now)
        case .readerLeft:
            return stop(.readerLeft, since: start, at: now)
        case .discoveryIsOff, .patienceIsOver, .stopIsOverdue:
            return []
        }
    }

    private mutating func handleWhileStopping(_ event: Event, _ ending: Ending, _ summary: ScanSummary) -> [Effect] {
        switch event {
        case .discoveryIsOff, .stopIsOverdue:
            phase = .ended
            return [.report(.finished(summary)), .end(ending)]
        case .radio, .sighted, .fellSilent, .scanFailed, .timeIsOver, .interrupted, .readerLeft, .patienceIsOver:
            return []
        }
    }

    private mutating func stop(_ ending: Ending, since start: Double, at now: Double) -> [Effect] {
        phase = .stopping(ending, ScanSummary(peripherals: known.count, seconds: now - start))
        return [.stopScan]
    }

    private mutating func meet(_ sighting: Sighting) -> ScanEvent {
        guard let earlier = known.updateValue(Acquaintance(sighting: sighting), forKey: sighting.identifier) else {
            return .discovered(sighting)
        }
        return .updated(sighting, isNews: !earlier.isAbout || sighting.tellsMore(than: earlier.sighting))
    }
}
