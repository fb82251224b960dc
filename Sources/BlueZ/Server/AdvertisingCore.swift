import DBus
import Reactor

/// An advertisement's inside: the machine, what it orders, and the object that BlueZ sees.
///
/// On the client's loop, and unchecked because of that. The client keeps it until its observation ends, which is when the
/// advertisement was ended and BlueZ has heard of it.
final class AdvertisingCore: BlueZObserver, @unchecked Sendable {
    static let manager = "org.bluez.LEAdvertisingManager1"
    /// How long it is waited for word of the end, in seconds: longer than those wait who want to know of it.
    private static let lastTimeout = 20.0

    let client: BlueZClient
    private let adapter: ObjectKey
    private var handler: @Sendable (AdvertisingEvent) -> Void
    private(set) var data: AdvertisementData
    private var machine: AdvertisingMachine
    private var state = RegistrationState.idle
    private let timer: LoopTimer
    /// For the answer to a registration.
    private let patience: LoopTimer
    private let registrar: Registrar
    private let path: ObjectPath
    private var whenEnded: [@Sendable () -> Void] = []
    var observation: Observation?

    init(
        client: BlueZClient, adapter: ObjectKey, data: AdvertisementData,
        handler: @escaping @Sendable (AdvertisingEvent) -> Void
    ) {
        self.client = client
        self.adapter = adapter
        self.data = data
        self.handler = handler
        timer = LoopTimer(on: client.loop)
        patience = LoopTimer(on: client.loop)
        registrar = Registrar(client: client, adapter: adapter, manager: Self.manager, noun: "Advertisement")
        machine = AdvertisingMachine(isLimited: data.timeout != nil)
        path = ObjectPath.root.appending("org").appending("bluecap").appending("advertisement\(client.makeID())")
    }

    // MARK: Wishes

    func change(to data: AdvertisementData) {
        guard data != self.data else { return }
        self.data = data
        perform(machine.contentChanged(isLimited: data.timeout != nil))
    }

    func end(completion: @escaping @Sendable () -> Void) {
        guard machine.state != .ended else { return client.loop.post(completion) }
        whenEnded.append(completion)
        perform(machine.end())
    }

    // MARK: What happens

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        // Where there is no such adapter, nothing else would say so.
        if state == .idle, machine.state == .waiting { report(.waiting(.adapter)) }
    }

    func batchEnded() {}

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded(adapter), .adapterChanged(adapter, _):
            guard let values = tree[adapter: adapter] else { return }
            let obstacle: RegistrationState.Obstacle? =
                if !values.interfaces.contains(.advertisingManager) {
                    .support
                } else if !values.isPowered {
                    .power
                } else {
                    nil
                }
            perform(machine.obstacleChanged(obstacle))
        case .adapterRemoved(adapter):
            perform(machine.obstacleChanged(.adapter))
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved,
            .attributeAdded, .attributeChanged, .attributeRemoved:
            return
        }
    }

    func releaseCalled(_ invocation: Invocation) {
        guard client.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        invocation.reply()
        perform(machine.released())
    }

    // MARK: Effects

    private func perform(_ effects: [AdvertisingMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .register(let request): register(request)
            case .unregister: registrar.unregister(path)
            case .unregisterLast(let request):
                registrar.unregister(path, timeout: Self.lastTimeout, completion: reply(to: request))
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in
                    guard let self else { return }
                    perform(machine.timerFired())
                }
            case .cancelTimer: timer.cancel()
            case .report(let state): report(state)
            case .timedOut: tell(.timedOut)
            case .withdrawn: confirmEnd()
            case .ended: ended()
            }
        }
    }

    private func register(_ request: AdvertisingMachine.RequestID) {
        client.daemon.connection?.export(ExportedObject(path, [AdvertisementTable.table.bound(to: self)]))
        registrar.register(path, completion: reply(to: request))
        awaitReply(to: request)
    }

    private func reply(to request: AdvertisingMachine.RequestID) -> @Sendable (BlueZError?) -> Void {
        { [weak self] error in
            guard let self else { return }
            perform(machine.replied(request, error: error))
        }
    }

    private func report(_ new: RegistrationState) {
        guard new != state else { return }
        state = new
        tell(.stateChanged(new))
    }

    private func tell(_ event: AdvertisingEvent) {
        let handler = handler
        client.loop.post { handler(event) }
    }

    private func awaitReply(to request: AdvertisingMachine.RequestID) {
        patience.start(after: machine.patience) { [weak self] in
            guard let self else { return }
            perform(machine.unanswered(request))
        }
    }

    private func confirmEnd() {
        let whenEnded = whenEnded
        self.whenEnded = []
        client.loop.post { for work in whenEnded { work() } }
    }

    private func ended() {
        timer.cancel()
        patience.cancel()
        client.daemon.connection?.unexport(path)
        confirmEnd()
        handler = { _ in }
        observation = nil
    }
}
