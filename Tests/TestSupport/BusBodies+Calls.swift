import BlueCapDBus
import BlueCapFutures
import Glibc
import BlueCapReactor
import XCTest

extension BusBodies {
    package func aCallIsAnswered() throws {
        let (client, server) = try echoPair()
        let reply = try bus.call(client, .echo("Echo", to: server) { $0.string("Grüße") })

        var reader = reply.reader
        XCTAssertEqual(reader.string(), "Grüße")
        XCTAssertEqual(reply.sender, server.uniqueName)
        XCTAssertEqual(reply.destination, client.uniqueName)
    }

    package func aRefusalHasItsNameAndText() throws {
        let (client, server) = try echoPair()
        XCTAssertThrowsError(try bus.call(client, .echo("Refuse", to: server))) { error in
            XCTAssertEqual(
                error as? DBusError, DBusError(name: "org.bluez.Error.NotReady", message: "Resource Not Ready"))
        }
    }

    package func aCallToNobodyIsRefusedByTheBus() throws {
        let client = try bus.connect()
        for name in ["org.example.NotOwned", ":1.999999"] {
            let call = Message.call(destination: name, path: "/", interface: "a.b", member: "C")
            XCTAssertThrowsError(try bus.call(client, call)) { error in
                XCTAssertEqual((error as? DBusError)?.name, DBusError.Name.nameHasNoOwner)
            }
        }
    }

    package func aLateAnswerIsNotTakenForAnother() throws {
        let client = try bus.connect()
        let server = try bus.connect()
        let keeper = Keeper()
        server.export(ExportedObject("/echo", [silence.bound(to: keeper)]))
        let answers = Locked<[String]>([])
        client.call(.echo("Wait", to: server), timeout: 5) { result in
            answers.withLock { $0.append(result.failureName ?? "answered") }
        }
        XCTAssertTrue(bus.wait { keeper.count == 1 })
        bus.loop.advance(by: 5)
        XCTAssertEqual(answers.withLock { $0 }, [DBusError.Name.noReply])

        client.call(.echo("Wait", to: server), timeout: 5) { result in
            answers.withLock { $0.append(result.failureName ?? "second answered") }
        }
        XCTAssertTrue(bus.wait { keeper.count == 2 })
        keeper.answer(0)
        try bus.settle(server, client)
        XCTAssertEqual(answers.withLock { $0 }, [DBusError.Name.noReply])
        keeper.answer(1)
        XCTAssertTrue(bus.wait { answers.withLock { $0.count } == 2 })
        XCTAssertEqual(answers.withLock { $0.last }, "second answered")
    }

    package func aThousandCallsAreAnsweredInOrderAtMostAHundredAtATime() throws {
        let client = try bus.connect()
        let server = try bus.connect()
        // The server replies to a hundred calls together.
        let load = Locked((waiting: [(invocation: Invocation, value: UInt32)](), most: 0))
        let loop = bus.loop
        let table = InterfaceTable<BusFixture.Unit>(
            "org.example.Echo",
            methods: [
                .init("Echo", in: ["value": "u"], out: ["value": "u"]) { _, invocation in
                    var reader = invocation.reader
                    let value = reader.uint32() ?? 0
                    let isFull = load.withLock { load in
                        load.waiting.append((invocation, value))
                        load.most = max(load.most, load.waiting.count)
                        return load.waiting.count == 100
                    }
                    guard isFull else { return }
                    loop.schedule(after: 0.001) {
                        let waiting = load.withLock { load in
                            defer { load.waiting = [] }
                            return load.waiting
                        }
                        for (invocation, value) in waiting { invocation.reply { $0.uint32(value) } }
                    }
                }
            ])
        server.export(ExportedObject("/echo", [table.bound(to: .init())]))
        let answers = Locked<[UInt32]>([])
        for number in UInt32(0)..<1_000 {
            client.call(.echo("Echo", to: server) { $0.uint32(number) }) { result in
                guard case .success(let reply) = result else { return XCTFail("\(result)") }
                var reader = reply.reader
                answers.withLock { $0.append(reader.uint32() ?? .max) }
            }
        }
        XCTAssertTrue(
            bus.wait(until: { answers.withLock { $0.count } == 1_000 }, step: { bus.loop.advance(by: 0.001) }))
        XCTAssertEqual(answers.withLock { $0 }, Array(0..<1_000))
        XCTAssertEqual(load.withLock { $0.most }, 100)
    }

    package func theDeathOfTheCalleeIsAnAnswer() throws {
        let client = try bus.connect()
        let server = try bus.connect()
        let keeper = Keeper()
        server.export(ExportedObject("/echo", [silence.bound(to: keeper)]))
        let answer = Locked<String?>(nil)
        client.call(.echo("Wait", to: server)) { result in answer.withLock { $0 = result.failureName } }
        XCTAssertTrue(bus.wait { keeper.count == 1 })

        server.close()
        XCTAssertTrue(bus.wait { answer.withLock { $0 } != nil })
        XCTAssertEqual(answer.withLock { $0 }, DBusError.Name.noReply)
    }

    package func anInvocationThatNobodyAnswersAnswersItself() throws {
        let client = try bus.connect()
        let server = try bus.connect()
        let keeper = Keeper()
        server.export(ExportedObject("/echo", [silence.bound(to: keeper)]))
        let answer = Locked<DBusError?>(nil)
        client.call(.echo("Wait", to: server)) { result in
            if case .failure(let error) = result { answer.withLock { $0 = error } }
        }
        XCTAssertTrue(bus.wait { keeper.count == 1 })

        keeper.forget()
        XCTAssertTrue(bus.wait { answer.withLock { $0 } != nil })
        XCTAssertEqual(answer.withLock { $0 }, .failed("Wait was not answered."))
    }

    package func descriptorsTravelBothWays() throws {
        let client = try bus.connect()
        let server = try bus.connect()
        let table = InterfaceTable<BusFixture.Unit>(
            "org.example.Echo",
            methods: [
                .init("Swap", in: ["sink": "h"], out: ["source": "h", "mtu": "q"]) { _, invocation in
                    var reader = invocation.reader
                    var ends: [Int32] = [0, 0]
                    guard let sink = reader.descriptor(), let number = sink.rawValue, pipe(&ends) == 0 else {
                        return invocation.fail(.failed("No descriptor."))
                    }
                    _ = write(number, "in", 2)
                    _ = write(ends[1], "out", 3)
                    invocation.reply {
                        $0.descriptor(ends[0])
                        $0.uint16(23)
                    }
                    close(ends[0])
                    close(ends[1])
                }
            ])
        server.export(ExportedObject("/echo", [table.bound(to: .init())]))
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(pipe(&ends), 0)
        let call = Message.echo("Swap", to: server) { $0.descriptor(ends[1]) }
        close(ends[1])

        var reader = try bus.call(client, call).reader
        let source = try XCTUnwrap(reader.descriptor())
        XCTAssertEqual(reader.uint16(), 23)
        XCTAssertEqual(readAll(ends[0], 2), "in")
        XCTAssertEqual(readAll(try XCTUnwrap(source.rawValue), 3), "out")
        close(ends[0])
    }

    private func readAll(_ descriptor: Int32, _ count: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: count)
        return read(descriptor, &bytes, count) == count ? String(decoding: bytes, as: UTF8.self) : ""
    }
}
