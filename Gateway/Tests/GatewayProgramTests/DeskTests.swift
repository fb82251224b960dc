import BlueCapKit
import Foundation
import GatewayCore
import GatewayRadio
import XCTest

@testable import GatewayProgram

/// What the desk decides.
final class DeskTests: XCTestCase {
    /// The discovery messages after values of a device.
    private func discovery(of values: [(uuid: String, bytes: [UInt8])]) throws -> [String: [String: Any]] {
        let yaml = """
            name: attic
            store: {path: /tmp/store.sqlite}
            homeAssistant: {enabled: true}
            claims: {enabled: false}
            peripherals:
              - name: Tag
                characteristics:
                  - {service: 180D, uuid: 2A37}
                  - {service: 180F, uuid: 2A19}
                  - {service: FFE0, uuid: FFE1, as: uint16}
                  - {service: FFE0, uuid: FFE2}
            """
        var desk = GatewayDesk(try GatewayConfiguration(yaml: yaml, file: "test"))
        let (device, date) = (try XCTUnwrap(DeviceName("c0ffee000001")), Date(timeIntervalSince1970: 0))
        _ = desk.brokerConnected(date: date, at: .zero)
        _ = desk.link(device, .connected, date: date, at: .zero)
        for (uuid, bytes) in values {
            let service = uuid == "2A37" ? "180D" : uuid == "2A19" ? "180F" : "FFE0"
            let identifier = CharacteristicIdentifier(uuid: uuid, service: ServiceIdentifier(uuid: service))
            XCTAssertNotNil(desk.value(device, identifier, Data(bytes), date: date, at: .seconds(1)))
        }
        var found: [String: [String: Any]] = [:]
        for time in 2...10 {
            _ = desk.tick(silence: .zero, date: date, at: .seconds(time))
            desk.flushHomeAssistant(at: .seconds(time)) { message in
                let parts = message.topic.split(separator: "/")
                guard parts.last == "config" else { return }
                found[String(parts[3])] = try JSONSerialization.jsonObject(with: message.payload) as? [String: Any]
            }
        }
        return found
    }

    func testHomeAssistantHasASensorForEachDecodedValue() throws {
        let found = try discovery(of: [("2A37", [0, 74]), ("2A19", [87]), ("FFE1", [1, 2]), ("FFE2", [1])])
        XCTAssertEqual(
            found.keys.sorted(), ["battery", "heart_rate", "link", "received", "signal_strength", "value_ffe1"])
        XCTAssertEqual(found["heart_rate"]?["name"] as? String, "Heart rate")
        XCTAssertEqual(found["battery"]?["device_class"] as? String, "battery")
        XCTAssertEqual(found["battery"]?["unit_of_measurement"] as? String, "%")
        XCTAssertEqual(found["value_ffe1"]?["state_topic"] as? String, "bluecap/device/c0ffee000001")
    }
}
