import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// The attributes of a connected `CBPeripheral`.
final class PeripheralTests: CoreBluetoothCase, @unchecked Sendable {
    /// An operation that fails at once can be complete before its handler is added.
    func testTheDelegateIsCalledOnItsQueueAlsoIfAnOperationFailsAtOnce() {
        let key = DispatchSpecificKey<Bool>()
        callbacks.setSpecific(key: key, value: true)
        let (peripheral, measurement) = discover(Self.measurement)
        recorder.notesValues = false
        var isElsewhere = false
        var count = 0
        recorder.onValue = { _ in
            count += 1
            if DispatchQueue.getSpecific(key: key) == nil { isElsewhere = true }
        }
        for _ in 0..<2_000 { peripheral.readValue(for: measurement) }
        eventually("all") { count == 2_000 }
        XCTAssertFalse(isElsewhere)
    }

    // MARK: Discovery

    func testAttributesAreDiscoveredStepByStepAndStayTheSameObjects() throws {
        let peripheral = connect()
        seen.clear()
        XCTAssertNil(peripheral.services)
        peripheral.discoverServices([Self.heartRate])
        expect("services nil")
        let service = try XCTUnwrap(peripheral.services?.first)
        XCTAssertEqual(peripheral.services?.map(\.uuid), [Self.heartRate])
        XCTAssertTrue(service.isPrimary)
        XCTAssertTrue(service.peripheral === peripheral)
        XCTAssertNil(service.characteristics)
        peripheral.discoverCharacteristics([Self.measurement], for: service)
        expect("characteristics 180D nil")
        XCTAssertEqual(service.characteristics?.map(\.uuid), [Self.measurement])
        let measurement = try XCTUnwrap(service.characteristics?.first)
        XCTAssertEqual(measurement.properties, .notify)
        XCTAssertTrue(measurement.service === service)
        XCTAssertNil(measurement.value)
        XCTAssertFalse(measurement.isBroadcasted)

        seen.clear()
        peripheral.discoverServices(nil)
        expect("services nil")
        XCTAssertEqual(peripheral.services?.map(\.uuid.uuidString), ["180D", "180A"])
        XCTAssertTrue(peripheral.services?.first === service)
        peripheral.discoverCharacteristics(nil, for: service)
        expect("characteristics 180D nil")
        XCTAssertEqual(service.characteristics?.count, 3)
        XCTAssertTrue(service.characteristics?.first === measurement)
    }

    func testIncludedServicesAreDiscovered() throws {
        var services = Self.services()
        services[0].includes = ["180A"]
        var virtual = Self.virtual()
        virtual.services = services
        let peripheral = discover(virtual)
        let service = try XCTUnwrap(peripheral.services?.first)
        XCTAssertNil(service.includedServices)
        peripheral.discoverIncludedServices(nil, for: service)
        expect("included 180D nil")
        XCTAssertTrue(service.includedServices?.first === peripheral.services?.last)
        peripheral.discoverIncludedServices([Self.heartRate], for: service)
        settle()
        XCTAssertEqual(service.includedServices, [])
    }

    func testDescriptorsHaveTheTypesOfTheirUUIDs() throws {
        let (peripheral, control) = discover(Self.control)
        XCTAssertNil(control.descriptors)
        peripheral.discoverDescriptors(for: control)
        expect("descriptors 2A39 nil")
        let description = try XCTUnwrap(control.descriptors?.first)
        XCTAssertEqual(description.uuid, CBUUID(string: CBUUIDCharacteristicUserDescriptionString))
        XCTAssertTrue(description.characteristic === control)
        peripheral.readValue(for: description)
        expect("descriptor 2901 Control nil")
        XCTAssertEqual(description.value as? String, "Control")
        peripheral.writeValue(Data([1]), for: description)
        eventually("the refusal") { self.seen.texts.last?.hasPrefix("descriptor written 2901 CBATTError") == true }

        let measurement = characteristic(Self.measurement, of: peripheral)
        peripheral.discoverDescriptors(for: measurement)
        expect("descriptors 2A37 nil")
        let configuration = try XCTUnwrap(measurement.descriptors?.first)
        XCTAssertEqual(configuration.uuid.uuidString, CBUUIDClientCharacteristicConfigurationString)
        seen.clear()
        peripheral.writeValue(Data([1, 0]), for: configuration)
        XCTAssertTrue(seen.texts.first?.contains("API MISUSE: Cannot write Client") == true)
    }

