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
    private struct Manager {
        let delegate: any AgentDelegate
        var requirement: AgentMachine.Requirement
    }

    static let path: ObjectPath = "/org/bluecap/agent"

    private let daemon: DaemonLink
    private var machine = AgentMachine()
    private let timer: LoopTimer
    /// In the order in which they began to need the agent.
    private var managers: [Manager] = []
    private var waiting: [@Sendable (BlueZError?) -> Void] = []
    private var settled: (@Sendable () -> Void)?
    /// They receive the requests.
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
        let index = managers.firstIndex { $0.delegate === delegate }
        if let capability {
            let requirement = AgentMachine.Requirement(capability, isDefault: asDefault)
            if let index {
                managers[index].requirement = requirement
            } else {
                managers.append(Manager(delegate: delegate, requirement: requirement))
            }
        } else if let index {
            managers.remove(at: index)
            pairings?.rejectRequests(to: delegate)
        }
        update()
    }

    private func update() {
        let requirements = managers.map(\.requirement)
        perform(machine.wanted(requirements.first.map { requirements.reduce($0) { $0.union($1) } }))
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
        case .absent where managers.isEmpty: error = .noAgent
        case .absent, .registering: return
        }
        let waiting = waiting
        self.waiting = []
        daemon.loop.post { for completion in waiting { completion(error) } }
    }

    /// A request or a `Pair` has begun or ended.
    func busyChanged() {
        perform(machine.busyChanged(pairings?.isBusy == true))
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
        pairings?.endRequests()
        perform(machine.daemonLeft())
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
            case .requestDefault(let call): self.call("RequestDefaultAgent", call) { $0.objectPath(Self.path) }
            case .unregister(let call):
                pairings?.endRequests()
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
        pairings?.requested(invocation, kind, of: device, delegate(for: device))
    }

    /// The delegate with the greatest claim, of equal ones the first; `nil` if none has any.
    private func delegate(for device: ObjectKey) -> (any AgentDelegate)? {
        var best: (claim: AgentClaim, delegate: (any AgentDelegate)?) = (.no, nil)
        for manager in managers {
            let claim = manager.delegate.claim(device, in: daemon.objects)
            if claim > best.claim { best = (claim, manager.delegate) }
        }
        return best.delegate
    }

    fileprivate func released(_ invocation: Invocation) {
        invocation.reply()
        pairings?.endRequests()
        perform(machine.released())
    }

    fileprivate func cancelled(_ invocation: Invocation) {
        invocation.reply()
        pairings?.cancelQuestion()
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
    static let rejected = DBusError(name: "org.bluez.Error.Rejected", message: "Rejected")
    static let cancelled = DBusError(name: "org.bluez.Error.Canceled", message: "Canceled")
}

extension BlueZError {
    /// No manager of this process needs the agent.
    package static let noAgent = BlueZError(
        name: "org.bluez.Error.Rejected", message: "No manager of this process allows pairing.")

    /// BlueZ was asked to register the agent, and has not replied so far.
    static let agentUnanswered = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "bluetoothd has not registered the agent so far")
}
