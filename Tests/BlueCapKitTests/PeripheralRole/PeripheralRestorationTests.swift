import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// What comes back after a program has been killed while it served.
final class PeripheralRestorationTests: PeripheralStage {
    private let folder = TemporaryFolder()
    private let identifier = "us.gnos.BlueCap.peripheral-manager-documentation"

    private var place: RestorationPlace {
        RestorationPlace(identifier: identifier, root: folder.path, kind: PeripheralRestorationState.folder)
    }

    private var configuration: PeripheralManager.Configuration {
        PeripheralManager.Configuration(restoreIdentifier: identifier, stateDirectory: folder.path)
    }

    /// Everything that was decided so far is on the disk.
    private func keep(_ manager: PeripheralManager) {
        manager.session.keeper?.wait()
        simulator.advance(by: 1)
        manager.session.keeper?.wait()
    }

    /// What a killed program leaves: the file, and nothing in BlueZ.
    private func kill(_ manager: inout PeripheralManager?) throws {
        keep(try XCTUnwrap(manager))
        let file = try Data(contentsOf: URL(fileURLWithPath: place.file))
        manager = nil
        simulator.advance(by: 1)
        RestorationKeeper.waitForAll()
        XCTAssertFalse(FileManager.default.fileExists(atPath: place.file), "A manager that ends keeps nothing.")
        XCTAssertEqual(offered(), [])
        try file.write(to: URL(fileURLWithPath: place.file))
    }

    func testAKeptServiceThatBlueZCannotOfferIsDamage() throws {
        var first: PeripheralManager? = makeManager(configuration)
        let service = Self.heart()
        service.characteristics[0].descriptors = [.userDescription("Rate")]
        try value(of: try XCTUnwrap(first).add(service))
        try kill(&first)
        let text = try String(contentsOfFile: place.file, encoding: .utf8)
        let changed = text.replacingOccurrences(of: "\"2901\"", with: "\"2902\"")
        XCTAssertNotEqual(changed, text)
        try changed.write(toFile: place.file, atomically: false, encoding: .utf8)

        let second = unreadyManager(configuration)
        second.session.keeper?.wait()
        let restored = second.whenStateRestored()
        wait { restored.result != nil }
        XCTAssertEqual(restored.result?.error as? PeripheralManagerError, .restoreFailed)
        XCTAssertTrue(second.stateRestorationFailure?.contains("2902") == true, second.stateRestorationFailure ?? "")
        XCTAssertEqual(offered(), [])
    }

    private func restored(_ manager: PeripheralManager) throws -> PeripheralAdvertisements {
        manager.session.keeper?.wait()
        return try value(of: manager.whenStateRestored())
    }

    func testServicesAndAdvertisementsComeBack() throws {
        var first: PeripheralManager? = makeManager(configuration)
        let service = Self.heart()
        service.characteristics[0].descriptors = [.userDescription("Rate")]
        try value(of: try XCTUnwrap(first).add(service))
        try value(of: try XCTUnwrap(first).startAdvertising("Strap", uuids: [service.uuid]))
        let sent = simulator.advertisements.map(\.data)
        try kill(&first)

        let second = unreadyManager(configuration)
        let advertisements = try restored(second)
        XCTAssertEqual(advertisements.localName, "Strap")
        XCTAssertEqual(advertisements.serviceUUIDs, [service.uuid])
        XCTAssertEqual(second.services.map(\.uuid), [service.uuid])
        XCTAssertTrue(second.isAdvertising)
        let requests = Elements(
            try XCTUnwrap(second.services.first).characteristics[1].startRespondingToWriteRequests())
        wait { self.simulator.advertisements.count == 1 && self.offered() == ["180D"] }
        XCTAssertEqual(simulator.advertisements.map(\.data), sent)
        let phone = phone()
        XCTAssertEqual(try result(of: phone.read("2A37"))?.get(), [0, 60])
        XCTAssertEqual(try result(of: phone.read("2A37", descriptor: "2901"))?.get(), Array("Rate".utf8))
        phone.write([1], to: "2A39")
        wait { requests.count == 1 }
        try second.services[0].characteristics[0].update(withData: Data([0, 99]))
    }

    func testOneOfTwoServicesWithTheSameUUIDTakesThePlaceOfOne() throws {
        var first: PeripheralManager? = makeManager(configuration)
        for _ in 0..<2 { try value(of: try XCTUnwrap(first).add(Self.heart())) }
        try kill(&first)

        let second = unreadyManager(configuration)
        let added = second.add(Self.heart())
        _ = try restored(second)
        try value(of: added)
        wait { self.offered().count == 2 }
        XCTAssertEqual(offered(), ["180D", "180D"])
        XCTAssertEqual(second.services.count, 2)
    }

