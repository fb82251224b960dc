import BlueCapDBus
import XCTest

@testable import BlueCapBlueZ

/// What is concluded from the objects of each version.
final class DaemonCapabilitiesTests: TreeCase {
    private let foreignModalias = "usb:v0000p0000d0001"

    private func load(_ adapter: TestInterfaces) { load([(BlueZMessages.adapterPath, adapter)]) }

    private func known() throws -> DaemonCapabilities { try XCTUnwrap(tree[adapter: .hci0]?.capabilities) }

    private func capabilities(_ adapter: TestInterfaces) throws -> DaemonCapabilities {
        load(adapter)
        return try known()
    }

    // MARK: The version

    func testModaliasHasTheVersion() {
        XCTAssertEqual(DaemonVersion(modalias: "usb:v1D6Bp0246d0542"), DaemonVersion(5, 66))
        XCTAssertEqual(DaemonVersion(modalias: "usb:v1D6Bp0246d0557"), DaemonVersion(5, 87))
        XCTAssertNil(DaemonVersion(modalias: "usb:v1D6Bp0246"))
        XCTAssertNil(DaemonVersion(modalias: "usb:v1D6Bp0246d+542"))
        XCTAssertNil(DaemonVersion(modalias: "usb:v05ACp0246d0542"))
        XCTAssertNil(DaemonVersion(modalias: "bluetooth:v1D6Bp0246d0542"))
    }

    func testEveryVersionIsReadFromWhatItExports() throws {
        for minor in 55...99 {
            for isExperimental in [false, true] {
                let known = try capabilities(BlueZMessages.adapter(minor, isExperimental: isExperimental))
                XCTAssertEqual(known.version, DaemonVersion(5, minor))
                XCTAssertEqual(known.isExperimental, isExperimental)
            }
        }
    }

    func testAModaliasOfAnEarlierVersionThanTheObjectsIsIgnored() throws {
        for minor in [72, 82, 87] {
            let known = try capabilities(BlueZMessages.adapter(minor, modalias: "usb:v1D6Bp0246d0542"))
            XCTAssertNil(known.version, "5.\(minor)")
        }
    }

    // MARK: What depends on the version

    func testEachVersionsNotificationSockets() throws {
        let expected: [Int: DaemonCapabilities.NotificationSockets] = [
            55: .shared, 66: .shared, 68: .shared, 69: .perCentralBroadcast, 72: .perCentralBroadcast,
            75: .perCentralBroadcast, 76: .perCentral, 82: .perCentral, 87: .perCentral, 88: .perCentral,
        ]
        for (minor, sockets) in expected {
            let known = try capabilities(BlueZMessages.adapter(minor))
            XCTAssertEqual(known.notificationSockets, sockets, "5.\(minor)")
            XCTAssertEqual(known.directedUpdates, minor >= 76, "5.\(minor)")
        }
    }

    func testWhatDependsOnTheVersionAlone() throws {
        for minor in 55...90 {
            let known = try capabilities(BlueZMessages.adapter(minor))
            XCTAssertEqual(known, try capabilities(BlueZMessages.adapter(minor)))
            XCTAssertEqual(known.reportsDisconnectReasons, minor >= 83)
            XCTAssertEqual(known.reportsAdvertisingData, minor >= 78)
            XCTAssertEqual(known.acceptsServiceFilter, minor != 87)
            XCTAssertEqual(known.answersRefusedAcquireNotify, minor >= 84)
            XCTAssertEqual(known.pairsWithCapabilityOfLink, minor >= 81)
            XCTAssertEqual(known.losesRetriedRequests, minor >= 67)
            XCTAssertEqual(known.confirmsOverSocket, minor >= 80)
            XCTAssertEqual(known.needsExplicitHandles, minor == 74 || minor == 75)
            XCTAssertEqual(known.maximumWrittenLength, minor >= 69 ? 512 : 510)
            XCTAssertEqual(known.applicationErrorCodes, minor >= 66)
            XCTAssertEqual(known.securedSubscriptions, minor >= 66)
            XCTAssertEqual(known.enforcesSecureConnections, minor >= 57)
            XCTAssertEqual(known.scanResponseFields, minor >= 80)
            XCTAssertEqual(known.reportsPowerState, minor >= 73)
        }
    }

