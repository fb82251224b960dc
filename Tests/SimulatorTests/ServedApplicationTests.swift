import BlueCapDBus
import XCTest

@testable import BlueZSimulator

/// `RegisterApplication`: what BlueZ reads, takes and refuses.
final class ServedApplicationTests: XCTestCase {
    private func scene(_ objects: [ObjectState] = ServingProgram.heart) -> (Simulator, ServingProgram) {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        return (simulator, ServingProgram(simulator, objects))
    }

    private func refusal(of objects: [ObjectState]) -> DBusError? { scene(objects).1.register() }

    private func failed(_ message: String) -> DBusError {
        DBusError(name: "org.bluez.Error.Failed", message: message)
    }

    func testTheObjectsAreReadOnceAndTheHandlesThatWereLeftOpenAreWritten() {
        let (simulator, program) = scene()
        XCTAssertNil(program.register())
        program.expectCalls(
            "app GetManagedObjects", "s0 Set Handle 21", "c0 Set Handle 23", "c1 Set Handle 26", "c2 Set Handle 28")
        let service = simulator.applications[0].services[0]
        XCTAssertEqual(service.uuid, ServiceUUID.long("180d"))
        XCTAssertEqual(service.handle, 0x15)
        XCTAssertEqual(service.characteristics.map(\.valueHandle), [0x17, 0x1A, 0x1C, 0x20])
        XCTAssertEqual(
            service.characteristics.map { $0.descriptors.map { $0.uuid.prefix(8).suffix(4) } },
            [["2902"], [], ["2900", "2901"], []])
        XCTAssertEqual(simulator.applications[0].owner, program.client.name)
    }

    func testTheSocketsOfAnApplicationAreClosedInTheOrderOfTheirPaths() {
        var applications = Applications()
        var core = Core(traits: DaemonTraits(.v5_66))
        let id = ApplicationID(number: 1)
        var application = LocalApplication(id: id, owner: ":1.7", path: "/app", adapter: 0)
        for number in 0..<8 as Range<UInt64> {
            var object = ServedObject(
                interface: InterfaceName.characteristic, handle: 0x40, flags: [.notify], offersNotifySocket: true,
                offersWriteSocket: false, wantsAuthorization: false)
            let central = DeviceKey(adapter: 0, address: "C0:FF:EE:00:CE:01")
            object.notifySockets = [ServedSocket(id: SocketID(number: number), central: central)]
            application.objects["/app/s0/c\(number)"] = object
        }
        XCTAssertTrue(applications.remove(application, &core).isEmpty)
        let closed = core.takeEffects().compactMap { effect -> UInt64? in
            if case .closeSocket(let socket) = effect { socket.number } else { nil }
        }
        XCTAssertEqual(closed, Array(0..<8))
    }

    func testHandlesThatAreAskedForAreGivenWhereTheyAreFree() {
        let objects = [
            ServingProgram.service("s0", "180d", handle: 0x40),
            ServingProgram.characteristic("s0/c0", "2a38", ["read"], handle: 0x42),
        ]
        let (simulator, program) = scene(objects)
        XCTAssertNil(program.register())
        program.expectCalls("app GetManagedObjects")
        XCTAssertEqual(simulator.applications[0].services[0].handle, 0x40)
        XCTAssertEqual(simulator.applications[0].services[0].characteristics[0].valueHandle, 0x42)

        let other = ServingProgram(simulator, objects)
        XCTAssertEqual(other.register(), failed("Failed to create entry in database"))
    }

    func testHandlesAreNotGivenASecondTime() {
        let (simulator, program) = scene()
        XCTAssertNil(program.register())
        XCTAssertNil(program.unregister())
        XCTAssertEqual(simulator.applications, [])
        XCTAssertNil(program.register())
        XCTAssertEqual(simulator.applications[0].services[0].handle, 0x21)
    }

    func testWhatIsRefused() {
        XCTAssertEqual(refusal(of: []), failed("No object received"))
        let service = ServingProgram.service("s0", "180d")
        let table: [([ObjectState], String)] = [
            ([ServingProgram.characteristic("s0/c0", "2a38", ["read"])], "No valid service object found"),
            ([service, ServingProgram.characteristic("s0/c0", "2a38", ["reed"])], "No valid service object found"),
            ([service, ServingProgram.characteristic("s0/c0", "2a38", [])], "No valid service object found"),
            ([service, ServingProgram.descriptor("s0/c0/d0", "2901", ["read"])], "No valid service object found"),
            (
                [
                    service, ServingProgram.characteristic("s0/c0", "2a38", ["read"]),
                    ServingProgram.descriptor("s0/c0/d0", "2901", ["notify"]),
                ], "No valid service object found"
            ),
            ([ServingProgram.service("s0", "1800")], "Failed to create entry in database"),
            ([ServingProgram.service("s0", "1801")], "Failed to create entry in database"),
            ([ServingProgram.service("s0", "nothing")], "Failed to create entry in database"),
            ([ServingProgram.service("s0", "180d", handle: 3)], "Failed to create entry in database"),
        ]
        for (objects, message) in table {
            let (simulator, program) = scene(objects)
            XCTAssertEqual(program.register(), failed(message), message)
            XCTAssertEqual(simulator.applications, [])
            XCTAssertEqual(program.unregister()?.name, "org.bluez.Error.DoesNotExist")
        }
    }

