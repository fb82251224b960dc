import BlueCapKit
import Foundation
import GatewayCore
import GatewayStore
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

    // MARK: Readings

    /// Receives data of BTHome at an interval. Returns the readings that are stored, and what is logged.
    private func receive(
        _ data: [[UInt8]], every interval: Duration = .seconds(1), keys: [BluetoothAddress: Data]? = nil
    ) throws -> (readings: [String], log: [String]) {
        let yaml = "name: attic\nclaims: {enabled: false}"
        // A cipher that changes nothing; of the tag, a zero is right.
        let bindKeys = keys.map { keys in
            (keys: keys, decrypt: { @Sendable (data: Data, tag: Data, _: Data, _: Data) in tag.last == 0 ? data : nil })
        }
        var desk = GatewayDesk(try GatewayConfiguration(yaml: yaml, file: "test"), bindKeys: bindKeys)
        var (readings, log): ([String], [String]) = ([], [])
        for (index, data) in data.enumerated() {
            let report = DeviceReport(
                device: device, addressType: .public, date: Date(timeIntervalSince1970: 0), rssi: -50,
                advertisements: PeripheralAdvertisements(serviceData: [BTHomeDecoder.service: Data(data)]))
            for order in desk.received(report, at: interval * index).orders {
                switch order {
                case .store(let value, _): readings.append(String(decoding: value.body, as: UTF8.self))
                case .log(let level, let text): log.append("\(level) \(text)")
                default: break
                }
            }
        }
        return (readings, log)
    }

    /// A press of a button, sent when it occurs, encrypted with this counter.
    private func press(_ counter: UInt8, tag: UInt8 = 0) -> [UInt8] { [0x45, 0x3A, 1, counter, 0, 0, 0, 0, 0, 0, tag] }

    func testAnEncryptedEventThatIsReceivedAgainIsPublishedOnce() throws {
        let keys = [try XCTUnwrap(BluetoothAddress(device.address)): Data(count: 16)]
        let result = try receive([press(5), press(5), press(5), press(6)], keys: keys)
        XCTAssertEqual(result.readings.count, 2)
        XCTAssertEqual(result.readings.first?.contains(#""readings":{"button":"press"}"#), true, "\(result.readings)")
        XCTAssertEqual(result.log, [])
        // The library's decoder has no memory: an earlier counter is another event.
        XCTAssertEqual(try receive([press(5), press(6), press(5)], keys: keys).readings.count, 3)
    }

    func testQuantitiesThatAreAdvertisedInTurnArePublishedAtTheirChanges() throws {
        let (temperature, humidity): ([UInt8], [UInt8]) = ([0x40, 0x45, 250, 0], [0x40, 0x2E, 50])
        for interval in [Duration.milliseconds(100), .seconds(2)] {
            let turns = (0..<10).flatMap { _ in [temperature, humidity] }
            let changed = try receive(turns + [[0x40, 0x45, 251, 0], humidity], every: interval).readings
            XCTAssertEqual(changed.count, 3, "\(changed)")
            for (reading, values) in zip(
                changed, [#"{"temperature":25}"#, #"{"humidity":50}"#, #"{"temperature":25.1}"#])
            {
                XCTAssertTrue(reading.contains(values), reading)
            }
        }
        // Of more different advertisements than a sensor has in turn, the last ones have one throttle: in 5 s, three.
        let many: [[UInt8]] = (0..<54).map { [0x40] + Array(repeating: [0x2E, 50], count: $0 % 18 + 1).joined() }
        XCTAssertEqual(try receive(many, every: .milliseconds(100)).readings.count, 16 + 3)
    }

    func testAnEventWithoutANumberIsAnotherOneAfterItsEnd() throws {
        let (pressed, released): ([UInt8], [UInt8]) = ([0x40, 0x01, 97, 0x3A, 1], [0x40, 0x01, 97, 0x3A, 0])
        let turns = [pressed, released, pressed, pressed, released, pressed]
        let readings = try receive(turns, every: .seconds(2)).readings
        XCTAssertEqual(readings.map { $0.contains("press") }, [true, false, true, true], "\(readings)")
        XCTAssertEqual(try receive(turns, every: .milliseconds(100)).readings.count, 2, "at most one in a second")
    }

    func testAKeyThatIsMissingOrWrongIsLoggedOnce() throws {
        let encrypted = [press(5), press(6, tag: 1), press(7, tag: 1), [0x40, 0x01, 97]]
        let missing = try receive(encrypted)
        XCTAssertEqual(missing.readings.count, 1, "what is not encrypted")
        XCTAssertEqual(missing.log.count, 1)
        XCTAssertEqual(
            missing.log.first?.hasPrefix("notice the readings of C0:FF:EE:00:00:01 are encrypted"), true,
            "\(missing.log)")
        let keys = [try XCTUnwrap(BluetoothAddress(device.address)): Data(count: 16)]
        let wrong = try receive(encrypted, keys: keys)
        XCTAssertEqual(wrong.readings.count, 2, "what is decrypted, and what is not encrypted")
        XCTAssertEqual(wrong.log.count, 1)
        XCTAssertEqual(wrong.log.first?.hasPrefix("warning the key of C0:FF:EE:00:00:01 "), true, "\(wrong.log)")
    }

    // MARK: The broker

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
