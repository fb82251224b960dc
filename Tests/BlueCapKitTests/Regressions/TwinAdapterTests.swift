import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// Of two adapters with one address, as cheap ones have, each process used either: the choice took the first key of a
/// dictionary.
final class TwinAdapterTests: XCTestCase {
    /// Several addresses, since chance is right in half of the cases.
    private func eachTwins(_ body: (Simulator, String) throws -> Void) rethrows {
        for number in 1...8 {
            let address = "00:AA:02:00:00:0\(number)"
            let twins = [0, 1].map { VirtualAdapter(index: $0, address: VirtualAddress(stringLiteral: address)) }
            try body(Simulator.inProcess(room: .empty, adapters: twins), address)
        }
    }

    func testTheFirstOfTwinsIsUsed() throws {
        try eachTwins { simulator, address in
            for adapter in [nil, address] {
                let manager = try simulator.centralManager(adapter: adapter)
                let scan = manager.startScanning()
                simulator.advance(by: 1)
                XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [true, false])
                manager.stopScanning()
                simulator.advance(by: 1)
                withExtendedLifetime(scan) {}
            }
        }
    }

    func testATwinThatReturnsDoesNotTakeTheScanBack() throws {
        try eachTwins { simulator, _ in
            let manager = try simulator.centralManager()
            let scan = manager.startScanning()
            simulator.advance(by: 1)
            simulator.simulateAdapterRemoval(0)
            simulator.advance(by: 2)
            XCTAssertTrue(manager.poweredOn)
            simulator.simulateAdapterAddition()
            simulator.advance(by: 2)
            XCTAssertEqual(
                simulator.adapters.filter(\.isDiscovering).map(\.path), ["/org/bluez/hci1"], manager.stateExplanation)
            withExtendedLifetime(scan) {}
        }
    }

    /// `bluetoothd` adds its adapters one by one after a restart: the manager stayed with the twin that came first.
    func testAfterARestartTheTwinThatWasUsedLastIsUsedAgainInWhateverOrderTheyReturn() throws {
        for order in [[0, 1], [1, 0]] {
            for isEmptyAtFirst in [true, false] {
                try eachTwins { simulator, address in
                    let twin = { VirtualAdapter(index: $0, address: VirtualAddress(stringLiteral: address)) }
                    let manager = try simulator.centralManager(adapter: address)
                    let scan = manager.startScanning()
                    simulator.simulateAdapterRemoval(0)
                    simulator.advance(by: 2)
                    simulator.simulateAdapterAddition(twin(0))
                    simulator.advance(by: 2)
                    XCTAssertEqual(simulator.adapters.filter(\.isDiscovering).map(\.path), ["/org/bluez/hci1"])

                    simulator.simulateDaemonDeath()
                    for index in order { simulator.simulateAdapterRemoval(index) }
                    simulator.advance(by: 1)
                    if !isEmptyAtFirst { simulator.simulateAdapterAddition(twin(order[0])) }
                    simulator.simulateDaemonReturn()
                    simulator.advance(by: 1)
                    for index in order.dropFirst(isEmptyAtFirst ? 0 : 1) {
                        simulator.simulateAdapterAddition(twin(index))
                        simulator.advance(by: 1)
                    }
                    XCTAssertTrue(
                        simulator.advance(
                            until: { simulator.adapters.filter(\.isDiscovering).map(\.path) == ["/org/bluez/hci1"] },
                            limit: 30),
                        "\(order) \(isEmptyAtFirst): \(manager.stateExplanation)")
                    withExtendedLifetime(scan) {}
                }
            }
        }
    }
}
