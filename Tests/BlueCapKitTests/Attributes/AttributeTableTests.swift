import BlueCapBlueZ
import BlueCapGATT
import XCTest

@testable import BlueCapKit

final class AttributeTableTests: XCTestCase {
    private var table = AttributeTable()

    private func service(_ handle: UInt16, _ uuid: UInt32, includes: [UInt16] = []) -> AttributeDeclaration {
        AttributeDeclaration(
            handle: AttributeHandle(handle), kind: .service, uuid: CBUUID(uuid), isPrimary: true,
            includes: includes.map { AttributeHandle($0) })
    }

    private func characteristic(
        _ handle: UInt16, _ uuid: UInt32, of service: UInt16, _ properties: CBCharacteristicProperties = .read
    ) -> AttributeDeclaration {
        AttributeDeclaration(
            handle: AttributeHandle(handle), kind: .characteristic, uuid: CBUUID(uuid),
            parent: AttributeHandle(service), properties: properties)
    }

    private func descriptor(_ handle: UInt16, _ uuid: UInt32, of characteristic: UInt16) -> AttributeDeclaration {
        AttributeDeclaration(
            handle: AttributeHandle(handle), kind: .descriptor, uuid: CBUUID(uuid),
            parent: AttributeHandle(characteristic))
    }

    private func id(_ handle: UInt16) -> AttributeID {
        table.id(at: AttributeHandle(handle)) ?? AttributeID(rawValue: -1)
    }

    private func handle(_ id: AttributeID) -> UInt16? { table[id]?.handle.attHandle }

