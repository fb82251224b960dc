import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

extension BusBodies {
    package func signalsComeByRule() throws {
        let (sender, receiver) = (try bus.connect(), try bus.connect())
        let seen = Locked<[String]>([])
        func note(_ what: String) -> @Sendable (Message) -> Void {
            { message in seen.withLock { $0.append("\(what) \(message.member ?? "")") } }
        }
        let rule = MatchRule(interface: "org.example.Test", member: "One")
        let subscriptions = [
            receiver.subscribe(rule, handler: note("member")),
            receiver.subscribe(rule, handler: note("again")),
            receiver.subscribe(MatchRule(pathNamespace: "/below"), handler: note("below")),
            receiver.subscribe(MatchRule(interface: "org.example.Test", arg0: "x"), handler: note("arg0")),
        ]
        try bus.settle(receiver)
        sender.send(.test("/a", "One"))
        sender.send(.test("/below/b", "Two"))
        sender.send(.test("/belowb", "Three") { $0.string("x") })
        sender.send(.test("/a", "Four"))
        try bus.settle(sender, receiver)

        XCTAssertEqual(seen.withLock { $0 }, ["member One", "again One", "below Two", "arg0 Three"])
        subscriptions.forEach { $0.cancel() }
    }

    package func aCancelledSubscriptionReceivesNothingMore() throws {
        let (sender, receiver) = (try bus.connect(), try bus.connect())
        let seen = Locked<[String]>([])
        let rule = MatchRule(interface: "org.example.Test")
        let first = receiver.subscribe(rule) { _ in seen.withLock { $0.append("first") } }
        let second = receiver.subscribe(rule) { _ in seen.withLock { $0.append("second") } }
        try bus.settle(receiver)
        first.cancel()
        sender.send(.test("/", "One"))
        try bus.settle(sender, receiver)
        XCTAssertEqual(seen.withLock { $0 }, ["second"])

        second.cancel()
        try bus.settle(receiver)
        sender.send(.test("/", "Two"))
        try bus.settle(sender, receiver)
        XCTAssertEqual(seen.withLock { $0 }, ["second"])
    }

    package func aRuleWithANameFollowsItsOwner() throws {
        let (first, second, receiver) = (try bus.connect(), try bus.connect(), try bus.connect())
        let seen = Locked<[String]>([])
        let subscription = receiver.subscribe(MatchRule(sender: "org.example.Name", interface: "org.example.Test")) {
            message in seen.withLock { $0.append(message.member ?? "") }
        }
        // A wider rule of another subscriber brings all of them to this connection.
        let wide = receiver.subscribe(MatchRule(interface: "org.example.Test")) { _ in }
        first.requestName("org.example.Name")
        try bus.settle(first, receiver)
        first.send(.test("/", "OfTheOwner"))
        second.send(.test("/", "OfAnother"))
        try bus.settle(first, second, receiver)
        first.releaseName("org.example.Name")
        second.requestName("org.example.Name")
        try bus.settle(first, second, receiver)
        first.send(.test("/", "OfTheFormerOwner"))
        second.send(.test("/", "OfTheNewOwner"))
        try bus.settle(first, second, receiver)

        XCTAssertEqual(seen.withLock { $0 }, ["OfTheOwner", "OfTheNewOwner"])
        subscription.cancel()
        wide.cancel()
    }

    package func answersAndSignalsComeInTheOrderOfTheWire() throws {
        let (client, server) = (try bus.connect(), try bus.connect())
        let seen = Locked<[String]>([])
        let table = InterfaceTable<BusFixture.Unit>(
            "org.example.Echo",
            methods: [
                .init("Between") { [weak server] _, invocation in
                    server?.send(.test("/", "Before"))
                    invocation.reply()
                    server?.send(.test("/", "After"))
                }
            ])
        server.export(ExportedObject("/echo", [table.bound(to: .init())]))
        let subscription = client.subscribe(MatchRule(interface: "org.example.Test")) { message in
            seen.withLock { $0.append(message.member ?? "") }
        }
        for _ in 0..<3 { client.call(.echo("Between", to: server)) { _ in seen.withLock { $0.append("answer") } } }

        XCTAssertTrue(bus.wait { seen.withLock { $0.count } == 9 })
        XCTAssertEqual(seen.withLock { $0 }, Array(repeating: ["Before", "answer", "After"], count: 3).flatMap { $0 })
        subscription.cancel()
    }

