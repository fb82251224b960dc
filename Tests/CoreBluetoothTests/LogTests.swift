import CoreBluetooth
import XCTest

final class LogTests: CoreBluetoothCase, @unchecked Sendable {
    /// Each message wrapped the handler in another closure; the 40,000th called through 40,000 of them.
    func testTheHandlerOfMessagesIsCalledDirectlyHoweverManyThereAre() {
        let depths = Depths()
        CBManager.setLogHandler { _ in depths.note() }
        let central = CBCentralManager(delegate: nil, queue: callbacks)
        for _ in 0..<1_000 { central.scanWithoutPower() }
        XCTAssertEqual(depths.all.count, 1_000)
        XCTAssertEqual(Set(depths.all.dropFirst()).count, 1, "The stack is as deep at each message.")
    }
}

extension CBCentralManager {
    /// Makes one message.
    @inline(never)
    fileprivate func scanWithoutPower() { scanForPeripherals(withServices: nil) }
}

/// Where the stack ended in each call.
// Unchecked: used by the test's thread only.
private final class Depths: @unchecked Sendable {
    private(set) var all: [UInt] = []

    @inline(never)
    func note() {
        var place: UInt8 = 0
        withUnsafePointer(to: &place) { all.append(UInt(bitPattern: $0)) }
    }
}
