import BlueCapDBus
import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class BatteryTests: XCTestCase {
    private let devicePath: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_56"
    private var changes = [Change]()

    private func device() throws -> ObjectKey {
        var text = devicePath.rawValue
        return try XCTUnwrap(text.withUTF8 { ObjectKey(path: $0) })
    }

    private func makeTree(_ interfaces: [(String, TestProperties)]) -> ObjectTree {
        var tree = ObjectTree()
        tree.load(
            BlueZMessages.managedObjects([
                (BlueZMessages.adapterPath, BlueZMessages.adapter()), (devicePath, interfaces),
            ]), into: &changes)
        return tree
    }

    func testALevelIsKnownInWhateverOrderTheInterfacesStand() throws {
        let level: (String, TestProperties) = ("org.bluez.Battery1", [("Percentage", .byte(85))])
        let device: (String, TestProperties) = ("org.bluez.Device1", BlueZMessages.fullDevice)
        XCTAssertEqual(makeTree([level, device]).batteryLevel(of: try self.device()), 85)
        XCTAssertEqual(makeTree([device, level]).batteryLevel(of: try self.device()), 85)
        XCTAssertNil(makeTree([device]).batteryLevel(of: try self.device()))
    }

    func testALevelComesChangesAndGoes() throws {
        var tree = makeTree([("org.bluez.Device1", BlueZMessages.fullDevice)])
        let change = Change.deviceChanged(try device(), .battery, isAdvertised: false)
        changes.removeAll()
        tree.apply(
            BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Battery1", [("Percentage", .byte(85))])]),
            into: &changes)
        XCTAssertEqual(changes, [change])
        XCTAssertEqual(tree.batteryLevel(of: try device()), 85)
        changes.removeAll()
        tree.apply(
            BlueZMessages.propertiesChanged(
                devicePath, "org.bluez.Battery1", [("Percentage", .byte(84))]), into: &changes)
        XCTAssertEqual(changes, [change])
        XCTAssertEqual(tree.batteryLevel(of: try device()), 84)
        changes.removeAll()
        tree.apply(BlueZMessages.interfacesRemoved(devicePath, ["org.bluez.Battery1"]), into: &changes)
        XCTAssertEqual(changes, [change])
        XCTAssertNil(tree.batteryLevel(of: try device()))
    }
}
