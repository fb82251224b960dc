import DBus
import Reactor

/// One connection to the bus, with what listens on it.
struct Link {
    let connection: Connection
    /// Tells answers and events of this connection from those of an earlier one.
    let number: UInt64
    var subscriptions: [Subscription] = []
}

extension BlueZClient {
    /// GetManagedObjects carries everything that BlueZ knows: in a busy place several megabytes.
    private static let loadTimeout = 30.0

    func perform(_ effects: [DaemonMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .openBus: openBus()
            case .closeBus: closeBus()
            case .watchDaemon: watchDaemon()
            case .load(let load): requestObjects(load)
            case .clearTree: clearTree()
            case .startTimer(let seconds):
                daemonTimer.start(after: seconds) { [weak self] in
                    guard let self else { return }
                    perform(daemon.timerFired())
                }
            case .cancelTimer: daemonTimer.cancel()
            case .report(let availability): tell(availability)
            }
        }
    }

    private func openBus() {
        let number = makeID()
        let connection = Connection.open(address, loop: loop) { [weak self] state in
            guard let self, self.link?.number == number else { return }
            switch state {
            case .opened:
                perform(daemon.busOpened())
            case .closed(let error):
                link = nil
                perform(daemon.busClosed(error))
            }
        }
        link = Link(connection: connection, number: number)
        connection.onBatchEnd { [weak self] in self?.batchEnded() }
    }

    /// Lets what was sent last (StopDiscovery, it may be) reach the bus, but does not wait for it for ever.
    private func closeBus() {
        guard let link else { return }
        self.link = nil
        let connection = link.connection
        for subscription in link.subscriptions { subscription.cancel() }
        let limit = loop.schedule(after: 1) { connection.close() }
        let loop = loop
        connection.whenDrained {
            loop.cancel(limit)
            connection.close()
        }
    }

    /// Three rules, however many devices there are; with the one for the name, four.
    ///
    /// The subscriptions hold the client, without the cost of a weak reference for each signal: the last observation that
    /// ends closes the bus and cancels them.
    private func watchDaemon() {
        guard let connection = link?.connection, let number = link?.number else { return }
        let properties = MatchRule(
            sender: BlueZName.service, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged")
        let objects = MatchRule(sender: BlueZName.service, interface: "org.freedesktop.DBus.ObjectManager")
        // From 5.83 on; earlier ones send no signal of this interface.
        let disconnections = MatchRule(
            sender: BlueZName.service, interface: BlueZName.device, member: "Disconnected")
        let apply: @Sendable (Message) -> Void = { signal in self.change { $0.apply(signal, into: &$1) } }
        link?.subscriptions = [
            connection.subscribe(properties, handler: apply),
            connection.subscribe(objects, handler: apply),
            connection.subscribe(disconnections, handler: apply),
            connection.watchName(BlueZName.service) { [weak self] owner in
                guard let self, self.link?.number == number else { return }
                perform(daemon.ownerChanged(owner))
            },
        ]
    }

    private func requestObjects(_ load: DaemonMachine.LoadID) {
        guard let link else { return }
        let number = link.number
        link.connection.call(objectsMessage, timeout: Self.loadTimeout) { [weak self] result in
            guard let self, self.link?.number == number else { return }
            loaded(load, result)
        }
    }

    /// Asks for all objects anew, where they are known. What is different is told as any change is.
    package func reload() {
        guard case .ready = daemon.state, let link else { return }
        let (number, state) = (link.number, daemon.state)
        link.connection.call(objectsMessage, timeout: Self.loadTimeout) { [weak self] result in
            guard let self, self.link?.number == number, daemon.state == state else { return }
            // Otherwise what is known goes on to hold: it is kept current all the time.
            if case .success(let reply) = result, reply.hasSignature("a{oa{sa{sv}}}") {
                change { $0.load(reply, into: &$1) }
            }
        }
    }

    private var objectsMessage: Message {
        .call(
            destination: BlueZName.service, path: .root, interface: "org.freedesktop.DBus.ObjectManager",
            member: "GetManagedObjects")
    }

    private func loaded(_ load: DaemonMachine.LoadID, _ result: Result<Message, DBusError>) {
        // An answer that the machine does not wait for any more describes a daemon that is gone.
        guard daemon.isWaiting(for: load) else { return }
        switch result {
        case .success(let reply) where reply.hasSignature("a{oa{sa{sv}}}"):
            change { $0.load(reply, into: &$1) }
            perform(daemon.loadReplied(load, error: nil))
        case .success(let reply):
            let error = DBusError.unexpected(reply, to: "GetManagedObjects", instead: "a{oa{sa{sv}}}")
            perform(daemon.loadReplied(load, error: error))
        case .failure(let error):
            perform(daemon.loadReplied(load, error: error))
        }
    }
}
