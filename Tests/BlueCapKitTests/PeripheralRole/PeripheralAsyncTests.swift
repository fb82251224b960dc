import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

@testable import BlueCapKit

/// The verbs of the peripheral role in `async` functions.
final class PeripheralAsyncTests: PeripheralStage {
    /// A task that runs in virtual time.
    private func task<T: Sendable>(_ work: @escaping @Sendable () async throws -> T) -> Task<T, any Error> {
        Task(executorPreference: simulator.taskExecutor) { try await work() }
    }

    private func outcome<T: Sendable>(
        within limit: TimeInterval = 30, of work: @escaping @Sendable () async throws -> T
    ) async -> Result<T, any Error> {
        let isOver = Locked(false)
        let task = task {
            defer { isOver.withLock { $0 = true } }
            return try await work()
        }
        await simulator.advance(until: { isOver.withLock { $0 } }, limit: limit)
        XCTAssertTrue(isOver.withLock { $0 }, "It waits for longer.")
        task.cancel()
        return await task.result
    }

    private func expect(
        _ result: Result<some Any, any Error>, _ error: PeripheralManagerError, line: UInt = #line
    ) {
        XCTAssertThrowsError(try result.get(), line: line) {
            XCTAssertEqual($0 as? PeripheralManagerError, error, line: line)
        }
    }

    // MARK: Outcomes

