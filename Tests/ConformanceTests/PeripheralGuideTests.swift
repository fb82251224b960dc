import BlueCapKit
import BlueZSimulator
import Foundation
import TestSupport
import XCTest

// Two functions of Examples/ServeThermostat.

/// Returns the target that a central writes, in hundredths of a degree.
/// - Throws: The error that the central receives. The codes 0x80 to 0x9F are the application's own.
func checkedTarget(_ request: ATTRequest) throws(CBATTError) -> Int16 {
    guard request.offset == 0 else { throw CBATTError(.invalidOffset) }
    guard let target = request.value.flatMap({ Int16.deserialize($0) }) else {
        throw CBATTError(.invalidAttributeValueLength)
    }
    guard (500...3000).contains(target) else { throw CBATTError(.application(0x80)) }
    return target
}

func serveThermostat(_ manager: PeripheralManager) async throws {
    let target = MutableCharacteristic(
        uuid: "7B1C0011-5A0E-4E2B-9C5F-3D1E8A6F0B21", properties: [.read, .write, .notify],
        permissions: [.readable, .writeable], value: Int16(2000).serialize())
    target.descriptors = [.userDescription("Target, 5 to 30 degrees")]
    target.updateQueuePolicy = .dropOldest  // update never fails because a central is slow
    target.unsubscribedUpdatePolicy = .discard  // a central that connects later reads the target
    let thermostat = MutableService(uuid: "7B1C0010-5A0E-4E2B-9C5F-3D1E8A6F0B21")
    thermostat.characteristics = [target]
    try await manager.add(thermostat)
    let writes = target.startRespondingToWriteRequests()
    try await manager.startAdvertising("Thermostat", uuids: [thermostat.uuid])

    for try await (request, central) in writes {
        do {
            let hundredths = try checkedTarget(request)
            try target.update(hundredths)  // sets the value, and sends it to all subscribers
            target.respondToRequest(request, withResult: .success)
            print("\(central) has set \(Double(hundredths) / 100) °C")
        } catch let error as CBATTError {
            target.respondToRequest(request, withResult: error.code)
            print("\(central) was refused: \(error)")
        }
    }
}

/// The code of Documentation/PeripheralRole.md, on the simulator in process: a block is a program of Examples, a part of this
/// file, or compiled by Scripts/code-blocks.
final class PeripheralGuideTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    func testTheThermostatIsThatOfTheExamples() throws {
        let own = try String(contentsOfFile: #filePath, encoding: .utf8)
        let example = try String(
            contentsOf: Self.root.appendingPathComponent("Examples/ServeThermostat/main.swift"), encoding: .utf8)
        let begin = try XCTUnwrap(example.range(of: "/// Returns the target"))
        let end = try XCTUnwrap(example.range(of: "\ntry await serveThermostat"))
        XCTAssertTrue(own.contains(example[begin.lowerBound..<end.lowerBound]))
    }

