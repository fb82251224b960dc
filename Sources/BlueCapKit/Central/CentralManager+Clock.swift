package import Foundation
import Reactor

/// The manager's clock for modules above this one, so that what they time stands still where a test holds the time.
extension CentralManager {
    /// Does the work once, on the thread that talks to the bus, that many seconds from now; at once where that is not
    /// more than zero.
    package func timer(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> ManagerTimer {
        // A century is as good as infinity, and the loop can add it to its time.
        let seconds = seconds > 0 ? min(seconds, 3e9) : 0
        let loop = session.loop
        let timer = loop.schedule(after: seconds, work)
        return ManagerTimer { loop.cancel(timer) }
    }
}

/// Something that a manager's clock is going to do.
package struct ManagerTimer: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    /// Nothing more comes of it, unless it is being done at this moment.
    package func cancel() { end() }
}
