import BlueZSimulator
import BlueCapFutures
import TestBasics
import XCTest

@testable import BlueCapKit

/// Two and three centrals at one characteristic, with the versions of BlueZ that send over sockets in different ways.
final class SeveralSubscribersTests: PeripheralStage {
    private static let versions: [BlueZVersion] = [.v5_66, .v5_72, .v5_82, .v5_87]
    /// Those that can send to one central.
    private static let directing: [BlueZVersion] = [.v5_82, .v5_87]

    /// A central that leaves has several subscriptions: their ends are reported in one order in each run.
    func testTheEndsOfSubscriptionsAreReportedInTheOrderOfTheCharacteristics() throws {
        for bluez in Self.versions {
            simulator = Simulator.inProcess(room: .empty, bluez: bluez)
            let service = MutableService(uuid: "AA00")
            service.characteristics = (0..<8).map {
                MutableCharacteristic(
                    uuid: "AA1\($0)", properties: [.notify], permissions: [.readable], value: Data([0]))
            }
            try serve(service)
            let link = phone()
            let ended = Locked<[String]>([])
            for characteristic in service.characteristics {
                let uuid = characteristic.uuid.uuidString
                _ = result(of: link.subscribe(to: .uuid(uuid)))
                characteristic.whenSubscribersChange().onSuccess(context: ImmediateContext()) { subscribers in
                    if subscribers.isEmpty { ended.withLock { $0.append(uuid) } }
                }
            }
            simulator.advance(by: 1)
            ended.withLock { $0 = [] }
            link.disconnect()
            wait { ended.withLock { $0.count } == 8 }
            XCTAssertEqual(ended.withLock { $0 }, service.characteristics.map(\.uuid.uuidString), "\(bluez)")
        }
    }

    private func served(
        _ bluez: BlueZVersion, _ properties: CBCharacteristicProperties = [.read, .notify]
    ) throws -> MutableCharacteristic {
        simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let service = try serve(Self.heart(properties))
        return service.characteristics[0]
    }

    private func subscribed(_ number: Int, isBonded: Bool = false, indications: Bool = false) throws -> CentralLink {
        let link = simulator.connect(
            VirtualCentral(VirtualAddress("C0:FF:EE:00:CE:0\(number)") ?? "C0:FF:EE:00:CE:00", isBonded: isBonded))
        wait { link.state == .connected }
        _ = result(of: link.subscribe(to: "2A37", indications: indications))
        return link
    }

    private func bytes(_ number: Int) -> [UInt8] { [UInt8(number & 0xFF), UInt8(number >> 8)] }

    private func update(_ characteristic: MutableCharacteristic, _ numbers: Range<Int>) throws {
        for number in numbers { try characteristic.update(withData: Data(bytes(number))) }
    }

