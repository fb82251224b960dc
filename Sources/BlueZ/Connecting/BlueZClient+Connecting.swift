import DBus
import Reactor

/// An adapter's queue with its timer and with who waits. On the client's loop, and unchecked because of that.
final class ConnectSession: @unchecked Sendable {
    var queue = ConnectQueue()
    let timer: LoopTimer
    var users: [ConnectID: ConnectUser] = [:]
    /// Disconnections that BlueZ has confirmed, until the tree shows them.
    var falling: [ObjectKey: [FallingLink]] = [:]
    /// Devices whose link went down since BlueZ was told to disconnect them.
    var fallen: Set<ObjectKey> = []

    init(on loop: any EventLoop) { timer = LoopTimer(on: loop) }
}

struct ConnectUser {
    let started: @Sendable () -> Void
    let completion: @Sendable (Result<Void, BlueZError>) -> Void
}

/// A link that BlueZ says is down, before it says so of the device.
struct FallingLink {
    let timer: TimerID
    let completion: @Sendable (Result<Void, BlueZError>) -> Void
}

extension BlueZClient {
    /// The longest that an attempt may take, in seconds. The kernel gives up a link that does not come up after 20 s.
    package static let connectLimit = 60.0
    /// A link is dropped two seconds after BlueZ is told so, and the call is answered then.
    private static let disconnectLimit = 10.0
    /// `Connected` turns false some ten milliseconds after the reply to `Disconnect` (seen with 5.66).
    private static let fallLimit = 0.25

    // MARK: Links; on the loop only

    /// Connects a device by `Device1.Connect`. On the loop only, as `completion` is, which comes exactly once and never
    /// before this returns.
    ///
    /// One attempt is under way on each adapter in the whole process; the others wait for their turn. Success means that
    /// the link was up, and that BlueZ has begun to look for services; a link that fell again at once is possible, and the
    /// tree shows it.
    /// - Parameter timeout: In seconds from the moment on when it is this attempt's turn; at most ``connectLimit``. When it
    ///   is up the attempt is called off, and fails with `noReply` once BlueZ has let go of it.
    ///   An attempt that has lasted ``ConnectQueue/turnLimit`` while others wait is called off likewise.
    /// - Parameter started: Told, on the loop, when it is this attempt's turn; before this returns if that is at once.
    /// - Returns: What ``cancelConnect(_:)-(ConnectID)`` wants.
    @discardableResult
    package func connect(
        _ device: ObjectKey, timeout: Double, started: @escaping @Sendable () -> Void = {},
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) -> ConnectID {
        requireLoop()
        let id = ConnectID(makeID())
        guard let adapter = adapter(of: device) else {
            loop.post { completion(.failure(.noSuchObject)) }
            return id
        }
        connectSession(of: adapter).users[id] = ConnectUser(started: started, completion: completion)
        run(adapter) { $0.requested(id, device, timeout: min(timeout, BlueZClient.connectLimit)) }
        return id
    }

    /// Takes one attempt back: its completion is told `Canceled`, once BlueZ has let go of it if it was under way. Does
    /// nothing when it is over. On the loop only.
    package func cancelConnect(_ id: ConnectID) {
        requireLoop()
        for adapter in connectSessions.keys { run(adapter) { $0.cancelled(id) } }
    }

    /// The same for all attempts to connect this device, whosever they are.
    package func cancelConnect(_ device: ObjectKey) {
        requireLoop()
        for adapter in connectSessions.keys { run(adapter) { $0.cancelled(device) } }
    }

    /// Ends a link by `Device1.Disconnect`. On the loop only, as `completion` is, which comes exactly once and never before
    /// this returns: when the link is down, some two seconds later. Attempts to connect the device wait until then.
    package func disconnect(
        _ device: ObjectKey, completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void = { _ in }
    ) {
        requireLoop()
        guard let adapter = adapter(of: device) else { return loop.post { completion(.failure(.noSuchObject)) } }
        let session = connectSession(of: adapter)
        session.queue.disconnectStarted(device)
        session.fallen.remove(device)
        sendDisconnect(device) { [weak self] result in
            guard let self else { return completion(result) }
            guard case .success = result, !session.fallen.contains(device) else {
                run(adapter) { $0.disconnectEnded(device) }
                return completion(result)
            }
            let timer = loop.schedule(after: Self.fallLimit) { [weak self] in self?.linkFell(device, on: adapter) }
            session.falling[device, default: []].append(FallingLink(timer: timer, completion: completion))
        }
    }