    private func readSample() {
        _ = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), descriptor(0x13, 0x2902, of: 0x11),
            characteristic(0x14, 0x2A38, of: 0x10), service(0x20, 0x180F, includes: [0x10]),
            characteristic(0x21, 0x2A19, of: 0x20),
        ])
    }

    // MARK: Discovery

    func testNothingIsShownBeforeItWasAskedFor() {
        readSample()
        XCTAssertEqual(table.services, [])
        table.discover(table.allServices, [CBUUID(0x180D)])
        XCTAssertEqual(table.services, [id(0x10)])
        XCTAssertEqual(table.characteristics(of: id(0x10)), [])
        table.discover([id(0x11), id(0x14)], [CBUUID(0x2A38), CBUUID(0x2AFF)])
        XCTAssertEqual(table.characteristics(of: id(0x10)), [id(0x14)])
        table.discover([id(0x11), id(0x14)])
        XCTAssertEqual(table.characteristics(of: id(0x10)), [id(0x11), id(0x14)])
        XCTAssertEqual(table.descriptors(of: id(0x11)), [id(0x13)])
    }

    func testANewConnectionShowsNothingYet() {
        readSample()
        table.discover(table.allServices)
        table.forgetDiscovered()
        XCTAssertEqual(table.services, [])
    }

    func testServicesIncludeOthers() {
        readSample()
        XCTAssertEqual(table.includedServices(of: id(0x20)), [id(0x10)])
    }

    func testTwoCharacteristicsWithTheSameUUIDAreTwo() {
        _ = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), characteristic(0x13, 0x2A37, of: 0x10),
        ])
        table.discover([id(0x11), id(0x13)], [CBUUID(0x2A37)])
        XCTAssertEqual(table.characteristics(of: id(0x10)), [id(0x11), id(0x13)])
        XCTAssertNotEqual(id(0x11), id(0x13))
    }

    // MARK: Whole or not

    func testATableIsWholeWhenEachNamedServiceHasACharacteristic() {
        XCTAssertFalse(table.isWhole(naming: []), "An empty table is never whole.")
        readSample()
        XCTAssertTrue(table.isWhole(naming: [CBUUID(0x180D), CBUUID(0x180F)]))
        XCTAssertFalse(table.isWhole(naming: [CBUUID(0x180D), CBUUID(0x181A)]))
        XCTAssertTrue(table.isWhole(naming: [CBUUID(0x1800), CBUUID(0x1812), CBUUID(0x110B)]), "never exported")
        _ = table.read([service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), service(0x20, 0x180F)])
        XCTAssertFalse(table.isWhole(naming: []))
    }

    // MARK: Which is which

    func testTheSameTableKeepsAllIds() {
        readSample()
        let before = [0x10, 0x11, 0x13, 0x14, 0x20, 0x21].map { id($0) }
        let difference = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), descriptor(0x13, 0x2902, of: 0x11),
            characteristic(0x14, 0x2A38, of: 0x10), service(0x20, 0x180F, includes: [0x10]),
            characteristic(0x21, 0x2A19, of: 0x20),
        ])
        XCTAssertFalse(difference.isChanged)
        XCTAssertEqual([0x10, 0x11, 0x13, 0x14, 0x20, 0x21].map { id($0) }, before)
    }

    func testAMovedTableIsFoundAgainByItsUUIDs() {
        readSample()
        let (service, measurement, configuration) = (id(0x10), id(0x11), id(0x13))
        let difference = table.read([
            self.service(0x30, 0x180D), characteristic(0x31, 0x2A37, of: 0x30), descriptor(0x33, 0x2902, of: 0x31),
        ])
        XCTAssertEqual([service, measurement, configuration].map { handle($0) }, [0x30, 0x31, 0x33])
        XCTAssertTrue(difference.isChanged)
        XCTAssertEqual(difference.invalidated.count, 3)
    }

    func testShiftedHandlesDoNotMixAttributesUp() {
        readSample()
        let (measurement, location) = (id(0x11), id(0x14))
        // What was at 0x14 is at 0x17 now, and another one has taken its place.
        _ = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A39, of: 0x10), characteristic(0x14, 0x2A37, of: 0x10),
            characteristic(0x17, 0x2A38, of: 0x10),
        ])
        XCTAssertEqual(handle(measurement), 0x14)
        XCTAssertEqual(handle(location), 0x17)
    }

    func testOfSeveralWithOneUUIDThoseThatMovedAreInvalid() {
        _ = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), characteristic(0x13, 0x2A37, of: 0x10),
        ])
        let (first, second) = (id(0x11), id(0x13))
        let difference = table.read([
            service(0x10, 0x180D), characteristic(0x11, 0x2A37, of: 0x10), characteristic(0x15, 0x2A37, of: 0x10),
        ])
        XCTAssertEqual(difference.invalidated, [second])
        XCTAssertNotEqual(id(0x15), second)
        XCTAssertEqual(id(0x11), first)
        XCTAssertEqual(table[second]?.isPresent, false)
    }

    func testWhatComesBackIsTheSameAgain() {
        readSample()
        let level = id(0x21)
        XCTAssertEqual(table.read([service(0x10, 0x180D)]).invalidated.contains(level), true)
        XCTAssertEqual(table[level]?.isPresent, false)
        let difference = table.read([service(0x20, 0x180F), characteristic(0x21, 0x2A19, of: 0x20)])
        XCTAssertEqual(id(0x21), level)
        XCTAssertTrue(difference.isChanged)
    }

    func testARemovedObjectIsAbsentUntilTheTableIsRead() {
        readSample()
        let level = id(0x21)
        XCTAssertEqual(table.removed(at: AttributeHandle(0x21)), level)
        XCTAssertNil(table.removed(at: AttributeHandle(0x21)))
        XCTAssertEqual(table[level]?.isPresent, false)
        readSample()
        XCTAssertEqual(table[level]?.isPresent, true)
    }

    func testTwoTablesInTurnDoNotGrow() {
        for round in 0..<100 {
            let base = UInt16(round % 2 * 0x100)
            _ = table.read([service(base + 1, 0x180D), characteristic(base + 2, 0x2A37, of: base + 1)])
        }
        XCTAssertNil(table[AttributeID(rawValue: 2)])
    }
}
