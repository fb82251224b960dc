import Foundation

/// Decodes what devices that measure nothing advertise of themselves. A value is a text, and there may be no values.
///
/// | format | data | values |
/// |---|---|---|
/// | `swift_pair` | company 0x0006, scenario 3: a device that computers with Windows offer to pair with | ``SensorQuantity/text``, its name |
/// | `fast_pair` | service FE2C: the same of Android | ``SensorQuantity/modelID``, if the device can be paired now |
/// | `apple_continuity` | company 0x004C, without iBeacons | ``SensorQuantity/message``, the names of types, such as `Nearby Info` |
///
/// Apple has not published its format; the names are those of research (<https://github.com/furiousMAC/continuity>).
public struct NearbyDeviceDecoder: AdvertisementDecoder {
    private static let messages: [UInt8: String] = [
        0x03: "AirPrint", 0x05: "AirDrop", 0x06: "HomeKit", 0x07: "Proximity Pairing", 0x08: "Hey Siri",
        0x09: "AirPlay Target", 0x0A: "AirPlay Source", 0x0B: "Magic Switch", 0x0C: "Handoff", 0x0D: "Tethering Target",
        0x0E: "Tethering Source", 0x0F: "Nearby Action", 0x10: "Nearby Info", 0x12: "Find My",
    ]

    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        if let data = advertisement.manufacturerData[0x004C], let reading = continuity([UInt8](data)[...]) {
            return reading
        }
        if let data = advertisement.serviceData[CBUUID(0xFE2C)], data.count >= 3 { return fastPair([UInt8](data)) }
        guard let data = advertisement.manufacturerData[0x0006], data.count >= 3 else { return nil }
        return swiftPair([UInt8](data))
    }

    private func continuity(_ messages: ArraySlice<UInt8>) -> SensorReading? {
        var (bytes, found): (ArraySlice<UInt8>, [String]) = (messages, [])
        while let type = bytes.popFirst(), let size = bytes.popFirst() {
            // Three bits of HomeKit's size are a version.
            let count = Int(type == 0x06 ? size & 0x1F : size)
            if bytes.count >= count, let name = Self.messages[type] { found.append(name) }
            bytes = bytes.dropFirst(count)
        }
        let values = found.enumerated().map { place, name in
            SensorValue(.message, .text(name), number: found.count == 1 ? nil : place + 1)
        }
        return found.isEmpty ? nil : SensorReading(format: "apple_continuity", values: values)
    }

    /// Three bytes of the model, or its field, of type 7, after a byte of version and flags; otherwise data for accounts.
    private func fastPair(_ bytes: [UInt8]) -> SensorReading? {
        let field = bytes[1] & 0xF == 7 ? bytes.dropFirst(2).prefix(Int(bytes[1] >> 4)) : []
        let model = Data(bytes.count == 3 ? bytes[...] : field).hexadecimal
        return SensorReading(
            format: "fast_pair", values: model.isEmpty ? [] : [SensorValue(.modelID, .text(model))])
    }

    private func swiftPair(_ bytes: [UInt8]) -> SensorReading? {
        guard bytes[0] == 3, bytes[1] < 3 else { return nil }
        // After the strength: nothing for LE; the address and class of the device for Basic Rate; its class for both.
        let name = String(validating: bytes.dropFirst([3, 12, 6][Int(bytes[1])]), as: UTF8.self) ?? ""
        return SensorReading(format: "swift_pair", values: name.isEmpty ? [] : [SensorValue(.text, .text(name))])
    }
}
