import BlueCapDBus
import BlueCapReactor

/// Connects and disconnects the devices of each adapter, one attempt at a time in the whole process.
///
/// On the loop only, and unchecked because of that.
package final class Connector: @unchecked Sendable {
    private struct User {
        /// Whether the turn is for `Connect`, and not for another call that connects.
        var callsConnect = true
        var pausesScans = true
        let started: @Sendable () -> Void
        let completion: BlueZCompletion<Void>
    }

    /// An adapter's machine with its timers and its users.
    private final class Session: @unchecked Sendable {
        var machine = LinkMachine()
        let timer: LoopTimer
        /// Resumes the adapter's scans.
        let pauseTimer: LoopTimer
        var users: [ConnectID: User] = [:]
        var disconnections: [ObjectKey: [BlueZCompletion<Void>]] = [:]

        init(on loop: any EventLoop) { (timer, pauseTimer) = (LoopTimer(on: loop), LoopTimer(on: loop)) }
    }

    /// Seconds that a read of `Connected` may take: `bluetoothd` does not reply to calls while it discovers services.
    private static let confirmationLimit = 10.0
    /// Seconds for which scans pause when an attempt begins. A controller reports an advertiser once per scan, and the
    /// kernel restarts its scan every 10.24 s: during an open discovery BlueZ may receive the peripheral only then
    /// (measured: 10.4 s instead of 0.06). A peripheral that does not connect within these seconds is not near, and the
    /// scans for other peripherals continue.
    private static let pauseLimit = 3.0
    /// Seconds for which the completion waits for the property: `Connected` turns false some ten milliseconds after the reply
    /// to `Disconnect` (seen with 5.66).
    private static let fallLimit = 0.25

    private let daemon: DaemonLink
    private let discovery: SharedDiscovery
    private let loop: any EventLoop
    /// Kept as long as the client, since their requests may be answered late.
    private var sessions: [ObjectKey: Session] = [:]

    init(_ daemon: DaemonLink, _ discovery: SharedDiscovery) {
        self.daemon = daemon
        self.discovery = discovery
        loop = daemon.loop
    }

    // MARK: Links

    /// Connects a device by `Device1.Connect`. On the loop only, as `completion` is, which comes exactly once and never
    /// before this returns.
    ///
    /// One attempt is under way on each adapter in the whole process; the others wait for their turn. Success means that
    /// the tree shows the link, and that BlueZ has begun to discover services. An attempt that has lasted
    /// ``LinkMachine/turnLimit`` while others wait, or ``LinkMachine/attemptLimit``, is cancelled, and fails with `noReply`
    /// once BlueZ has ended it.
    /// - Parameter pausesScans: Whether scans of the adapter pause for the first seconds of the turn.
    /// - Parameter started: Called on the loop at the beginning of the turn; before this returns if that is at once.
    /// - Returns: The argument of ``cancel(_:)``.
    @discardableResult
    package func connect(
        _ device: ObjectKey, pausesScans: Bool = true, started: @escaping @Sendable () -> Void = {},
        completion: @escaping BlueZCompletion<Void>
    ) -> ConnectID {
        request(device, User(pausesScans: pausesScans, started: started, completion: completion))
    }

    private func request(_ device: ObjectKey, _ user: User) -> ConnectID {
        daemon.requireLoop()
        let id = ConnectID(daemon.makeID())
        guard daemon.objects.contains(device) else {
            loop.post { user.completion(.failure(.noSuchObject)) }
            return id
        }
        session(of: device.adapter).users[id] = user
        run(device.adapter) { $0.requested(id, device) }
        return id
    }

    /// Takes a turn to connect a device by another call than `Connect`, which the user makes in `started`, called as that of
    /// ``connect(_:pausesScans:started:completion:)``. The turn lasts until ``endTurn(_:)`` or ``cancel(_:)``. A turn that
    /// has lasted too long, as an attempt to connect may, is ended by `Disconnect`.
    func takeTurn(_ device: ObjectKey, started: @escaping @Sendable () -> Void) -> ConnectID {
        request(device, User(callsConnect: false, started: started, completion: { _ in }))
    }

    /// The user's call has connected the device or has failed.
    ///
    /// - Returns: Whether the turn lasted until now.
    func endTurn(_ id: ConnectID) -> Bool {
        for (adapter, session) in sessions {
            guard let attempt = session.machine.attempt, attempt.id == id else { continue }
            run(adapter) { $0.connectReplied(id, attempt.device, error: nil) }
            return attempt.reason == nil
        }
        return false
    }

    /// Cancels one attempt: it completes with `Canceled`, once BlueZ has ended it if it was under way, and a link that it has
    /// made; after ``LinkMachine/endLimit`` if BlueZ does not. Does nothing if the attempt has ended. On the loop only.
    package func cancel(_ id: ConnectID) {
        daemon.requireLoop()
        for adapter in sessions.keys { run(adapter) { $0.cancelled(id) } }
    }

    /// Ends a link by `Device1.Disconnect`. On the loop only, as `completion` is, which comes exactly once and never before
    /// this returns: when the link is down, some two seconds later, or after ``LinkMachine/endLimit``. Attempts to connect
    /// the device wait until then.
    package func disconnect(_ device: ObjectKey, completion: @escaping BlueZCompletion<Void> = { _ in }) {
        daemon.requireLoop()
        guard daemon.objects.contains(device) else { return loop.post { completion(.failure(.noSuchObject)) } }
        session(of: device.adapter).disconnections[device, default: []].append(completion)
        run(device.adapter) { $0.disconnectAsked(device) }
    }

    /// Runs `body` when the end of a device's link that is under way has been confirmed or has failed; at once if none is.
    func afterDisconnection(of device: ObjectKey, _ body: @escaping @Sendable () -> Void) {
        guard let session = sessions[device.adapter], session.disconnections[device] != nil else { return body() }
        session.disconnections[device]?.append { _ in body() }
    }

    /// Ends a device's link and makes `bluetoothd` forget the device, with its bond. On the loop only, as `completion` is.
    ///
    /// The link is ended first, and always: 5.87 ends with a fault if `RemoveDevice` names a connected device (its commit
    /// 5d836f1c6), and BlueZ does not always signal that a device is connected. If the link cannot be ended, or another one
    /// follows each time, `links` in all, the device is removed only by a daemon that is known not to be 5.87.
    func removeDevice(_ device: ObjectKey, links: Int = 3, completion: @escaping BlueZCompletion<Void>) {
        disconnect(device) { [self] result in
            switch result {
            case .failure(let error) where error.cause != .notConnected && !removesConnected(device):
                return completion(.failure(error))
            // The peer or another program has made a link since.
            case .success where isConnected(device) && !removesConnected(device):
                guard links > 1 else { return completion(.failure(.connectedAgain)) }
                return removeDevice(device, links: links - 1, completion: completion)
            case .success, .failure: break
            }
            guard daemon.objects.contains(device) else { return completion(.failure(.noSuchObject)) }
            daemon.call(
                device.adapter, interface: BlueZName.adapter, member: "RemoveDevice",
                body: { $0.objectPath(device.objectPath) }
            ) { [daemon] reply in
                // The bond is gone. The removal was signalled before; a device that is there is another object.
                if reply.failure == nil, !daemon.objects.contains(device) {
                    daemon.changeNote(about: device) { ($0.isRefused, $0.shortLinks) = (false, 0) }
                }
                completion(reply.map { _ in })
            }
        }
    }

    private func isConnected(_ device: ObjectKey) -> Bool {
        daemon.objects[device]?.isConnected ?? false
    }

    private func removesConnected(_ device: ObjectKey) -> Bool {
        daemon.objects[adapter: device.adapter]?.capabilities.removesConnectedDevices ?? false
    }

    /// Waits until the signals that `bluetoothd` was about to send of a device have arrived: it flushes the signals of new
    /// objects before it sends any reply, and replies to no call while it discovers services. On the loop only, as
    /// `completion` is, which comes exactly once, also if the daemon does not reply within five seconds.
    package func fence(_ device: ObjectKey, completion: @escaping @Sendable () -> Void) {
        daemon.getProperty("ServicesResolved", at: device.objectPath) { _ in completion() }
    }

    /// Reads the size of packets on a new link if BlueZ exports characteristics of an earlier one: their property `MTU` exists
    /// while there is a link, and no signal reports that it exists again or has changed. The reply is reported like a signal, and
    /// precedes that of a later ``fence(_:completion:)``. An error, as of BlueZ before 5.62, changes nothing.
    package func readMTU(of device: ObjectKey) {
        daemon.requireLoop()
        let characteristic = daemon.objects.attributes(of: device).first {
            $0.kind == .characteristic && $0.mtu == nil
        }
        guard let characteristic,
            let path = daemon.objects.path(of: AttributeKey(device: device, handle: characteristic.handle))
                .flatMap({ ObjectPath(validating: $0) })
        else { return }
        let interface = "\(AttributeKind.characteristic.table.interface)"
        daemon.getProperty("MTU", of: interface, at: path, timeout: DaemonLink.defaultTimeout) { [weak self] result in
            guard let self, case .success(let reply) = result else { return }
            var reader = reply.reader
            guard let mtu = reader.variant({ $0.uint16() }) else { return }
            daemon.change { $0.mtuRead(mtu, of: device, into: &$1) }
        }
    }

    /// Reads whether a device is connected if the signal that says so has not come: BlueZ from 5.66 on leaves it out if the
    /// ATT socket is up before the kernel's event (`device_add_connection`), in the radio lab at about every other
    /// connection. The reply is reported like the signal. BlueZ 5.66 may also reply success to an attempt that failed.
    private func confirmConnection(
        of device: ObjectKey, after error: BlueZError?, completion: @escaping @Sendable (BlueZError?) -> Void
    ) {
        guard error == nil, !isConnected(device) else { return completion(error) }
        daemon.getProperty("Connected", at: device.objectPath, timeout: Self.confirmationLimit) { [weak self] result in
            guard let self, case .success(let reply) = result else { return completion(result.failure) }
            var reader = reply.reader
            if let isConnected = reader.variant({ $0.bool() }) {
                daemon.change { $0.connectionRead(isConnected, of: device, into: &$1) }
            }
            completion(isConnected(device) ? nil : .noLink)
        }
    }

    private func session(of adapter: ObjectKey) -> Session {
        let session = sessions[adapter] ?? Session(on: loop)
        sessions[adapter] = session
        return session
    }

    // MARK: Changes

    /// A link has ended, or its device has disappeared.
    func linkEnded(of device: ObjectKey) {
        guard sessions[device.adapter]?.machine.isFalling(device) == true else { return }
        // Not inside a report.
        loop.post { [weak self] in self?.run(device.adapter) { $0.linkEnded(device) } }
    }

    // MARK: Effects

    private func run(_ adapter: ObjectKey, _ event: (inout LinkMachine) -> [LinkMachine.Effect]) {
        guard let session = sessions[adapter] else { return }
        for effect in event(&session.machine) { perform(effect, on: adapter, session) }
    }

    private func perform(_ effect: LinkMachine.Effect, on adapter: ObjectKey, _ session: Session) {
        switch effect {
        case .connect(let id, let device):
            guard let user = session.users[id] else { return }
            if user.pausesScans {
                discovery.setPaused(true, on: adapter)
                session.pauseTimer.start(after: Self.pauseLimit) { [discovery] in
                    discovery.setPaused(false, on: adapter)
                }
            }
            user.started()
            guard user.callsConnect else { return }
            // The machine's timer is what ends it.
            daemon.call(
                device, interface: BlueZName.device, member: "Connect",
                timeout: LinkMachine.attemptLimit + LinkMachine.endLimit
            ) { [weak self] result in
                self?.confirmConnection(of: device, after: result.failure) { [weak self] error in
                    self?.run(adapter) { $0.connectReplied(id, device, error: error) }
                }
            }
        case .disconnect(let device):
            daemon.call(
                device, interface: BlueZName.device, member: "Disconnect", timeout: LinkMachine.endLimit
            ) { [weak self] result in
                guard let self else { return }
                let isConnected = isConnected(device)
                run(adapter) { $0.disconnectReplied(device, error: result.failure, isConnected: isConnected) }
                guard isConnected else { return }
                loop.schedule(after: Self.fallLimit) { [weak self] in self?.run(adapter) { $0.linkEnded(device) } }
            }
        case .startTimer(let seconds):
            session.timer.start(after: seconds) { [weak self] in self?.run(adapter) { $0.timerFired() } }
        case .cancelTimer: session.timer.cancel()
        case .complete(let id, let error):
            // A failed attempt may be followed by another one: scans are not resumed for the time between them.
            if error == nil || error == .connectCancelled, session.machine.attempt == nil {
                session.pauseTimer.cancel()
                discovery.setPaused(false, on: adapter)
            }
            guard let user = session.users.removeValue(forKey: id) else { return }
            loop.post { user.completion(error.map { .failure($0) } ?? .success(())) }
        case .disconnected(let device, let error):
            let result: Result<Void, BlueZError> = error.map { .failure($0) } ?? .success(())
            for completion in session.disconnections.removeValue(forKey: device) ?? [] {
                loop.post { completion(result) }
            }
        }
    }
}

extension BlueZError {
    /// The reply to `Connect` reported a link that does not exist.
    package static let noLink = BlueZError(
        name: "org.bluez.Error.Failed", message: "Connect succeeded without a connection")

    /// The device was connected again each time that its link was ended.
    static let connectedAgain = BlueZError(
        name: "org.bluez.Error.InProgress",
        message: "The device is connected again after each disconnection, so it cannot be removed.")
}
