import Dispatch
import Foundation

/// Turns signals into calls on a queue, instead of the end of the process.
///
/// The watch lasts as long as the process: a second Ctrl-C, while the first is still being worked off, must be heard.
enum SignalWatcher {
    private static let queue = DispatchQueue(label: "bluecap.signals")

    /// What makes a user's wish to end a scan: Ctrl-C, `kill`, a closed terminal.
    static let endings = [SIGINT, SIGTERM, SIGHUP]

    /// The signals that whoever started us wanted ignored: `nohup` does so, and shells for commands in the background.
    static let ignoredAtStart: Set<Int32> = {
        var ignored: Set<Int32> = []
        for number in endings + [SIGQUIT, SIGPIPE] {
            var action = sigaction()
            sigaction(number, nil, &action)
            let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            if handler == unsafeBitCast(SIG_IGN, to: Int.self) { ignored.insert(number) }
        }
        return ignored
    }()

    /// Calls `handler` with each of the signals, and with how many have come so far.
    ///
    /// Returns when all of them are watched: a source is registered on another thread, and a signal that comes before is lost.
    ///
    /// A hang-up that was ignored stays so, for `nohup`'s sake. An interrupt is heard also where it was ignored:
    /// shells do that to every command in the background, and `kill -INT` is how a script ends a scan.
    static func watch(_ signals: [Int32], _ handler: @escaping @Sendable (_ signal: Int32, _ count: Int) -> Void) {
        let tally = Tally()
        for number in signals where number != SIGHUP || !ignoredAtStart.contains(SIGHUP) {
            // The default action would end the process before the source is asked.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                tally.count += 1
                handler(number, tally.count)
            }
            tally.sources.append(source)
            let isRegistered = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isRegistered.signal() }
            source.activate()
            isRegistered.wait()
        }
    }

    /// Unchecked because each field has one place where it is touched.
    private final class Tally: @unchecked Sendable {
        /// Touched on the signal queue alone.
        var count = 0
        /// Touched while the watch is being set up alone; kept, because a source ends with its last reference.
        var sources: [any DispatchSourceSignal] = []
    }
}
