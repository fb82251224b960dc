// Our scanner, through the public API, under the same rules as the others: see BusScannerInC/main.c.
//
//     BusScannerInSwift immediate|default [advertisements] [growth]
//
// An event is an element of the stream. Of each, the handler reads the address and the strength, and with
// `advertisements` the manufacturer data in Core Bluetooth's form as well, as a decoder of beacons would. With `growth`
// the manager remembers up to a million peripherals, and their number, which takes time for each, is not reported. The
// bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.

import BlueCapKit
import Foundation
import Synchronization

@main
struct BusScannerInSwift {
    private static let growth = CommandLine.arguments.contains("growth")
    private static let manager: CentralManager = {
        do {
            return try CentralManager(configuration: .init(maximumPeripherals: growth ? 1_000_000 : 16_384))
        } catch { fail("\(error)") }
    }()
    private static let sentinel = BluetoothAddress(rawValue: 0xFFFF_FFFF_FFFF)
    private static let received = Atomic<Int>(0)
    /// What was read goes here, so that no reading can be left out as useless.
    private static let read = Atomic<Int>(0)

    static func main() {
        var words = CommandLine.arguments.dropFirst()
        let context: any ExecutionContext =
            switch words.popFirst() {
            case "immediate": ImmediateContext()
            case "default": QueueContext.futuresDefault
            default: fail("usage: BusScannerInSwift immediate|default [advertisements] [growth]")
            }
        let readsAdvertisements = words.first == "advertisements"

        manager.whenStateChanges().onSuccess { state in
            guard state == .poweredOn else { return }
            let peripherals = manager.startScanning(
                capacity: 0, options: ScanOptions(allowsDuplicates: true))
            peripherals.onSuccess(context: context) { peripheral in
                read.add(peripheral.rssi ?? 0, ordering: .relaxed)
                if readsAdvertisements {
                    read.add(peripheral.advertisements.manufacturerData?.count ?? 0, ordering: .relaxed)
                }
                note(peripheral)
            }
            peripherals.onFailure { fail("\($0)") }
            say("ready")
        }
        // Not `dispatchMain()`, which ends this thread in a way that valgrind does not survive.
        DispatchSemaphore(value: 0).wait()
    }

    private static func note(_ peripheral: Peripheral) {
        guard peripheral.bluetoothAddress == sentinel else {
            received.add(1, ordering: .relaxed)
            return
        }
        let devices = growth ? "" : " devices \(manager.peripherals.count)"
        say("received \(received.exchange(0, ordering: .relaxed))\(devices)")
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    private static func fail(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("BusScannerInSwift: \(reason)\n".utf8))
        exit(1)
    }
}
