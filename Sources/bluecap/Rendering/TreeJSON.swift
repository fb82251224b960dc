import BlueCapKit
import Foundation

/// What a peripheral offers as one JSON object, for programs.
///
/// Every object of a kind has all members, in one order; what is not known is `null` or empty.
enum TreeJSON {
    static func line(_ tree: AttributeTree) -> String {
        var line = JSONObject()
        line.add("identifier", tree.identifier.uuidString)
        line.add("address", tree.address)
        line.add("addressType", tree.addressType)
        line.add("name", tree.name)
        line.add("rssi", tree.rssi)
        line.add("mtu", tree.mtu)
        line.add("services", tree.services.map(object))
        return line.closed
    }

    private static func object(_ service: AttributeTree.Service) -> JSONObject {
        var object = JSONObject()
        object.add("uuid", service.uuid.uuidString)
        object.add("name", service.name)
        object.add("handle", Int(service.handle))
        object.add("primary", service.isPrimary)
        object.add("includes", service.includes.map(Int.init))
        object.add("characteristics", service.characteristics.map(self.object))
        return object
    }

    private static func object(_ characteristic: AttributeTree.Characteristic) -> JSONObject {
        var object = JSONObject()
        object.add("uuid", characteristic.uuid.uuidString)
        object.add("name", characteristic.name)
        object.add("handle", Int(characteristic.handle))
        object.add("properties", characteristic.properties.names)
        add(characteristic.reading, to: &object)
        object.add("descriptors", characteristic.descriptors.map(self.object))
        return object
    }

    private static func object(_ descriptor: AttributeTree.Descriptor) -> JSONObject {
        var object = JSONObject()
        object.add("uuid", descriptor.uuid.uuidString)
        object.add("name", descriptor.name)
        object.add("handle", Int(descriptor.handle))
        add(descriptor.reading, to: &object)
        return object
    }

    private static func add(_ reading: AttributeTree.Reading, to object: inout JSONObject) {
        switch reading {
        case .none:
            object.addNull("value")
            object.addNull("fields")
            object.addNull("error")
        case .value(let value):
            value.add(to: &object)
            object.addNull("error")
        case .failed(let why):
            object.addNull("value")
            object.addNull("fields")
            object.add("error", why)
        }
    }
}
