import BlueCapKit
import Foundation
import XCTest

/// Services, reads and writes.
extension CentralBodies {
    public func allServicesOfSeveralApplicationsAreFound() throws {
        let (manager, peripheral) = try explored()
        for service in StagePeripheral.kitchen.services {
            let found = try XCTUnwrap(peripheral.services(withUUID: CBUUID(string: service.uuid)), service.uuid)
            XCTAssertEqual(found.count, 1)
            let characteristics = found[0].characteristics
            XCTAssertEqual(characteristics.map(\.uuid), service.characteristics.map { CBUUID(string: $0.uuid) })
            XCTAssertEqual(characteristics.map(\.properties), service.characteristics.map(\.properties))
        }
        end(manager)
    }

    public func servicesGoAndComeWhileConnected() throws {
        let (manager, peripheral) = try explored()
        let uuid = CBUUID(string: StagePeripheral.kitchen.applications[2][0].uuid)
        let gone = try characteristic("left", of: peripheral)
        journal.watchServices(of: peripheral)
        try stage.unregister(application: 2)
        expect("the loss") { $0.serviceChanges > 0 && !gone.isValid }
        XCTAssertNil(peripheral.service(uuid))
        let lost: Future<Characteristic> = gone.read()
        XCTAssertThrowsError(try outcome(of: lost)) { XCTAssertEqual($0 as? CharacteristicError, .invalidated) }

        let before = journal.read(\.serviceChanges)
        try stage.register(application: 2)
        expect("the return") { $0.serviceChanges > before }
        try discoverAll(of: peripheral)
        let read: Future<Characteristic> = try characteristic("left", of: peripheral).read()
        XCTAssertEqual(try outcome(of: read).dataValue, Data([1]))
        end(manager)
    }

    public func readsWhatThereIs() throws {
        let (manager, peripheral) = try explored()
        let short = try characteristic("short", of: peripheral)
        let read: Future<Characteristic> = short.read()
        XCTAssertEqual(try outcome(of: read).dataValue, Data([1, 2]))
        try stage.setValue([3, 4], of: "short")
        let again: Future<Characteristic> = short.read()
        XCTAssertEqual(try outcome(of: again).dataValue, Data([3, 4]))
        let label = try XCTUnwrap(short.descriptor(CBUUID(string: "2901")))
        let text: Future<Descriptor> = label.read()
        XCTAssertEqual(try outcome(of: text).dataValue, Data("Hello".utf8))
        end(manager)
    }

    public func readsAValueThatIsLongerThanAPacket() throws {
        let (manager, peripheral) = try explored()
        let read: Future<Characteristic> = try characteristic("long", of: peripheral).read()
        XCTAssertEqual(try outcome(of: read).dataValue, Data(StagePeripheral.longValue))
        end(manager)
    }

    public func writesWithAndWithoutResponse() throws {
        let (manager, peripheral) = try explored()
        let write: Future<Characteristic> = try characteristic("request", of: peripheral).write(data: Data([9, 8]))
        try outcome(of: write)
        XCTAssertEqual(try stage.value(of: "request"), [9, 8])

        let command = try characteristic("command", of: peripheral)
        let sent: Future<Characteristic> = command.write(data: Data([7, 6, 5]), type: .withoutResponse)
        try outcome(of: sent)
        // The command has only been queued; a request on the same link is sent after it.
        let read: Future<Characteristic> = command.read()
        XCTAssertEqual(try outcome(of: read).dataValue, Data([7, 6, 5]))
        XCTAssertEqual(try stage.value(of: "command"), [7, 6, 5])
        end(manager)
    }

    public func writesAValueThatIsLongerThanAPacket() throws {
        let (manager, peripheral) = try explored()
        let value = StagePeripheral.longValue.reversed() as [UInt8]
        let write: Future<Characteristic> = try characteristic("request", of: peripheral).write(data: Data(value))
        try outcome(of: write)
        XCTAssertEqual(try stage.value(of: "request"), value)
        end(manager)
    }

    public func manyWritesAtOnceArriveInOrder() throws {
        let (manager, peripheral) = try explored()
        let target = try characteristic("request", of: peripheral)
        let writes: [Future<Characteristic>] = (1...20).map { target.write(data: Data([UInt8($0)])) }
        for write in writes { try outcome(of: write) }
        XCTAssertEqual(try stage.value(of: "request"), [20])
        end(manager)
    }

    public func whatTheApplicationRefusesFailsWithItsCode() throws {
        let (manager, peripheral) = try explored()
        try stage.refuse(.read, of: "request", code: 0x81)
        try stage.refuse(.write, of: "request", code: 0x82)
        let target = try characteristic("request", of: peripheral)
        let read: Future<Characteristic> = target.read()
        XCTAssertThrowsError(try outcome(of: read)) { error in
            guard case CharacteristicError.readFailed(let failure) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failure.name, "org.bluez.Error.Failed")
            XCTAssertEqual(failure.message, "Operation failed with ATT error: 0x81")
        }
        let write: Future<Characteristic> = target.write(data: Data([1]))
        XCTAssertThrowsError(try outcome(of: write)) { error in
            guard case CharacteristicError.writeFailed(let failure) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failure.message, "Operation failed with ATT error: 0x82")
        }
        end(manager)
    }

    public func scriptsHaveThePeripheralToThemselvesAndLeaveNoLinkBehind() throws {
        let (manager, peripheral) = try connected()
        peripheral.disconnect()
        expect("the end") { $0.connectionEvents == [.connect, .forceDisconnect] }
        let service = ServiceIdentifier(uuid: StagePeripheral.kitchen.services[0].uuid)
        let short = CharacteristicIdentifier(uuid: "B0000101-0000-4000-8000-00805F9B34FB", service: service)
        let request = CharacteristicIdentifier(uuid: "B0000103-0000-4000-8000-00805F9B34FB", service: service)
        let scripts = (UInt8(0)..<3).map { number -> Future<Data> in
            peripheral.run(timeout: limit) { connected in
                for part in UInt8(1)...5 { try await connected.write(Data([number, part]), to: request) }
                let written: Data = try await connected.read(request)
                return try await written + connected.read(short)
            }
        }
        for (number, script) in scripts.enumerated() {
            XCTAssertEqual(try outcome(of: script), Data([UInt8(number), 5, 1, 2]))
        }
        expect("the end of the scripts' link") {
            $0.connectionEvents == [.connect, .forceDisconnect, .connect, .forceDisconnect]
        }
        end(manager)
    }

    public func twoCharacteristicsOfOneUUIDAreTwo() throws {
        let (manager, peripheral) = try explored()
        let left = try characteristic("left", of: peripheral)
        let right = try characteristic("right", of: peripheral)
        XCTAssertNotEqual(left, right)
        let write: Future<Characteristic> = right.write(data: Data([22]))
        try outcome(of: write)
        let reads: [Future<Characteristic>] = [left.read(), right.read()]
        XCTAssertEqual(try reads.map { try outcome(of: $0).dataValue }, [Data([1]), Data([22])])
        end(manager)
    }
}
