import BlueCapKit
import Foundation
import GatewayCore
import XCTest

@testable import GatewayProgram
@testable import GatewayRadio

/// What the gateway decides, without input and output.
final class GatewayDeskTests: XCTestCase {
    private let device = DeviceName("c0ffee000001")!

    private func desk() throws -> GatewayDesk {
        let yaml = """
            name: attic
            peripherals: [{address: "C0:FF:EE:00:00:01"}]
            """
        return GatewayDesk(try GatewayConfiguration(yaml: yaml, file: "test"))
    }

    /// Ticks and receives the device four times a second. Returns whether the gateway publishes a claim to it.
    ///
    /// - Parameters:
    ///   - begin: The time in seconds from which on the device is received.
    ///   - silence: For how long the broker has acknowledged nothing, at a time.
    private func claims(
        _ desk: inout GatewayDesk, from begin: Double = 0, to end: Double, silence: (Double) -> Double
    ) -> Bool {
        var hasClaimed = false
        for quarter in 0...Int((end - begin) * 4) {
            let time = begin + Double(quarter) / 4
            let (now, date) = (Duration.seconds(time), Date(timeIntervalSince1970: time))
            var orders = desk.tick(silence: .seconds(silence(time)), date: date, at: now)
            let report = DeviceReport(
                device: device, addressType: .public, date: date, rssi: -50, advertisements: PeripheralAdvertisements())
            orders += desk.received(report, at: now).orders
            for case .publish(let message) in orders where message.topic == "bluecap/claim/c0ffee000001/attic" {
                hasClaimed = true
            }
        }
        return hasClaimed
    }

    func testClaimsNothingWhileTheBrokerAcknowledgesNothing() throws {
        var desk = try desk()
        _ = desk.brokerConnected(date: Date(timeIntervalSince1970: 0), at: .zero)
        XCTAssertFalse(claims(&desk, to: 30) { $0 + 8 })
        XCTAssertTrue(desk.isBrokerSilent)
        XCTAssertTrue(desk.isConnected, "stored values are sent nevertheless")
        XCTAssertTrue(claims(&desk, from: 30.25, to: 60) { _ in 0 }, "after an acknowledgement")
        XCTAssertFalse(desk.isBrokerSilent)
    }

    func testASlowBrokerDoesNotStopTheClaims() throws {
        var desk = try desk()
        _ = desk.brokerConnected(date: Date(timeIntervalSince1970: 0), at: .zero)
        // It acknowledges a message each 7.5 s.
        XCTAssertTrue(claims(&desk, to: 30) { $0.truncatingRemainder(dividingBy: 7.5) })
        XCTAssertFalse(desk.isBrokerSilent)
    }

    func testTheSilenceEndsWithTheConnection() throws {
        var desk = try desk()
        _ = desk.brokerConnected(date: Date(timeIntervalSince1970: 0), at: .zero)
        XCTAssertFalse(claims(&desk, to: 1) { $0 + 8 })
        XCTAssertTrue(desk.isBrokerSilent)
        _ = desk.brokerDisconnected(date: Date(timeIntervalSince1970: 2), at: .seconds(2))
        XCTAssertFalse(desk.isBrokerSilent)
        XCTAssertFalse(claims(&desk, from: 3, to: 30) { _ in 0 }, "there is no broker")
        _ = desk.brokerConnected(date: Date(timeIntervalSince1970: 31), at: .seconds(31))
        XCTAssertTrue(claims(&desk, from: 32, to: 60) { _ in 0 })
    }
}