    func testATargetIsCheckedBeforeItIsSet() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let serving = Task(executorPreference: simulator.taskExecutor) { try await serveThermostat(manager) }
        await simulator.advance(by: .seconds(5))
        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"))
        await simulator.advance(by: .seconds(1))
        let target: AttributeSelector = "7B1C0011-5A0E-4E2B-9C5F-3D1E8A6F0B21"
        phone.subscribe(to: target)
        let (accepted, refused) = (phone.write([0x34, 0x08], to: target), phone.write([0xFF, 0x7F], to: target))
        await simulator.advance(by: .seconds(1))
        XCTAssertEqual(accepted.result, .success([]))
        XCTAssertEqual(refused.failure, .attribute(0x80))
        XCTAssertEqual(phone.values.map(\.bytes), [[0x34, 0x08]])
        serving.cancel()
    }

    // MARK: The blocks

    /// A manager that serves and advertises these characteristics.
    private func serve(
        _ characteristics: [MutableCharacteristic], on simulator: Simulator
    ) async throws -> PeripheralManager {
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let service = MutableService(uuid: "AA00")
        service.characteristics = characteristics
        try await simulator.run {
            try await manager.add(service)
            try await manager.startAdvertising("Test", uuids: [service.uuid])
        }
        return manager
    }

    private func phone(_ number: Int = 1, mtu: Int = 185, on simulator: Simulator) async throws -> CentralLink {
        let address = try XCTUnwrap(VirtualAddress("C0:FF:EE:00:CE:0\(number)"))
        let link = simulator.connect(VirtualCentral(address, name: "Phone \(number)", mtu: mtu))
        let isConnected = await simulator.advance(until: { link.state == .connected }, limit: 10)
        XCTAssertTrue(isConnected)
        return link
    }

    private static func respond(
        with measure: @Sendable () async -> Data?, to sensor: MutableCharacteristic
    ) async throws {
        for try await (request, central) in sensor.startRespondingToReadRequests() {
            if let value = await measure() {
                sensor.respondToRequest(request, withValue: value)
            } else {
                sensor.respondToRequest(request, withResult: CBATTError.application(0x81))
                print("\(central) received an error: the sensor does not respond")
            }
        }
    }

    /// A value of a hundred bytes takes five packets of 22 bytes.
    func testALongReadIsOneRequest() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let sensor = MutableCharacteristic(uuid: "AA01", properties: .read, permissions: .readable)
        let manager = try await serve([sensor], on: simulator)
        let (value, measurements) = (Data(0..<100), Notes())
        let responding = Task(executorPreference: simulator.taskExecutor) {
            try await PeripheralGuideTests.respond(
                with: {
                    measurements.note("measured")
                    return measurements.count < 4 ? value : nil
                }, to: sensor)
        }
        defer { responding.cancel() }
        let phone = try await phone(mtu: 23, on: simulator)
        let whole = phone.read("AA01")
        await simulator.advance(by: 5)
        XCTAssertEqual(whole.bytes, Array(value))
        XCTAssertEqual(measurements.count, 1)
        let end = phone.read("AA01", offset: 90)
        await simulator.advance(by: 5)
        XCTAssertEqual(end.bytes, Array(90..<100))
        let beyond = phone.read("AA01", offset: 200)
        await simulator.advance(by: 5)
        XCTAssertEqual(beyond.failure, .attribute(0x07))
        XCTAssertEqual(measurements.count, 3)
        let refused = phone.read("AA01")
        await simulator.advance(by: 5)
        XCTAssertEqual(refused.failure, .attribute(0x81))
        withExtendedLifetime(manager) {}
    }

    private static func reply(over answer: MutableCharacteristic, to command: MutableCharacteristic) async throws {
        for try await (request, central) in command.startRespondingToWriteRequests() {
            command.respondToRequest(request, withResult: .success)
            let reply = Data("done".utf8)
            do {
                try answer.update(withData: reply, for: central)
            } catch .directedUpdateRefused(.notSupported) {
                try answer.update(withData: reply)  // BlueZ up to 5.75: all subscribers receive it
            } catch .directedUpdateRefused(let reason) {
                print("\(central) received no reply: \(reason)")
            }
        }
    }

    /// The number of replies that each of two subscribers receives to a command of the first.
    private func replies(_ bluez: BlueZVersion) async throws -> [Int] {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let command = MutableCharacteristic(uuid: "AA01", properties: .write, permissions: .writeable)
        let answer = MutableCharacteristic(uuid: "AA02", properties: .notify, permissions: .readable)
        let manager = try await serve([command, answer], on: simulator)
        let replying = Task(executorPreference: simulator.taskExecutor) {
            try await PeripheralGuideTests.reply(over: answer, to: command)
        }
        defer { replying.cancel() }
        var phones: [CentralLink] = []
        for number in 1...2 {
            phones.append(try await phone(number, on: simulator))
            phones.last?.subscribe(to: "AA02")
            await simulator.advance(by: 1)
        }
        phones[0].write([1], to: "AA01")
        await simulator.advance(by: 5)
        withExtendedLifetime(manager) {}
        return phones.map { $0.values.count { $0.bytes == Array("done".utf8) } }
    }

    func testAReplyIsForOneCentralIfBlueZCanSendIt() async throws {
        let (one, all) = try await (replies(.v5_82), replies(.v5_72))
        XCTAssertEqual(one, [1, 0])
        XCTAssertEqual(all, [1, 1])
    }

    private static func keepRoster(
        _ name: MutableCharacteristic, _ roster: MutableCharacteristic, _ manager: PeripheralManager
    ) async throws {
        var names: [UUID: String] = [:]
        for try await (request, central) in name.startRespondingToWriteRequests() {
            names[central.identifier] = String(decoding: request.value ?? Data(), as: UTF8.self)
            name.respondToRequest(request, withResult: .success)
            let connected = Set(manager.centrals.map(\.identifier))
            names = names.filter { connected.contains($0.key) }  // without those that have disconnected
            try roster.update(withData: Data(names.values.sorted().joined(separator: ", ").utf8))
        }
    }

    func testSeveralCentralsHaveAStateEach() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let name = MutableCharacteristic(uuid: "AA01", properties: .write, permissions: .writeable)
        let roster = MutableCharacteristic(uuid: "AA02", properties: [.read, .notify], permissions: .readable)
        let manager = try await serve([name, roster], on: simulator)
        let keeping = Task(executorPreference: simulator.taskExecutor) {
            try await PeripheralGuideTests.keepRoster(name, roster, manager)
        }
        defer { keeping.cancel() }
        var phones: [CentralLink] = []
        for (number, text) in [(1, "Ada"), (2, "Ben")] {
            let phone = try await phone(number, on: simulator)
            phone.subscribe(to: "AA02")
            phone.write(Array(text.utf8), to: "AA01")
            await simulator.advance(by: 2)
            phones.append(phone)
        }
        XCTAssertEqual(roster.value, Data("Ada, Ben".utf8))
        phones[0].disconnect()
        await simulator.advance(by: 5)
        phones[1].write(Array("Bea".utf8), to: "AA01")
        await simulator.advance(by: 2)
        XCTAssertEqual(phones[1].values.map { String(decoding: $0.bytes, as: UTF8.self) }, ["Ada, Ben", "Bea"])
    }

    func testAnAdvertisementIsChanged() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let sent = try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            let environment = CBUUID(string: "181A")
            var data = AdvertisingData(
                localName: "Kitchen", serviceUUIDs: [environment], serviceData: [environment: Data([0x59, 0x08])])
            let limits = try await manager.advertisingLimits()
            try data.check(limits)  // names the field that is too long
            let advertisement = try await manager.startAdvertising(data)
            for note in advertisement.notes { print(note) }  // what this BlueZ ignores

            data.serviceData[environment] = Data([0x5A, 0x08])
            try advertisement.change(to: data)
            await simulator.advance(by: 5)
            let sent = simulator.advertisements.map(\.data)
            try await advertisement.stop()
            return sent
        }
        XCTAssertEqual(sent, [[3, 0x03, 0x1A, 0x18, 5, 0x16, 0x1A, 0x18, 0x5A, 0x08, 2, 0x01, 0x06]])
        XCTAssertEqual(simulator.advertisements, [])
    }

    private static func offer(_ service: MutableService, _ manager: PeripheralManager) async throws {
        do {
            try await manager.add(service)
            try await manager.startAdvertising("Climate", uuids: [service.uuid])
        } catch PeripheralManagerError.notPoweredOn {
            print(manager.stateExplanation)  // what is missing, and what to do
        } catch PeripheralManagerError.tooManyAdvertisements(let count) {
            print("Other programs advertise already: \(count)")  // the service is offered nevertheless
        } catch let error as PeripheralManagerError {
            print(error)
        }
    }

    func testAnAdapterThatIsOffIsAnErrorWithAnExplanation() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        let service = MutableService(uuid: "AA00")
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        try await simulator.run { try await Self.offer(service, manager) }
        XCTAssertFalse(service.isAdded)
        XCTAssertTrue(manager.stateExplanation.contains("off"), manager.stateExplanation)
        simulator.simulatePowerOn()
        try await simulator.run { try await Self.offer(service, manager) }
        XCTAssertTrue(service.isAdded && manager.isAdvertising)
    }
}
