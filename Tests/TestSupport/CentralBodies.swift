import BlueCapKit
public import Foundation
import XCTest

/// The tests of the central role, once; each target has a class that plays them on its own stage.
///
/// All of them use the peripheral ``StagePeripheral/kitchen``.
public struct CentralBodies: StagePlayer {
    let stage: any CentralStage
    public let journal = Journal()
    public let limit: TimeInterval = 60
    public var ground: any ScanStage { stage }

    public init(on stage: any CentralStage) { self.stage = stage }

    // MARK: Steps

    /// A manager, and the peripheral as it was found.
    func found() throws -> (manager: CentralManager, peripheral: Peripheral) {
        try stage.serve(.kitchen)
        let manager = try CentralManager(configuration: stage.centralConfiguration)
        journal.watchStates(of: manager)
        expect("power") { $0.states.contains(.poweredOn) }
        journal.watch(manager.startScanning())
        expect("the peripheral") { !$0.sightings(named: "Kitchen").isEmpty }
        manager.stopScanning()
        try outcome(of: manager.whenScanningStopped())
        return (manager, try XCTUnwrap(journal.read { $0.sightings(named: "Kitchen").first }))
    }

    func connected() throws -> (manager: CentralManager, peripheral: Peripheral) {
        let (manager, peripheral) = try found()
        journal.watch(peripheral.connect())
        expect("the link") { $0.connectionEvents == [.connect] }
        return (manager, peripheral)
    }

    func discoverAll(of peripheral: Peripheral) throws {
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        try outcome(of: services)
        for service in peripheral.services {
            let characteristics: Future<Service> = service.discoverAllCharacteristics()
            try outcome(of: characteristics)
        }
    }

    /// Connected, and everything discovered.
    func explored() throws -> (manager: CentralManager, peripheral: Peripheral) {
        let (manager, peripheral) = try connected()
        try discoverAll(of: peripheral)
        return (manager, peripheral)
    }

    /// The characteristic that the stage knows by that key.
    func characteristic(
        _ key: String, of peripheral: Peripheral, file: StaticString = #filePath, line: UInt = #line
    ) throws -> Characteristic {
        for service in StagePeripheral.kitchen.services {
            guard let wanted = service.characteristics.first(where: { $0.key == key }) else { continue }
            let place = service.characteristics.filter { $0.uuid == wanted.uuid }.firstIndex { $0.key == key }
            let found = peripheral.service(CBUUID(string: service.uuid))?
                .characteristics(withUUID: CBUUID(string: wanted.uuid))
            return try XCTUnwrap(found?[place ?? 0], file: file, line: line)
        }
        return try XCTUnwrap(nil, "There is no characteristic \(key) in the description.", file: file, line: line)
    }

    func read(_ characteristic: Characteristic) throws -> Data? {
        try outcome(of: characteristic.read() as Future<Characteristic>).dataValue
    }

    func write(
        _ bytes: [UInt8], to characteristic: Characteristic, type: CBCharacteristicWriteType = .withResponse
    ) throws {
        try outcome(of: characteristic.write(data: Data(bytes), type: type) as Future<Characteristic>)
    }

    /// Ends the links, so that the next test begins without any.
    func end(_ manager: CentralManager) {
        manager.disconnectAllPeripherals()
        expect("the end of the link") { $0.connectionEvents.last == .forceDisconnect }
        XCTAssertEqual(journal.read { $0.failures.count }, 0, "\(journal.read(\.failures))")
    }

    // MARK: Links

    public func aPeripheralThatEndsTheLinkIsConnectedAgain() throws {
        let (manager, peripheral) = try connected()
        XCTAssertEqual(peripheral.state, .connected)
        try stage.drop()
        expect("the end") { $0.connectionEvents == [.connect, .disconnect] }
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(peripheral.disconnectReason, .linkLost)
        peripheral.reconnect()
        expect("the second link") { $0.connectionEvents == [.connect, .disconnect, .connect] }
        XCTAssertEqual(peripheral.connectionCount, 2)
        end(manager)
    }

    public func aLinkThatIsAskedForWhileTheLastOneEndsStays() throws {
        let (manager, peripheral) = try explored()
        peripheral.disconnect()
        journal.watch(peripheral.connect())
        expect("the second link") { $0.connectionEvents.last == .connect && $0.connectionEvents.count > 1 }
        try discoverAll(of: peripheral)
        XCTAssertEqual(try read(characteristic("short", of: peripheral)), Data([1, 2]))
        XCTAssertEqual(peripheral.state, .connected)
        end(manager)
    }

    public func aPeripheralThatIsNotThereTimesOutAndIsConnectedWhenItIsBack() throws {
        let (manager, peripheral) = try found()
        try stage.silence()
        journal.watch(peripheral.connect(connectionTimeout: 3))
        expect("the time-out") { $0.connectionEvents == [.timeout] }
        XCTAssertEqual(peripheral.timeoutCount, 1)
        try stage.serve(.kitchen)
        peripheral.reconnect()
        expect("the link") { $0.connectionEvents.last == .connect }
        XCTAssertEqual(peripheral.state, .connected)
        end(manager)
    }

    public func anAttemptThatIsCancelledLeavesNothingBehind() throws {
        let (manager, peripheral) = try found()
        try stage.silence()
        journal.watch(peripheral.connect(connectionTimeout: 30))
        XCTAssertEqual(peripheral.state, .connecting)
        peripheral.disconnect()
        expect("the end of the attempt") { $0.connectionEvents == [.forceDisconnect] }
        XCTAssertEqual(peripheral.state, .disconnected)
        try stage.serve(.kitchen)
        peripheral.reconnect()
        expect("the link") { $0.connectionEvents == [.forceDisconnect, .connect] }
        end(manager)
    }

    public func theDaemonsRestartEndsALinkThatComesBack() throws {
        let (manager, peripheral) = try explored()
        try stage.restartDaemon()
        expect("the end") { $0.connectionEvents == [.connect, .disconnect] }
        try stage.serve(.kitchen)
        peripheral.reconnect()
        // That link may have ended since.
        expect("the link") { $0.connectionEvents.starts(with: [.connect, .disconnect, .connect]) }
        XCTAssertEqual(journal.states, [.poweredOn, .resetting, .poweredOn])
        do {
            try discoverAll(of: peripheral)
        } catch PeripheralError.disconnected where stage.mayEndFirstLink {
            expect("the end of the first link") { $0.connectionEvents.last == .disconnect }
            peripheral.reconnect()
            expect("the second link") { $0.connectionEvents.last == .connect }
            try discoverAll(of: peripheral)
        }
        XCTAssertEqual(try read(characteristic("short", of: peripheral)), Data([1, 2]))
        end(manager)
    }
}
