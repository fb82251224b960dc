public import Foundation

extension Room {
    /// Nine peripherals that advertise at once or soon, and two that BlueZ remembers or that appear later.
    public static let furnished = Room(
        name: "room",
        peripherals: [
            heartRateStrap, sensorTag, officeBeacon, museumSign, kitchenThermometer, passingPhone, gardenSensor,
            bookshelfSpeaker, cyclingSensor, lateTracker, lastYearsKeyboard,
        ])

    /// A chest strap that reports its rate only once connected, as most do.
    static let heartRateStrap = VirtualPeripheral(
        "C0:5A:17:00:18:0D", addressType: .random, rssi: .walk(around: -56, spread: 7, seed: 11),
        advertisement: Advertisement(
            localName: "Pulse Strap 7F", serviceUUIDs: ["180d", "180f"],
            manufacturerData: [0x006B: [0x72, 0x08, 0x4A]],
            txPower: 4, appearance: 0x0341),
        interval: 0.25, services: heartRateServices)

    /// The development kit that the documents use.
    static let sensorTag = VirtualPeripheral(
        "54:6C:0E:80:3F:01", rssi: .walk(around: -63, spread: 5, seed: 12),
        advertisement: Advertisement(
            localName: "CC2650 SensorTag", serviceUUIDs: ["aa80"], manufacturerData: [0x000D: [0x03, 0x00, 0x00]],
            txPower: 0, flags: 0x05),
        interval: 0.1, services: sensorTagServices, link: VirtualLink(mtu: 23))

    /// An iBeacon, major 1, minor 7, -59 dBm at one metre; it takes no connection.
    static let officeBeacon = VirtualPeripheral(
        "D4:F5:13:0B:EA:C0", addressType: .random, name: "Office beacon", rssi: .walk(around: -71, spread: 9, seed: 13),
        advertisement: Advertisement(
            manufacturerData: [
                0x004C: [
                    0x02, 0x15, 0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0,
                    0x89, 0x3E, 0x00, 0x01, 0x00, 0x07, 0xC5,
                ]
            ], isConnectable: false),
        interval: 0.1)

    /// An Eddystone-URL frame: -21 dBm at no distance, `https://` `goo.gl/` and an ending.
    static let museumSign = VirtualPeripheral(
        "E3:1D:A5:00:FE:AA", addressType: .random, name: "Museum sign", rssi: .walk(around: -77, spread: 4, seed: 14),
        advertisement: Advertisement(
            serviceUUIDs: ["feaa"],
            serviceData: ["feaa": [0x10, 0xEB, 0x03] + Array("goo.gl/room4".utf8)], isConnectable: false),
        interval: 0.3)

    static let kitchenThermometer = VirtualPeripheral(
        "A4:C1:38:00:18:09", rssi: .walk(around: -68, spread: 3, seed: 15),
        advertisement: Advertisement(
            localName: "Kitchen 21.5°", serviceUUIDs: ["1809", "180f"],
            serviceData: ["1809": [0x00, 0xD7, 0x00, 0x00, 0xFF]],
            appearance: 0x0300),
        interval: 0.5, services: thermometerServices)

    /// A phone: no name, a random address, bytes of its manufacturer.
    static let passingPhone = VirtualPeripheral(
        "5F:3C:91:E2:07:B8", addressType: .random, name: "Passing phone",
        rssi: .steps([.init(after: 0, rssi: -84), .init(after: 4, rssi: -70), .init(after: 8, rssi: -79)]),
        advertisement: Advertisement(
            manufacturerData: [0x004C: [0x10, 0x05, 0x03, 0x1C, 0x8A, 0x42, 0x19]], txPower: 12, flags: 0x1A),
        interval: 0.2, disappearsAfter: 600)

