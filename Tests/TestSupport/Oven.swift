import BlueCapKit
import Foundation

/// A peripheral of ours with attributes of all kinds.
final class Oven: Sendable {
    static let name = "Oven"
    static let heat = uuid(1)

    static func uuid(_ number: Int) -> String { String(format: "c000%04x-0000-4000-8000-00805f9b34fb", number) }

    let manager: PeripheralManager
    let services: [MutableService]
    let short = MutableCharacteristic(
        uuid: Oven.uuid(0x11), properties: .read, permissions: .readable, value: Data([1, 2]))
    /// The longest value.
    let long = MutableCharacteristic(
        uuid: Oven.uuid(0x12), properties: .read, permissions: .readable, value: Data(Oven.longValue))
    let request = MutableCharacteristic(uuid: Oven.uuid(0x13), properties: [.read, .write], value: Data([0]))
    let command = MutableCharacteristic(uuid: Oven.uuid(0x14), properties: [.read, .writeWithoutResponse])
    let overSocket = MutableCharacteristic(uuid: Oven.uuid(0x21), properties: [.read, .notify], permissions: .readable)
    let overBus = MutableCharacteristic(uuid: "2A37", properties: .notify, permissions: .readable)
    let indicated = MutableCharacteristic(uuid: Oven.uuid(0x23), properties: .indicate, permissions: .readable)

    static let longValue = (0..<512).map { UInt8(truncatingIfNeeded: $0) }

    init(_ configuration: PeripheralManager.Configuration) {
        manager = try! PeripheralManager(configuration: configuration)
        let heat = MutableService(uuid: Oven.heat)
        heat.characteristics = [short, long, request, command]
        short.descriptors = [.userDescription("Heat")]
        let heart = MutableService(uuid: "180D")
        heart.characteristics = [overBus]
        overBus.sendsUpdatesOverSocket = false
        let door = MutableService(uuid: Oven.uuid(2))
        door.characteristics = [overSocket, indicated]
        services = [heat, heart, door]
    }

    /// What centrals find of it, in the order in which it was added.
    static let table = [
        StageRow(heat, uuid(0x11), ["read"], ["00002901-0000-1000-8000-00805f9b34fb"]),
        StageRow(heat, uuid(0x12), ["read"], []),
        StageRow(heat, uuid(0x13), ["read", "write"], []),
        StageRow(heat, uuid(0x14), ["read", "write-without-response"], []),
        StageRow(
            "0000180d-0000-1000-8000-00805f9b34fb", "00002a37-0000-1000-8000-00805f9b34fb", ["notify"],
            [configuration]),
        StageRow(uuid(2), uuid(0x21), ["read", "notify"], [configuration]),
        StageRow(uuid(2), uuid(0x23), ["indicate"], [configuration]),
    ]

    private static let configuration = "00002902-0000-1000-8000-00805f9b34fb"
}
