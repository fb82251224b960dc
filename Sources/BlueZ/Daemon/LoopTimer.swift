import Reactor

/// The one timer of a machine: starting it again, or letting go of it, ends what ran before.
///
/// On the loop only, and unchecked because of that.
final class LoopTimer: @unchecked Sendable {
    private let loop: any EventLoop
    private var id: TimerID?

    init(on loop: any EventLoop) { self.loop = loop }

    var isRunning: Bool { id != nil }

    func start(after seconds: Double, _ work: @escaping @Sendable () -> Void) {
        cancel()
        id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            id = nil
            work()
        }
    }

    func cancel() {
        if let id { loop.cancel(id) }
        id = nil
    }
}

extension Result {
    /// What went wrong, for those to whom a success says no more than that.
    var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
