import DBus
import Reactor

/// Connects and disconnects the devices of each adapter, one attempt at a time in the whole process.
///
/// On the loop only, and unchecked because of that.
package final class Connector: @unchecked Sendable {
    private struct User {
        /// Whether the turn is for `Connect`, and not for another call that connects.
        var callsConnect = true
        let started: @Sendable () -> Void
        let completion: BlueZCompletion<Void>
    }

    /// A call of `Disconnect`, until its reply has come and the device's properties agree.
    private final class Disconnection: @unchecked Sendable {
        let completion: BlueZCompletion<Void>
        /// Whether the properties show that the link is down.
        var isDown = false
        /// Runs after the reply while the properties do not agree.
        let timer: LoopTimer

        init(on loop: any EventLoop, completion: @escaping BlueZCompletion<Void>) {
            self.completion = completion
            timer = LoopTimer(on: loop)
        }
    }

    /// An adapter's queue with its timer and its users.
    private final class Session: @unchecked Sendable {
        var queue = ConnectQueue()
        let timer: LoopTimer
        var users: [ConnectID: User] = [:]
        var disconnections: [ObjectKey: [Disconnection]] = [:]

        init(on loop: any EventLoop) { timer = LoopTimer(on: loop) }
    }

    /// The longest that an attempt may take, in seconds. The kernel gives up a link that does not come up after 20 s.
    package static let attemptLimit = 60.0
    /// Seconds for `Disconnect`: BlueZ drops a link two seconds after the call, and replies then.
    private static let disconnectLimit = 10.0
    /// Seconds for which the completion waits for the property: `Connected` turns false some ten milliseconds after the reply
    /// to `Disconnect` (seen with 5.66).
    private static let fallLimit = 0.25

    /// How many links of a device are ended before it is removed.
    private static let linksEnded = 3

    private let daemon: DaemonLink
    private let loop: any EventLoop
    /// Kept as long as the client, since their requests may be answered late.
    private var sessions: [ObjectKey: Session] = [:]

    init(_ daemon: DaemonLink) {
        self.daemon = daemon
        loop = daemon.loop
    }

    // MARK: Links

    /// Connects a device by `Device1.Connect`. On the loop only, as `completion` is, which comes exactly once and never
    /// before this returns.
    ///
    /// One attempt is under way on each adapter in the whole process; the others wait for their turn. Success means that
    /// the link was up, and that BlueZ has begun to discover services; a link that fell again at once is possible, and the
    /// tree shows it.
    /// - Parameter timeout: In seconds from the beginning of this attempt's turn; at most ``attemptLimit``. After it the
    ///   attempt is cancelled, and fails with `noReply` once BlueZ has ended it. An attempt that has lasted
    ///   ``ConnectQueue/turnLimit`` while others wait is cancelled likewise.
    /// - Parameter started: Called on the loop at the beginning of the turn; before this returns if that is at once.
    /// - Returns: The argument of ``cancel(_:)``.
    @discardableResult
    package func connect(
        _ device: ObjectKey, timeout: Double, started: @escaping @Sendable () -> Void = {},
        completion: @escaping BlueZCompletion<Void>
    ) -> ConnectID {
        daemon.requireLoop()
        return request(device, timeout: timeout, User(started: started, completion: completion))
    }

    private func request(_ device: ObjectKey, timeout: Double, _ user: User) -> ConnectID {
        let id = ConnectID(daemon.makeID())
        guard let adapter = daemon.objects.adapter(of: device) else {
            loop.post { user.completion(.failure(.noSuchObject)) }
            return id
        }
        session(of: adapter).users[id] = user
        run(adapter) { $0.requested(id, device, timeout: min(timeout, Self.attemptLimit)) }
        return id
    }

    /// Takes a turn to connect a device by another call than `Connect`, which the user makes in `started`, called as that of
    /// ``connect(_:timeout:started:completion:)``. The turn lasts until ``endTurn(_:)`` or ``cancel(_:)``. A turn that has
    /// lasted too long, as an attempt to connect may, is ended by `Disconnect`.
    func takeTurn(_ device: ObjectKey, started: @escaping @Sendable () -> Void) -> ConnectID {
        request(
            device, timeout: Self.attemptLimit, User(callsConnect: false, started: started, completion: { _ in }))
    }

    /// The user's call has connected the device or has failed.
    ///
    /// - Returns: Whether the turn lasted until now.
    func endTurn(_ id: ConnectID) -> Bool {
        let isHeld = sessions.values.contains { $0.queue.isConnecting(id) }
        for adapter in sessions.keys { run(adapter) { $0.connectReplied(id, error: nil) } }
        return isHeld
    }

    /// Cancels one attempt: it completes with `Canceled`, once BlueZ has ended it if it was under way. Does nothing if the
    /// attempt has ended. On the loop only.
    package func cancel(_ id: ConnectID) {
        daemon.requireLoop()
        for adapter in sessions.keys { run(adapter) { $0.cancelled(id) } }
    }

    /// Ends a link by `Device1.Disconnect`. On the loop only, as `completion` is, which comes exactly once and never before
    /// this returns: when the link is down, some two seconds later. Attempts to connect the device wait until then.
    package func disconnect(_ device: ObjectKey, completion: @escaping BlueZCompletion<Void> = { _ in }) {
        daemon.requireLoop()
        guard let adapter = daemon.objects.adapter(of: device) else {
            return loop.post { completion(.failure(.noSuchObject)) }
        }
        let session = session(of: adapter)
        let disconnection = Disconnection(on: loop, completion: completion)
        session.queue.disconnectStarted(device)
        session.disconnections[device, default: []].append(disconnection)
        sendDisconnect(device) { [weak self] result in
            guard let self else { return completion(result) }
            guard case .success = result, !disconnection.isDown else {
                return end(disconnection, of: device, on: adapter, result)
            }
            disconnection.timer.start(after: Self.fallLimit) { [weak self] in
                self?.end(disconnection, of: device, on: adapter, .success(()))
            }
        }
    }

    private func end(
        _ disconnection: Disconnection, of device: ObjectKey, on adapter: ObjectKey, _ result: Result<Void, BlueZError>
    ) {
        guard let session = sessions[adapter], var others = session.disconnections[device],
            let index = others.firstIndex(where: { $0 === disconnection })
        else { return }
        others.remove(at: index)
        session.disconnections[device] = others.isEmpty ? nil : others
        disconnection.timer.cancel()
        run(adapter) { $0.disconnectEnded(device) }
        disconnection.completion(result)
    }

    /// Ends a device's link and makes `bluetoothd` forget the device, with its bond. On the loop only, as `completion` is.
    ///
    /// The link is ended first, and always: 5.87 ends with a fault if `RemoveDevice` names a connected device (its commit
    /// 5d836f1c6), and BlueZ does not always signal that a device is connected. If the link cannot be ended, or another one
    /// follows each time, the device is removed only by a daemon that is known not to be 5.87.
    package func removeDevice(_ device: ObjectKey, completion: @escaping BlueZCompletion<Void>) {
        removeDevice(device, links: Self.linksEnded, completion: completion)
    }

    /// - Parameter links: How many links are ended at most.
    private func removeDevice(_ device: ObjectKey, links: Int, completion: @escaping BlueZCompletion<Void>) {
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
            guard let adapter = daemon.objects.adapter(of: device), let path = daemon.path(of: device) else {
                return completion(.failure(.noSuchObject))
            }
            daemon.call(
                adapter, interface: BlueZName.adapter, member: "RemoveDevice",
                body: { $0.objectPath(path) }
            ) { [daemon] reply in
                // The bond is gone. The removal was signalled before; a device that is there is another object.
                if reply.failure == nil, daemon.objects.handle(of: device) == nil {
                    daemon.changeNote(about: device) { ($0.isRefused, $0.shortLinks) = (false, 0) }
                }
                completion(reply.map { _ in })
            }
        }
    }

    private func isConnected(_ device: ObjectKey) -> Bool {
        daemon.objects.handle(of: device).map { daemon.objects[$0].isConnected } ?? false
    }

    private func removesConnected(_ device: ObjectKey) -> Bool {
        guard let adapter = daemon.objects.adapter(of: device) else { return false }
        return daemon.objects[adapter: adapter]?.capabilities.removesConnectedDevices ?? false
    }

    /// Waits until the signals that `bluetoothd` was about to send of a device have arrived: it flushes the signals of new
    /// objects before it sends any reply, and replies to no call while it discovers services. On the loop only, as
    /// `completion` is, which comes exactly once, also if the daemon does not reply within five seconds.
    package func fence(_ device: ObjectKey, completion: @escaping @Sendable () -> Void) {
        daemon.getProperty("ServicesResolved", of: device) { _ in completion() }
    }

    /// Reads the size of packets on a new link if BlueZ exports characteristics of an earlier one: their property `MTU` exists
    /// while there is a link, and no signal reports that it exists again or has changed. The reply is reported like a signal, and
    /// precedes that of a later ``fence(_:completion:)``. An error, as of BlueZ before 5.62, changes nothing.
    package func readMTU(of device: ObjectKey) {
        daemon.requireLoop()
        let characteristic = daemon.objects.attributes(of: device).first { $0.kind == .characteristic }
        guard let characteristic,
            let path = daemon.objects.path(of: characteristic.key).flatMap({ ObjectPath(validating: $0) })
        else {
            return
        }
        daemon.call(
            path: path, interface: BlueZName.properties, member: "Get",
            body: {
                $0.string(static: AttributeKind.characteristic.table.interface)
                $0.string("MTU")
            }
        ) { [weak self] result in
            guard let self, case .success(let reply) = result else { return }
            var reader = reply.reader
            guard let mtu = reader.variant({ $0.uint16() }) else { return }
            daemon.change { $0.mtuRead(mtu, of: device, into: &$1) }
        }
    }

    /// Reads whether a device is connected if the signal that says so has not come: BlueZ from 5.66 on leaves it out if the
    /// ATT socket is up before the kernel's event (`device_add_connection`), in the radio lab at about every other
    /// connection. The reply is reported like the signal.
    private func confirmConnection(of device: ObjectKey) {
        guard let handle = daemon.objects.handle(of: device), !daemon.objects[handle].isConnected else { return }
        daemon.getProperty("Connected", of: device) { [weak self] result in
            guard let self, case .success(let reply) = result else { return }
            var reader = reply.reader
            guard let isConnected = reader.variant({ $0.bool() }) else { return }
            daemon.change { $0.connectionRead(isConnected, of: device, into: &$1) }
        }
    }

    private func sendDisconnect(_ device: ObjectKey, completion: @escaping BlueZCompletion<Void>) {
        daemon.call(
            device, interface: BlueZName.device, member: "Disconnect", timeout: Self.disconnectLimit,
            completion: { completion($0.map { _ in }) })
    }

    private func session(of adapter: ObjectKey) -> Session {
        if let session = sessions[adapter] { return session }
        let session = Session(on: loop)
        sessions[adapter] = session
        return session
    }

    // MARK: Changes

    /// The tree shows that a device is not connected.
    func follow(_ change: Change) {
        guard !sessions.isEmpty, let handle = daemon.objects.disconnected(by: change),
            let device = daemon.objects.key(of: handle)
        else { return }
        let adapter = daemon.objects.adapter(of: handle)
        for disconnection in sessions[adapter]?.disconnections[device] ?? [] {
            disconnection.isDown = true
            guard disconnection.timer.isRunning else { continue }
            // Not inside a report.
            loop.post { [weak self] in self?.end(disconnection, of: device, on: adapter, .success(())) }
        }
    }

    // MARK: Effects

    private func run(_ adapter: ObjectKey, _ event: (inout ConnectQueue) -> [ConnectQueue.Effect]) {
        guard let session = sessions[adapter] else { return }
        for effect in event(&session.queue) { perform(effect, on: adapter, session) }
    }

    private func perform(_ effect: ConnectQueue.Effect, on adapter: ObjectKey, _ session: Session) {
        switch effect {
        case .connect(let id, let device):
            guard let user = session.users[id] else { return }
            user.started()
            guard user.callsConnect else { return }
            // The queue's timer is what ends it.
            daemon.call(
                device, interface: BlueZName.device, member: "Connect",
                timeout: Self.attemptLimit + ConnectQueue.cancelLimit
            ) { [weak self] result in
                if result.failure == nil { self?.confirmConnection(of: device) }
                self?.run(adapter) { $0.connectReplied(id, error: result.failure) }
            }
        case .disconnect(let id, let device):
            sendDisconnect(device) { [weak self] _ in self?.run(adapter) { $0.disconnectReplied(id) } }
        case .startTimer(let seconds):
            session.timer.start(after: seconds) { [weak self] in self?.run(adapter) { $0.timerFired() } }
        case .cancelTimer: session.timer.cancel()
        case .complete(let id, let error):
            guard let user = session.users.removeValue(forKey: id) else { return }
            loop.post { user.completion(error.map { .failure($0) } ?? .success(())) }
        }
    }
}

extension BlueZError {
    /// The device was connected again each time that its link was ended.
    static let connectedAgain = BlueZError(
        name: "org.bluez.Error.InProgress",
        message: "The device is connected again after each disconnection, so it cannot be removed.")
}