    private func expect(
        _ phone: CentralLink, _ expected: [[UInt8]], _ note: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        _ = simulator.advance(until: { phone.values.count >= expected.count }, limit: 60)
        simulator.advance(by: 1)
        let values = phone.values.map(\.bytes)
        let place =
            zip(values, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? min(values.count, expected.count)
        XCTAssertTrue(
            values == expected, "\(note): \(values.count) values of \(expected.count), other from \(place) on",
            file: file, line: line)
    }

    private func central(_ phone: CentralLink, of characteristic: MutableCharacteristic) throws -> Central {
        try XCTUnwrap(
            characteristic.subscribers.first {
                $0.address?.description == phone.central.address.description
            })
    }

    private func refusal(_ body: () throws -> Void) -> DirectedUpdateError? {
        do {
            try body()
            return nil
        } catch MutableCharacteristicError.directedUpdateRefused(let refusal) {
            return refusal
        } catch {
            XCTFail("\(error)")
            return nil
        }
    }

    // MARK: All versions

    func testEachSubscriberReceivesEachValueOnceInOrder() throws {
        for bluez in Self.versions {
            for count in 2...3 {
                let characteristic = try served(bluez)
                let phones = try (1...count).map { try subscribed($0) }
                try update(characteristic, 0..<500)
                for phone in phones { expect(phone, (0..<500).map(bytes), "\(bluez), \(count) subscribers") }
                XCTAssertEqual(characteristic.pendingUpdates, [])
                XCTAssertEqual(characteristic.droppedUpdates, 0)
            }
        }
    }

    /// From 5.69 on, BlueZ closes the socket of the oldest subscriber as well when one leaves (bluez#1452).
    func testThoseThatStayReceiveEachValueOnceWhenOneLeaves() throws {
        for bluez in Self.versions {
            for leaving in 0..<3 {
                let note = "\(bluez), number \(leaving) leaves"
                let characteristic = try served(bluez)
                let phones = try (1...3).map { try subscribed($0) }
                try update(characteristic, 0..<200)
                phones[leaving].disconnect()
                try update(characteristic, 200..<300)
                simulator.advance(by: 3)
                try update(characteristic, 300..<400)
                for (number, phone) in phones.enumerated() where number != leaving {
                    expect(phone, (0..<400).map(bytes), note)
                }
                XCTAssertTrue(characteristic.isUpdating, note)
                if bluez >= BlueZVersion(5, 69) { XCTAssertEqual(characteristic.subscribers.count, 2, note) }
                for phone in phones { phone.disconnect() }
                wait { !characteristic.hasSubscribers }
            }
        }
    }

    func testIndicationsAreTakenWhenAllHaveConfirmedThem() throws {
        for bluez in Self.versions {
            let characteristic = try served(bluez, [.read, .indicate])
            let phones = try (1...2).map { try subscribed($0, indications: true) }
            try update(characteristic, 0..<20)
            let sent = characteristic.whenUpdatesSent()
            try value(of: sent)
            for phone in phones { expect(phone, (0..<20).map(bytes), "\(bluez)") }
            XCTAssertTrue(phones.allSatisfy { $0.values.allSatisfy(\.isIndication) })
        }
    }

    /// From 5.69 on BlueZ keeps the subscription of a bonded central, and fetches no socket when it returns.
    func testABondedCentralThatReturnsReceivesWhatWaits() throws {
        for bluez in Self.versions where bluez >= BlueZVersion(5, 69) {
            let characteristic = try served(bluez)
            let phone = try subscribed(1, isBonded: true)
            try update(characteristic, 0..<5)
            expect(phone, (0..<5).map(bytes), "\(bluez)")
            phone.disconnect()
            wait { !characteristic.hasSubscribers }
            try update(characteristic, 5..<10)
            XCTAssertEqual(characteristic.pendingUpdates.count, 5)
            let again = simulator.connect(phone.central)
            wait { again.state == .connected }
            expect(again, (5..<10).map(bytes), "\(bluez)")
            let central = try central(again, of: characteristic)
            if Self.directing.contains(bluez) {
                XCTAssertEqual(refusal { try characteristic.update(UInt8(1), for: central) }, .noSocket)
            }
        }
    }

    // MARK: One central

    func testUpdatesForOneCentralNeedBlueZ576() throws {
        for bluez in Self.versions where !Self.directing.contains(bluez) {
            let characteristic = try served(bluez)
            let phones = try (1...2).map { try subscribed($0) }
            let first = try XCTUnwrap(characteristic.subscribers.first)
            XCTAssertEqual(refusal { try characteristic.update(withData: Data([1]), for: first) }, .notSupported)
            simulator.advance(by: 1)
            XCTAssertEqual(phones.flatMap(\.values), [])
            XCTAssertEqual(characteristic.value, Data([0, 60]))
            XCTAssertTrue("\(MutableCharacteristicError.directedUpdateRefused(.notSupported))".contains("5.76"))
        }
    }

    func testUpdatesForOneCentralReachNoOther() throws {
        for bluez in Self.directing {
            let characteristic = try served(bluez)
            let phones = try (1...3).map { try subscribed($0) }
            let centrals = try phones.map { try central($0, of: characteristic) }
            try characteristic.update(withData: Data([1]), for: centrals[1])
            try characteristic.update(UInt8(2), for: centrals[2])
            try characteristic.update(withData: Data([3]), for: [centrals[0], centrals[2]])
            try characteristic.update(withData: Data([4]))
            expect(phones[0], [[3], [4]], "\(bluez)")
            expect(phones[1], [[1], [4]], "\(bluez)")
            expect(phones[2], [[2], [3], [4]], "\(bluez)")
            XCTAssertEqual(characteristic.value, Data([4]))
        }
    }

    func testEachCentralReceivesWhatIsForAllAndWhatIsForItInOrder() throws {
        var random = TestRandom(self)
        for bluez in Self.directing {
            let characteristic = try served(bluez)
            let phones = try (1...3).map { try subscribed($0) }
            let centrals = try phones.map { try central($0, of: characteristic) }
            var expected: [[[UInt8]]] = [[], [], []]
            for number in 0..<600 {
                let value = bytes(number)
                // Runs of both kinds, and changes between them.
                if Int.random(in: 0..<4, using: &random) > 0 {
                    try characteristic.update(withData: Data(value))
                    for index in expected.indices { expected[index].append(value) }
                } else {
                    let index = Int.random(in: 0..<3, using: &random)
                    try characteristic.update(withData: Data(value), for: centrals[index])
                    expected[index].append(value)
                }
                if Int.random(in: 0..<50, using: &random) == 0 { simulator.advance(by: 0.01) }
            }
            for (index, phone) in phones.enumerated() { expect(phone, expected[index], "\(bluez)") }
            XCTAssertEqual(characteristic.droppedUpdates, 0)
        }
    }

    func testIndicationsForOneCentralAreTaken() throws {
        for bluez in [BlueZVersion(5, 78)] + Self.directing {
            let characteristic = try served(bluez, [.read, .indicate])
            let phones = try (1...2).map { try subscribed($0, indications: true) }
            let first = try central(phones[0], of: characteristic)
            for number in 0..<10 {
                try characteristic.update(withData: Data(bytes(2 * number)), for: first)
                try characteristic.update(withData: Data(bytes(2 * number + 1)))
            }
            try value(of: characteristic.whenUpdatesSent())
            expect(phones[0], (0..<20).map(bytes), "\(bluez)")
            expect(phones[1], (0..<10).map { bytes(2 * $0 + 1) }, "\(bluez)")
        }
    }

    func testACentralWithoutASocketReceivesUpdatesForAllAlone() throws {
        for bluez in Self.directing {
            let characteristic = try served(bluez)
            let phones = try (1...2).map { try subscribed($0) }
            let (first, second) = (
                try central(phones[0], of: characteristic), try central(phones[1], of: characteristic)
            )
            phones[1].disconnect()
            wait { characteristic.subscribers.count == 1 }
            XCTAssertEqual(characteristic.subscribers.first?.identifier, first.identifier)
            XCTAssertEqual(refusal { try characteristic.update(UInt8(1), for: first) }, .noSocket)
            XCTAssertEqual(refusal { try characteristic.update(UInt8(1), for: second) }, .notSubscribed)
            XCTAssertEqual(refusal { try characteristic.update(withData: Data([1]), for: []) }, .notSubscribed)
            try characteristic.update(UInt8(2))
            expect(phones[0], [[2]], "\(bluez)")
            _ = result(of: phones[0].unsubscribe(from: "2A37"))
            _ = result(of: phones[0].subscribe(to: "2A37"))
            XCTAssertNil(refusal { try characteristic.update(UInt8(3), for: first) })
            XCTAssertEqual(refusal { try characteristic.update(withData: Data(), for: first) }, .emptyValue)
            expect(phones[0], [[2], [3]], "\(bluez)")
        }
    }

    func testAnUpdateForACentralThatLeavesIsDroppedAndCounted() throws {
        for bluez in Self.directing {
            let characteristic = try served(bluez)
            let phones = try (1...2).map { try subscribed($0) }
            let second = try central(phones[1], of: characteristic)
            phones[1].disconnect()
            try characteristic.update(UInt8(1))
            try characteristic.update(UInt8(2), for: second)
            try characteristic.update(UInt8(3))
            expect(phones[0], [[1], [3]], "\(bluez)")
            XCTAssertEqual(characteristic.droppedUpdates, 1)
            XCTAssertEqual(characteristic.pendingUpdates, [])
        }
    }
}