    // MARK: What the bus shows

    func testAdvertisingLimits() throws {
        let extended = try [66, 72, 76, 77, 82, 87].map { try capabilities(BlueZMessages.adapter($0)) }
        XCTAssertEqual(extended.map(\.extendedAdvertising), [true, true, true, true, true, true])
        XCTAssertEqual(extended[0].secondaryChannels, [.oneMegabit, .twoMegabit, .coded])
        // 5.76 would take more than 31 bytes, but does not say how many.
        XCTAssertEqual(extended.map(\.maximumAdvertisingLength), [31, 31, 31, 251, 251, 251])
        XCTAssertEqual(extended.map(\.maximumScanResponseLength), [31, 31, 31, 251, 251, 251])
        XCTAssertEqual(extended.map(\.usesAdvertisingInterval), [false, false, false, true, true, true])
        XCTAssertEqual(extended.map(\.usesAdvertisingPower), [false, false, false, true, true, true])
        XCTAssertEqual(extended.last?.advertisingPower, -34...7)

        let legacy = try capabilities(BlueZMessages.adapter(87, hasExtendedAdvertising: false))
        XCTAssertFalse(legacy.extendedAdvertising)
        XCTAssertEqual(legacy.secondaryChannels, [])
        XCTAssertEqual(legacy.maximumAdvertisingLength, 31)
        XCTAssertEqual(legacy.maximumExtendedAdvertisingLength, 31)
        XCTAssertTrue(legacy.usesAdvertisingInterval)
        XCTAssertFalse(legacy.usesAdvertisingPower)
    }

    func testAnExperimentalDaemonShowsMore() throws {
        let at66 = try capabilities(BlueZMessages.adapter(66, isExperimental: true))
        XCTAssertEqual(at66.monitorTypes, ["or_patterns"])
        XCTAssertTrue(at66.reportsPowerState)
        XCTAssertTrue(at66.reportsAdvertisingData)
        XCTAssertTrue(at66.usesAdvertisingInterval)
        // 5.66 cuts at 31 bytes, whatever it says of the controller.
        XCTAssertEqual(at66.maximumExtendedAdvertisingLength, 31)

        let at72 = try capabilities(BlueZMessages.adapter(72, isExperimental: true))
        XCTAssertEqual(at72.maximumExtendedAdvertisingLength, 251)
        XCTAssertEqual(at72.maximumAdvertisingLength, 31)
    }

    // MARK: Without a version

    func testNothingIsAssumedOfAnUnknownVersion() throws {
        let known = try capabilities(BlueZMessages.adapter(82, modalias: foreignModalias))
        XCTAssertNil(known.version)
        XCTAssertEqual(known.notificationSockets, .perCentral)
        XCTAssertFalse(known.acceptsServiceFilter)
        XCTAssertFalse(known.reportsDisconnectReasons)
        XCTAssertFalse(known.confirmsOverSocket)
        XCTAssertTrue(known.usesAdvertisingInterval)
        XCTAssertEqual(known.maximumAdvertisingLength, 251)

        let at72 = try capabilities(BlueZMessages.adapter(72, modalias: foreignModalias))
        XCTAssertEqual(at72.notificationSockets, .perCentralBroadcast)
        XCTAssertTrue(at72.acceptsServiceFilter)

        let at73 = try capabilities(BlueZMessages.adapter(73, modalias: foreignModalias))
        XCTAssertEqual(at73.notificationSockets, .unknown)
        XCTAssertFalse(at73.needsExplicitHandles)

        let at66 = try capabilities(BlueZMessages.adapter(66, modalias: foreignModalias))
        XCTAssertEqual(at66.notificationSockets, .unknown)
        XCTAssertEqual(at66.maximumWrittenLength, 510)
        XCTAssertFalse(at66.applicationErrorCodes)
    }

