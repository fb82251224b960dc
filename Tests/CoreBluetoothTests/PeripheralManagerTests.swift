@testable import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// A `CBPeripheralManager` and virtual centrals.
final class PeripheralManagerTests: CoreBluetoothCase, @unchecked Sendable {
    private static let battery = CBUUID(string: "180F")
    private static let level = CBUUID(string: "2A19")

    private var server: Server!
    private var manager: CBPeripheralManager!

    override func setUp() {
        super.setUp()
        server = Server(seen)
    }

    override func tearDown() {
        manager = nil
        super.tearDown()
    }

    // MARK: Beginnings

    private func serve(options: [String: Any]? = nil) {
        manager = CBPeripheralManager(delegate: server, queue: callbacks, options: options)
        expect("state 5")
    }

    /// A service of a fixed value, a value of the delegate's, and a value that is written.
    private func heart() -> CBMutableService {
        let service = CBMutableService(type: Self.heartRate, primary: true)
        service.characteristics = [
            CBMutableCharacteristic(
                type: Self.measurement, properties: [.read, .notify], value: nil, permissions: .readable),
            CBMutableCharacteristic(type: Self.location, properties: .read, value: Data([3]), permissions: .readable),
            CBMutableCharacteristic(
                type: Self.control, properties: [.write, .writeWithoutResponse], value: nil, permissions: .writeable),
        ]
        return service
    }

    @discardableResult
    private func add(_ service: CBMutableService) -> [CBMutableCharacteristic] {
        manager.add(service)
        expect("added \(service.uuid) nil")
        return service.characteristics as! [CBMutableCharacteristic]
    }

    /// The heart's characteristics, served and advertised.
    @discardableResult
    private func serveHeart() -> [CBMutableCharacteristic] {
        serve()
        let characteristics = add(heart())
        advertise()
        return characteristics
    }

    private func battery(
        _ properties: CBCharacteristicProperties = .read, _ permissions: CBAttributePermissions = .readable
    ) -> CBMutableService {
        let service = CBMutableService(type: Self.battery, primary: true)
        service.characteristics = [
            CBMutableCharacteristic(
                type: Self.level, properties: properties, value: Data([5]), permissions: permissions)
        ]
        return service
    }

    /// A central that has subscribed to the measurement.
    private func subscriber(_ number: Int = 1, mtu: Int = 247) -> CentralLink {
        let phone = phone(number, mtu: mtu)
        phone.subscribe(to: "2A37")
        expect("subscribed 2A37")
        return phone
    }

