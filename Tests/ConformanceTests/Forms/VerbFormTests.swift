import BlueCapKit
import BlueZSimulator
import XCTest

/// Programs with `async` functions: inferred and explicit types, each kind of time limit, actors, groups and cancelled tasks.
///
/// This file is compiled in the language modes of Swift 5 and Swift 6.
final class VerbFormTests: DocumentedCase, @unchecked Sendable {
    private static let battery = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
    private static let enabled = CharacteristicIdentifier(
        uuid: TISensorTag.AccelerometerService.Enabled.uuid,
        service: ServiceIdentifier(uuid: TISensorTag.AccelerometerService.uuid))

    private typealias Program = @Sendable () async throws -> Void

    /// A manager with a configuration, and the sensor, discovered and connected.
    private func sensor(_ policy: PairingPolicy = .reject) async throws -> (CentralManager, Peripheral) {
        simulator.add(Sensor.peripheral)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: policy))
        let peripheral = try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            let found = try await manager.startScanning(timeout: .seconds(10)).first().value
            manager.stopScanning()
            try await found.connect(timeout: .seconds(10))
            for service in try await found.discoverServices(timeout: .seconds(10)) {
                try await service.discoverCharacteristics()
            }
            return found
        }
        return (manager, peripheral)
    }

    /// The error of a program; `nil` if it throws none.
    private func error(of program: @escaping Program) async throws -> (any Error)? {
        try await simulator.run(limit: .seconds(60)) {
            do { try await program() } catch { return error }
            return nil
        }
    }

    // MARK: Types

    func testTypesAreInferred() async throws {
        let (manager, peripheral) = try await sensor()
        let text = try await simulator.run {
            let data = try await peripheral.read(Self.battery)
            let number: UInt8 = try await peripheral.read(Self.battery, timeout: nil)
            let written = try await peripheral.read(Self.battery, timeout: .seconds(5)) as UInt8
            let optional: UInt8? = try? await peripheral.read(Self.battery)
            async let first = peripheral.read(Self.battery)
            async let second: UInt8 = peripheral.read(Self.battery)
            let (bytes, byte) = try await (first, second)
            let services = try await peripheral.discoverServices([CBUUID(string: "180F")])
            let characteristics = try await services[0].discoverCharacteristics()
            let value = try await characteristics[0].read()
            let level: UInt8 = try await characteristics[0].read()
            let sum = try await peripheral.run { connected in
                let data = try await connected.read(Self.battery)
                try await connected.write(data, to: Self.enabled)
                let number: UInt8 = try await connected.read(Self.enabled, timeout: .seconds(1))
                return data.count + Int(number)
            }
            return [
                data.count, Int(number), Int(written), Int(optional ?? 0), bytes.count, Int(byte), value.count,
                Int(level),
                sum,
            ]
        }
        XCTAssertEqual(text, [1, 87, 87, 87, 1, 87, 1, 87, 88])
        withExtendedLifetime(manager) {}
    }

    func testAnAsyncFunctionUsesFuturesToo() async throws {
        let (manager, peripheral) = try await sensor()
        let seen = seen
        let future: Future<UInt8> = peripheral.read(Self.battery, timeout: 5)
        future.onSuccess { seen.note("\($0)") }
        let chained = peripheral.discoverAllServices().flatMap { $0.read(Self.battery) }.map { $0.count }
        let stopped: Future<Void> = peripheral.stopNotifications(Self.battery)
        eventually("values") { seen.count == 1 && chained.completed && stopped.completed }
        let sum = try await Int(future.value) + chained.value
        XCTAssertEqual(sum, 88)
        XCTAssertEqual(seen.texts, ["87"])
        withExtendedLifetime(manager) {}
    }

    // MARK: Time limits

    /// A limit that a program writes as `.zero` is a duration, although the variants with seconds have one too.
    func testZeroIsADurationAndEachOperationFailsAtOnce() async throws {
        let (manager, peripheral) = try await sensor()
        let battery = try XCTUnwrap(peripheral.service(CBUUID(string: "180F"))?.characteristics.first)
        let programs: [(Program, any Error)] = [
            ({ _ = try await peripheral.read(Self.battery, timeout: .zero) }, CharacteristicError.readTimeout),
            (
                { let _: UInt8 = try await peripheral.read(Self.battery, timeout: .zero) },
                CharacteristicError.readTimeout
            ),
            ({ _ = try await battery.read(timeout: .zero) }, CharacteristicError.readTimeout),
            ({ _ = try await battery.read(timeout: .seconds(-1)) }, CharacteristicError.readTimeout),
            (
                { try await peripheral.write(Data([1]), to: Self.enabled, timeout: .zero) },
                CharacteristicError.writeTimeout
            ),
            (
                { try await peripheral.write(UInt8(1), to: Self.enabled, timeout: .zero) },
                CharacteristicError.writeTimeout
            ),
            ({ try await battery.startNotifying(timeout: .zero) }, CharacteristicError.notifyTimeout),
            (
                { for try await _ in peripheral.notificationEvents(Self.battery, timeout: .zero) {} },
                CharacteristicError.notifyTimeout
            ),
            ({ try await peripheral.pair(timeout: .zero) }, PairingError.notAllowed),
            (
                { try await peripheral.run { _ = try await $0.read(Self.battery, timeout: .zero) } },
                CharacteristicError.readTimeout
            ),
        ]
        for (number, (program, expected)) in programs.enumerated() {
            let start = simulator.seconds
            let error = try await error(of: program)
            XCTAssertEqual(error.map { "\($0)" }, "\(expected)", "program \(number)")
            XCTAssertEqual(simulator.seconds, start, "program \(number)")
            await simulator.advance(by: 1)
        }
        withExtendedLifetime(manager) {}
    }

    func testALinkNeedsMoreThanZeroSeconds() async throws {
        let (manager, peripheral) = try await sensor()
        let programs: [Program] = [
            { try await peripheral.connect(timeout: .zero) },
            { try await peripheral.connect(timeout: .seconds(-1)) },
            { try await peripheral.run(timeout: .zero) { try await $0.write(Data([1]), to: Self.enabled) } },
            { for try await _ in peripheral.stayConnected(timeout: .zero) {} },
        ]
        for (number, program) in programs.enumerated() {
            guard case PeripheralError.invalidArgument? = try await error(of: program) else {
                return XCTFail("program \(number)")
            }
        }
        withExtendedLifetime(manager) {}
    }

    // MARK: Cancellation

    func testACancelledTaskStartsNothing() async throws {
        let (manager, peripheral) = try await sensor(.justWorks)
        let battery = try XCTUnwrap(peripheral.service(CBUUID(string: "180F"))?.characteristics.first)
        let server = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        await simulator.advance(by: 1)
        let programs: [Program] = [
            { try await manager.waitUntilPoweredOn(timeout: .seconds(1)) },
            { try await server.waitUntilPoweredOn() },
            { try await peripheral.connect() },
            { try await peripheral.discoverServices() },
            { _ = try await peripheral.read(Self.battery) },
            { try await peripheral.write(Data([1]), to: Self.enabled) },
            { try await battery.startNotifying() },
            { try await peripheral.stopNotifications(Self.battery) },
            { try await peripheral.pair() },
            { try await peripheral.unpair() },
            { try await peripheral.run { _ = try await $0.read(Self.battery) } },
            { try await manager.forgetBonds() },
            { try await server.add(MutableService(uuid: "180F")) },
            { try await server.startAdvertising("Sensor") },
        ]
        for (number, program) in programs.enumerated() {
            let error = try await error {
                withUnsafeCurrentTask { $0?.cancel() }
                try await program()
            }
            XCTAssert(error is CancellationError, "program \(number): \(String(describing: error))")
        }
        await simulator.advance(by: 5)
        let counts = simulator.statistics
        for member in [
            "ReadValue", "WriteValue", "StartNotify", "Pair", "RegisterApplication", "RegisterAdvertisement",
        ] {
            XCTAssertEqual(counts.count(of: member), 0, member)
        }
        XCTAssertEqual(peripheral.state, .connected)
        withExtendedLifetime((manager, server)) {}
    }

    func testACancelledLoopEndsWhatItStarted() async throws {
        let (manager, peripheral) = try await sensor()
        let (seen, selector) = (seen, AttributeSelector(CBUUID(string: "2A19")))
        let values = Task(executorPreference: simulator.taskExecutor) {
            for try await case .value(let data) in peripheral.notificationEvents(Self.battery) {
                seen.note("\(data[0])")
            }
        }
        await simulator.advance(by: 1)
        simulator.notify(Sensor.address, characteristic: selector, value: [42])
        await simulator.advance(by: 1)
        XCTAssertEqual(seen.texts, ["42"])
        values.cancel()
        await simulator.advance(by: 1)
        XCTAssertEqual(simulator.subscriptions(to: selector, at: Sensor.address), [])
        peripheral.disconnect()
        await simulator.advance(by: 5)
        let link = Task(executorPreference: simulator.taskExecutor) {
            for try await change in peripheral.stayConnected(timeout: nil) { seen.note("\(change)") }
        }
        await simulator.advance(by: 5)
        XCTAssertEqual(peripheral.state, .connected)
        link.cancel()
        await simulator.advance(by: 5)
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(seen.texts, ["42", "connected"])
        withExtendedLifetime(manager) {}
    }

    func testASubscriptionOfAnIdentifierIsStopped() async throws {
        let (manager, peripheral) = try await sensor()
        let selector = AttributeSelector(CBUUID(string: "2A19"))
        let stream = peripheral.notifications(Self.battery)
        await simulator.advance(by: 1)
        XCTAssertEqual(simulator.subscriptions(to: selector, at: Sensor.address).count, 1)
        try await simulator.run {
            try await peripheral.stopNotifications(Self.battery, timeout: .seconds(5))
            try await peripheral.stopNotifications(Self.battery)
        }
        XCTAssertEqual(simulator.subscriptions(to: selector, at: Sensor.address), [])
        withExtendedLifetime((manager, stream)) {}
    }

    func testABondIsForgotten() async throws {
        let (manager, peripheral) = try await sensor(.justWorks)
        let counts = try await simulator.run {
            try await peripheral.pair(timeout: .seconds(30))
            let count = manager.bonds().count
            for bond in manager.bonds() { try await manager.forget(bond) }
            let forgotten = try await manager.forgetBonds()
            return [count, manager.bonds().count, forgotten.count]
        }
        XCTAssertEqual(counts, [1, 0, 0])
    }

    func testATaskWaitsForTheRestoredPeripherals() async throws {
        let configuration = CentralManager.Configuration(busAddress: simulator.address, restoreIdentifier: "forms")
        let manager = try CentralManager(configuration: configuration)
        let restored = manager.whenStateRestored().map { $0.peripherals }
        eventually("the state") { restored.completed }
        let peripherals = try await restored.value
        XCTAssertEqual(peripherals, [])
    }

    // MARK: Actors and groups

    private actor Meter {
        private(set) var levels: [String: UInt8] = [:]

        func measure(_ peripheral: Peripheral) async throws {
            levels[peripheral.address] = try await peripheral.run(timeout: .seconds(30)) { try await $0.read(battery) }
        }
    }

    func testAnActorAndAGroupUseSeveralPeripherals() async throws {
        let addresses: [VirtualAddress] = ["C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02", "C0:FF:EE:00:00:03"]
        for (number, address) in addresses.enumerated() {
            simulator.add(
                VirtualPeripheral(
                    address, addressType: .random, rssi: .constant(-50),
                    advertisement: Advertisement(localName: "Battery", serviceUUIDs: ["180F"]), interval: 0.1,
                    services: [
                        VirtualService(
                            "180F",
                            characteristics: [VirtualCharacteristic("2A19", [.read], value: [UInt8(number)])])
                    ]))
        }
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let levels = try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            let meter = Meter()
            var found = 0
            try await withThrowingDiscardingTaskGroup { group in
                for try await peripheral in manager.startScanning(timeout: .seconds(30)) {
                    found += 1
                    group.addTask { try await meter.measure(peripheral) }
                    if found == 3 { break }
                }
            }
            manager.stopScanning()
            return await meter.levels.values.sorted()
        }
        XCTAssertEqual(levels, [0, 1, 2])
    }
}