    /// The tree shows that a device is not connected.
    func followLinks(_ change: Change) {
        guard !connectSessions.isEmpty else { return }
        let handle: DeviceHandle
        switch change {
        case .deviceChanged(let changed, let fields, _):
            guard fields.contains(.isConnected), !objects[changed].isConnected else { return }
            handle = changed
        case .deviceRemoved(let removed): handle = removed
        case .deviceAdded, .adapterAdded, .adapterChanged, .adapterRemoved, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
        guard let device = objects.key(of: handle) else { return }
        let adapter = objects.adapter(of: handle)
        // Not inside a report.
        guard let session = connectSessions[adapter] else { return }
        if session.queue.isDisconnecting(device) { session.fallen.insert(device) }
        if session.falling[device] != nil {
            loop.post { [weak self] in self?.linkFell(device, on: adapter) }
        }
    }

    private func linkFell(_ device: ObjectKey, on adapter: ObjectKey) {
        for link in connectSessions[adapter]?.falling.removeValue(forKey: device) ?? [] {
            loop.cancel(link.timer)
            run(adapter) { $0.disconnectEnded(device) }
            link.completion(.success(()))
        }
    }

    /// Gives everything that `bluetoothd` was about to say of a device the time to arrive: it flushes the signals of new
    /// objects before it sends any reply, and answers nobody while it discovers services. On the loop only, as
    /// `completion` is, which comes exactly once, also where the daemon fails to answer within five seconds.
    package func fence(_ device: ObjectKey, completion: @escaping @Sendable () -> Void) {
        call(
            device, interface: BlueZName.properties, member: "Get", timeout: 5,
            body: {
                $0.string(BlueZName.device)
                $0.string("ServicesResolved")
            }, completion: { _ in completion() })
    }

    /// Asks whether a device is connected, where the signal that says so has not come: BlueZ from 5.66 on leaves it out if the
    /// ATT socket is up before the kernel's event (`device_add_connection`), in the radio lab at about every other
    /// connection. The answer is told like the signal.
    private func confirmConnection(of device: ObjectKey) {
        guard let handle = objects.handle(of: device), !objects[handle].isConnected else { return }
        call(
            device, interface: BlueZName.properties, member: "Get", timeout: 5,
            body: {
                $0.string(BlueZName.device)
                $0.string("Connected")
            },
            completion: { [weak self] result in
                guard let self, case .success(let reply) = result else { return }
                var reader = reply.reader
                guard let isConnected = reader.variant({ $0.bool() }) else { return }
                change { $0.connectionAnswered(isConnected, of: device, into: &$1) }
            })
    }

    private func sendDisconnect(
        _ device: ObjectKey, completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        call(
            device, interface: BlueZName.device, member: "Disconnect", timeout: Self.disconnectLimit,
            completion: { completion($0.map { _ in }) })
    }

    private func adapter(of device: ObjectKey) -> ObjectKey? {
        objects.handle(of: device).map { objects.adapter(of: $0) }
    }

    private func connectSession(of adapter: ObjectKey) -> ConnectSession {
        if let session = connectSessions[adapter] { return session }
        let session = ConnectSession(on: loop)
        connectSessions[adapter] = session
        return session
    }

    // MARK: Effects

    private func run(_ adapter: ObjectKey, _ event: (inout ConnectQueue) -> [ConnectQueue.Effect]) {
        guard let session = connectSessions[adapter] else { return }
        for effect in event(&session.queue) { perform(effect, on: adapter, session) }
    }

    private func perform(_ effect: ConnectQueue.Effect, on adapter: ObjectKey, _ session: ConnectSession) {
        switch effect {
        case .connect(let id, let device):
            session.users[id]?.started()
            // The queue's timer is what ends it.
            call(
                device, interface: BlueZName.device, member: "Connect",
                timeout: Self.connectLimit + ConnectQueue.cancelLimit
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
