import BlueCapKit
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
        XCTAssertThrowsError(try read(gone)) { XCTAssertEqual($0 as? CharacteristicError, .invalidated) }

        let before = journal.read(\.serviceChanges)
        try stage.register(application: 2)
        expect("the return") { $0.serviceChanges > before }
        try discoverAll(of: peripheral)
        XCTAssertEqual(try read(characteristic("left", of: peripheral)), Data([1]))
        end(manager)
    }

    public func readsWhatThereIs() throws {
        let (manager, peripheral) = try explored()
        let short = try characteristic("short", of: peripheral)
        XCTAssertEqual(try read(short), Data([1, 2]))
        try stage.setValue([3, 4], of: "short")
        XCTAssertEqual(try read(short), Data([3, 4]))
        let label = try XCTUnwrap(short.descriptor(CBUUID(string: "2901")))
        let text: Future<Descriptor> = label.read()
        XCTAssertEqual(try outcome(of: text).dataValue, Data("Hello".utf8))
        end(manager)
    }

    public func readsAValueThatIsLongerThanAPacket() throws {
        let (manager, peripheral) = try explored()
        XCTAssertEqual(try read(characteristic("long", of: peripheral)), Data(StagePeripheral.longValue))
        end(manager)
    }

    public func writesWithAndWithoutResponse() throws {
        let (manager, peripheral) = try explored()
        try write([9, 8], to: characteristic("request", of: peripheral))
        XCTAssertEqual(try stage.value(of: "request"), [9, 8])

        let command = try characteristic("command", of: peripheral)
        try write([7, 6, 5], to: command, type: .withoutResponse)
        // The command has only been queued; a request on the same link is sent after it.
        XCTAssertEqual(try read(command), Data([7, 6, 5]))
        XCTAssertEqual(try stage.value(of: "command"), [7, 6, 5])
        end(manager)
    }

    public func writesAValueThatIsLongerThanAPacket() throws {
        let (manager, peripheral) = try explored()
        let value = StagePeripheral.longValue.reversed() as [UInt8]
        try write(value, to: characteristic("request", of: peripheral))
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
        XCTAssertThrowsError(try read(target)) { error in
            guard case CharacteristicError.readFailed(let failure) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failure.name, "org.bluez.Error.Failed")
            XCTAssertEqual(failure.message, "Operation failed with ATT error: 0x81")
        }
        XCTAssertThrowsError(try write([1], to: target)) { error in
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

    /// The task, and the script of its run, are executed by the thread of the bus.
    public func aScriptStaysOnTheManagersExecutor() throws {
        let (manager, peripheral) = try connected()
        let service = ServiceIdentifier(uuid: StagePeripheral.kitchen.services[0].uuid)
        let request = CharacteristicIdentifier(uuid: "B0000103-0000-4000-8000-00805F9B34FB", service: service)
        let recorder = Recorder(manager.executor)
        let read = Future<([Data], count: Int)>()
        Task(executorPreference: manager.executor) {
            do {
                read.success(
                    try await peripheral.run(timeout: .seconds(60)) { connected in
                        var values: [Data] = []
                        for number in UInt8(1)...20 {
                            try await connected.write(Data([number]), to: request)
                            values.append(try await connected.read(request))
                            await recorder.record()
                        }
                        return (values, await recorder.count)
                    })
            } catch {
                read.failure(error)
            }
        }
        let (values, count) = try outcome(of: read)
        XCTAssertEqual(values, (UInt8(1)...20).map { Data([$0]) })
        XCTAssertEqual(count, 20)
        end(manager)
    }

    public func twoCharacteristicsOfOneUUIDAreTwo() throws {
        let (manager, peripheral) = try explored()
        let left = try characteristic("left", of: peripheral)
        let right = try characteristic("right", of: peripheral)
        XCTAssertNotEqual(left, right)
        try write([22], to: right)
        let reads: [Future<Characteristic>] = [left.read(), right.read()]
        XCTAssertEqual(try reads.map { try outcome(of: $0).dataValue }, [Data([1]), Data([22])])
        end(manager)
    }
}

/// An actor on the executor of a manager.
private actor Recorder {
    private let executor: any TaskExecutor & SerialExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private(set) var count = 0

    init(_ executor: any TaskExecutor & SerialExecutor) { self.executor = executor }

    func record() {
        preconditionIsolated()
        count += 1
    }
}
