import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// What users suffer from while services are discovered, and what happens here instead; the letters are those of the
/// behaviours in Documentation/Reliability.md.
final class DiscoveryBehaviourTests: XCTestCase {
    private let heartRate = VirtualService(
        "180D",
        characteristics: [
            VirtualCharacteristic("2A37", [.notify], value: [0, 72]),
            VirtualCharacteristic("2A38", [.read], value: [1]),
        ])
    private let battery = VirtualService(
        "180A", characteristics: [VirtualCharacteristic("2A29", [.read], value: [65])])

    private func uuids(_ services: [Service]) -> [String] { services.map(\.uuid.uuidString) }

    // MARK: C1, when the services are known

    func testDiscoveryWaitsForWhatBlueZExportsAfterServicesResolved() throws {
        let many = (0..<10).map { service in
            VirtualService(
                "00\(10 + service)",
                characteristics: (0..<10).map { VirtualCharacteristic("2A0\($0)", [.read]) })
        }
        let stage = try AttributeStage(many, link: VirtualLink(exportDelay: 0.005))
        try stage.explore()
        let services = stage.peripheral.services.filter { !["1800", "1801"].contains($0.uuid.uuidString) }
        XCTAssertEqual(services.count, 10)
        for service in services { XCTAssertEqual(service.characteristics.count, 10, "\(service)") }
    }

    func testAWholeTableIsKnownWithoutDelay() throws {
        let stage = try AttributeStage([heartRate, battery], link: VirtualLink(resolveLatency: 0.1, exportDelay: 0))
            .connected()
        let before = stage.simulator.seconds
        try stage.wait(stage.peripheral.discoverAllServices() as Future<Peripheral>)
        XCTAssertLessThan(stage.simulator.seconds - before, 0.12)
    }

    /// Returns the seconds that the discovery takes on the first link and on the next one.
    private func discoveryTimes(of services: [VirtualService]) throws -> [TimeInterval] {
        let stage = try AttributeStage(services, link: VirtualLink(resolveLatency: 0.1))
        return try (0..<2).map { _ in
            stage.connect()
            let before = stage.simulator.seconds
            try stage.wait(stage.peripheral.discoverAllServices() as Future<Peripheral>)
            defer {
                stage.peripheral.disconnect()
                XCTAssertTrue(stage.simulator.advance(until: { stage.simulator.links.isEmpty }, limit: 10))
            }
            return stage.simulator.seconds - before
        }
    }

    func testAServiceWithoutCharacteristicsIsNotWaitedFor() throws {
        let empty = [VirtualService("FEEE"), VirtualService("FEEF", includes: ["180D"])]
        for time in try discoveryTimes(of: [heartRate] + empty + [battery]) { XCTAssertLessThan(time, 0.12) }
    }

    func testAServiceThatMayHaveCharacteristicsIsWaitedForOnce() throws {
        let times = try discoveryTimes(of: [heartRate, VirtualService("FEEE")])
        XCTAssertGreaterThan(times[0], 0.3)
        XCTAssertLessThan(times[1], 0.12)
    }

    func testAServiceThatComesLateIsWaitedFor() throws {
        var late = battery
        late.appearsAfter = 0.2
        let stage = try AttributeStage([heartRate, late])
        try stage.explore()
        XCTAssertTrue(uuids(stage.peripheral.services).contains("180A"))
        XCTAssertEqual(stage.peripheral.service(CBUUID(string: "180A"))?.characteristics.count, 1)
    }

    func testALateServiceIsReported() throws {
        var late = battery
        late.appearsAfter = 3
        let stage = try AttributeStage([heartRate, late])
        let changes = Elements(stage.peripheral.whenServicesChange())
        try stage.explore()
        XCTAssertFalse(uuids(stage.peripheral.services).contains("180A"))
        stage.simulator.advance(by: 5)
        XCTAssertEqual(changes.count, 1)
        try stage.wait(stage.peripheral.discoverAllServices() as Future<Peripheral>)
        XCTAssertTrue(uuids(stage.peripheral.services).contains("180A"))
    }

    func testWhatWasAskedForIsShownAndNothingElse() throws {
        let stage = try AttributeStage([heartRate, battery]).connected()
        XCTAssertEqual(uuids(stage.peripheral.services), [])
        let discovery: Future<Peripheral> = stage.peripheral.discoverServices([
            CBUUID(string: "180D"), CBUUID(string: "FFFF"),
        ])
        try stage.wait(discovery)
        XCTAssertEqual(uuids(stage.peripheral.services), ["180D"], "One that is not there is no failure.")
        XCTAssertNil(stage.peripheral.services(withUUID: CBUUID(string: "FFFF")))
        let service = try XCTUnwrap(stage.peripheral.service(CBUUID(string: "180D")))
        XCTAssertEqual(service.characteristics, [])
        let characteristics: Future<Service> = service.discoverCharacteristics([CBUUID(string: "2A38")])
        try stage.wait(characteristics)
        XCTAssertEqual(service.characteristics.map(\.uuid.uuidString), ["2A38"])
        XCTAssertEqual(service.characteristic(CBUUID(string: "2A38"))?.properties, .read)
        XCTAssertNil(service.characteristics(withUUID: CBUUID(string: "2A37")))
    }

