import BlueCapKit
public import Foundation
import XCTest

/// The tests of the peripheral role, once: our peripheral, an ``Oven``, and a central that is ours or a foreign one.
public struct PeripheralBodies: StagePlayer {
    let stage: any PeripheralStage
    let central: any StageCentral
    public let journal = Journal()
    public let limit: TimeInterval = 60
    public var ground: any ScanStage { stage }

    /// - Parameter central: `nil` for one of ours.
    public init(on stage: any PeripheralStage, central: (any StageCentral)? = nil) {
        self.stage = stage
        self.central = central ?? OwnCentral(on: stage)
    }

    // MARK: Steps

    /// Served and advertised.
    func served() throws -> Oven {
        let oven = Oven(stage.peripheralConfiguration)
        journal.watchStates(of: oven.manager)
        expect("power") { $0.states.contains(.poweredOn) }
        for service in oven.services { try outcome(of: oven.manager.add(service)) }
        try outcome(of: oven.manager.startAdvertising(Oven.name, uuids: [CBUUID(string: Oven.heat)]))
        return oven
    }

    /// With a central that has discovered it.
    func visited() throws -> Oven {
        let oven = try served()
        try visit()
        return oven
    }

    func visit() throws { try central.connect(to: Oven.name, advertising: Oven.heat) }

    /// The part of the table that belongs to the oven; BlueZ has services of its own.
    func table() throws -> [StageRow] {
        let services = Set(Oven.table.map(\.service))
        return try central.table().filter { services.contains($0.service) }
    }

    // MARK: Reading and writing

    public func allServicesAreFoundInTheirOrder() throws {
        let oven = try visited()
        XCTAssertEqual(try table(), Oven.table)
        XCTAssertEqual(oven.manager.services.count, 3)
        try central.disconnect()
    }

    public func readsAreAnsweredWithTheValue() throws {
        let oven = try visited()
        XCTAssertEqual(try central.read(Oven.uuid(0x11)), .value([1, 2]))
        XCTAssertEqual(try central.read(Oven.uuid(0x12)), .value(Oven.longValue), "in several packets")
        XCTAssertEqual(try central.readDescriptor("2901", of: Oven.uuid(0x11)), Array("Heat".utf8))
        oven.short.value = Data([3])
        XCTAssertEqual(try central.read(Oven.uuid(0x11)), .value([3]))
        try central.disconnect()
    }

    public func theApplicationAnswersReads() throws {
        let oven = try visited()
        let long = [UInt8](Oven.longValue.reversed())
        // Weak: the handler belongs to the oven, and would keep it.
        oven.long.startRespondingToReadRequests().onSuccess(context: ImmediateContext()) { [weak oven] request, _ in
            oven?.long.respondToRequest(request, withValue: Data(long))
        }
        XCTAssertEqual(try central.read(Oven.uuid(0x12)), .value(long))
        oven.short.startRespondingToReadRequests().onSuccess(context: ImmediateContext()) { [weak oven] request, _ in
            oven?.short.respondToRequest(request, withResult: .init(rawValue: 0x81) ?? .unlikelyError)
        }
        XCTAssertEqual(try central.read(Oven.uuid(0x11)), .refused(0x81))
        try central.disconnect()
    }

    public func writesArriveBothWays() throws {
        let oven = try visited()
        let journal = journal
        for characteristic in [oven.request, oven.command] {
            characteristic.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { request, _ in
                characteristic.value = request.value
                characteristic.respondToRequest(request, withResult: .success)
                journal.write { $0.values.append(request.value) }
            }
        }
        XCTAssertEqual(try central.write([9, 8], to: Oven.uuid(0x13), withResponse: true), .value([]))
        // The longest value that bluetoothd 5.66 passes to a program.
        let long = Array(Oven.longValue.prefix(510))
        XCTAssertEqual(try central.write(long, to: Oven.uuid(0x13), withResponse: true), .value([]))
        XCTAssertEqual(try central.read(Oven.uuid(0x13)), .value(long))
        for number in UInt8(0)..<8 { try central.write([number, 7], to: Oven.uuid(0x14), withResponse: false) }
        expect("all writes") { $0.values.count == 10 }
        let commands = (UInt8(0)..<8).map { Data([$0, 7]) }
        XCTAssertEqual(journal.values, [Data([9, 8]), Data(long)] + commands)
        try central.disconnect()
    }

    /// - Parameter mtu: The MTU of the stage's links, if it is known.
    public func longValuesTakeSeveralPackets(mtu: Int? = nil) throws {
        let oven = try visited()
        let journal = journal
        let reads = oven.long.startRespondingToReadRequests()
        reads.onSuccess(context: ImmediateContext()) { [weak oven] request, central in
            // Before the response: the central continues as soon as it has that.
            journal.write { $0.mtus.append(central.mtu) }
            oven?.long.respondToRequest(request, withValue: Data(Oven.longValue))
        }
        XCTAssertEqual(try central.read(Oven.uuid(0x12)), .value(Oven.longValue))
        let writes = oven.request.startRespondingToWriteRequests()
        writes.onSuccess(context: ImmediateContext()) { [weak oven] request, central in
            journal.write { $0.mtus.append(central.mtu) }
            oven?.request.value = request.value
            oven?.request.respondToRequest(request, withResult: .success)
        }
        let long = Array(Oven.longValue.prefix(300))
        XCTAssertEqual(try central.write(long, to: Oven.uuid(0x13), withResponse: true), .value([]))
        XCTAssertEqual(oven.request.value, Data(long))
        let mtus = journal.read(\.mtus)
        XCTAssertEqual(mtus.count, 2, "one request each, however many packets")
        if let mtu { XCTAssertEqual(mtus, [mtu, mtu]) }
        try central.disconnect()
    }

    public func writesAreRefused() throws {
        let oven = try visited()
        guard case .refused = try central.write([1], to: Oven.uuid(0x13), withResponse: true) else {
            return XCTFail("A write without a handler was not refused.")
        }
        oven.request.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { [weak oven] request, _ in
            oven?.request.respondToRequest(request, withResult: .init(rawValue: 0x82) ?? .unlikelyError)
        }
        XCTAssertEqual(try central.write([1], to: Oven.uuid(0x13), withResponse: true), .refused(0x82))
        XCTAssertEqual(oven.request.value, Data([0]))
        try central.disconnect()
    }
}