    func testTheBondsOfAManagerOutliveItAndItsServicesDoNot() throws {
        var configuration = configuration
        configuration.pairingPolicy = .justWorks
        var first: PeripheralManager? = makeManager(configuration)
        try serve(Self.heart(), with: try XCTUnwrap(first))
        _ = try XCTUnwrap(first).session.keeper?.wait()
        let phone = phone()
        XCTAssertEqual(try result(of: phone.pair())?.get(), [])
        wait { first?.bonds().map(\.isOurs) == [true] }
        keep(try XCTUnwrap(first))
        first = nil
        simulator.advance(by: 1)
        RestorationKeeper.waitForAll()

        let second = makeManager(configuration)
        _ = try restored(second)
        XCTAssertEqual(second.services, [])
        XCTAssertEqual(second.bonds().map(\.isOurs), [true])
        XCTAssertEqual(try value(of: second.forgetBonds()).count, 1)
        keep(second)
        XCTAssertEqual(second.bonds(), [])
        XCTAssertNil(second.session.core.withLock { $0.kept.bonds })
    }

    func testAProgramThatDoesWhatItDidIsNotInItsOwnWay() throws {
        var first: PeripheralManager? = makeManager(configuration)
        try serve(Self.heart(), Self.battery(), with: try XCTUnwrap(first))
        try kill(&first)

        let second = unreadyManager(configuration)
        _ = try restored(second)
        wait { self.offered().count == 2 }
        let service = Self.heart()
        try value(of: second.add(service))
        try value(of: second.startAdvertising("Belt"))
        XCTAssertEqual(Set(offered()), ["180D", "180F"])
        XCTAssertEqual(offered().count, 2)
        XCTAssertTrue(second.services.contains(service))
        XCTAssertEqual(simulator.advertisements.map(\.scanResponse), [[5, 9] + Array("Belt".utf8)])
        XCTAssertEqual(managerError(of: second.startAdvertising("Third")), .isAdvertising)
    }

    func testAServiceOfTheApplicationThatWasQuickerHolds() throws {
        var first: PeripheralManager? = makeManager(configuration)
        try serve(Self.heart(), with: try XCTUnwrap(first))
        try kill(&first)
        let second = unreadyManager(configuration)
        let service = Self.heart()
        let added = second.add(service)
        _ = try restored(second)
        try value(of: added)
        simulator.advance(by: 2)
        XCTAssertEqual(offered(), ["180D"])
        XCTAssertEqual(second.services, [service])
    }

    func testTwoServicesOfOneKindComeBack() throws {
        var first: PeripheralManager? = makeManager(configuration)
        try serve(Self.battery(), Self.battery(), with: try XCTUnwrap(first))
        try kill(&first)
        let second = unreadyManager(configuration)
        _ = try restored(second)
        wait { self.offered() == ["180F", "180F"] }
        let replaced = second.services
        try value(of: second.add(Self.battery()))
        XCTAssertEqual(offered().count, 2)
        XCTAssertFalse(second.services.contains(try XCTUnwrap(replaced.first)), "The first gives its place first.")
        XCTAssertTrue(second.services.contains(try XCTUnwrap(replaced.last)))
    }