    // MARK: Values

    func testAReadReportsItsValue() {
        let (peripheral, location) = discover(Self.location)
        peripheral.readValue(for: location)
        expect("value 2A38 [1] nil")
        XCTAssertEqual(location.value, Data([1]))
        simulator.setValue([2], of: .uuid("2A38"), at: Self.address)
        XCTAssertEqual(location.value, Data([1]), "The value that was reported last.")
        peripheral.readValue(for: location)
        expect("value 2A38 [2] nil")
    }

    func testOperationsOfOneCharacteristicAreReportedInTheirOrder() {
        let (peripheral, location) = discover(Self.location)
        for number in 1...5 {
            peripheral.writeValue(Data([UInt8(number)]), for: location, type: .withResponse)
            peripheral.readValue(for: location)
        }
        strap.writeAnswer = { bytes in
            self.simulator.setValue(bytes, of: .uuid("2A38"), at: Self.address)
            return .done
        }
        eventually("all") { self.seen.texts.count == 10 }
        XCTAssertEqual(
            seen.texts, (1...5).flatMap { ["written 2A38 nil", "value 2A38 [\($0)] nil"] })
    }

    func testAResultThatIsKnownAtOnceFollowsThoseOfEarlierOperations() {
        let peripheral = discover()
        let (location, control) = (
            characteristic(Self.location, of: peripheral), characteristic(Self.control, of: peripheral)
        )
        let measurement = characteristic(Self.measurement, of: peripheral)
        seen.clear()
        peripheral.readValue(for: location)
        peripheral.writeValue(Data(count: 600), for: location, type: .withResponse)
        peripheral.readValue(for: measurement)
        peripheral.writeValue(Data([1]), for: control, type: .withResponse)
        peripheral.openL2CAPChannel(0x80)
        expect("channel nil CBError.operationNotSupported")
        XCTAssertEqual(
            seen.texts,
            [
                "value 2A38 [1] nil", "written 2A38 CBATTError.13", "value 2A37 [] CBATTError.2", "written 2A39 nil",
                "channel nil CBError.operationNotSupported",
            ])
    }

    func testAnOperationThatIsRefusedAtOnceDoesNotCallTheDelegateInsideItself() {
        let peripheral = discover()
        let (location, measurement) = (
            characteristic(Self.location, of: peripheral), characteristic(Self.measurement, of: peripheral)
        )
        let seen = seen
        recorder.onValue = { characteristic in
            guard characteristic === location else { return }
            seen.note("begin")
            peripheral.openL2CAPChannel(0x80)
            peripheral.readValue(for: measurement)
            seen.note("end")
        }
        peripheral.readValue(for: location)
        expect("value 2A37 [] CBATTError.2")
        XCTAssertEqual(
            seen.texts,
            [
                "value 2A38 [1] nil", "begin", "end", "channel nil CBError.operationNotSupported",
                "value 2A37 [] CBATTError.2",
            ])
    }

    func testRefusalsAreATTErrors() {
        let peripheral = discover()
        let (location, control) = (
            characteristic(Self.location, of: peripheral), characteristic(Self.control, of: peripheral)
        )
        strap.writeAnswer = { _ in .error(0x81) }
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        expect("written 2A38 CBATTError.129")
        strap.writeAnswer = { _ in .error(0x0D) }
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        expect("written 2A38 CBATTError.13")
        peripheral.readValue(for: control)
        expect("value 2A39 [] CBATTError.\(CBATTError.readNotPermitted.rawValue)")
        peripheral.setNotifyValue(true, for: location)
        expect("notifying 2A38 false CBATTError.\(CBATTError.requestNotSupported.rawValue)")
        peripheral.writeValue(Data(count: 513), for: location, type: .withResponse)
        eventually("the length") {
            self.seen.texts.filter { $0 == "written 2A38 CBATTError.13" }.count == 2
        }
    }

