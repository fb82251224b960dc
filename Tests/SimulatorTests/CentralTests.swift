import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// Requests of a central for a program's attributes, and the calls that BlueZ makes for them.
final class CentralTests: XCTestCase {
    private let phone = VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", mtu: 100)

    private func scene(
        _ objects: [ObjectState] = ServingProgram.heart, mtu: Int = 100
    ) -> (Simulator, ServingProgram, CentralLink) {
        var central = phone
        central.mtu = mtu
        return ServingProgram.scene(objects, central: central)
    }

    // MARK: Links

    func testACentralIsADeviceOfTheServingAdapter() {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        let program = ServingProgram(simulator, ServingProgram.heart + [ServingProgram.connectable])
        program.serve()
        _ = program.client.takeLog()
        let link = simulator.connect(phone)
        XCTAssertEqual(link.state, .connecting)
        simulator.advance(by: 1)
        let device = "dev_C0_FF_EE_00_CE_01"
        program.client.expectLog(
            "+ \(device)", "\(device) Connected=true", "\(device) ServicesResolved=true Name=Phone Alias=Phone")
        link.disconnect()
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .disconnected)
        program.client.expectLog("\(device) ServicesResolved=false Connected=false")
        simulator.advance(by: 31)
        program.client.expectLog("- \(device)")
    }

    func testACentralWaitsForSomebodyWhoTakesConnections() {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        let program = ServingProgram(
            simulator, ServingProgram.heart + [ServingProgram.connectable, ServingProgram.advertisement([], at: "/b")])
        let link = simulator.connect(phone)
        XCTAssertNil(program.advertise("/b"))
        simulator.advance(by: 10)
        XCTAssertEqual(link.state, .connecting)
        XCTAssertNil(program.advertise())
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .connected)

        let late = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
        XCTAssertNil(program.stopAdvertising())
        simulator.advance(by: 41)
        XCTAssertEqual(late.state, .disconnected)
    }

    func testTheServerEndsALinkTwoSecondsAfterItWasAsked() {
        let (simulator, program, link) = scene()
        let path: ObjectPath = "/org/bluez/hci0/dev_C0_FF_EE_00_CE_01"
        XCTAssertNil(program.client.error(of: "Disconnect", at: path))
        simulator.run()
        XCTAssertEqual(link.state, .disconnected)
    }

    func testOneThatVanishesIsMissedLater() {
        let (simulator, program, link) = scene()
        link.subscribe(to: "2A37", indications: true)
        simulator.run()
        program.answer("ReadValue") { _ in nil }
        let read = link.read("2A38")
        link.vanish(noticedAfter: 2)
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .disconnected)
        XCTAssertEqual(read.failure, .disconnected)
        program.notify("/app/s0/c0", [1])
        _ = program.takeCalls()
        simulator.advance(by: 2)
        program.expectCalls("c0 StopNotify")
        XCTAssertEqual(link.values, [])
    }

    func testACentralThatConnectsAgainEndsItsFirstLink() {
        let (simulator, program, link) = scene()
        let again = simulator.connect(phone)
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .disconnected)
        XCTAssertEqual(again.state, .connected)
        link.disconnect()
        simulator.advance(by: 1)
        XCTAssertEqual(again.state, .connected)
        withExtendedLifetime(program) {}
    }

    func testALinkIsLost() {
        let (simulator, _, link) = scene()
        simulator.simulateLinkLoss(of: phone.address)
        simulator.run()
        XCTAssertEqual(link.state, .disconnected)
    }

    func testPowerOffAndTheDaemonsDeathEndLinks() {
        for fault in [{ $0.simulatePowerOff() }, { $0.simulateDaemonDeath() }] as [(Simulator) -> Void] {
            let (simulator, _, link) = scene()
            fault(simulator)
            simulator.advance(by: 1)
            XCTAssertEqual(link.state, .disconnected)
            XCTAssertEqual(simulator.advertisements, [])
        }
    }

    // MARK: Reading

    func testALongReadIsOneCallForEachPacket() {
        let (simulator, program, link) = scene()
        let value = (0..<250).map { UInt8($0) }
        program.answer("ReadValue") { message in
            var reader = message.reader
            var offset = 0
            reader.dictionary { entry in
                if entry.skip(ifString: "offset") { offset = Int(entry.variant { $0.uint16() } ?? 0) }
            }
            return .reply(to: message) { $0.bytes(Array(value.dropFirst(offset))) }
        }
        XCTAssertEqual(simulator.done(link.read("2A38")).bytes, value)
        program.expectCalls(
            "c1 ReadValue {link=LE mtu=100}", "c1 ReadValue {offset=99 link=LE mtu=100}",
            "c1 ReadValue {offset=198 link=LE mtu=100}")
    }

    func testTheDeviceIsNamed() {
        let (simulator, program, link) = scene()
        let device = Locked<String?>(nil)
        program.answer("ReadValue") { message in
            var reader = message.reader
            reader.dictionary { entry in
                guard entry.skip(ifString: "device") else { return }
                let path = entry.variant { $0.objectPath() }
                device.withLock { $0 = path?.rawValue }
            }
            return .reply(to: message) { $0.bytes([1] as [UInt8]) }
        }
        link.read("2A38")
        simulator.run()
        XCTAssertEqual(device.withLock { $0 }, "/org/bluez/hci0/dev_C0_FF_EE_00_CE_01")
    }

    func testAProgramsErrorsAndWhatTheyBecome() {
        let table: [(String, String, UInt8)] = [
            ("org.bluez.Error.Failed", "0x81", 0x81), ("org.bluez.Error.Failed", "129", 0x81),
            ("org.bluez.Error.Failed", "no", 0x80), ("org.bluez.Error.Failed", "0x20", 0x0E),
            ("org.bluez.Error.NotPermitted", "", 0x02), ("org.bluez.Error.NotAuthorized", "", 0x08),
            ("org.bluez.Error.NotSupported", "", 0x06), ("org.bluez.Error.InvalidValueLength", "", 0x0D),
            ("org.bluez.Error.InvalidOffset", "", 0x07), ("org.bluez.Error.InProgress", "", 0xFE),
            ("com.example.Error", "", 0x0E),
        ]
        for (name, text, code) in table {
            let (simulator, program, link) = scene()
            program.answer("ReadValue") { .error(to: $0, DBusError(name: name, message: text)) }
            XCTAssertEqual(simulator.done(link.read("2A38")).failure, .attribute(code), "\(name) \(text)")
        }
    }

    func testAProgramHasFiveSeconds() {
        let (simulator, program, link) = scene()
        program.answer("ReadValue") { _ in nil }
        let read = link.read("2A38")
        simulator.advance(by: 4.9)
        XCTAssertNil(read.result)
        simulator.advance(by: 0.2)
        XCTAssertEqual(read.failure, .attribute(0x0E))
    }

    func testALinkThatEndsBeforeTheAnswerIsTheDeathOf566() {
        let (simulator, program, link) = scene()
        simulator.simulateDeathByAbandonedAnswers()
        program.answer("ReadValue") { _ in nil }
        link.read("2A38")
        simulator.advance(by: 1)
        link.disconnect()
        simulator.advance(by: 3)
        XCTAssertEqual(simulator.applications.count, 1)
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.applications, [])
        XCTAssertEqual(program.client.takeLog().last, "gone")
    }

    func testWhatTheFlagsDoNotAllowIsNotAsked() {
        let (simulator, program, link) = scene(
            ServingProgram.heart + [
                ServingProgram.characteristic("s0/c4", "2a3b", ["encrypt-read", "encrypt-authenticated-write"])
            ])
        let requests = [
            link.read("2A3A"), link.write([1], to: "2A38"), link.read("2A3B"), link.write([1], to: "2A3B"),
            link.read(0x99),
        ]
        simulator.run()
        XCTAssertEqual(
            requests.map(\.failure),
            [.attribute(0x02), .attribute(0x03), .attribute(0x0F), .attribute(0x05), .notFound])
        program.expectCalls()
        // If they allow no operation, 5.66 calls the program.
        XCTAssertEqual(simulator.done(link.read("2A37")).bytes, [])
        program.expectCalls("c0 ReadValue {link=LE mtu=100}")
    }

    func testDescriptorsAreReadAndWritten() {
        let (simulator, program, link) = scene()
        program.answer("ReadValue") { message in .reply(to: message) { $0.bytes([0x41] as [UInt8]) } }
        let read = link.read("2A39", descriptor: "2901")
        let write = link.write([0x42], to: "2A39", descriptor: "2901")
        let extended = link.read("2A39", descriptor: "2900")
        simulator.run()
        XCTAssertEqual(read.bytes, [0x41])
        XCTAssertEqual(write.bytes, [])
        XCTAssertEqual(extended.bytes, [1, 0])
        program.expectCalls("d0 ReadValue {link=LE mtu=100}", "d0 WriteValue 42 {link=LE mtu=100}")
    }

    // MARK: Writing

    func testAWriteWaitsForTheProgramAndACommandForNobody() {
        let (simulator, program, link) = scene()
        let (write, command) = (link.write([1, 2], to: "2A39"), link.write([3], to: "2A3A", type: .command))
        simulator.run()
        XCTAssertEqual(write.bytes, [])
        XCTAssertEqual(command.bytes, [])
        program.expectCalls("c2 WriteValue 0102 {link=LE mtu=100}", "c3 WriteValue 03 {link=LE mtu=100}")
    }

    func testALongWriteIsPreparedAndComesWhole() {
        let (simulator, program, link) = scene()
        let value = [UInt8](repeating: 7, count: 300)
        let (long, reliable, offset) = (
            link.write(value, to: "2A39"), link.write([1], to: "2A39", type: .reliable),
            link.write([9], to: "2A39", offset: 4)
        )
        simulator.run()
        XCTAssertEqual([long, reliable, offset].map(\.bytes), [[], [], []])
        program.expectCalls(
            "c2 WriteValue \(Hexadecimal.text(value)) {link=LE mtu=100}", "c2 WriteValue 01 {link=LE mtu=100}",
            "c2 WriteValue 09 {offset=4 link=LE mtu=100}")
        XCTAssertEqual(
            simulator.done(link.write([UInt8](repeating: 7, count: 513), to: "2A39")).failure, .attribute(0x0D))
        program.expectCalls()
    }

    func testPreparedWritesAreAuthorizedOnce() {
        let (simulator, program, link) = scene(
            ServingProgram.heart + [ServingProgram.characteristic("s0/c4", "2a3b", ["write", "authorize"])], mtu: 23)
        let value = [UInt8](repeating: 7, count: 40)
        XCTAssertEqual(simulator.done(link.write(value, to: "2A3B")).bytes, [])
        program.expectCalls(
            "c4 WriteValue  {link=LE prepare-authorize=true mtu=23}",
            "c4 WriteValue \(Hexadecimal.text(value)) {link=LE mtu=23}")
        program.answer("WriteValue") { .error(to: $0, .bluez("NotAuthorized", "")) }
        XCTAssertEqual(simulator.done(link.write(value, to: "2A3B")).failure, .attribute(0x08))
        program.expectCalls("c4 WriteValue  {link=LE prepare-authorize=true mtu=23}")
    }

    func testWhereCommandsAreTakenRequestsSucceedUnasked() {
        let (simulator, program, link) = scene()
        program.answer("WriteValue") { .error(to: $0, .bluez("Failed", "0x80")) }
        let (both, request) = (link.write([1], to: "2A3A"), link.write([1], to: "2A39"))
        simulator.run()
        XCTAssertEqual(both.bytes, [])
        XCTAssertEqual(request.failure, .attribute(0x80))
    }

    // MARK: Changes

    func testASubscriberOfServiceChangedReceivesTheHandles() {
        let (simulator, program, link) = scene()
        link.subscribe(to: "2A05", indications: true)
        simulator.run()
        XCTAssertNil(program.unregister())
        simulator.advance(by: 1)
        XCTAssertEqual(link.values.map(\.bytes), [[0x15, 0, 0x20, 0]])
        XCTAssertEqual(link.services.map { $0.uuid.prefix(8) }, ["00001800", "00001801", "0000180a"])
        XCTAssertEqual(simulator.done(link.read("2A38")).failure, .notFound)
    }

    func testAnApplicationThatGoesRefusesWhatWaitsForIt() {
        let (simulator, program, link) = scene()
        program.answer("ReadValue") { _ in nil }
        let read = link.read("2A38")
        simulator.run()
        XCTAssertNil(program.unregister())
        XCTAssertEqual(read.failure, .attribute(0x06))
    }

    func testRequestsOfALinkThatEndsAreNotAnswered() {
        let (simulator, program, link) = scene()
        program.answer("ReadValue") { _ in nil }
        let (first, second) = (link.read("2A38"), link.read("2A38"))
        simulator.run()
        XCTAssertEqual(program.takeCalls().count, 1)
        link.disconnect()
        simulator.run()
        XCTAssertEqual([first, second].map(\.failure), [.disconnected, .disconnected])
        XCTAssertEqual(link.read("2A38").result, nil)
    }
}

extension Simulator {
    /// Runs what is due, which completes a request that waits for nothing.
    fileprivate func done(_ request: CentralRequest) -> CentralRequest {
        run()
        return request
    }
}