    package func signalsComeInBatches() throws {
        let sender = try bus.connect()
        let receiving = bus.separateLoop()
        let receiver = Connection.open(.custom(bus.address), loop: receiving)
        let batches = Locked<(open: Int, sizes: [Int])>((0, []))
        let subscription = receiver.subscribe(MatchRule(interface: "org.example.Test")) { _ in
            batches.withLock { $0.open += 1 }
        }
        // The reply shows that the bus has the match rule.
        let isSubscribed = Locked(false)
        receiver.call(.toTheBus("GetId")) { _ in isSubscribed.withLock { $0 = true } }
        XCTAssertTrue(receiving.wait(until: { isSubscribed.withLock { $0 } }, limit: 10))
        receiver.onBatchEnd {
            batches.withLock { batches in
                if batches.open > 0 { batches.sizes.append(batches.open) }
                batches.open = 0
            }
        }
        for number in UInt32(0)..<5_000 { sender.send(.test("/", "Flood") { $0.uint32(number) }) }

        // A daemon has all of them before the receiver reads any, however busy the machine is.
        try bus.settle(sender)

        XCTAssertTrue(receiving.wait(until: { batches.withLock { $0.sizes.reduce(0, +) } == 5_000 }, limit: 10))
        let sizes = batches.withLock { $0.sizes }
        XCTAssertLessThanOrEqual(sizes.max() ?? 0, 512)
        XCTAssertLessThan(sizes.count, 2_500)
        subscription.cancel()
    }

    // MARK: Names

    package func namesHaveOneOwnerAndAQueue() throws {
        let (first, second) = (try bus.connect(), try bus.connect())
        let answers = Locked<[NameReply]>([])
        let note: @Sendable (Result<NameReply, DBusError>) -> Void = { result in
            if case .success(let reply) = result { answers.withLock { $0.append(reply) } }
        }
        first.requestName("org.example.Name", completion: note)
        first.requestName("org.example.Name", completion: note)
        try bus.settle(first)
        second.requestName("org.example.Name", completion: note)
        second.requestName("org.example.Name", flags: [], completion: note)
        try bus.settle(second)
        XCTAssertEqual(answers.withLock { $0 }, [.primaryOwner, .alreadyOwner, .exists, .inQueue])
    }

    package func aNameIsWatchedAcrossTheDeathOfItsOwner() throws {
        let watcher = try bus.connect()
        let owners = Locked<[String?]>([])
        let watch = watcher.watchName("org.example.Name") { owner in owners.withLock { $0.append(owner) } }
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [nil] })

        let first = try bus.connect()
        first.requestName("org.example.Name")
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [nil, first.uniqueName] })
        let name = first.uniqueName
        first.close()
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [nil, name, nil] })
        let second = try bus.connect()
        second.requestName("org.example.Name")
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [nil, name, nil, second.uniqueName] })

        watch.cancel()
        second.close()
        try bus.settle(watcher)
        XCTAssertEqual(owners.withLock { $0.count }, 4)
    }

    package func aSecondWatcherOfANameReceivesItToo() throws {
        let (watcher, owner) = (try bus.connect(), try bus.connect())
        owner.requestName("org.example.Name")
        try bus.settle(owner)
        let owners = Locked<[String]>([])
        let first = watcher.watchName("org.example.Name") { name in
            owners.withLock { $0.append("1 \(name ?? "no owner")") }
        }
        try bus.settle(watcher)
        let second = watcher.watchName("org.example.Name") { name in
            owners.withLock { $0.append("2 \(name ?? "no owner")") }
        }
        first.cancel()
        try bus.settle(watcher)
        owner.releaseName("org.example.Name")
        try bus.settle(owner, watcher)

        let name = owner.uniqueName ?? ""
        XCTAssertEqual(owners.withLock { $0 }, ["1 \(name)", "2 \(name)", "2 no owner"])
        second.cancel()
    }
}