    func testAnApplicationIsRegisteredOnceForEachAdapterAndProgram() {
        let simulator = Simulator.inProcess(
            room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)], bluez: .v5_66)
        let program = ServingProgram(simulator, ServingProgram.heart)
        XCTAssertNil(program.register())
        XCTAssertEqual(program.register()?.name, "org.bluez.Error.AlreadyExists")
        XCTAssertNil(program.register(on: "/org/bluez/hci1"))
        let other = ServingProgram(simulator, ServingProgram.heart)
        XCTAssertNil(other.register())
        XCTAssertEqual(simulator.applications.map(\.adapter), [0, 1, 0])
        XCTAssertEqual(program.unregister("/other")?.name, "org.bluez.Error.DoesNotExist")
    }

    func testAProgramThatLeavesTheBusTakesItsApplicationAlong() {
        let (simulator, program) = scene()
        XCTAssertNil(program.register())
        program.client.connection.close()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.applications, [])
    }

    func testAServiceWhoseObjectGoesIsGone() {
        let (simulator, program) = scene()
        XCTAssertNil(program.register())
        program.client.connection.send(
            .signal(path: "/app", interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesRemoved") {
                $0.objectPath("/app/s0")
                $0.strings([InterfaceName.service])
            })
        simulator.run()
        XCTAssertEqual(simulator.applications.map(\.services), [[]])
    }

    func testTheAdaptersUUIDsNameWhatIsServed() {
        let (_, program) = scene()
        _ = program.client.takeLog()
        XCTAssertNil(program.register())
        let signals = program.client.takeLog()
        XCTAssertEqual(signals.count, 1)
        XCTAssertTrue(signals[0].hasSuffix("," + (ServiceUUID.long("180d") ?? "")), signals[0])
    }

    func testADaemonThatIsKilledForgetsWhatWasRegistered() {
        let (simulator, program) = scene(ServingProgram.heart + [ServingProgram.connectable])
        program.serve()
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateDaemonReturn()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.applications, [])
        XCTAssertEqual(simulator.advertisements, [])
        XCTAssertEqual(program.unregister()?.name, "org.bluez.Error.DoesNotExist")
        XCTAssertNil(program.register())
    }

    func testWhatStaysRegisteredWhileAnAdapterIsOff() {
        let (simulator, program) = scene(ServingProgram.heart + [ServingProgram.connectable])
        program.serve()
        simulator.simulatePowerOff()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.applications.count, 1)
        XCTAssertEqual(simulator.advertisements, [])
        XCTAssertEqual(
            program.client.property("ActiveInstances", of: "org.bluez.LEAdvertisingManager1"), "1")
        XCTAssertEqual(program.advertise("/other"), failed("Failed to register advertisement"))
        simulator.simulatePowerOn()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.advertisements.count, 1)
    }

    func testFailuresThatAreAskedFor() {
        let (simulator, program) = scene(ServingProgram.heart + [ServingProgram.connectable])
        simulator.simulateRegistrationFailures(1)
        simulator.simulateAdvertisementFailures(1)
        XCTAssertEqual(program.register(), failed("Failed to create entry in database"))
        XCTAssertNil(program.register())
        XCTAssertEqual(program.advertise(), failed("Failed to register advertisement"))
        XCTAssertNil(program.advertise())
    }

    func testIgnoredRegistrationsAreWorkedOffLater() {
        let (simulator, program) = scene(ServingProgram.heart + [ServingProgram.connectable])
        simulator.simulateIgnoredRegistrations()
        let noReply = "org.freedesktop.DBus.Error.NoReply"
        XCTAssertEqual(program.register()?.name, noReply)
        XCTAssertEqual(program.advertise()?.name, noReply)
        XCTAssertEqual(program.unregister()?.name, DaemonError.doesNotExist.name, "Other calls are answered.")
        XCTAssertEqual(simulator.applications.count, 0)
        XCTAssertEqual(simulator.advertisements.count, 0)
        simulator.simulateIgnoredRegistrations(false)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.applications.count, 1)
        XCTAssertEqual(simulator.advertisements.count, 1)
    }
}
