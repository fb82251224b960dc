import BlueCapDBus
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapBlueZ

/// Random signals about devices and attributes. The tree is compared with a plain model.
final class AttributeFuzzTests: RandomTestCase {
    /// What a test knows without the tree: paths with their values, by device.
    private typealias Model = [String: [String: [UInt8]?]]

    private let interfaces = [
        AttributeKind.service: "org.bluez.GattService1", .characteristic: "org.bluez.GattCharacteristic1",
        .descriptor: "org.bluez.GattDescriptor1",
    ]

    func testRandomSignalsChangeTheTreeLikeAPlainModelAndReportEachChange() throws {
        var random = TestRandom(self)
        for _ in 0..<40 {
            var tree = ObjectTree()
            var changes = [Change]()
            tree.load(
                BlueZMessages.managedObjects([(BlueZMessages.adapterPath, BlueZMessages.adapter())]), into: &changes)
            var model: Model = [:]
            var known = Set<AttributeKey>()
            for _ in 0..<400 {
                changes.removeAll()
                let device = "/org/bluez/hci0/dev_00_00_00_00_00_0\(Int.random(in: 0..<4, using: &random))"
                let devicePath = try XCTUnwrap(ObjectPath(validating: device))
                let (tail, kind) = randomTail(&random)
                let path = try XCTUnwrap(ObjectPath(validating: device + tail))
                let value = random.bytes(random.below(41))
                switch Int.random(in: 0..<20, using: &random) {
                case 0:
                    tree.apply(BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Device1", [])]), into: &changes)
                    if model[device] == nil { model[device] = [:] }
                case 1:
                    tree.apply(BlueZMessages.interfacesRemoved(devicePath, ["org.bluez.Device1"]), into: &changes)
                    model[device] = nil
                case 2...8:
                    tree.apply(BlueZMessages.interfacesAdded(path, attribute(kind, value)), into: &changes)
                    guard model[device] != nil else { break }
                    // One handle is one attribute, whatever it was before.
                    let handle = tail.suffix(4)
                    for old in model[device, default: [:]].keys where old.suffix(4) == handle {
                        model[device]?[old] = nil
                    }
                    model[device]?[tail] = kind == .service || value.isEmpty ? .some(nil) : value
                case 9...11:
                    tree.apply(BlueZMessages.interfacesRemoved(path, [interfaces[kind] ?? ""]), into: &changes)
                    model[device]?[tail] = nil
                default:
                    tree.apply(
                        BlueZMessages.propertiesChanged(path, interfaces[kind] ?? "", [("Value", .bytes(value))]),
                        into: &changes)
                    if kind != .service, model[device]?.keys.contains(tail) == true { model[device]?[tail] = value }
                }
                for change in changes {
                    switch change {
                    case .attributeAdded(let key, _): XCTAssertTrue(known.insert(key).inserted)
                    case .attributeRemoved(let key, _): XCTAssertNotNil(known.remove(key))
                    case .attributeChanged(let key, _): XCTAssertTrue(known.contains(key))
                    default: break
                    }
                }
                tree.sweep()
            }
            check(tree, against: model)
            XCTAssertEqual(known.count, model.values.reduce(0) { $0 + $1.count })
        }
    }

    func testRandomBytesInPathsAreNoAttributesOfAnybody() {
        var random = TestRandom(self)
        let alphabet = Array("0123456789abcdefABCDEF_/servicechardesc")
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...40, using: &random)
            var text = "/org/bluez/hci0/dev_C0_26_DF_12_34_56/"
            for _ in 0..<length { text.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)]) }
            text.withUTF8 { bytes in
                guard let path = AttributePath(bytes) else { return }
                XCTAssertTrue(
                    String(decoding: bytes, as: UTF8.self).hasPrefix(path.key.device.path))
            }
        }
    }

    private func check(_ tree: borrowing ObjectTree, against model: Model) {
        XCTAssertEqual(tree.attributeCount, model.values.reduce(0) { $0 + $1.count })
        for (device, attributes) in model {
            guard let path = ObjectPath(validating: device) else { return XCTFail(device) }
            let key = ObjectKey(path)
            XCTAssertEqual(tree.attributes(of: key).map(\.handle), attributes.keys.map(handle).sorted())
            for (tail, value) in attributes {
                let attribute = AttributeKey(device: key, handle: handle(tail))
                XCTAssertEqual(tree.path(of: attribute), device + tail)
                XCTAssertEqual(tree.kind(of: attribute), kind(tail))
                if let value { XCTAssertEqual(tree.value(of: attribute), Data(value)) }
            }
        }
    }

    private func handle(_ tail: String) -> UInt16 { UInt16(tail.suffix(4), radix: 16) ?? 0 }

    private func kind(_ tail: String) -> AttributeKind {
        tail.contains("desc") ? .descriptor : tail.contains("char") ? .characteristic : .service
    }

    /// Few handles, so that many collide.
    private func randomTail(_ random: inout TestRandom) -> (String, AttributeKind) {
        func handle() -> String { "00" + ["0a", "0b", "1c", "2d", "ff"][Int.random(in: 0..<5, using: &random)] }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return ("/service" + handle(), .service)
        case 1: return ("/service" + handle() + "/char" + handle(), .characteristic)
        default: return ("/service" + handle() + "/char" + handle() + "/desc" + handle(), .descriptor)
        }
    }

    private func attribute(_ kind: AttributeKind, _ value: [UInt8]) -> TestInterfaces {
        [(interfaces[kind] ?? "", kind == .service ? [("Primary", .bool(true))] : [("Value", .bytes(value))])]
    }
}
