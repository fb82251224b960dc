import BlueCapKit
import Dispatch
import Foundation
import Logging

/// Runs one scan: what comes from the radio, the clock, the user and the terminal goes, one by one, through a
/// `ScanMachine`, and what that decides is done here.
///
/// All waiting is for the next input; nobody else touches the state, which lives in `run`.
struct ScanSession: Sendable {
    enum Input: Sendable {
        case event(ScanMachine.Event)
        case frameIsDue
        case terminalChanged
        /// The process goes on after it was stopped.
        case resumed
    }

    /// How long a daemon may take to say how things stand, in seconds: one that starts, on a slow machine.
    private static let patience = 10.0
    /// How long it may take to confirm the scan's end.
    private static let stopPatience = 5.0

    let request: ScanRequest
    let logger: Logger
    private let inputs: AsyncStream<Input>
    private let feed: AsyncStream<Input>.Continuation

    init(_ request: ScanRequest, logger: Logger) {
        self.request = request
        self.logger = logger
        (inputs, feed) = AsyncStream.makeStream(of: Input.self)
    }

    /// Tells the session what happened outside; from any thread.
    func post(_ input: Input) { feed.yield(input) }

    /// Scans until the end that the request or the user wants.
    ///
    /// - Throws: ``ToolFailure`` where there is no radio, it fails, or the output cannot be written.
    func run(on display: some ScanDisplay) async throws {
        let manager = CentralManager(options: request.managerOptions)
        watch(manager)
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { [weak manager] in
            guard let standing = manager?.standing else { return }
            // Powered on just now: word of that is on its way.
            if standing.state != .poweredOn { post(.event(.patienceIsOver(standing.explanation))) }
        }
        var machine = ScanMachine(duration: request.duration)
        var display = display
        var failure: ToolFailure?
        /// Whoever leaves, and a full disk, end the scan alike; they differ in what is said in the end.
        func heed(_ outcome: Output.Outcome) {
            guard outcome != .written else { return }
            failure = failure ?? outcome.failure
            post(.event(.readerLeft))
        }
        let origin = DispatchTime.now().uptimeNanoseconds
        for await input in inputs {
            let now = Double(DispatchTime.now().uptimeNanoseconds - origin) / 1e9
            switch input {
            case .event(let event):
                for effect in machine.handle(event, at: now) {
                    if case .end(let ending) = effect { return try finish(ending, failure) }
                    heed(perform(effect, manager, &display, at: now))
                }
            case .frameIsDue:
                heed(display.redraw(isForced: false, at: now))
            case .terminalChanged:
                heed(display.redraw(isForced: true, at: now))
            case .resumed:
                display.resume(at: now)
            }
            if let delay = display.takeRedrawDelay() { post(.frameIsDue, after: delay) }
        }
    }

    // MARK: Effects

    private func perform(
        _ effect: ScanMachine.Effect, _ manager: CentralManager, _ display: inout some ScanDisplay, at now: Double
    ) -> Output.Outcome {
        switch effect {
        case .startScan:
            logger.info("scanning", metadata: ["services": "\(request.services)"])
            display.begin(at: now)
            scan(with: manager)
        case .startClock(let seconds):
            post(.event(.timeIsOver), after: seconds)
        case .report(let event):
            return display.show(event, at: now)
        case .notice(let text):
            display.notice(text, at: now)
        case .stopScan:
            logger.info("stopping")
            manager.stopScanning()
            manager.whenScanningStopped().onComplete(context: ImmediateContext()) { _ in
                post(.event(.discoveryIsOff))
            }
            post(.event(.stopIsOverdue), after: Self.stopPatience)
        case .end:
            break
        }
        return .written
    }

    private func finish(_ ending: ScanMachine.Ending, _ failure: ToolFailure?) throws {
        switch ending {
        case .asked, .readerLeft:
            logger.info("finished")
            if let failure { throw failure }
        case .failed(let why): throw ToolFailure(why, request.busAddress == nil ? ToolFailure.wayOut : "")
        }
    }

    // MARK: Inputs

    private func watch(_ manager: CentralManager) {
        // On the thread that talks to the bus: a sighting is taken down as it is when it is heard.
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { [weak manager] _ in
            // How things stand now, which may be another state already: the explanation is of no other.
            guard let (state, explanation) = manager?.standing else { return }
            logger.info("state", metadata: ["state": "\(state)", "why": "\(explanation)"])
            if let radio = ScanMachine.Radio(state, explanation: explanation) {
                post(.event(.radio(radio)))
            }
        }
        manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext()) { peripheral in
            post(.event(.fellSilent(peripheral.identifier)))
        }
    }

    private func scan(with manager: CentralManager) {
        let stream = manager.startScanning(
            forServiceUUIDs: request.services, options: request.scanOptions)
        stream.onSuccess(context: ImmediateContext()) { peripheral in
            let sighting = Sighting(peripheral)
            logger.trace("heard", metadata: ["address": "\(sighting.address)", "rssi": "\(peripheral.RSSI)"])
            post(.event(.sighted(sighting)))
        }
        stream.onFailure(context: ImmediateContext()) { error in
            let why = (error as? any LocalizedError)?.errorDescription ?? "\(error)"
            post(.event(.scanFailed(why)))
        }
    }

    private func post(_ input: Input, after seconds: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { post(input) }
    }
}

extension ScanMachine.Radio {
    /// `nil` while nothing is known.
    init?(_ state: ManagerState, explanation: String) {
        switch state {
        case .unknown: return nil
        case .poweredOn: self = .ready
        case .resetting: self = .away(explanation)
        case .unsupported, .unauthorized, .poweredOff: self = .unusable(explanation)
        }
    }
}