    private func advertise() {
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "Strap", CBAdvertisementDataServiceUUIDsKey: [Self.heartRate],
        ])
        expect("advertising nil")
    }

    private func phone(_ number: Int = 1, mtu: Int = 247) -> CentralLink {
        let address = VirtualAddress(stringLiteral: "C0:FF:EE:00:CE:0\(number)")
        let link = simulator.connect(VirtualCentral(address, name: "Phone \(number)", mtu: mtu))
        eventually("link") { link.state == .connected }
        return link
    }

    /// The name in the scan response: its length, its type (0x09), its text.
    private var advertisedName: String? {
        simulator.advertisements.first.map { String(decoding: $0.scanResponse.dropFirst(2), as: UTF8.self) }
    }

    private func result(of request: CentralRequest) -> Result<[UInt8], CentralLinkError>? {
        eventually("result") { request.result != nil }
        return request.result
    }

    // MARK: State

    func testCommandsBeforeThePowerAreMisuse() {
        manager = CBPeripheralManager(delegate: server, queue: callbacks)
        XCTAssertEqual(manager.state, .unknown)
        manager.add(heart())
        manager.startAdvertising(nil)
        XCTAssertFalse(manager.isAdvertising)
        XCTAssertEqual(seen.texts.count, 2)
        XCTAssertTrue(
            seen.texts[0].hasSuffix("can only accept add while in the powered on state"), seen.texts[0])
        expect("state 5")
        pass(15)
        XCTAssertEqual(seen.texts.count, 3, "\(seen.texts)")
    }

    func testTheDelegateIsNotRetained() {
        manager = CBPeripheralManager(delegate: Server(seen), queue: callbacks)
        XCTAssertNil(manager.delegate)
        pass(1)
        XCTAssertEqual(manager.state, .poweredOn)
        XCTAssertEqual(seen.texts, [])
    }

    func testWithoutAQueueTheDelegateIsCalledOnTheMainQueue() {
        server.onState = { XCTAssertTrue(Thread.isMainThread) }
        manager = CBPeripheralManager(delegate: server, queue: nil)
        runMainQueue()
        XCTAssertEqual(seen.texts, ["state 5"])
    }

    // MARK: Pairing

    func testOnlyAServiceThatNeedsEncryptionAllowsPairings() {
        serve()
        add(heart())
        XCTAssertEqual(manager.blueCap.pairingPolicy, .reject)
        advertise()
        let phone = phone()
        XCTAssertNotEqual(result(of: phone.pair()), .success([]))
        let lock = battery(.read, .readEncryptionRequired)
        add(lock)
        XCTAssertEqual(manager.blueCap.pairingPolicy, .justWorks)
    }

    func testAPolicyThatIsConfiguredDoesNotChangeWithTheServices() throws {
        let lock = battery(.read, .readEncryptionRequired)
        manager = try CBPeripheralManager(
            delegate: server, queue: callbacks, configuration: .init(busAddress: simulator.address))
        expect("state 5")
        add(lock)
        XCTAssertEqual(manager.blueCap.pairingPolicy, .reject)
    }

    func testTheDefaultConfigurationIsThatOfNewManagers() throws {
        CBPeripheralManager.defaultConfiguration.adapter = "hci7"
        CBPeripheralManager.defaultConfiguration.pairingPolicy = .ask
        manager = CBPeripheralManager(delegate: server, queue: callbacks)
        XCTAssertEqual(manager.blueCap.pairingPolicy, .ask)
        expect("state 2")
        XCTAssertTrue(manager.blueCap.stateExplanation.contains("hci7"), manager.blueCap.stateExplanation)
    }

    @available(*, deprecated)
    func testDefaultOptionsOfTheCentralRoleCountForThePeripheralRole() {
        defer { CBManager.defaultOptions = [:] }
        CBManager.defaultOptions = [
            CentralManagerOptionBusAddressKey: simulator.address, CentralManagerOptionAdapterKey: "hci7",
            CentralManagerOptionPairingPolicyKey: PairingPolicy.ask,
        ]
        manager = CBPeripheralManager(delegate: server, queue: callbacks)
        XCTAssertEqual(manager.blueCap.pairingPolicy, .ask)
        expect("state 2")
        XCTAssertTrue(manager.blueCap.stateExplanation.contains("hci7"), manager.blueCap.stateExplanation)
    }

    // MARK: Services and requests

    func testAFixedValueIsReadWithoutTheDelegate() {
        serveHeart()
        seen.clear()
        XCTAssertEqual(result(of: phone().read("2A38")), .success([3]))
        XCTAssertEqual(seen.texts, [])
    }

    func testTheDelegateRespondsToReads() throws {
        let characteristics = serveHeart()
        let phone = phone()
        server.onRead = { manager, request in
            XCTAssertTrue(request.characteristic === characteristics[0])
            XCTAssertEqual(request.central.maximumUpdateValueLength, 244)
            XCTAssertEqual(request.offset, 0)
            request.value = Data([7, 8])
            manager.respond(to: request, withResult: .success)
            manager.respond(to: request, withResult: .unlikelyError)
        }
        XCTAssertEqual(result(of: phone.read("2A37")), .success([7, 8]))
        server.onRead = { manager, request in manager.respond(to: request, withResult: .insufficientAuthorization) }
        XCTAssertEqual(result(of: phone.read("2A37")), .failure(.attribute(0x08)))
        server.onRead = { _, _ in }
        XCTAssertEqual(result(of: phone.read("2A37")), .failure(.attribute(0x0E)))
    }

    func testTheDelegateReceivesWritesOfBothKindsFromOneCentral() throws {
        serveHeart()
        let phone = phone()
        var centrals: [CBCentral] = []
        server.onWrite = { manager, requests in
            centrals.append(requests[0].central)
            manager.respond(to: requests[0], withResult: .success)
        }
        XCTAssertEqual(result(of: phone.write([1, 2], to: "2A39")), .success([]))
        phone.write([3], to: "2A39", type: .command)
        expect("write 2A39 [3]")
        XCTAssertTrue(seen.texts.contains("write 2A39 [1, 2]"))
        XCTAssertEqual(centrals.count, 2)
        XCTAssertTrue(centrals[0] === centrals[1])
        XCTAssertEqual(centrals[0].identifier, centrals[1].identifier)
    }

    func testADelegateWithoutTheMethodsRefusesRequests() {
        let delegate = StateOnly()
        manager = CBPeripheralManager(delegate: delegate, queue: callbacks)
        eventually("power") { self.manager.state == .poweredOn }
        manager.add(heart())
        manager.startAdvertising(nil)
        eventually("advertisement") { self.manager.isAdvertising }
        XCTAssertEqual(result(of: phone().read("2A37")), .failure(.attribute(0x06)))
        XCTAssertEqual(seen.texts.count, 1, "\(seen.texts)")
        XCTAssertTrue(
            seen.texts[0].hasPrefix("log StateOnly has no peripheralManager(_:didReceiveRead:)"), seen.texts[0])
    }

    func testAFixedValueThatCanBeWrittenIsMisuse() {
        serve()
        let service = battery([.read, .write], [.readable, .writeable])
        manager.add(service)
        expect("added 180F CBError.invalidParameters")
        XCTAssertTrue(seen.texts.contains { $0.contains("API MISUSE: characteristic 2A19 has a fixed value") })
        manager.add(heart())
        expect("added 180D nil")
        XCTAssertEqual(simulator.applications.flatMap(\.services).map { String($0.uuid.prefix(8)) }, ["0000180d"])
    }

    func testAServiceThatIsRefusedAtOnceIsReportedAfterThoseBeforeIt() {
        serve()
        let wrong = CBMutableService(type: Self.battery, primary: true)
        wrong.includedServices = [CBMutableService(type: Self.battery, primary: false)]
        seen.clear()
        manager.add(heart())
        manager.add(wrong)
        manager.publishL2CAPChannel(withEncryption: false)
        expect("published CBError.operationNotSupported")
        XCTAssertEqual(
            seen.texts.filter { !$0.hasPrefix("log") },
            ["added 180D nil", "added 180F CBError.invalidParameters", "published CBError.operationNotSupported"])
    }

    func testAServiceWithIncludedServicesIsRefused() {
        serve()
        let service = heart()
        service.includedServices = [CBMutableService(type: Self.battery, primary: false)]
        manager.add(service)
        expect("added 180D CBError.invalidParameters")
        XCTAssertTrue(seen.texts.contains { $0.hasSuffix("included services are not supported") })
    }

    func testAServiceIsAddedOnceAndCanBeAddedAgainAfterItsRemoval() {
        serve()
        let service = heart()
        add(service)
        manager.add(service)
        XCTAssertTrue(seen.texts.last?.contains("was added before") == true)
        manager.remove(service)
        eventually("removal") { self.simulator.applications.isEmpty }
        manager.remove(service)
        XCTAssertTrue(seen.texts.last?.contains("was not added") == true)
        seen.clear()
        add(service)
        add(battery())
        manager.removeAllServices()
        eventually("removal") { self.simulator.applications.isEmpty }
    }

    func testDescriptorsHaveTheTypesOfTheirUUIDs() {
        serve()
        let service = heart()
        let described = service.characteristics?[1] as? CBMutableCharacteristic
        described?.descriptors = [
            CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "Where"),
            CBMutableDescriptor(
                type: CBUUID(string: CBUUIDCharacteristicFormatString), value: Data([4, 0, 0, 0x27, 1, 0, 0])),
        ]
        XCTAssertTrue(described?.descriptors?.first?.characteristic === described)
        XCTAssertTrue(described?.service === service)
        add(service)
        advertise()
        XCTAssertEqual(result(of: phone().read("2A38", descriptor: "2901")), .success(Array("Where".utf8)))
        let wrong = CBMutableService(type: Self.battery, primary: true)
        let level = CBMutableCharacteristic(type: Self.level, properties: .read, value: nil, permissions: .readable)
        level.descriptors = [CBMutableDescriptor(type: CBUUID(string: "2904"), value: 4)]
        wrong.characteristics = [level]
        manager.add(wrong)
        expect("added 180F CBError.invalidParameters")
    }

    // MARK: Subscriptions and updates

    func testSubscriptionsAreReportedWithTheSameCentral() {
        let measurement = serveHeart()[0]
        let phone = subscriber()
        let central = server.centrals.first
        XCTAssertEqual(measurement.subscribedCentrals?.count, 1)
        XCTAssertTrue(measurement.subscribedCentrals?.first === central)
        XCTAssertEqual(central?.maximumUpdateValueLength, 244)
        XCTAssertTrue(manager.updateValue(Data([1]), for: measurement, onSubscribedCentrals: nil))
        XCTAssertTrue(manager.updateValue(Data([2]), for: measurement, onSubscribedCentrals: [central!]))
        eventually("values") { phone.values.count == 2 }
        XCTAssertEqual(phone.values.map(\.bytes), [[1], [2]])
        phone.unsubscribe(from: "2A37")
        expect("unsubscribed 2A37")
        XCTAssertTrue(server.centrals.last === central)
        XCTAssertEqual(measurement.subscribedCentrals, [])
        phone.subscribe(to: "2A37")
        eventually("second subscription") { measurement.subscribedCentrals?.count == 1 }
        seen.clear()
        phone.disconnect()
        expect("unsubscribed 2A37")
    }

    func testAnUpdateWithoutSubscribersIsNotKept() {
        let measurement = serveHeart()[0]
        XCTAssertTrue(manager.updateValue(Data([1]), for: measurement, onSubscribedCentrals: nil))
        let phone = subscriber()
        XCTAssertTrue(manager.updateValue(Data([2]), for: measurement, onSubscribedCentrals: nil))
        eventually("value") { !phone.values.isEmpty }
        pass(1)
        XCTAssertEqual(phone.values.map(\.bytes), [[2]])
    }

    func testAFullQueueIsFollowedByIsReady() {
        let measurement = serveHeart()[0]
        let phone = subscriber()
        let count = 3_000
        var sent = 0
        var refusals = 0
        let send: (CBPeripheralManager) -> Void = { manager in
            while sent < count {
                let value = Data([UInt8(truncatingIfNeeded: sent), UInt8(sent >> 8)])
                guard manager.updateValue(value, for: measurement, onSubscribedCentrals: nil) else {
                    refusals += 1
                    return
                }
                sent += 1
            }
        }
        server.onReady = send
        callbacks.sync { send(manager) }
        eventually("values") { phone.values.count == count }
        XCTAssertEqual(phone.values.map { Int($0.bytes[0]) | Int($0.bytes[1]) << 8 }, Array(0..<count))
        XCTAssertGreaterThan(refusals, 10)
        XCTAssertEqual(seen.texts.filter { $0 == "ready" }.count, refusals)
    }

    /// The sender of Apple's guide: parts as long as the central takes, until one is refused; it goes on in `isReady`.
    func testPartsAsLongAsTheCentralTakesArriveWhateverThePacketsAre() {
        let measurement = serveHeart()[0]
        for (number, mtu) in [23, 247, 515, 517].enumerated() {
            let phone = phone(number + 1, mtu: mtu)
            phone.subscribe(to: "2A37")
            eventually("subscription") { measurement.subscribedCentrals?.count == 1 }
            let length = measurement.subscribedCentrals![0].maximumUpdateValueLength
            XCTAssertEqual(length, min(512, mtu - 3))
            var rest = Data((0..<5_000).map { UInt8(truncatingIfNeeded: $0) })
            let all = Array(rest)
            let send: (CBPeripheralManager) -> Void = { manager in
                while !rest.isEmpty {
                    let part = rest.prefix(length)
                    guard manager.updateValue(part, for: measurement, onSubscribedCentrals: nil) else { return }
                    rest = rest.dropFirst(part.count)
                }
            }
            server.onReady = send
            callbacks.sync { send(manager) }
            eventually("the parts") { phone.values.flatMap(\.bytes).count == all.count }
            XCTAssertEqual(phone.values.flatMap(\.bytes), all)
            phone.disconnect()
            eventually("the end") { measurement.subscribedCentrals == [] }
            advertise()
        }
    }

    /// "false if the update is not successfully sent because the underlying transmit queue is full", and a value that is
    /// too long "is truncated" (Apple's documentation of `updateValue`). A sender waits for `isReady` after each `false`.
    func testOnlyAFullQueueRefusesAnUpdate() {
        let measurement = serveHeart()[0]
        let phone = subscriber(mtu: 517)
        seen.clear()
        XCTAssertTrue(manager.updateValue(Data(count: 600), for: measurement, onSubscribedCentrals: nil))
        eventually("the value") { !phone.values.isEmpty }
        XCTAssertEqual(phone.values.map(\.bytes.count), [512])
        XCTAssertTrue(seen.texts.first?.contains("the value has 600 bytes; the first 512 are sent") == true)
        seen.clear()

        let central = server.centrals[0]
        phone.disconnect()
        expect("unsubscribed 2A37")
        let other = subscriber(2)
        XCTAssertTrue(manager.updateValue(Data([1]), for: measurement, onSubscribedCentrals: [central]))
        XCTAssertTrue(manager.updateValue(Data([2]), for: measurement, onSubscribedCentrals: nil))
        eventually("the value for all") { !other.values.isEmpty }
        XCTAssertEqual(other.values.map(\.bytes), [[2]], "A central that has not subscribed is ignored.")

        let stray = CBMutableCharacteristic(
            type: Self.level, properties: .notify, value: nil, permissions: .readable)
        XCTAssertTrue(manager.updateValue(Data([1]), for: stray, onSubscribedCentrals: nil))
        XCTAssertTrue(seen.texts.last?.contains("belongs to no service that was added") == true)
    }

    func testAnUpdateForOneOfTwoCentralsReachesIt() {
        let measurement = serveHeart()[0]
        let first = phone(1)
        first.subscribe(to: "2A37")
        eventually("first") { measurement.subscribedCentrals?.count == 1 }
        advertise()
        let second = phone(2)
        second.subscribe(to: "2A37")
        eventually("second") { measurement.subscribedCentrals?.count == 2 }
        let newest = measurement.subscribedCentrals!.last!
        XCTAssertTrue(manager.updateValue(Data([9]), for: measurement, onSubscribedCentrals: [newest]))
        eventually("value") { !second.values.isEmpty }
        pass(1)
        XCTAssertEqual(first.values.map(\.bytes), [])
        XCTAssertEqual(second.values.map(\.bytes), [[9]])
    }

    // MARK: Advertising

    func testAnAdvertisementIsReportedAndASecondOneIsRefused() {
        serve()
        advertise()
        XCTAssertTrue(manager.isAdvertising)
        XCTAssertEqual(advertisedName, "Strap")
        manager.startAdvertising([CBAdvertisementDataLocalNameKey: "Other"])
        expect("advertising CBError.alreadyAdvertising")
        manager.stopAdvertising()
        eventually("end") { self.simulator.advertisements.isEmpty }
        XCTAssertFalse(manager.isAdvertising)
    }

    func testWhatDoesNotFitIsLeftOut() {
        serve()
        let long = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
        let other = CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: String(repeating: "ä", count: 20),
            CBAdvertisementDataServiceUUIDsKey: [long, other],
        ])
        expect("advertising nil")
        XCTAssertEqual(advertisedName, String(repeating: "ä", count: 14))
        // One list of long UUIDs (type 0x07): the list's length is that of one.
        let data = simulator.advertisements[0].data
        XCTAssertEqual(data.firstIndex(of: 0x07).map { data[$0 - 1] }, 17)
    }

    func testAProgramThatAdvertisesAgainAfterAPowerCycleSucceeds() {
        serve()
        advertise()
        simulator.simulatePowerOff()
        expect("state 4")
        XCTAssertFalse(manager.isAdvertising)
        seen.clear()
        simulator.simulatePowerOn()
        expect("state 5")
        advertise()
        XCTAssertEqual(simulator.advertisements.count, 1)
    }

    func testChannelsAreNotSupported() {
        serve()
        manager.publishL2CAPChannel(withEncryption: false)
        expect("published CBError.operationNotSupported")
        manager.unpublishL2CAPChannel(128)
        expect("unpublished CBError.operationNotSupported")
    }

    // MARK: Restoration

    func testServicesAndTheAdvertisementAreRestoredBeforeTheState() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bluecap-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let options: [String: Any] = [
            CBPeripheralManagerOptionRestoreIdentifierKey: "strap",
            "PeripheralManagerOptionStateDirectoryKey": folder.path,
        ]
        serve(options: options)
        XCTAssertFalse(seen.texts.contains { $0.hasPrefix("restore") })
        add(heart())
        advertise()
        let file = folder.appendingPathComponent("peripheral/strap.json")
        eventually("file") { (try? Data(contentsOf: file))?.isEmpty == false }
        let kept = try Data(contentsOf: file)
        manager = nil
        settle()
        pass(2)
        RestorationKeeper.waitForAll()
        try kept.write(to: file)
        seen.clear()
        manager = CBPeripheralManager(delegate: server, queue: callbacks, options: options)
        RestorationKeeper.waitForAll()
        expect("state 5")
        XCTAssertEqual(seen.texts, ["restore kCBRestoredAdvertisement kCBRestoredServices", "state 5"])
        let services = try XCTUnwrap(
            server.restored[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService])
        XCTAssertEqual(services.first?.characteristics?.map(\.uuid), [Self.measurement, Self.location, Self.control])
        let advertised = server.restored[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any]
        XCTAssertEqual(advertised?[CBAdvertisementDataLocalNameKey] as? String, "Strap")
        XCTAssertEqual(advertised?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID], [Self.heartRate])
        eventually("advertisement") { !self.simulator.advertisements.isEmpty }
        server.onRead = { manager, request in
            XCTAssertTrue(request.characteristic === services[0].characteristics?[0])
            request.value = Data([1])
            manager.respond(to: request, withResult: .success)
        }
        XCTAssertEqual(result(of: phone().read("2A37")), .success([1]))
    }
}

