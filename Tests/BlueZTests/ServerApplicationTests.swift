import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

final class ServerApplicationTests: XCTestCase {
    private let heartRate = ServerService(
        id: ServerAttributeID(1), uuid: CBUUID(string: "180D"),
        characteristics: [
            ServerCharacteristic(
                id: ServerAttributeID(2), uuid: CBUUID(string: "2A37"), flags: [.read, .write, .notify],
                descriptors: [
                    ServerDescriptor(id: ServerAttributeID(3), uuid: CBUUID(string: "2901"), flags: .read),
                    ServerDescriptor(id: ServerAttributeID(4), uuid: CBUUID(string: "2904"), flags: .read),
                ]),
            ServerCharacteristic(id: ServerAttributeID(5), uuid: CBUUID(string: "2A38"), flags: .indicate),
        ])
    private let battery = ServerService(
        id: ServerAttributeID(11), uuid: CBUUID(string: "180F"), isPrimary: false,
        characteristics: [
            ServerCharacteristic(
                id: ServerAttributeID(12), uuid: CBUUID(string: "2A19"), flags: [.writeWithoutResponse, .notify],
                givesNotifySocket: true, givesWriteSocket: true)
        ])

    private func registered(_ service: ServerService) -> ServerScene {
        let scene = ServerScene()
        scene.serve(service)
        scene.accept()
        XCTAssertEqual(scene.states.withLock { $0.last }, .registered)
        return scene
    }

    // MARK: Registering

    func testTheTreeIsWhatBlueZReads() {
        let scene = registered(heartRate)
        let root = scene.root?.rawValue ?? ""
        XCTAssertEqual(
            scene.objects["/service0"]?["org.bluez.GattService1"],
            ["UUID": "0000180d-0000-1000-8000-00805f9b34fb", "Primary": "true", "Handle": "0"])
        XCTAssertEqual(
            scene.objects["/service0/char0"]?["org.bluez.GattCharacteristic1"],
            [
                "UUID": "00002a37-0000-1000-8000-00805f9b34fb", "Service": root + "/service0",
                "Flags": "read,write,notify", "Handle": "0", "Notifying": "false",
            ])
        XCTAssertEqual(
            scene.objects["/service0/char0/desc0"]?["org.bluez.GattDescriptor1"],
            [
                "UUID": "00002901-0000-1000-8000-00805f9b34fb", "Characteristic": root + "/service0/char0",
                "Flags": "read", "Handle": "0",
            ])
        XCTAssertEqual(scene.read("/service0/char0/desc0"), "[1, 2, 3]")
        XCTAssertEqual(scene.read("/service0/char0/desc1", offset: 1), "[2, 3]")
        XCTAssertEqual(scene.delegate.log, ["read 3", "read 4"])
        let other = registered(battery)
        XCTAssertEqual(other.objects["/service0"]?["org.bluez.GattService1"]?["Primary"], "false")
        let level = other.objects["/service0/char0"]?["org.bluez.GattCharacteristic1"]
        XCTAssertEqual(level?["NotifyAcquired"], "false")
        XCTAssertEqual(level?["WriteAcquired"], "false")
    }

    func testHandlesOutliveTheDaemon() {
        let scene = registered(heartRate)
        scene.call(scene.path("/service0/char0"), "org.freedesktop.DBus.Properties", "Set") { writer in
            writer.string("org.bluez.GattCharacteristic1")
            writer.string("Handle")
            writer.variant("q") { $0.uint16(42) }
        }
        scene.daemon.vanish()
        scene.daemon.appear()
        scene.accept()
        XCTAssertEqual(scene.objects["/service0/char0"]?["org.bluez.GattCharacteristic1"]?["Handle"], "42")
        XCTAssertEqual(scene.objects["/service0/char1"]?["org.bluez.GattCharacteristic1"]?["Handle"], "0")
    }

