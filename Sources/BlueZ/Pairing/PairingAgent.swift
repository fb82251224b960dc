import DBus
import Reactor

/// The agent of this process, which BlueZ asks when a pairing needs an answer.
///
/// There is one for each connection to the bus, registered while a manager wants one, with the capabilities of all of them
/// together. BlueZ asks it in two cases: about each pairing that this process has begun with `Pair`, and, if it is the
/// default agent, about each pairing of the machine that no program has begun. BlueZ makes the first agent of the system the
/// default one, asked for or not. So each request is given to the manager that it concerns, and rejected if there is none.
///
/// On the loop only, and unchecked because of that.
package final class PairingAgent: @unchecked Sendable {
    private struct Wish {
        let delegate: any AgentDelegate
        var capability: IOCapability
        var isDefault: Bool
    }

    /// A request until its end.
    private struct Exchange: PasskeyHiding {
        let request: AgentRequest
        let delegate: any AgentDelegate
        /// Its message has the passkey. `nil` for a displayed one, of which BlueZ ignores the reply.
        let invocation: Invocation?

        var description: String { "\(request)" }
    }

    static let path: ObjectPath = "/org/bluecap/agent"

    private let daemon: DaemonLink
    private var machine = AgentMachine()
    private let timer: LoopTimer
    /// By the beginning of their managers.
    private var wishes: [Wish] = []
    /// BlueZ has one open request for each agent.
    private var open: Exchange?
    /// Displayed passkeys: BlueZ does not report their end.
    private var displays: [ObjectKey: Exchange] = [:]
    /// The same in the order of the requests.
    private var openDisplays: [Exchange] { displays.values.sorted { $0.request.number < $1.request.number } }
    /// The last one of each device, also after its end, when a rejection may be on its way to the loop; and whether there was a
    /// bond when it began.
    private var lastDisplays: [ObjectKey: (number: AgentRequest.Number, hadKeys: Bool)] = [:]
    /// End them.
    private var displayTimers: [ObjectKey: LoopTimer] = [:]
    /// Seconds after which a passkey is of no use any more: the Security Manager Protocol waits 30 for the next packet (Core
    /// Specification, Vol 3, Part H, 3.4), and the exchange of an entered passkey takes one or two. The pairing of a device that is
    /// paired already changes no property, so nothing else would end its display.
    private static let displayLimit = 35.0
    private var waiting: [@Sendable (BlueZError?) -> Void] = []
    private var settled: (@Sendable () -> Void)?
    /// The pairings that this process has begun.
    weak var pairings: Pairings?

    init(_ daemon: DaemonLink) {
        self.daemon = daemon
        timer = LoopTimer(on: daemon.loop)
    }

    // MARK: Managers

    /// How far the registration has come.
    package var state: AgentState { machine.state }
    /// Why BlueZ does not have the agent; `nil` if it has.
    var problem: BlueZError? { machine.problem }

    /// Registers the agent with this capability for a manager, together with those of other managers; `nil` if it needs none
    /// any more, which rejects the requests that it has not answered. The agent retains the delegate until then.
    ///
    /// - Parameter asDefault: Whether it is made the default agent, which decides about pairings of other programs too.
    package func want(_ capability: IOCapability?, asDefault: Bool = false, for delegate: any AgentDelegate) {
        daemon.requireLoop()
        let index = wishes.firstIndex { $0.delegate === delegate }
        if let capability {
            let wish = Wish(delegate: delegate, capability: capability, isDefault: asDefault)
            if let index { wishes[index] = wish } else { wishes.append(wish) }
        } else if let index {
            wishes.remove(at: index)
            if let open, open.delegate === delegate { answer(open, .reject) }
            for display in openDisplays where display.delegate === delegate {
                answer(display.request.number, with: .reject)
            }
        }
        update()
    }

    private func update() {
        guard let first = wishes.first else { return perform(machine.wanted(nil)) }
        let capability = wishes.reduce(first.capability) { $0.union($1.capability) }
        perform(machine.wanted(AgentMachine.Wish(capability, isDefault: wishes.contains { $0.isDefault })))
    }

    /// Calls `completion` once the agent is registered; with an error if BlueZ refuses it or no manager wants one. Never
    /// before this returns.
    package func whenRegistered(_ completion: @escaping @Sendable (BlueZError?) -> Void) {
        daemon.requireLoop()
        waiting.append(completion)
        completeWaiting()
    }

    private func completeWaiting() {
        let error: BlueZError?
        switch machine.state {
        case .registered: error = nil
        case .refused(let refusal): error = refusal
        case .absent where wishes.isEmpty: error = .noAgent
        case .absent, .registering: return
        }
        let waiting = waiting
        self.waiting = []
        daemon.loop.post { for completion in waiting { completion(error) } }
    }

    /// Replies to a request; nothing happens if it has ended. Any thread.
    ///
    /// An answer of another kind than the request rejects it.
    package func answer(_ number: AgentRequest.Number, with answer: AgentAnswer) {
        daemon.loop.perform { [self] in
            if let open, open.request.number == number { return self.answer(open, answer) }
            guard answer == .reject || answer == .expire,
                let (device, display) = lastDisplays.first(where: { $0.value.number == number })
            else { return }
            endDisplay(of: device)
            lastDisplays[device] = nil
            pairings?.displayRefused(device, hadKeys: display.hadKeys, isExpired: answer == .expire)
        }
    }

    private func answer(_ exchange: Exchange, _ answer: AgentAnswer) {
        let device = exchange.request.device
        switch (exchange.request.kind, answer) {
        case (.confirm, .accept), (.authorize, .accept):
            exchange.invocation?.reply()
            pairings?.accepted(device)
        case (.enterPasskey, .passkey(let passkey)):
            exchange.invocation?.reply { $0.uint32(passkey) }
        default:
            exchange.invocation?.fail(.rejected)
            pairings?.refused(device, isExpired: answer == .expire)
        }
        end(exchange, .answered)
    }

    private func end(_ exchange: Exchange, _ end: AgentEnd) {
        if exchange.invocation == nil {
            displays[exchange.request.device] = nil
            displayTimers.removeValue(forKey: exchange.request.device)?.cancel()
        } else {
            open = nil
        }
        exchange.delegate.agentRequestEnded(exchange.request.number, end)
        busyChanged()
    }

    /// The pairing of a displayed passkey has ended.
    func endDisplay(of device: ObjectKey) {
        if let display = displays[device] { end(display, .answered) }
    }

    private func endAll(_ end: AgentEnd) {
        if let open {
            open.invocation?.fail(.cancelled)
            self.end(open, end)
        }
        for display in openDisplays { self.end(display, end) }
    }

    /// A request or a `Pair` has begun or ended.
    func busyChanged() {
        perform(machine.busyChanged(open != nil || !displays.isEmpty || pairings?.isBusy == true))
    }

    // MARK: Changes

    /// The agent is registered before the objects are known, and so before services and advertisements are.
    func availabilityChanged(_ availability: Availability) {
        switch availability {
        case .loading, .ready:
            update()
            perform(machine.daemonReady())
        case .notLoaded: break
        case .connecting, .noBus, .refused, .noDaemon: daemonLeft()
        }
    }

    private func daemonLeft() {
        endAll(.daemonLeft)
        lastDisplays = [:]
        perform(machine.daemonLeft())
    }

    func follow(_ change: Change) {
        switch change {
        case .deviceChanged(let handle, _, _):
            guard !displays.isEmpty, let device = daemon.objects.key(of: handle) else { return }
            let values = daemon.objects[handle]
            if values.isPaired || values.keepsKeys || daemon.objects.disconnected(by: change) != nil {
                endDisplay(of: device)
            }
        case .deviceRemoved(let handle):
            // If the daemon has ended, that is the reason.
            guard open != nil || !lastDisplays.isEmpty, daemon.availability == .ready,
                let device = daemon.objects.key(of: handle)
            else { return }
            cancelRequests(about: device)
        case .deviceAdded, .adapterAdded, .adapterChanged, .adapterRemoved, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
    }

    /// Ends the requests about a device that is removed, or is about to be: an answer that comes later has no effect. On the
    /// loop.
    func cancelRequests(about device: ObjectKey) {
        if let display = displays[device] { end(display, .cancelled) }
        lastDisplays[device] = nil
        guard let open, open.request.device == device else { return }
        open.invocation?.fail(.cancelled)
        end(open, .cancelled)
    }

    // MARK: The end of the client

    /// Unregisters the agent. A manager that begins again, and still needs it, has it registered with the next daemon.
    func stop() { perform(machine.wanted(nil)) }

    /// Whether no agent is registered; if not, `completion` is called when BlueZ has confirmed the end.
    func isSettled(orWhenChanged completion: @escaping @Sendable () -> Void) -> Bool {
        guard machine.state != .absent else { return true }
        settled = completion
        return false
    }

    func close() {
        stop()
        daemonLeft()
        settled = nil
    }

    // MARK: Orders

    private func perform(_ orders: [AgentMachine.Order]) {
        for order in orders {
            switch order {
            case .register(let capability, let call):
                daemon.connection?.export(ExportedObject(Self.path, [AgentTable.table.bound(to: self)]))
                self.call("RegisterAgent", call) {
                    $0.objectPath(Self.path)
                    $0.string(capability.rawValue)
                }
            case .requestDefault(let call):
                self.call("RequestDefaultAgent", call) { $0.objectPath(Self.path) }
            case .unregister(let call):
                endAll(.unregistered)
                self.call("UnregisterAgent", call) { $0.objectPath(Self.path) }
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in
                    guard let self else { return }
                    perform(machine.timerFired())
                }
            case .cancelTimer: timer.cancel()
            case .report(let state): report(state)
            }
        }
    }

    private func call(_ member: String, _ call: AgentMachine.CallID, body: (inout MessageWriter) -> Void) {
        daemon.call(path: "/org/bluez", interface: "org.bluez.AgentManager1", member: member, body: body) {
            [weak self] result in
            guard let self else { return }
            perform(machine.replied(call, error: result.failure))
        }
    }

    private func report(_ state: AgentState) {
        completeWaiting()
        guard state == .absent, let settled else { return }
        self.settled = nil
        daemon.loop.post(settled)
    }

    // MARK: Calls of BlueZ

    fileprivate func requested(_ invocation: Invocation, _ kind: (inout MessageReader) -> AgentRequest.Kind?) {
        var reader = invocation.reader
        guard let device = reader.withString({ daemon.objects.key(ofPath: $0) }) ?? nil,
            daemon.objects.handle(of: device) != nil, let kind = kind(&reader)
        else { return invocation.fail(.rejected) }
        pairings?.asked(device)
        if displays[device] == nil { lastDisplays[device] = nil }
        let hadKeys = pairings?.hasKeys(device) ?? false
        let request = AgentRequest(
            number: daemon.makeID(), device: device, kind: kind, isOurs: pairings?.isPairing(device) ?? false)
        var isDisplay = false
        if case .display = kind { isDisplay = true }
        guard isDisplay || open == nil, let delegate = delegate(for: request) else {
            invocation.fail(.rejected)
            // BlueZ ignores the reply to a display.
            if isDisplay {
                pairings?.displayRefused(device, hadKeys: hadKeys, isExpired: false)
            } else {
                pairings?.refused(device, isExpired: false)
            }
            return
        }
        if isDisplay {
            invocation.reply()
            endDisplay(of: device)
            lastDisplays[device] = (request.number, hadKeys)
            displays[device] = Exchange(request: request, delegate: delegate, invocation: nil)
            let timer = LoopTimer(on: daemon.loop)
            displayTimers[device] = timer
            timer.start(after: Self.displayLimit) { [weak self] in self?.endDisplay(of: device) }
        } else {
            open = Exchange(request: request, delegate: delegate, invocation: invocation)
        }
        busyChanged()
        delegate.agentRequested(request)
    }

    /// The delegate with the greatest claim, of equal ones the first; `nil` if none has any.
    private func delegate(for request: AgentRequest) -> (any AgentDelegate)? {
        var best: (claim: AgentClaim, delegate: (any AgentDelegate)?) = (.no, nil)
        for wish in wishes {
            let claim = wish.delegate.claim(request, in: daemon.objects)
            if claim > best.claim { best = (claim, wish.delegate) }
        }
        return best.delegate
    }

    fileprivate func released(_ invocation: Invocation) {
        invocation.reply()
        endAll(.unregistered)
        perform(machine.released())
    }

    fileprivate func cancelled(_ invocation: Invocation) {
        invocation.reply()
        guard let open else { return }
        open.invocation?.fail(.cancelled)
        end(open, .cancelled)
    }

    fileprivate func isFromDaemon(_ invocation: Invocation) -> Bool { daemon.isFromDaemon(invocation) }
}

