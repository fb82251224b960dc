import BlueCapKit
import Foundation

@testable import bluecap

/// What a peripheral may offer.
enum TreeSamples {
    private static let profiles = ProfileManager.ready

    static func value(_ service: String, _ uuid: String, _ bytes: [UInt8]) -> AttributeTree.Reading {
        let profile = profiles.service(CBUUID(string: service))?.characteristic(CBUUID(string: uuid))
        return .value(AttributeValue(Data(bytes), profile: profile))
    }

    static func characteristic(
        _ handle: UInt32, _ uuid: String, _ name: String?, _ properties: CBCharacteristicProperties,
        _ reading: AttributeTree.Reading = .none, descriptors: [AttributeTree.Descriptor] = []
    ) -> AttributeTree.Characteristic {
        AttributeTree.Characteristic(
            handle: handle, uuid: CBUUID(string: uuid), name: name, properties: properties, reading: reading,
            descriptors: descriptors)
    }

    static let measurement = characteristic(
        0x29, "2A37", "Heart Rate Measurement", [.notify],
        descriptors: [
            .init(
                handle: 0x2B, uuid: CBUUID(string: "2902"), name: "Client Characteristic Configuration",
                reading: .value(AttributeValue(Data([0, 0]))))
        ])

    static let strap = AttributeTree(
        identifier: UUID(uuid: (0, 0, 0, 0, 0, 0, 0x50, 0, 0x80, 0, 0, 0, 0, 0, 0, 1)), address: "C0:5A:17:00:18:0D",
        addressType: "random", name: "Pulse Strap 7F", rssi: -56, mtu: 247,
        services: [
            .init(
                handle: 0x28, uuid: CBUUID(string: "180D"), name: "Heart Rate", includes: [0x40],
                characteristics: [
                    measurement,
                    characteristic(0x2C, "2A38", "Body Sensor Location", [.read], value("180D", "2A38", [1])),
                    characteristic(0x2E, "2A39", "Heart Rate Control Point", [.write]),
                ]),
            .init(
                handle: 0x40, uuid: CBUUID(string: "180F"), name: "Battery", isPrimary: false,
                characteristics: [
                    characteristic(0x41, "2A19", "Battery Level", [.read, .notify], value("180F", "2A19", [100])),
                    characteristic(0x44, "2A19", "Battery Level", [.read], .failed("read not permitted (0x02)")),
                ]),
            .init(
                handle: 0x50, uuid: CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"),
                characteristics: [
                    characteristic(
                        0x51, "6E400002-B5A3-F393-E0A9-E50E24DCCA9E", nil, [.read, .writeWithoutResponse],
                        .value(AttributeValue(Data("7F\u{1B}".utf8))))
                ]),
        ])
}