    /// 5.74 and 5.75 refuse a characteristic without a handle.
    func testWhereBlueZChoosesNoHandlesTheyAreInTheOrderInWhichItCreatesTheAttributes() {
        for minor: UInt8 in [74, 75] {
            let scene = ServerScene(minor: minor)
            scene.serve(heartRate)
            scene.accept()
            func handle(_ rest: String, _ interface: String) -> Int {
                Int(scene.objects[rest]?["org.bluez.Gatt\(interface)1"]?["Handle"] ?? "") ?? 0
            }
            let first = handle("/service0", "Service")
            XCTAssertGreaterThanOrEqual(first, 0x1000)
            // Declaration, declaration and value, 0x2902, two descriptors, declaration and value, 0x2902.
            XCTAssertEqual(handle("/service0/char0", "Characteristic"), first + 2)
            XCTAssertEqual(handle("/service0/char0/desc0", "Descriptor"), first + 4)
            XCTAssertEqual(handle("/service0/char0/desc1", "Descriptor"), first + 5)
            XCTAssertEqual(handle("/service0/char1", "Characteristic"), first + 7)
            scene.daemon.vanish()
            scene.daemon.appear()
            scene.accept()
            XCTAssertEqual(handle("/service0", "Service"), first, "What has handles keeps them.")
        }
    }

    func testHandlesThatAreTakenAreExchanged() {
        let scene = ServerScene(minor: 75)
        scene.serve(heartRate)
        let error = DBusError(name: "org.bluez.Error.Failed", message: "Failed to create entry in database")
        scene.daemon.answerLate("RegisterApplication", error: error)
        scene.accept()
        XCTAssertEqual(scene.objects["/service0"]?["org.bluez.GattService1"]?["Handle"], "\(0x1000 + 9)")
        XCTAssertEqual(scene.states.withLock { $0.last }, .registered)

        let other = ServerScene(minor: 75)
        other.serve(battery)
        for _ in 0..<5 { other.daemon.answerLate("RegisterApplication", error: error) }
        XCTAssertEqual(other.states.withLock { $0.last }, .refused(BlueZError(error)), "It is not the handles.")
    }

    func testItComesBackWithTheDaemonAndSubscribersReceiveTheGap() {
        let scene = registered(heartRate)
        scene.send("/service0/char0", "StartNotify")
        XCTAssertEqual(scene.delegate.log, ["+2"])
        scene.daemon.vanish()
        XCTAssertEqual(scene.delegate.log, ["+2", "-2"])
        XCTAssertEqual(scene.states.withLock { $0.last }, .waiting(.adapter))
        scene.daemon.appear()
        scene.accept()
        XCTAssertEqual(scene.states.withLock { $0.last }, .registered)
        XCTAssertEqual(scene.read("/service0/char0"), "[1, 2, 3]")
    }

    func testItComesBackAfterTheBus() {
        let scene = registered(heartRate)
        scene.daemon.bus.close()
        scene.daemon.loop.run()
        scene.daemon.vanish()
        scene.daemon.bus.reopen()
        scene.daemon.loop.run()
        scene.daemon.appear()
        scene.daemon.loop.advance(by: 10)
        scene.accept()
        XCTAssertEqual(scene.read("/service0/char0"), "[1, 2, 3]")
    }

    func testItsEndUnregistersAndLeavesTheBus() {
        let scene = registered(heartRate)
        scene.end()
        XCTAssertEqual(scene.daemon.count("UnregisterApplication"), 1)
        XCTAssertEqual(scene.read("/service0/char0").prefix(14), "NameHasNoOwner")
    }

    func testARegistrationThatSucceedsAfterItsEndIsUnregistered() {
        let scene = ServerScene()
        scene.daemon.errors["UnregisterApplication"] = [DBusError(name: "org.bluez.Error.DoesNotExist", message: "")]
        scene.serve(heartRate)
        scene.end()
        XCTAssertEqual(scene.daemon.count("UnregisterApplication"), 1)
        scene.daemon.loop.advance(by: 300)
        scene.daemon.answerLate("RegisterApplication")
        XCTAssertEqual(scene.daemon.count("UnregisterApplication"), 2)
    }

    func testNobodyButTheDaemonMayCall() {
        let scene = registered(heartRate)
        let other = Connection.open(.custom(scene.daemon.bus.address), loop: scene.daemon.loop)
        scene.daemon.loop.run()
        XCTAssertEqual(scene.read("/service0/char0", from: other).prefix(12), "AccessDenied")
        XCTAssertEqual(scene.delegate.log, [])
    }