    func testAnAdvertisementOfTheApplicationThatWasQuickerIsNotDoubled() throws {
        let data = AdvertisingData(localName: "Tag")
        var first: PeripheralManager? = makeManager(configuration)
        try value(of: try XCTUnwrap(first).startAdvertising(data))
        try kill(&first)
        let second = unreadyManager(configuration)
        let started = second.startAdvertising(data)
        _ = try restored(second)
        try value(of: started)
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.advertisements.count, 1)
        XCTAssertEqual(second.advertisements.count, 1)
    }

    func testRestoredServicesWaitForPowerWithoutEnd() throws {
        var first: PeripheralManager? = makeManager(configuration)
        try serve(Self.heart(), with: try XCTUnwrap(first))
        try kill(&first)
        simulator.simulatePowerOff()
        let second = unreadyManager(configuration)
        _ = try restored(second)
        simulator.advance(by: 100)
        XCTAssertEqual(second.services.count, 1)
        simulator.simulatePowerOn()
        wait(30) { self.offered() == ["180D"] && self.simulator.advertisements.count == 1 }
    }

    func testTheFirstRunRestoresNothing() throws {
        let manager = unreadyManager(configuration)
        let advertisements = try restored(manager)
        XCTAssertNil(advertisements.localName)
        XCTAssertEqual(manager.services, [])
    }

    func testADamagedFileIsSetAside() throws {
        try FileManager.default.createDirectory(atPath: place.folder, withIntermediateDirectories: true)
        try Data("{".utf8).write(to: URL(fileURLWithPath: place.file))
        let manager = unreadyManager(configuration)
        manager.session.keeper?.wait()
        XCTAssertEqual(managerError(of: manager.whenStateRestored()), .restoreFailed)
        XCTAssertTrue(FileManager.default.fileExists(atPath: place.aside(1)))
        try serve(Self.heart(), with: manager)
        keep(manager)
        XCTAssertTrue(FileManager.default.fileExists(atPath: place.file))
    }

    /// Handlers may take their time; the disk's queue is that of all managers.
    func testThatNothingWasRestoredIsNotReportedOnTheDisksQueue() throws {
        try FileManager.default.createDirectory(atPath: place.folder, withIntermediateDirectories: true)
        try Data("{".utf8).write(to: URL(fileURLWithPath: place.file))
        let manager = unreadyManager(configuration)
        // The simulator's loop is driven here.
        let isOnLoop = Locked<Bool?>(nil)
        manager.whenStateRestored().onFailure(context: ImmediateContext()) { _ in
            isOnLoop.withLock { $0 = Thread.isMainThread }
        }
        manager.session.keeper?.wait()
        wait { isOnLoop.withLock { $0 != nil } }
        XCTAssertEqual(isOnLoop.withLock { $0 }, true)
    }

    func testAnIdentifierIsOneManagers() throws {
        let first = unreadyManager(configuration)
        _ = try restored(first)
        let second = unreadyManager(configuration)
        second.session.keeper?.wait()
        XCTAssertEqual(managerError(of: second.whenStateRestored()), .restoreIdentifierInUse(place.file))
        wait { second.poweredOn }
        try value(of: second.add(Self.heart()))
    }

    func testWithoutAnIdentifierNothingIsRestored() {
        guard case .invalidOption? = managerError(of: unreadyManager().whenStateRestored()) else {
            return XCTFail("There is nothing to restore.")
        }
    }

    func testTheStateIsReadAsItWasWritten() throws {
        var data = AdvertisingData(localName: "Strap", serviceUUIDs: [CBUUID(string: "180D")])
        data.manufacturerData = [0x004C: Data([1, 2])]
        data.serviceData = [CBUUID(string: "180F"): Data([3])]
        data.interval = .milliseconds(100) ... .milliseconds(200)
        data.txPower = -4
        data.appearance = 833
        data.timeout = .seconds(60)
        data.isDiscoverable = false
        data.kind = .broadcast
        let state = PeripheralRestorationState(
            services: [.init(Self.heart([.read, .indicate])), .init(Self.battery())],
            advertisements: [.init(data: data, isMain: false), .init(data: AdvertisingData(), isMain: true)])
        let file = try state.encoded(for: identifier)
        XCTAssertEqual(try PeripheralRestorationState(decoding: file, for: identifier), state)
        XCTAssertThrowsError(try PeripheralRestorationState(decoding: file, for: "another")) { error in
            XCTAssertEqual(error as? RestorationDamage, .foreign)
        }
        var made = PeripheralRestorationState(services: state.services.map { .init($0.made) })
        made.advertisements = state.advertisements
        XCTAssertEqual(made, state)
    }

    /// A file that version 1 has written, with each key; what has its usual value is left out of it.
    func testTheFormOfTheFileStays() throws {
        let text = """
            {
              "format": "bluecap peripheral state", "version": 1, "identifier": "\(identifier)",
              "services": [
                {
                  "uuid": "180F", "name": "Battery", "isSecondary": true,
                  "characteristics": [
                    {
                      "uuid": "2A19", "name": "Level", "properties": 18, "permissions": 1, "value": "50",
                      "updatesOverBus": true, "writesOverSocket": true,
                      "descriptors": [{"uuid": "2901", "permissions": 1, "value": "4c6576656c"}]
                    },
                    {"uuid": "2A1A", "name": "Power", "properties": 2, "permissions": 1, "descriptors": []}
                  ]
                },
                {"uuid": "180D", "name": "Heart Rate", "characteristics": []}
              ],
              "advertisements": [
                {"isMain": true},
                {
                  "isMain": false, "isBroadcast": true, "localName": "Strap", "serviceUUIDs": ["180D"],
                  "solicitedServiceUUIDs": ["180F"], "manufacturerData": {"76": "0102"},
                  "serviceData": {"180F": "03"}, "appearance": 833, "includesTxPower": true, "txPower": -4,
                  "interval": [0.5, 1.5], "isHidden": true, "timeout": 60, "duration": 2, "secondaryChannel": "Coded",
                  "scanResponseServiceUUIDs": ["180A"], "scanResponseManufacturerData": {"1": "04"},
                  "scanResponseServiceData": {"180A": "05"}
                }
              ]
            }
            """
        let state = try PeripheralRestorationState(decoding: Data(text.utf8), for: identifier)
        func object(_ data: Data) throws -> NSDictionary? {
            try JSONSerialization.jsonObject(with: data) as? NSDictionary
        }
        XCTAssertEqual(try object(state.encoded(for: identifier)), try object(Data(text.utf8)))
        let service = try XCTUnwrap(state.services.first).made
        XCTAssertFalse(service.isPrimary)
        let level = service.characteristics[0]
        XCTAssertEqual([level.value, level.descriptors.first?.value], [Data([0x50]), Data("Level".utf8)])
        XCTAssertFalse(level.sendsUpdatesOverSocket)
        XCTAssertTrue(level.takesWritesOverSocket)
        XCTAssertTrue(service.characteristics[1].sendsUpdatesOverSocket)
        let data = state.advertisements[1].data
        XCTAssertEqual(data.manufacturerData, [76: Data([1, 2])])
        XCTAssertEqual(data.scanResponse.serviceData, [CBUUID(string: "180A"): Data([5])])
        XCTAssertEqual(data.secondaryChannel, .coded)
        XCTAssertFalse(data.isDiscoverable)
    }
}
