import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// The numbers of `CentralManager.statistics`, `Peripheral.statistics` and `PeripheralManager.statistics`, in virtual time.
final class StatisticsTests: XCTestCase {
    private func statistics(_ stage: AttributeStage) throws -> CentralStatistics {
        try XCTUnwrap(stage.manager).statistics
    }

    /// Encodes and decodes.
    private func copy<T: Codable>(_ value: T) throws -> T {
        try JSONDecoder().decode(T.self, from: try JSONEncoder().encode(value))
    }

    // MARK: The central role

    func testScansAreCountedWithTheirSeconds() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        let manager = try XCTUnwrap(stage.manager)
        stage.simulator.advance(by: 1)
        let before = manager.statistics
        XCTAssertEqual(before.scansStarted, 1)
        XCTAssertEqual(before.scansRunning, 0)
        XCTAssertEqual(before.reports, 1)
        let scan = manager.startScanning()
        stage.simulator.advance(by: 5)
        let during = manager.statistics
        XCTAssertEqual(during.scansStarted, 2)
        XCTAssertEqual(during.scansRunning, 1)
        XCTAssertEqual(during.scanSeconds - before.scanSeconds, 5, accuracy: 0.001)
        manager.stopScanning()
        stage.simulator.advance(by: 5)
        XCTAssertEqual(manager.statistics.scansRunning, 0)
        XCTAssertEqual(manager.statistics.scanSeconds - before.scanSeconds, 5, accuracy: 0.001)
        withExtendedLifetime(scan) {}
    }

    func testAnAdapterThatGoesOffIsAnInterruption() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        let manager = try XCTUnwrap(stage.manager)
        XCTAssertEqual(manager.statistics.interruptions, 0)
        stage.simulator.simulatePowerOff()
        stage.simulator.advance(by: 2)
        XCTAssertEqual(manager.statistics.interruptions, 1)
        stage.simulator.simulatePowerOn()
        stage.simulator.advance(by: 2)
        XCTAssertEqual(manager.statistics.interruptions, 1)
    }

    func testLinksReadsAndWritesAreCountedWithTheirDurations() throws {
        let stage = try AttributeStage.explored()
        try stage.read(stage.characteristic("2A38"))
        for byte in 1...2 {
            let write: Future<Characteristic> = try stage.characteristic("2A3B").write(data: Data([UInt8(byte)]))
            try stage.wait(write)
        }
        stage.simulator.advance(by: 10)
        let one = stage.peripheral.statistics
        XCTAssertEqual(one.connectionAttempts, 1)
        XCTAssertEqual(one.connectionAttemptsFailed, 0)
        XCTAssertEqual(one.connections, 1)
        XCTAssertEqual(one.connected, 1)
        XCTAssertEqual(one.connecting.count, 1)
        XCTAssertGreaterThan(try XCTUnwrap(one.connecting.minimum), 0)
        XCTAssertEqual(one.reading.count, 1)
        XCTAssertEqual(one.reading.histogram.reduce(0, +), 1)
        XCTAssertEqual(one.writing.count, 2)
        XCTAssertEqual(one.failures, FailureStatistics())
        XCTAssertEqual(one.secondsConnected, stage.peripheral.cumulativeSecondsConnected, accuracy: 0.001)
        XCTAssertGreaterThan(one.secondsConnected, 10)
        XCTAssertEqual(try statistics(stage).peripherals, one)

        stage.loseLink()
        let after = stage.peripheral.statistics
        XCTAssertEqual(after.disconnections, 1)
        XCTAssertEqual(after.connected, 0)
        XCTAssertEqual(after.secondsConnected, stage.peripheral.cumulativeSecondsConnected, accuracy: 0.001)
        XCTAssertEqual(try statistics(stage).peripherals, after)
    }

    func testAnAttemptThatTimesOutHasFailed() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        stage.simulator.remove(AttributeStage.address)
        let connection = stage.peripheral.connect(timeoutRetries: 0, connectionTimeout: 5)
        stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.peripheral.statistics.connectionAttemptsFailed, 0)
        stage.simulator.advance(by: 20)
        XCTAssertEqual(stage.peripheral.statistics.connectionAttemptsFailed, 1)
        XCTAssertEqual(stage.peripheral.statistics.connections, 0)
        withExtendedLifetime(connection) {}
    }

    func testOperationsThatWaitAreCounted() throws {
        let stage = try AttributeStage.explored()
        let reads: [Future<Characteristic>] = try (0..<5).map { _ in try stage.characteristic("2A38").read() }
        XCTAssertEqual(stage.peripheral.statistics.operationsPending, 5)
        XCTAssertEqual(try statistics(stage).peripherals.operationsPending, 5)
        for read in reads { try stage.wait(read) }
        XCTAssertEqual(stage.peripheral.statistics.operationsPending, 0)
        XCTAssertEqual(stage.peripheral.statistics.reading.count, 5)
    }

    func testAReadThatFailsIsCountedByItsCauseAndHasNoDuration() throws {
        let stage = try AttributeStage.explored()
        let read: Future<Characteristic> = try stage.characteristic("2A38").read()
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertNotNil(stage.failure(of: read))
        let all = try statistics(stage).peripherals
        XCTAssertEqual(all.failures.disconnected, 1)
        XCTAssertEqual(all.failures.total, 1)
        XCTAssertEqual(all.reading.count, 0)
    }

    func testNotifiedValuesAreCounted() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let values = characteristic.receiveNotificationUpdates(capacity: 10)
        try stage.start(characteristic)
        stage.notify(1, 2, 3)
        XCTAssertEqual(stage.peripheral.statistics.notifications, 3)
        XCTAssertEqual(stage.peripheral.statistics.notificationGaps, 0)
        withExtendedLifetime(values) {}
    }

    func testStatisticsSurviveEncoding() throws {
        let stage = try AttributeStage.explored()
        let all = try statistics(stage)
        XCTAssertEqual(try copy(all), all)
        XCTAssertNotEqual(all, CentralStatistics())
        let one = stage.peripheral.statistics
        XCTAssertEqual(try copy(one), one)
    }

    func testADurationBelongsToTheFirstBucketWhoseBoundItDoesNotExceed() {
        var latencies = LatencyStatistics()
        XCTAssertNil(latencies.mean)
        for seconds in [0, 0.01, 0.02, 10, 11] { latencies.add(seconds) }
        XCTAssertEqual(latencies.histogram, [2, 1, 0, 0, 0, 0, 1, 1])
        XCTAssertEqual(latencies.minimum, 0)
        XCTAssertEqual(latencies.maximum, 11)
        XCTAssertEqual(latencies.mean ?? 0, 21.03 / 5, accuracy: 1e-9)
    }

    // MARK: The peripheral role

    func testRequestsUpdatesAndPairingsOfThePeripheralRoleAreCounted() throws {
        let simulator = Simulator.inProcess(room: .empty)
        var configuration = PeripheralManager.Configuration()
        configuration.busAddress = simulator.address
        configuration.pairingPolicy = .justWorks
        let manager = try PeripheralManager(configuration: configuration)
        let level = MutableCharacteristic(
            uuid: "2A19", properties: [.read, .notify], permissions: .readable, value: Data([80]))
        let control = MutableCharacteristic(uuid: "2A39", properties: .write, permissions: .writeable, value: nil)
        let service = MutableService(uuid: "180F")
        service.characteristics = [level, control]
        let added = manager.add(service)
        let advertising = manager.startAdvertising("Battery", uuids: [service.uuid])
        simulator.advance(until: { added.completed && advertising.completed }, limit: 10)
        XCTAssertEqual(manager.statistics.registrations, 2)

        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", security: VirtualSecurity()))
        simulator.advance(by: 2)
        XCTAssertEqual(manager.statistics.connections, 1)
        XCTAssertEqual(manager.statistics.centralsConnected, 1)
        let pairing = phone.pair()
        simulator.advance(until: { pairing.result != nil }, limit: 60)
        simulator.advance(by: 1)
        XCTAssertEqual(manager.statistics.pairings, 1)

        for _ in 1...3 { _ = phone.read("2A19") }
        // There is no handler for writes.
        _ = phone.write([1], to: "2A39")
        simulator.advance(by: 2)
        XCTAssertEqual(manager.statistics.reads, 3)
        XCTAssertEqual(manager.statistics.writes, 1)
        XCTAssertEqual(manager.statistics.requestsRefused, 1)
        XCTAssertEqual(manager.statistics.answering.count, 4)

        try level.update(withData: Data([81]))
        XCTAssertEqual(manager.statistics.updatesWaiting, 1)
        _ = phone.subscribe(to: "2A19")
        simulator.advance(by: 2)
        XCTAssertEqual(manager.statistics.updatesSent, 1)
        XCTAssertEqual(manager.statistics.updatesWaiting, 0)
        level.unsubscribedUpdatePolicy = .discard
        phone.disconnect()
        simulator.advance(by: 2)
        try level.update(withData: Data([82]))
        XCTAssertEqual(manager.statistics.updatesDropped, 1)
        XCTAssertEqual(manager.statistics.centralsConnected, 0)

        simulator.simulatePowerOff()
        simulator.advance(by: 2)
        let last = manager.statistics
        XCTAssertEqual(last.interruptions, 1)
        XCTAssertEqual(try copy(last), last)
    }
}