    func testDiscoveryFiltersShow583() throws {
        for (minor, isNew) in [(82, false), (83, true), (87, true)] {
            load(BlueZMessages.adapter(minor, modalias: foreignModalias))
            let keys: Set<String> =
                isNew ? ["UUIDs", "RSSI", "Pathloss", "AutoConnect"] : ["UUIDs", "RSSI", "Pathloss"]
            change { $0.learn(into: &$1) { $0.discoveryFilters = keys } }

            XCTAssertEqual(changes, [.adapterChanged(.hci0, .capabilities)])
            let known = try self.known()
            XCTAssertEqual(known.reportsDisconnectReasons, isNew)
            XCTAssertEqual(known.acceptsServiceFilter, !isNew)
            XCTAssertEqual(known.confirmsOverSocket, isNew)
        }
    }

    func testDevicesShow583And584() throws {
        load(BlueZMessages.adapter(87, modalias: foreignModalias))
        apply(
            BlueZMessages.interfacesAdded(
                BlueZMessages.device,
                [("org.bluez.Device1", [("Address", .string("C0:26:DF:12:34:56")), ("CablePairing", .bool(false))])]))
        XCTAssertEqual(try known().reportsDisconnectReasons, true)
        XCTAssertEqual(try known().answersRefusedAcquireNotify, false)

        apply(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Bearer.LE1", [])]))
        XCTAssertEqual(try known().answersRefusedAcquireNotify, true)

        // The daemon that follows may be an earlier one.
        change { $0.clear(into: &$1) }
        let objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(82, modalias: foreignModalias))]
        change { $0.load(BlueZMessages.managedObjects(objects), into: &$1) }
        XCTAssertEqual(try known().reportsDisconnectReasons, false)
    }

    // MARK: Changes

    func testCapabilitiesThatAreLearntLaterAreReported() throws {
        load([("org.bluez.Adapter1", BlueZMessages.adapter(82)[1].1)])
        XCTAssertEqual(changes, [.adapterAdded(.hci0)])

        apply(
            BlueZMessages.interfacesAdded(BlueZMessages.adapterPath, [BlueZMessages.adapter(82)[0]]))
        XCTAssertEqual(
            changes,
            [.adapterChanged(.hci0, .interfaces), .adapterChanged(.hci0, .capabilities)])
        XCTAssertEqual(try known().maximumAdvertisingLength, 251)

        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.adapterPath, "org.bluez.LEAdvertisingManager1",
                [("SupportedCapabilities", .properties(["MaxAdvLen": .byte(100)]))]))
        XCTAssertEqual(changes, [.adapterChanged(.hci0, .capabilities)])
        XCTAssertEqual(try known().maximumAdvertisingLength, 100)
    }

    func testAnAdvertisementThatBeginsIsNoChange() throws {
        load(BlueZMessages.adapter(82))
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.adapterPath, "org.bluez.LEAdvertisingManager1",
                [("ActiveInstances", .byte(1)), ("SupportedInstances", .byte(4))]))
        XCTAssertTrue(changes.isEmpty)
        XCTAssertEqual(tree[adapter: .hci0]?.advertising.activeInstances, 1)
    }

    func testAnotherImplementationGetsTheCarefulValues() throws {
        let known = try capabilities([("org.bluez.Adapter1", [("Powered", .bool(true))])])
        XCTAssertNil(known.version)
        XCTAssertEqual(known.notificationSockets, .unknown)
        XCTAssertEqual(known.maximumAdvertisingLength, 31)
        XCTAssertFalse(known.extendedAdvertising)
        XCTAssertEqual(DaemonCapabilities().pairsWithCapabilityOfLink, true)
        XCTAssertEqual(DaemonCapabilities().losesRetriedRequests, true)
    }
}