    // MARK: Reading

    func testALongReadIsOneRequestAndOneValue() {
        let scene = registered(heartRate)
        let value = Data((0..<50).map { UInt8($0) })
        scene.delegate.state.withLock { $0.value = value }
        XCTAssertEqual(scene.read("/service0/char0"), "\([UInt8](value))")
        scene.delegate.state.withLock { $0.value = Data([9]) }
        XCTAssertEqual(scene.read("/service0/char0", offset: 22), "\([UInt8](value[22...]))")
        XCTAssertEqual(scene.read("/service0/char0", offset: 44), "\([UInt8](value[44...]))")
        XCTAssertEqual(scene.delegate.log, ["read 2"])
        let request = scene.delegate.state.withLock { $0.reads[0] }
        XCTAssertEqual(request.peer.mtu, 23)
        XCTAssertEqual(request.peer.address?.description, "C0:26:DF:12:34:56")
        XCTAssertEqual(scene.read("/service0/char0", offset: 5).prefix(13), "InvalidOffset")
    }

    func testRefusalsReachBlueZByTheNamesThatItReads() {
        let table: [(CBATTError.Code, Bool, String)] = [
            (.readNotPermitted, true, "NotPermitted"), (.writeNotPermitted, false, "NotPermitted"),
            (.readNotPermitted, false, "UnlikelyError"), (.requestNotSupported, true, "NotSupported"),
            (.invalidOffset, true, "InvalidOffset"), (.insufficientAuthorization, true, "NotAuthorized"),
            (.invalidAttributeValueLength, false, "InvalidValueLength"), (.unlikelyError, true, "UnlikelyError"),
            (.insufficientEncryption, true, "UnlikelyError"),
        ]
        for (code, isRead, name) in table {
            XCTAssertEqual(DBusError.refusal(code, ofRead: isRead).name, "org.bluez.Error." + name, "\(code)")
        }
        for number in 0x80...0x9F {
            let error = DBusError.refusal(CBATTError.Code(rawValue: number) ?? .success, ofRead: false)
            XCTAssertEqual(error.name, "org.bluez.Error.Failed")
            XCTAssertEqual(error.message, "0x" + String(number, radix: 16))
        }
    }

    // MARK: Writing

    func testAWriteHasWhatBlueZReports() {
        let scene = registered(heartRate)
        XCTAssertEqual(scene.write("/service0/char0", [7, 8]), "ok")
        scene.delegate.state.withLock { $0.refusal = CBATTError.Code(rawValue: 0x81) }
        XCTAssertEqual(scene.write("/service0/char0", [9]), "Failed 0x81")
        XCTAssertEqual(
            scene.write("/service0/char0", [UInt8](repeating: 0, count: 513)).prefix(18), "InvalidValueLength")
        let writes = scene.delegate.state.withLock { $0.writes }
        XCTAssertEqual(writes.map { $0.value.map { [UInt8]($0) } }, [[7, 8], [9]])
        XCTAssertTrue(writes[0].expectsAnswer)
    }

    func testPartsAreGivenOnceWhenNoMoreComes() {
        let scene = registered(heartRate)
        XCTAssertEqual(scene.write("/service0/char0", [UInt8](repeating: 1, count: 18)), "ok")
        XCTAssertEqual(
            scene.write("/service0/char0", [UInt8](repeating: 2, count: 18), options: [("offset", .uint16(18))]), "ok")
        XCTAssertEqual(scene.delegate.log, ["write 2"])
        scene.daemon.loop.advance(by: 0.1)
        XCTAssertEqual(scene.delegate.log, ["write 2", "write 2"])
        XCTAssertEqual(scene.delegate.state.withLock { $0.writes[1].value?.count }, 36)
    }

    func testAskingBeforeALongWriteIsNoWrite() {
        let scene = registered(heartRate)
        let answer = scene.write("/service0/char0", [1], options: [("prepare-authorize", .bool(true))])
        XCTAssertEqual(answer.prefix(13), "NotAuthorized")
        XCTAssertEqual(scene.delegate.log, ["authorize 2"])
    }