/// The interface that `bluetoothd` calls (`doc/org.bluez.Agent.rst`, up to 5.70 `doc/agent-api.txt`).
private enum AgentTable {
    static let table = InterfaceTable<PairingAgent>(
        "org.bluez.Agent1",
        methods: [
            method("Release") { $0.released($1) },
            // Of BR/EDR.
            method("RequestPinCode", in: ["device": "o"], out: ["pincode": "s"]) { $1.fail(.rejected) },
            method("DisplayPinCode", in: ["device": "o", "pincode": "s"]) { $1.fail(.rejected) },
            method("RequestPasskey", in: ["device": "o"], out: ["passkey": "u"]) {
                $0.requested($1) { _ in .enterPasskey }
            },
            method("DisplayPasskey", in: ["device": "o", "passkey": "u", "entered": "q"]) {
                $0.requested($1) { reader in
                    reader.uint32().flatMap { passkey in reader.uint16().map { .display(passkey, entered: $0) } }
                }
            },
            method("RequestConfirmation", in: ["device": "o", "passkey": "u"]) {
                $0.requested($1) { reader in reader.uint32().map { .confirm($0) } }
            },
            method("RequestAuthorization", in: ["device": "o"]) { $0.requested($1) { _ in .authorize } },
            // Of profiles that are not GATT.
            method("AuthorizeService", in: ["device": "o", "uuid": "s"]) { $1.fail(.rejected) },
            method("Cancel") { $0.cancelled($1) },
        ])

    /// A method that only `bluetoothd` may call.
    private static func method(
        _ name: StaticString, in inputs: InterfaceTable<PairingAgent>.Arguments = [:],
        out outputs: InterfaceTable<PairingAgent>.Arguments = [:],
        handler: @escaping @Sendable (PairingAgent, Invocation) -> Void
    ) -> InterfaceTable<PairingAgent>.Method {
        .init(name, in: inputs, out: outputs) { agent, invocation in
            guard agent.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
            handler(agent, invocation)
        }
    }
}

extension DBusError {
    fileprivate static let rejected = DBusError(name: "org.bluez.Error.Rejected", message: "Rejected")
    fileprivate static let cancelled = DBusError(name: "org.bluez.Error.Canceled", message: "Canceled")
}

extension BlueZError {
    /// No manager of this process needs the agent.
    package static let noAgent = BlueZError(
        name: "org.bluez.Error.Rejected", message: "No manager of this process allows pairing.")

    /// BlueZ was asked to register the agent, and has not replied so far.
    static let agentUnanswered = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "bluetoothd has not registered the agent so far")
}
