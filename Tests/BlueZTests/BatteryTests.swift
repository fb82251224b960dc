import BlueCapDBus
import XCTest

@testable import BlueCapBlueZ

final class BatteryTests: TreeCase {
    private let device: (String, TestProperties) = ("org.bluez.Device1", BlueZMessages.fullDevice)
    private let level: (String, TestProperties) = ("org.bluez.Battery1", [("Percentage", .byte(85))])

    private func load(_ interfaces: TestInterfaces) {
        load([(BlueZMessages.adapterPath, BlueZMessages.adapter()), (BlueZMessages.device, interfaces)])
    }

    func testALevelIsKnownInWhateverOrderTheInterfacesStand() {
        for (interfaces, expected) in [([level, device], 85), ([device, level], 85), ([device], nil)]
            as [(TestInterfaces, UInt8?)]
        {
            load(interfaces)
            XCTAssertEqual(tree.batteryLevel(of: deviceKey), expected, "\(interfaces.map(\.0))")
        }
    }

    func testALevelComesChangesAndGoes() {
        load([device])
        let messages: [(Message, UInt8?)] = [
            (BlueZMessages.interfacesAdded(BlueZMessages.device, [level]), 85),
            (BlueZMessages.propertiesChanged(BlueZMessages.device, level.0, [("Percentage", .byte(84))]), 84),
            (BlueZMessages.interfacesRemoved(BlueZMessages.device, [level.0]), nil),
        ]
        for (message, expected) in messages {
            apply(message)
            XCTAssertEqual(changes, [.deviceChanged(deviceKey, .battery, isAdvertised: false)])
            XCTAssertEqual(tree.batteryLevel(of: deviceKey), expected)
        }
    }
}