    /// Barely in range, and slow.
    static let gardenSensor = VirtualPeripheral(
        "C8:D0:83:6A:12:F4", addressType: .random, rssi: .walk(around: -96, spread: 3, seed: 17),
        advertisement: Advertisement(
            localName: "Garden", serviceUUIDs: ["181a"], serviceData: ["181a": [0x6E, 0x09, 0x9C, 0x15, 0x58]]),
        interval: 1.2, services: gardenServices, link: VirtualLink(connectLatency: 0.8, callLatency: 0.06))

    static let bookshelfSpeaker = VirtualPeripheral(
        "00:1A:7D:DA:71:13", rssi: .walk(around: -49, spread: 2, seed: 18),
        advertisement: Advertisement(
            localName: "Bookshelf", serviceUUIDs: ["6e400001-b5a3-f393-e0a9-e50e24dcca9e"],
            manufacturerData: [0x0057: [0x01, 0x00, 0x64]], txPower: 8, appearance: 0x0280),
        interval: 0.3, services: uartServices)

    static let cyclingSensor = VirtualPeripheral(
        "E9:47:22:10:18:16", addressType: .random, rssi: .walk(around: -66, spread: 8, seed: 19),
        advertisement: Advertisement(
            localName: "Cadence 2", serviceUUIDs: ["1816", "180a", "180f"], txPower: -4, appearance: 0x0483),
        interval: 0.5, services: cyclingServices)

    /// A key tracker that appears after three seconds.
    static let lateTracker = VirtualPeripheral(
        "F1:EE:7A:00:FD:5A", addressType: .random,
        rssi: .steps([.init(after: 0, rssi: -90), .init(after: 5, rssi: -75), .init(after: 7, rssi: -62)]),
        advertisement: Advertisement(
            localName: "Keys", serviceUUIDs: ["fd5a"], serviceData: ["fd5a": [0x13, 0x57, 0x9B, 0xDF, 0x02, 0x46]],
            appearance: 0x0200),
        interval: 0.4, appearsAfter: 3, services: trackerServices)

    /// Known to BlueZ and switched off: it has an object on the bus and never advertises.
    static let lastYearsKeyboard = VirtualPeripheral(
        "DC:2C:26:0F:3A:52",
        advertisement: Advertisement(localName: "Old Keyboard", serviceUUIDs: ["1812"], appearance: 0x03C1),
        isRemembered: true)

    /// Returns `count` generated peripherals: varied in name, services, bytes and strength, the same on every run.
    ///
    /// - Parameters:
    ///   - count: their number.
    ///   - interval: the shortest advertising interval, in seconds; each peripheral has one to three times that.
    ///   - seed: the seed of the variations.
    public static func crowd(_ count: Int, interval: TimeInterval = 0.5, seed: UInt64 = 1) -> Room {
        var numbers = SeededGenerator(seed: seed)
        let peripherals = (0..<count).map { index in
            let bits = numbers.next()
            let bytes = (0..<8).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
            var advertisement = Advertisement(
                localName: bits % 5 == 0 ? nil : "Crowd \(index)",
                serviceUUIDs: bits % 3 == 0 ? [] : [crowdServices[index % crowdServices.count]],
                manufacturerData: [crowdMakers[index % crowdMakers.count]: bytes])
            if bits % 7 == 0 { advertisement.txPower = Int(bits >> 8 & 0xF) - 8 }
            if bits % 11 == 0 { advertisement.isConnectable = false }
            return VirtualPeripheral(
                // With the two top bits set it is a static random address, as the specification defines it.
                VirtualAddress(value: 0xC000_0000_0000 | UInt64(index) << 8 | UInt64(bits & 0x3F)),
                addressType: .random, name: "Crowd \(index)",
                rssi: .walk(around: -45 - Int(bits >> 16 & 0x2F), spread: 4, seed: bits),
                advertisement: advertisement, interval: interval * Double(1 + bits % 3))
        }
        return Room(name: "crowd:\(count)", peripherals: peripherals)
    }

    private static let crowdServices = ["180d", "180f", "1809", "181a", "1816", "feaa"]
    private static let crowdMakers: [UInt16] = [0x004C, 0x0006, 0x00E0, 0x0075, 0x0059]
}