    func testNotifiedValuesAreReportedOneByOneWhileTheSubscriptionLasts() {
        let (peripheral, measurement) = discover(Self.measurement)
        peripheral.setNotifyValue(true, for: measurement)
        XCTAssertFalse(measurement.isNotifying)
        expect("notifying 2A37 true nil")
        seen.clear()
        recorder.onValue = { XCTAssertTrue($0 === measurement) }
        for beat in UInt8(60)..<70 { simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [0, beat]) }
        eventually("values") { self.seen.texts.count == 10 }
        XCTAssertEqual(seen.texts, (60..<70).map { "value 2A37 [0, \($0)] nil" })
        peripheral.setNotifyValue(false, for: measurement)
        expect("notifying 2A37 false nil")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
        subscribe(to: measurement)
        expectNotification(71, "Not twice after the second subscription.")
    }

    func testTheEndOfALinkEndsSubscriptionsAndInvalidatesServices() {
        let peripheral = discover()
        let (service, measurement) = (peripheral.services!.first!, characteristic(Self.measurement, of: peripheral))
        subscribe(to: measurement)
        simulator.simulateLinkLoss(of: Self.address)
        expect("disconnected CBError.peripheralDisconnected")
        XCTAssertNil(peripheral.services)
        XCTAssertNil(service.characteristics)
        XCTAssertFalse(measurement.isNotifying)
        central.connect(peripheral)
        expect("connected Strap 1")
        pass(5)
        XCTAssertEqual(
            simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [], "The program subscribes again.")
        discover(on: peripheral)
        XCTAssertTrue(characteristic(Self.measurement, of: peripheral) === measurement)
        subscribe(to: measurement)
        expectNotification(72)
    }

    func testOperationsThatALossInterruptsFailBeforeTheDisconnection() {
        let (peripheral, location) = discover(Self.location)
        strap.writeAnswer = { _ in .never }
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        pass(0.1)
        simulator.simulateLinkLoss(of: Self.address)
        expect("disconnected CBError.peripheralDisconnected")
        XCTAssertEqual(
            seen.texts,
            ["written 2A38 CBError.peripheralDisconnected", "disconnected CBError.peripheralDisconnected"])
    }

    func testWritesWithoutResponseFollowTheQueue() {
        let (peripheral, control) = discover(Self.control)
        XCTAssertEqual(peripheral.maximumWriteValueLength(for: .withResponse), 512)
        XCTAssertEqual(peripheral.maximumWriteValueLength(for: .withoutResponse), 244)
        let count = 500
        var next = 0
        func send(_ peripheral: CBPeripheral) {
            while next < count, peripheral.canSendWriteWithoutResponse {
                peripheral.writeValue(
                    Data([UInt8(next & 0xFF), UInt8(next >> 8)]), for: control, type: .withoutResponse)
                next += 1
            }
        }
        recorder.onReady = send
        callbacks.sync { send(peripheral) }
        XCTAssertFalse(peripheral.canSendWriteWithoutResponse)
        XCTAssertLessThan(next, count)
        eventually("all") { self.strap.written.count == count }
        settle()
        XCTAssertEqual(strap.written.map { Int($0[0]) | Int($0[1]) << 8 }, Array(0..<count))
        XCTAssertTrue(peripheral.canSendWriteWithoutResponse)
        XCTAssertFalse(seen.texts.contains { $0.hasPrefix("written") })
        XCTAssertGreaterThan(seen.texts.filter { $0 == "ready" }.count, 3)
    }

    func testWritesWithoutResponseAreNotLostIfTheProgramDoesNotWait() {
        let (peripheral, control) = discover(Self.control)
        for number in 0..<200 { peripheral.writeValue(Data([UInt8(number)]), for: control, type: .withoutResponse) }
        eventually("all") { self.strap.written.count == 200 }
        XCTAssertEqual(strap.written.map { Int($0[0]) }, Array(0..<200))
    }

    // MARK: Changes

    func testChangedServicesAreReported() {
        let peripheral = discover()
        let (heartRate, information) = (peripheral.services!.first!, peripheral.services!.last!)
        simulator.simulateServicesChanged(
            of: Self.address,
            to: Self.services().filter { $0.uuid == "180D" }
                + [VirtualService("1809", characteristics: [VirtualCharacteristic("2A1C", [.indicate])])])
        expect("modified 180A")
        XCTAssertTrue(peripheral.services?.contains(information) == false)
        XCTAssertTrue(peripheral.services?.contains(heartRate) == true)
        seen.clear()
        peripheral.discoverServices(nil)
        expect("services nil")
        XCTAssertEqual(peripheral.services?.map(\.uuid.uuidString), ["180D", "1809"])
        XCTAssertTrue(peripheral.services?.first === heartRate)
        peripheral.readValue(for: information.characteristics![0])
        expect("value 2A29 [] CBError.invalidHandle")
    }

    func testTheNameFollowsThePeripheral() {
        let peripheral = find()
        seen.clear()
        peripheral.delegate = recorder
        simulator.remove(Self.address)
        var renamed = Self.virtual()
        renamed.advertisement.localName = "Belt"
        simulator.add(renamed, behavior: strap)
        central.scanForPeripherals(
            withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        expect("name Belt")
        XCTAssertEqual(peripheral.name, "Belt")
    }

    // MARK: What Linux does not have

    func testTheSignalStrengthIsThatOfTheLastAdvertisement() {
        let peripheral = connect()
        peripheral.readRSSI()
        eventually("the strength") { self.seen.texts.contains { $0.hasPrefix("rssi") } }
        XCTAssertEqual(seen.texts.last, peripheral.rssi.map { "rssi \($0) nil" })
    }

    func testTheSignalStrengthIsKeptAfterTheScan() {
        let peripheral = connect()
        eventually("the end of the value") { peripheral.blueCap.rssi == nil }
        XCTAssertEqual(peripheral.rssi, -60)
        peripheral.readRSSI()
        expect("rssi -60 nil")
    }

    func testThereAreNoL2CAPChannels() {
        let peripheral = connect()
        XCTAssertFalse(peripheral.ancsAuthorized)
        peripheral.openL2CAPChannel(0x80)
        expect("channel nil CBError.operationNotSupported")
    }

    // MARK: Misuse

    func testCommandsWithoutALinkAreMisuse() {
        let (peripheral, location) = discover(Self.location)
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        seen.clear()
        peripheral.discoverServices(nil)
        peripheral.readValue(for: location)
        peripheral.writeValue(Data(), for: location, type: .withResponse)
        peripheral.setNotifyValue(true, for: location)
        peripheral.readRSSI()
        pass(1)
        XCTAssertEqual(seen.texts.count, 5)
        for text in seen.texts {
            XCTAssertTrue(text.contains("can only accept commands while in the connected state"), text)
        }
    }

    func testAttributesOfAnotherPeripheralAreMisuse() {
        let (_, location) = discover(Self.location)
        var other = Self.virtual(2)
        other.name = "Strap 2"
        let second = find(other)
        central.connect(second)
        expect("connected Strap 2")
        seen.clear()
        second.readValue(for: location)
        XCTAssertEqual(seen.texts.count, 1)
        XCTAssertTrue(seen.texts[0].contains("is not an attribute of"), seen.texts[0])
    }

    func testADelegateThatIsReleasedIsNotCalled() {
        let (peripheral, location) = discover(Self.location)
        peripheral.readValue(for: location)
        peripheral.delegate = nil
        pass(1)
        XCTAssertEqual(seen.texts, [])
        XCTAssertEqual(location.value, Data([1]))
    }
}