    func testServicesIncludeOthers() throws {
        var including = battery
        including.includes = ["180D"]
        let stage = try AttributeStage([heartRate, including])
        try stage.explore()
        let service = try XCTUnwrap(stage.peripheral.service(CBUUID(string: "180A")))
        XCTAssertEqual(uuids(service.includedServices), ["180D"])
    }

    func testHandlesAreTheSameEachTimeAndHeldByTheManager() throws {
        let stage = try AttributeStage([heartRate])
        try stage.explore()
        weak let characteristic = try stage.characteristic("2A38")
        XCTAssertNotNil(characteristic, "The documents' programs capture them weakly.")
        XCTAssertIdentical(characteristic, try stage.characteristic("2A38"))
        XCTAssertEqual(characteristic?.service, stage.peripheral.service(CBUUID(string: "180D")))
    }

    func testNothingIsLeftOfAPeripheralThatNobodyHolds() throws {
        weak var peripheral: Peripheral?
        weak var service: Service?
        weak var characteristic: Characteristic?
        do {
            let stage = try AttributeStage([heartRate])
            try stage.explore()
            peripheral = stage.peripheral
            service = stage.peripheral.services.first
            characteristic = try stage.characteristic("2A38")
            try stage.read(stage.characteristic("2A38"))
            stage.endManager()
            stage.simulator.advance(by: 5)
        }
        XCTAssertNil(characteristic)
        XCTAssertNil(service)
        XCTAssertNil(peripheral)
    }

    // MARK: C2, nothing there

    func testAnEmptyTableIsAFailure() throws {
        let stage = try AttributeStage([heartRate])
        stage.simulator.simulateUnresolvedServices(of: AttributeStage.address)
        stage.connect()
        let discovery: Future<Peripheral> = stage.peripheral.discoverAllServices()
        XCTAssertEqual(stage.failure(of: discovery) as? PeripheralError, .noServices)
    }

    // MARK: Time-outs and lost links

    func testDiscoveryTimesOutAndSucceedsTheNextTime() throws {
        let stage = try AttributeStage([heartRate], link: VirtualLink(resolveLatency: 3)).connected()
        let first: Future<Peripheral> = stage.peripheral.discoverAllServices(timeout: 1)
        let second: Future<Peripheral> = stage.peripheral.discoverAllServices()
        XCTAssertEqual(stage.failure(of: first) as? PeripheralError, .serviceDiscoveryTimeout)
        XCTAssertFalse(second.completed)
        try stage.wait(second)
    }

