import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// `peripheral.notifications(_:)` without a time limit tried a protected value on each link, and reported nothing.
final class RefusedSubscriptionTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:01"
    private let state = CharacteristicIdentifier(uuid: "AA11", service: ServiceIdentifier(uuid: "AA10"))

    /// Returns the failures of ten minutes, and how many links there were.
    private func failures(
        _ bluez: BlueZVersion, over transport: NotificationTransport
    ) throws -> (failures: [String], links: Int) {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let value = VirtualCharacteristic("AA11", [.notify], value: [0], security: .authenticated)
        simulator.add(
            VirtualPeripheral(
                address, advertisement: Advertisement(localName: "Lock"), interval: 0.1,
                services: [VirtualService("AA10", characteristics: [value])]))
        let (manager, peripheral) = try simulator.firstPeripheral()
        let links = Locked(0)
        peripheral.connect().onSuccess(context: ImmediateContext()) { peripheral, event in
            if event == .connect { links.withLock { $0 += 1 } }
            if event == .disconnect || event == .timeout { peripheral.reconnect() }
        }
        let failures = Locked<[String]>([])
        let stream = peripheral.notifications(state, over: transport)
        stream.onFailure(context: ImmediateContext()) { error in failures.withLock { $0.append("\(error)") } }
        simulator.advance(by: 600)
        withExtendedLifetime(manager) {}
        return (failures.withLock { $0 }, links.withLock { $0 })
    }

    /// BlueZ 5.66 ends the link, and the program connects again. One or two links may end for another reason.
    func testEachAttemptThatEndsItsLinkIsReportedFromTheThirdOn() throws {
        for transport in [NotificationTransport.signals, .socket] {
            let result = try failures(.v5_66, over: transport)
            XCTAssertGreaterThan(result.links, 10, "\(transport)")
            XCTAssertEqual(Set(result.failures), ["\(PeripheralError.disconnected)"], "\(transport)")
            XCTAssertTrue(
                (result.links - 3...result.links - 2).contains(result.failures.count), "\(transport) \(result)")
        }
    }

    /// Later versions do not reply, and keep the link.
    func testAnAttemptWithoutAReplyEndsTheStream() throws {
        for bluez in [BlueZVersion.v5_72, .v5_82, .v5_87] {
            for transport in [NotificationTransport.signals, .socket] {
                let result = try failures(bluez, over: transport)
                XCTAssertEqual(result.failures, ["\(CharacteristicError.notifyTimeout)"], "\(bluez) \(transport)")
            }
        }
    }
}
