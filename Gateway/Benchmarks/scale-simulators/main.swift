import BlueZSimulator
import Foundation

// Simulates BlueZ once for each gateway of `gateway-scale`, each on a bus of its own.
//
//     scale-simulators GATEWAYS DEVICES LINKS INTERVAL
//
// Each has DEVICES peripherals. The first LINKS of them are called "Strap", and notify a number every INTERVAL seconds
// when connected. The others are RuuviTags: they advertise every INTERVAL seconds, each time with other data. The program
// prints the address of each bus, and ends when its standard input is closed.

/// A RuuviTag of data format 5, whose temperature and sequence number count.
final class Tag: PeripheralBehavior, @unchecked Sendable {
    // `@unchecked`: accessed on the simulator's loop only.
    private var count: UInt16 = 0

    func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement {
        count &+= 1
        var advertisement = peripheral.advertisement
        let temperature = 4_000 + count % 1_000
        var data: [UInt8] = [5, UInt8(temperature >> 8), UInt8(temperature & 0xFF)]
        data += [0x53, 0x49, 0xC3, 0x7C, 0, 4, 0xFF, 0xFC, 4, 0x0C, 0xAC, 0x36, 0x42]
        data += [UInt8(count >> 8), UInt8(count & 0xFF)]
        data += withUnsafeBytes(of: peripheral.address.value.bigEndian) { Array($0.suffix(6)) }
        advertisement.manufacturerData[0x0499] = data
        return advertisement
    }
}

func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

func fail(_ text: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("scale-simulators: \(text)\n".utf8))
    exit(status)
}

let arguments = CommandLine.arguments.dropFirst().compactMap(Double.init)
guard CommandLine.arguments.count == 5, arguments.count == 4, arguments.allSatisfy({ (0...60_000).contains($0) }) else {
    fail("usage: scale-simulators GATEWAYS DEVICES LINKS INTERVAL", 64)
}
let (gateways, devices, links) = (Int(arguments[0]), Int(arguments[1]), Int(arguments[2]))
let interval = arguments[3]
var simulators: [Simulator] = []
for gateway in 0..<gateways {
    do {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        for device in 0..<devices {
            let address = VirtualAddress(value: 0xC000_0000_0000 | UInt64(gateway) << 16 | UInt64(device))
            // They do not advertise in step: each begins at its share of the interval.
            let start = interval * Double(device) / Double(devices)
            if device < links {
                let counter = VirtualCharacteristic(
                    "2A37", [.notify], notifications: .counter(size: 4, every: interval))
                simulator.add(
                    VirtualPeripheral(
                        address, addressType: .random, advertisement: Advertisement(localName: "Strap"),
                        interval: min(interval, 0.5), services: [VirtualService("180D", characteristics: [counter])]))
            } else {
                simulator.add(
                    VirtualPeripheral(address, addressType: .random, interval: interval, appearsAfter: start),
                    behavior: Tag())
            }
        }
        simulators.append(simulator)
        say(simulator.address)
    } catch {
        fail("\(error)", 1)
    }
}
say("ready")
while readLine() != nil {}
for simulator in simulators { simulator.end() }