    func testCharacteristicDiscoveryHasATimeOutOfItsOwn() throws {
        let stage = try AttributeStage([heartRate], link: VirtualLink(resolveLatency: 3))
        try stage.explore()
        let service = try XCTUnwrap(stage.peripheral.service(CBUUID(string: "180D")))
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 5))
        stage.connect()
        let discovery: Future<Service> = service.discoverAllCharacteristics(timeout: 1)
        XCTAssertEqual(stage.failure(of: discovery) as? ServiceError, .characteristicDiscoveryTimeout)
    }

    func testALinkThatIsLostFailsTheDiscovery() throws {
        let stage = try AttributeStage([heartRate], link: VirtualLink(resolveLatency: 3)).connected()
        let discovery: Future<Peripheral> = stage.peripheral.discoverAllServices()
        stage.simulator.advance(by: 1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: discovery, limit: 1) as? PeripheralError, .disconnected)
    }

    func testADeviceThatIsRemovedFailsTheDiscovery() throws {
        let stage = try AttributeStage([heartRate], link: VirtualLink(resolveLatency: 3)).connected()
        let discovery: Future<Peripheral> = stage.peripheral.discoverAllServices()
        stage.simulator.simulateDeviceRemoval(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: discovery, limit: 1) as? PeripheralError, .disconnected)
    }

    func testWithoutALinkNothingIsDiscovered() throws {
        let stage = try AttributeStage([heartRate])
        let discovery: Future<Peripheral> = stage.peripheral.discoverAllServices()
        XCTAssertEqual(stage.failure(of: discovery, limit: 1) as? PeripheralError, .disconnected)
    }

    // MARK: C3, changed services

    func testChangedServicesAreReportedAndOldHandlesAreInvalid() throws {
        let stage = try AttributeStage([heartRate, battery])
        let changes = Elements(stage.peripheral.whenServicesChange())
        try stage.explore()
        XCTAssertEqual(changes.count, 0)
        let gone = try stage.characteristic("2A29")
        let goneService = try XCTUnwrap(stage.peripheral.service(CBUUID(string: "180A")))
        let kept = try stage.characteristic("2A38")
        stage.simulator.simulateServicesChanged(of: AttributeStage.address, to: [heartRate])
        stage.simulator.advance(by: 2)
        XCTAssertEqual(changes.count, 1)
        XCTAssertFalse(gone.isValid)
        XCTAssertFalse(uuids(stage.peripheral.services).contains("180A"))
        let lost: Future<Characteristic> = gone.read()
        XCTAssertEqual(stage.failure(of: lost) as? CharacteristicError, .invalidated)
        let lostService: Future<Service> = goneService.discoverAllCharacteristics()
        XCTAssertEqual(stage.failure(of: lostService) as? ServiceError, .invalidated)
        try stage.read(kept)
        XCTAssertEqual(kept.dataValue, Data([1]))
    }

    func testTheStreamOfChangesEndsWithTheManager() throws {
        let stage = try AttributeStage([heartRate])
        let changes = stage.peripheral.whenServicesChange()
        let ended = expectation(description: "ended")
        Task {
            for await _ in changes.outcomes {}
            ended.fulfill()
        }
        stage.endManager()
        stage.simulator.advance(by: 1)
        wait(for: [ended], timeout: 60)
    }

    func testAReadDuringAChangeWaitsForTheNewTable() throws {
        let stage = try AttributeStage([battery, heartRate], link: VirtualLink(resolveLatency: 0.2))
        try stage.explore()
        let moved = try stage.characteristic("2A38")
        stage.simulator.simulateServicesChanged(of: AttributeStage.address, to: [heartRate])
        XCTAssertTrue(stage.simulator.advance(until: { !moved.isValid }, limit: 2))
        try stage.read(moved)
        XCTAssertEqual(moved.dataValue, Data([1]))
        XCTAssertTrue(moved.isValid)
    }

    func testRefreshedServicesAreReadFromThePeripheralAnew() throws {
        let stage = try AttributeStage([heartRate, battery])
        try stage.explore()
        let kept = try stage.characteristic("2A38")
        let refresh = stage.peripheral.refreshServices()
        try stage.wait(refresh)
        XCTAssertEqual(stage.simulator.statistics.count(of: "RemoveDevice"), 1)
        XCTAssertTrue(stage.isLinked)
        XCTAssertTrue(uuids(stage.peripheral.services).contains("180D"))
        try stage.read(kept)
    }

    func testEachRefreshThatBlueZRefusesFails() throws {
        let stage = try AttributeStage([heartRate])
        try stage.explore()
        stage.simulator.simulateRefusedCalls(2, of: "RemoveDevice")
        let refreshes = (0..<2).map { _ in stage.peripheral.refreshServices() }
        for refresh in refreshes { XCTAssertNotNil(stage.failure(of: refresh, limit: 10) as? BusError) }
    }

    func testARefreshOfAPeripheralThatIsGoneFailsInTime() throws {
        let stage = try AttributeStage([heartRate])
        try stage.explore()
        stage.simulator.remove(AttributeStage.address)
        let refresh = stage.peripheral.refreshServices(timeout: 10)
        XCTAssertEqual(stage.failure(of: refresh, limit: 10.1) as? PeripheralError, .serviceDiscoveryTimeout)
        let second = stage.peripheral.refreshServices()
        stage.simulator.advance(by: 1)
        stage.endManager()
        XCTAssertNotNil(stage.failure(of: second, limit: 1) as? PeripheralError)
    }

    // MARK: C5, one UUID twice

    func testOneUUIDTwiceIsTwoCharacteristics() throws {
        let twins = VirtualService(
            "180D",
            characteristics: [
                VirtualCharacteristic("2A38", [.read], value: [1]), VirtualCharacteristic("2A38", [.read], value: [2]),
            ])
        let stage = try AttributeStage([twins, twins])
        try stage.explore()
        XCTAssertEqual(stage.peripheral.services(withUUID: CBUUID(string: "180D"))?.count, 2)
        let pair = try XCTUnwrap(
            stage.peripheral.service(CBUUID(string: "180D"))?.characteristics(withUUID: CBUUID(string: "2A38")))
        XCTAssertEqual(pair.count, 2)
        for characteristic in pair {
            try stage.read(characteristic)
        }
        XCTAssertEqual(pair.map(\.dataValue), [Data([1]), Data([2])])
    }

    // MARK: The next connection

    func testHandlesWorkOnTheNextConnection() throws {
        let stage = try AttributeStage([heartRate], link: VirtualLink(resolveLatency: 1))
        try stage.explore()
        let characteristic = try stage.characteristic("2A38")
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 5))
        let without: Future<Characteristic> = characteristic.read()
        XCTAssertEqual(stage.failure(of: without, limit: 1) as? PeripheralError, .disconnected)
        stage.connect()
        XCTAssertEqual(uuids(stage.peripheral.services), [], "Nothing was asked for on this connection.")
        try stage.read(characteristic)
        XCTAssertEqual(characteristic.dataValue, Data([1]))
    }
}