/// A delegate that has the required method only.
private final class StateOnly: NSObject, CBPeripheralManagerDelegate {
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}
}

/// A delegate that notes every call, written as for iOS.
private final class Server: NSObject, CBPeripheralManagerDelegate {
    let seen: Notes
    var centrals: [CBCentral] = []
    var restored: [String: Any] = [:]
    var onState: (() -> Void)?
    var onRead: ((CBPeripheralManager, CBATTRequest) -> Void)?
    var onWrite: ((CBPeripheralManager, [CBATTRequest]) -> Void)?
    var onReady: ((CBPeripheralManager) -> Void)?

    init(_ seen: Notes) { self.seen = seen }

    private func text(_ error: (any Error)?) -> String {
        (error as? CBError).map { "CBError.\($0.code)" } ?? error.map { "\($0)" } ?? "nil"
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        seen.note("state \(peripheral.state.rawValue)")
        onState?()
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
        restored = dict
        seen.note("restore \(dict.keys.sorted().joined(separator: " "))")
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
        seen.note("advertising \(text(error))")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        seen.note("added \(service.uuid) \(text(error))")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {
        centrals.append(central)
        seen.note("subscribed \(characteristic.uuid)")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        centrals.append(central)
        seen.note("unsubscribed \(characteristic.uuid)")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        seen.note("read \(request.characteristic.uuid)")
        onRead?(peripheral, request)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for request in requests {
            seen.note("write \(request.characteristic.uuid) \(request.value.map { Array($0) } ?? [])")
        }
        onWrite?(peripheral, requests)
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        seen.note("ready")
        onReady?(peripheral)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) {
        seen.note("published \(text(error))")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) {
        seen.note("unpublished \(text(error))")
    }
}
