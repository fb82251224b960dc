import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

/// Characteristics with the same UUID.
final class SameUUIDTests: BluejayCase, @unchecked Swift.Sendable {
    func testOfSeveralTheOneThatCanDoItIsUsed() {
        let notifying = VirtualCharacteristic("2A37", [.notify], notifications: .cycle([[7]], every: 0.5))
        let writable = VirtualCharacteristic("2A37", [.write])
        for (round, characteristics) in [[notifying, writable], [writable, notifying]].enumerated() {
            var virtual = Self.virtual()
            virtual.services = [VirtualService("180D", characteristics: characteristics)]
            simulator.remove(Self.address)
            simulator.add(virtual, behavior: strap)
            connect()
            bluejay.write(to: Self.measurement, value: UInt8(9)) { [seen] in seen.note("write \(round)", $0) }
            expect("write \(round) done")
            bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<UInt8>) in
                seen.note("listen \(round)", result)
            }
            expect("listen \(round) 7")
            bluejay.disconnect()
            eventually("the end") { !bluejay.isConnected }
        }
    }

    func testIfSeveralCanDoItAHandleChoosesOne() {
        var virtual = Self.virtual()
        virtual.services = [
            VirtualService(
                "180D", characteristics: [UInt8(1), 2].map { VirtualCharacteristic("2A38", [.read], value: [$0]) })
        ]
        simulator.add(virtual, behavior: strap)
        connect()
        func read(_ identifier: CharacteristicIdentifier) -> Result<UInt8, any Error>? {
            var outcome: Result<UInt8, any Error>?
            bluejay.read(from: identifier) { (result: ReadResult<UInt8>) in
                switch result {
                case .success(let value): outcome = .success(value)
                case .failure(let error): outcome = .failure(error)
                }
            }
            eventually("the value") { outcome != nil }
            return outcome
        }
        guard case .failure(PeripheralError.ambiguous(_, let candidates))? = read(Self.location) else {
            return XCTFail("It was read.")
        }
        for (number, candidate) in candidates.enumerated() {
            var identifier = Self.location
            identifier.handle = candidate.handle
            XCTAssertEqual(try read(identifier)?.get(), UInt8(number + 1))
        }
    }
}