    func testAWriteThatNobodyAnswersIsRefused() {
        let scene = registered(heartRate)
        scene.delegate.state.withLock { $0.isSilent = true }
        let answer = scene.startWrite("/service0/char0", [1])
        XCTAssertEqual(ServerScene.text(answer.withLock { $0 }), "nothing")
        scene.daemon.loop.advance(by: 4.9)
        XCTAssertEqual(ServerScene.text(answer.withLock { $0 }).prefix(13), "UnlikelyError")
        XCTAssertEqual(scene.delegate.state.withLock { $0.held[0].succeed() }, false, "too late, and harmless")
    }

    // MARK: Notifying

    func testEachValueIsASignalAndOnlyWhileSomebodyListens() {
        let scene = registered(heartRate)
        scene.listen()
        scene.notify(2, [1])
        XCTAssertEqual(scene.values, [])
        scene.send("/service0/char0", "StartNotify")
        scene.notify(2, [2])
        scene.notify(2, [2])
        scene.send("/service0/char0", "StopNotify")
        scene.notify(2, [3])
        XCTAssertEqual(scene.values, [[1], [2], [2]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "sent [2]", "sent [2]"])
        XCTAssertEqual(scene.delegate.log, ["+2", "-2"])
    }

    func testIndicationsGoOneAfterTheOther() {
        let scene = registered(heartRate)
        scene.listen()
        scene.send("/service0/char1", "StartNotify")
        scene.notify(5, [1])
        scene.notify(5, [2])
        XCTAssertEqual(scene.values, [[1]])
        scene.send("/service0/char1", "Confirm")
        XCTAssertEqual(scene.values, [[1], [2]])
        scene.daemon.loop.advance(by: 31)
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "unconfirmed [2]"])
        XCTAssertEqual(scene.delegate.log, ["+5"])
    }

    // MARK: Sockets

    func testWritesComeOverTheSocketThatBlueZFetches() throws {
        let scene = registered(battery)
        let socket = try scene.acquire(1, "/service0/char0", "AcquireWrite")
        XCTAssertNil([UInt8]([5, 6]).withUnsafeBytes { sendPacket($0, to: socket.rawValue ?? -1) })
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.delegate.log == ["write 12"] }, limit: 5))
        let write = scene.delegate.state.withLock { $0.writes[0] }
        XCTAssertEqual(write.value.map { [UInt8]($0) }, [5, 6])
        XCTAssertFalse(write.expectsAnswer)
        scene.end()
        XCTAssertTrue(isHungUp(try XCTUnwrap(socket.rawValue)))
    }

    /// Also if the loop reads the bus first.
    func testARequestIsReportedAfterWhatWasWrittenBeforeIt() throws {
        let values = ServerService(
            id: ServerAttributeID(1), uuid: CBUUID(string: "1815"),
            characteristics: [
                ServerCharacteristic(
                    id: ServerAttributeID(2), uuid: CBUUID(string: "2A56"), flags: [.writeWithoutResponse, .notify],
                    givesWriteSocket: true),
                ServerCharacteristic(id: ServerAttributeID(3), uuid: CBUUID(string: "2A58"), flags: [.read, .write]),
            ])
        let scene = registered(values)
        let socket = try scene.acquire(1, "/service0/char0", "AcquireWrite")
        let command = { (value: UInt8) in
            XCTAssertNil([value].withUnsafeBytes { sendPacket($0, to: socket.rawValue ?? -1) })
        }
        command(1)
        XCTAssertEqual(scene.read("/service0/char1"), "[1, 2, 3]")
        command(2)
        XCTAssertEqual(scene.write("/service0/char1", [3]), "ok")
        command(3)
        XCTAssertEqual(scene.send("/service0/char0", "StartNotify"), "ok")
        command(4)
        socket.close()
        let second = try scene.acquire(1, "/service0/char0", "AcquireWrite")
        XCTAssertEqual(scene.delegate.log, ["write 2", "read 3", "write 2", "write 3", "write 2", "+2", "write 2"])
        withExtendedLifetime(second) {}
    }
}