    func testServicesAndAdvertisementsAreAwaited() async throws {
        let (manager, simulator) = (makeManager(), simulator)
        let end = try await outcome { () -> AdvertisingEnd in
            let service = Self.heart()
            try await manager.add(service)
            XCTAssertTrue(service.isAdded)
            try await manager.add(service, timeout: .seconds(5))
            try await manager.startAdvertising("Strap", uuids: [service.uuid])
            let limits = try await manager.advertisingLimits()
            let data = AdvertisingData(serviceUUIDs: [service.uuid], kind: .broadcast, isDiscoverable: false)
            try data.check(limits)
            let advertisement = try await manager.startAdvertising(data, timeout: .seconds(5))
            XCTAssertEqual(simulator.advertisements.count, 2)
            try await advertisement.stop()
            try await manager.stopAdvertising()
            let region = BeaconRegion(proximityUUID: UUID(), identifier: "beacon", major: 1, minor: 1)
            try await manager.startAdvertising(region)
            XCTAssertEqual(simulator.advertisements.count, 1)
            try await manager.stopAdvertising(timeout: .seconds(1))
            return try await advertisement.whenEnded()
        }.get()
        XCTAssertEqual(end, .stopped)
        XCTAssertEqual(offered(), ["180D"])
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testErrorsAreThrown() async throws {
        let manager = makeManager()
        let added = await outcome { try await manager.add(MutableService(uuid: "1800")) }
        XCTAssertThrowsError(try added.get()) {
            guard case PeripheralManagerError.serviceRefused = $0 else { return XCTFail("\($0)") }
        }
        _ = await outcome { try await manager.startAdvertising("Strap") }
        expect(await outcome { try await manager.startAdvertising("Strap") }, .isAdvertising)
    }

    func testTheTimeLimitIsThatOfTheDuration() async throws {
        let manager = makeManager()
        simulator.simulateIgnoredRegistrations()
        for (limit, seconds) in [(.milliseconds(1_500), 1.5), (PeripheralManager.defaultTimeout, 10)] as [(Duration, _)]
        {
            var begin = simulator.seconds
            expect(await outcome { try await manager.add(Self.heart(), timeout: limit) }, .serviceTimeout)
            XCTAssertEqual(simulator.seconds - begin, seconds, accuracy: 0.1)
            begin = simulator.seconds
            let result = await outcome { try await manager.startAdvertising(AdvertisingData(), timeout: limit) }
            expect(result, .startAdvertisingTimeout)
            XCTAssertEqual(simulator.seconds - begin, seconds, accuracy: 0.1)
        }
    }

    @available(*, deprecated)
    func testATimeLimitInSecondsIsOneToo() async throws {
        let manager = makeManager()
        simulator.simulateIgnoredRegistrations()
        let begin = simulator.seconds
        expect(await outcome { try await manager.add(Self.heart(), timeout: 1.5) }, .serviceTimeout)
        XCTAssertEqual(simulator.seconds - begin, 1.5, accuracy: 0.1)
    }

    func testWithoutALimitTheReplyIsWaitedFor() async throws {
        let manager = makeManager()
        simulator.simulateIgnoredRegistrations()
        let isOver = Locked(false)
        let task = task {
            try await manager.add(Self.heart(), timeout: nil)
            isOver.withLock { $0 = true }
        }
        await simulator.advance(by: 300)
        XCTAssertFalse(isOver.withLock { $0 })
        simulator.simulateIgnoredRegistrations(false)
        await simulator.advance(by: 1)
        XCTAssertTrue(isOver.withLock { $0 })
        try await task.value
    }

    func testUpdatesAreAwaited() async throws {
        let manager = makeManager()
        let service = Self.heart()
        let measurement = service.characteristics[0]
        let early = await outcome { try await measurement.whenUpdatesSent() }
        XCTAssertThrowsError(try early.get()) { XCTAssertEqual($0 as? MutableCharacteristicError, .unconfigured) }
        try await outcome { try await manager.add(service) }.get()
        try measurement.update(withData: Data([0, 61]))
        let isSent = Locked(false)
        let task = task {
            try await measurement.whenUpdatesSent()
            isSent.withLock { $0 = true }
        }
        await simulator.advance(by: 60)
        XCTAssertFalse(isSent.withLock { $0 }, "No central has subscribed.")
        await simulator.expectCancellation(of: task)
        XCTAssertEqual(measurement.pendingUpdates.count, 1, "A wait that ends changes nothing.")
    }

    func testRequestsAreALoop() async throws {
        let manager = makeManager()
        let service = Self.heart()
        let control = service.characteristics[1]
        try await outcome {
            try await manager.add(service)
            try await manager.startAdvertising("Strap")
        }.get()
        let written = Locked<[String]>([])
        let task = task {
            for try await (request, central) in control.startRespondingToWriteRequests().values {
                written.withLock { $0.append("\(central.mtu ?? 0) \([UInt8](request.value ?? Data()))") }
                control.respondToRequest(request, withResult: .success)
            }
        }
        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", mtu: 100), to: 0)
        await simulator.advance(until: { phone.state == .connected }, limit: 10)
        for value in [1, 2] as [UInt8] {
            let write = phone.write([value], to: "2A39")
            await simulator.advance(until: { write.result != nil }, limit: 10)
            XCTAssertEqual(try write.result?.get(), [])
        }
        XCTAssertEqual(written.withLock { $0 }, ["100 [1]", "100 [2]"])
        manager.removeAllServices()
        await simulator.advance(by: 1)
        try await task.value
    }

    // MARK: Cancellation

    func testACancelledAddBeforePowerIsTakenBack() async throws {
        simulator.simulatePowerOff()
        let manager = unreadyManager()
        let service = Self.heart()
        let task = task { try await manager.add(service, timeout: nil) }
        await simulator.advance(by: 3)
        await simulator.expectCancellation(of: task)
        simulator.simulatePowerOn()
        await simulator.advance(by: 10)
        XCTAssertTrue(manager.poweredOn)
        XCTAssertEqual(offered(), [])
        try await outcome { try await manager.add(service) }.get()
        XCTAssertEqual(offered(), ["180D"], "It can be added again.")
    }

    func testACancelledAddIsUnregisteredWhenBlueZRepliesLate() async throws {
        let manager = makeManager()
        simulator.simulateIgnoredRegistrations()
        let task = task { try await manager.add(Self.heart()) }
        await simulator.advance(by: 1)
        await simulator.expectCancellation(of: task)
        XCTAssertEqual(manager.services, [])
        simulator.simulateIgnoredRegistrations(false)
        await simulator.advance(by: 60)
        XCTAssertEqual(offered(), [])
    }

    func testACancelledAddThatAnotherCallSharesGoesOn() async throws {
        let manager = makeManager()
        let service = Self.heart()
        simulator.simulateIgnoredRegistrations()
        let first = task { try await manager.add(service, timeout: nil) }
        let second = task { try await manager.add(service, timeout: nil) }
        await simulator.advance(by: 1)
        await simulator.expectCancellation(of: first)
        simulator.simulateIgnoredRegistrations(false)
        await simulator.advance(by: 60)
        XCTAssertEqual(offered(), ["180D"])
        try await second.value
    }

    func testACancelledStartOfEachKindIsEnded() async throws {
        let manager = makeManager()
        let region = BeaconRegion(proximityUUID: UUID(), identifier: "beacon", major: 1, minor: 1)
        let starts: [@Sendable () async throws -> Void] = [
            { try await manager.startAdvertising("Strap") },
            { try await manager.startAdvertising(region) },
            { try await manager.startAdvertising(AdvertisingData(localName: "Strap")) },
        ]
        for start in starts {
            simulator.simulateIgnoredRegistrations()
            let task = task { try await start() }
            await simulator.advance(by: 1)
            XCTAssertTrue(manager.isAdvertising)
            await simulator.expectCancellation(of: task)
            XCTAssertFalse(manager.isAdvertising)
            simulator.simulateIgnoredRegistrations(false)
            await simulator.advance(by: 60)
            XCTAssertEqual(simulator.advertisements, [])
        }
        try await outcome { try await manager.startAdvertising("Strap") }.get()
        XCTAssertEqual(simulator.advertisements.count, 1)
    }

    /// A caller that receives `CancellationError` knows that nothing is registered: so one whose service is registered does not
    /// receive it.
    func testACancellationAfterTheRegistrationChangesNothing() async throws {
        let queue = DispatchQueue(label: "suspended")
        var configuration = PeripheralManager.Configuration()
        configuration.busAddress = simulator.address
        let manager = try PeripheralManager(queue: queue, configuration: configuration)
        await simulator.advance(until: { manager.poweredOn }, limit: 5)
        queue.suspend()
        let service = Self.heart()
        let added = Task.immediate { try await manager.add(service) }
        let started = Task.immediate { try await manager.startAdvertising(AdvertisingData(localName: "Strap")) }
        await simulator.advance(
            until: { self.offered() == ["180D"] && !self.simulator.advertisements.isEmpty }, limit: 10)
        await simulator.advance(by: 1)
        XCTAssertTrue(service.isAdded)
        added.cancel()
        started.cancel()
        queue.resume()
        try await added.value
        let advertisement = try await started.value
        XCTAssertTrue(advertisement.isOnAir)
        XCTAssertEqual(offered(), ["180D"])
    }

    func testACancelledTaskAddsNothing() async throws {
        let manager = makeManager()
        let task = task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await manager.add(Self.heart())
        }
        await simulator.advance(by: 1)
        await task.expectThrown(CancellationError.self)
        XCTAssertEqual(offered(), [])
    }

    func testACancelledStopEndsTheAdvertisementNevertheless() async throws {
        let manager = makeManager()
        try await outcome { try await manager.startAdvertising("Strap") }.get()
        simulator.simulateSlowReplies(by: 5)
        let task = task { try await manager.stopAdvertising() }
        await simulator.advance(by: 0.1)
        await simulator.expectCancellation(of: task)
        await simulator.advance(by: 10)
        XCTAssertEqual(simulator.advertisements, [])
    }
}
