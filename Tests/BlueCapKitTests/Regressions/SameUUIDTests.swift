import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// An identifier meant the first of several attributes with its UUID, whatever was to be done with it: a write went to the one
/// that only notifies, and failed.
final class SameUUIDTests: XCTestCase {
    private static let address: VirtualAddress = "C0:00:00:00:FF:F0"
    private let simulator = Simulator.inProcess(room: .empty)
    private let identifier = CharacteristicIdentifier(uuid: "FFF1", service: ServiceIdentifier(uuid: "FFF0"))
    private let notifying = VirtualCharacteristic("FFF1", [.notify], notifications: .cycle([[7]], every: 0.5))
    private let writable = VirtualCharacteristic("FFF1", [.write])
    private let readable = ["Internal", "External"].enumerated().map { number, text in
        VirtualCharacteristic("FFF1", [.read, .notify], value: [UInt8(number)], descriptors: [.description(text)])
    }

    private func connected(_ services: [VirtualService]) throws -> (CentralManager, Peripheral) {
        try simulator.connected(
            to: VirtualPeripheral(
                Self.address, advertisement: Advertisement(localName: "Two Ways"), interval: 0.2, services: services))
    }

    private func error<T>(of future: Future<T>) -> PeripheralError? {
        simulator.failure(of: future) as? PeripheralError
    }

    func testOfSeveralTheOneThatCanDoItIsUsed() throws {
        for characteristics in [[notifying, writable], [writable, notifying]] {
            let (manager, lamp) = try connected([VirtualService("FFF0", characteristics: characteristics)])
            try simulator.outcome(of: lamp.write(Data([9]), to: identifier))
            XCTAssertEqual(try simulator.outcome(of: lamp.notifications(identifier).first()), Data([7]))
            try simulator.outcome(of: lamp.stopNotifications(identifier))
            withExtendedLifetime(manager) {}
            simulator.remove(Self.address)
        }
    }

    func testARunUsesTheOneThatCanDoIt() throws {
        let (manager, lamp) = try connected([VirtualService("FFF0", characteristics: [writable, notifying])])
        let value: Future<Data?> = lamp.run { [identifier] lamp in
            try await lamp.write(Data([9]), to: identifier)
            for try await data in try await lamp.notifications(identifier) { return data }
            return nil
        }
        XCTAssertEqual(try simulator.outcome(of: value), Data([7]))
        withExtendedLifetime(manager) {}
    }

    func testIfSeveralCanDoItTheErrorListsThem() throws {
        let (manager, lamp) = try connected([VirtualService("FFF0", characteristics: readable)])
        let read: Future<Data> = lamp.read(identifier)
        let found = error(of: read)
        guard case .ambiguous(_, let candidates)? = found else { return XCTFail("\(String(describing: found))") }
        XCTAssertEqual(candidates.map(\.userDescription), ["Internal", "External"])
        let handles = candidates.compactMap(\.handle)
        XCTAssertEqual(handles.count, 2)
        XCTAssertEqual(
            found?.description,
            "The peripheral has the characteristic FFF1 2 times: "
                + zip(handles, ["Internal", "External"]).map { handle, text in
                    "0x\(String(format: "%04x", Int(handle))) (read, notify, \"\(text)\")"
                }.joined(separator: ", ") + ". Set the handle of the identifier to one of these.")
        for (number, handle) in handles.enumerated() {
            var chosen = identifier
            chosen.handle = handle
            let read: Future<Data> = lamp.read(chosen)
            XCTAssertEqual(try simulator.outcome(of: read), Data([UInt8(number)]))
        }
        withExtendedLifetime(manager) {}
    }

    func testIfNoneCanDoItTheErrorListsThem() throws {
        let (manager, lamp) = try connected([VirtualService("FFF0", characteristics: readable)])
        guard case .ambiguous? = error(of: lamp.write(Data([1]), to: identifier)) else {
            return XCTFail("It was written.")
        }
        withExtendedLifetime(manager) {}
    }

    func testAServiceThatIsThereTwiceIsAmbiguous() throws {
        let (manager, lamp) = try connected([
            VirtualService("FFF0", characteristics: [notifying]), VirtualService("FFF0", characteristics: [writable]),
        ])
        let found = error(of: lamp.service(identifier.service))
        guard case .ambiguous(_, let candidates)? = found else { return XCTFail("\(String(describing: found))") }
        XCTAssertEqual(candidates.count, 2)
        XCTAssertTrue(
            found?.description.contains("has the service FFF0 2 times: 0x") == true, "\(String(describing: found))")
        // A characteristic may be in either.
        try simulator.outcome(of: lamp.write(Data([9]), to: identifier))
        withExtendedLifetime(manager) {}
    }
}
