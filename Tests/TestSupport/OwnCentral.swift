public import BlueCapKit
public import Foundation
import XCTest

/// Our central as one of those that a peripheral is tested with.
public final class OwnCentral: StageCentral, StagePlayer {
    public let ground: any ScanStage
    public private(set) var journal = Journal()
    public let limit: TimeInterval = 60
    private var manager: CentralManager?
    private var peripheral: Peripheral?
    private var notified: [String: Journal] = [:]
    private var configuration: CentralManager.Configuration
    private var user = StagePeer()
    private var pairing: Future<Peripheral>?

    /// - Parameter busAddress: Another spelling of the address of the stage's bus.
    public init(on ground: any ScanStage, busAddress: String? = nil) {
        self.ground = ground
        configuration = ground.centralConfiguration
        if let busAddress { configuration.busAddress = busAddress }
    }

    /// A daemon that has just started may report a link of the former daemon, which ends before anything is discovered. Then
    /// there is a second attempt, as an application would make it. If its link ends too, the test fails.
    public func connect(to name: String, advertising service: String) throws {
        do {
            try connectOnce(to: name, advertising: service)
        } catch PeripheralError.disconnected {
            try connectOnce(to: name, advertising: service)
        }
    }

    private func connectOnce(to name: String, advertising service: String) throws {
        try find(name, advertising: service)
        try discover()
    }

    private func find(_ name: String, advertising service: String) throws {
        // The values of an earlier link are not part of the test.
        journal = Journal()
        notified = [:]
        let manager = try CentralManager(configuration: configuration)
        self.manager = manager
        journal.watchStates(of: manager)
        expect("power") { $0.states.contains(.poweredOn) }
        // By its service: the name of one that was connected before may be the GAP name at first.
        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: service)]))
        expect(name) { !$0.sightings.isEmpty }
        manager.stopScanning()
        try outcome(of: manager.whenScanningStopped())
        peripheral = try XCTUnwrap(journal.sightings.first)
    }

    private func discover() throws {
        let peripheral = try XCTUnwrap(peripheral)
        journal.watch(peripheral.connect())
        expect("the link") { $0.connectionEvents == [.connect] }
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        try outcome(of: services)
        for service in peripheral.services {
            let characteristics: Future<Service> = service.discoverAllCharacteristics()
            try outcome(of: characteristics)
        }
    }

    public func table() throws -> [StageRow] {
        try XCTUnwrap(peripheral).services.flatMap { service in
            service.characteristics.map { characteristic in
                StageRow(
                    service.uuid.fullUUIDString.lowercased(), characteristic.uuid.fullUUIDString.lowercased(),
                    Set(Self.names.filter { characteristic.properties.contains($0.key) }.map(\.value)),
                    Set(characteristic.descriptors.map { $0.uuid.fullUUIDString.lowercased() }))
            }
        }
    }

    private static let names: [CBCharacteristicProperties: String] = [
        .read: "read", .write: "write", .writeWithoutResponse: "write-without-response", .notify: "notify",
        .indicate: "indicate",
    ]

    private func characteristic(_ uuid: String) throws -> Characteristic {
        let all = try XCTUnwrap(peripheral).services.flatMap(\.characteristics)
        return try XCTUnwrap(all.first { $0.uuid == CBUUID(string: uuid) }, uuid)
    }

    public func read(_ uuid: String) throws -> StageAnswer {
        let read: Future<Characteristic> = try characteristic(uuid).read()
        do {
            return .value([UInt8](try outcome(of: read).dataValue ?? Data()))
        } catch CharacteristicError.readFailed(let failure) {
            return .refused(failure.attError.map { UInt8($0.rawValue) })
        }
    }

    public func readDescriptor(_ descriptor: String, of uuid: String) throws -> [UInt8] {
        let found = try XCTUnwrap(characteristic(uuid).descriptor(CBUUID(string: descriptor)))
        let read: Future<Descriptor> = found.read()
        return [UInt8](try outcome(of: read).dataValue ?? Data())
    }

    @discardableResult
    public func write(_ bytes: [UInt8], to uuid: String, withResponse: Bool) throws -> StageAnswer {
        let write: Future<Characteristic> = try characteristic(uuid).write(
            data: Data(bytes), type: withResponse ? .withResponse : .withoutResponse)
        do {
            try outcome(of: write)
            return .value([])
        } catch CharacteristicError.writeFailed(let failure) {
            return .refused(failure.attError.map { UInt8($0.rawValue) })
        }
    }

    public func subscribe(to uuid: String) throws {
        let characteristic = try characteristic(uuid)
        let values = Journal()
        notified[uuid] = values
        values.watch(characteristic.receiveNotificationUpdates())
        let started: Future<Characteristic> = characteristic.startNotifying()
        try outcome(of: started)
    }

    public func unsubscribe(from uuid: String) throws {
        let stopped: Future<Characteristic> = try characteristic(uuid).stopNotifying()
        try outcome(of: stopped)
    }

    public func values(of uuid: String, count: Int) throws -> [[UInt8]] {
        let values = try XCTUnwrap(notified[uuid])
        XCTAssertTrue(
            ground.wait(values, limit: limit) { $0.values.count >= count },
            "\(values.values.count) of \(count) values came.")
        return values.values.map { [UInt8]($0 ?? Data()) }
    }

    public func awaitLoss() throws { expect("the end of the link") { $0.connectionEvents == [.connect, .disconnect] } }

    public func disconnect() throws {
        manager?.disconnectAllPeripherals()
        expect("the end of the link") { $0.connectionEvents.last == .forceDisconnect }
    }
}

/// Its agent is of another connection to the bus than the peripheral's, if it has another bus address.
extension OwnCentral: PairingCentral {
    public var keepsSubscriptions: Bool { false }

    public func setUser(_ user: StagePeer) {
        self.user = user
        configuration.pairingPolicy =
            user.capability == .noInputNoOutput ? .justWorks : .ask(user.capability)
    }

    /// Without a link: a link that is up keeps the capability that the adapter had.
    public func beginPairing(with name: String, advertising service: String) throws {
        try find(name, advertising: service)
        let confirms = user.answer == .accept
        manager?.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { [journal] request in
            switch request.kind {
            case .confirm, .authorize: _ = confirms ? request.confirm() : request.reject()
            case .displayPasskey, .enterPasskey: break
            }
            journal.write { $0.pairingRequests.append(request) }
        }
        pairing = try XCTUnwrap(peripheral).pair()
    }

    private func request() throws -> PairingRequest {
        expect("a request") { !$0.pairingRequests.isEmpty }
        return try XCTUnwrap(journal.read { $0.pairingRequests.first })
    }

    public func displayedPasskey() throws -> Passkey {
        let request = try request()
        guard case .displayPasskey(let passkey, _) = request.kind else { throw StageFailure("\(request)") }
        return passkey
    }

    public func enter(_ passkey: Passkey) throws { XCTAssertTrue(try request().enter(passkey)) }

    public func endPairing() throws -> Bool {
        do {
            try outcome(of: XCTUnwrap(pairing))
        } catch is PairingError {
            return false
        }
        try discover()
        return true
    }

    public func isRefused(reading uuid: String) throws -> Bool {
        let read: Future<Characteristic> = try characteristic(uuid).read(timeout: 20)
        do {
            try outcome(of: read)
            return false
        } catch {
            return true
        }
    }
}

/// An error that a shared body did not expect.
struct StageFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
