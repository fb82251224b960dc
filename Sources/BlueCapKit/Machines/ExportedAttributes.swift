import BlueCapBlueZ
import Foundation
import BlueCapGATT

/// The attributes of a device that BlueZ has exported, in the order of their handles.
struct ExportedAttributes {
    var declarations: [AttributeDeclaration] = []
    var values: [(handle: AttributeHandle, value: Data?, mtu: Int?)] = []
    /// The UUIDs of the services that the device was found to have.
    var services: [CBUUID] = []
}

extension ExportedAttributes {
    init(of device: ObjectKey, in tree: borrowing ObjectTree) {
        services = tree.read(device) { $0.uuids } ?? []
        for attribute in tree.attributes(of: device) {
            let handle = AttributeHandle(attribute.handle)
            declarations.append(AttributeDeclaration(handle, attribute))
            if attribute.kind == .characteristic { values.append((handle, attribute.value, attribute.mtu)) }
        }
        guard let battery = tree.batteryLevel(of: device),
            !declarations.contains(where: { $0.uuid == .battery && $0.kind == .service })
        else { return }
        declarations += AttributeDeclaration.virtualBattery
        values.append((.batteryLevel, Data([battery]), nil))
    }
}

extension AttributeDeclaration {
    fileprivate init(_ handle: AttributeHandle, _ attribute: GattAttribute) {
        self.init(handle: handle, kind: attribute.kind, uuid: attribute.uuid)
        switch attribute.kind {
        case .service:
            (isPrimary, includes) = (attribute.isPrimary, attribute.includes.map { AttributeHandle($0) })
        case .characteristic:
            (parent, properties) = (AttributeHandle(attribute.service), attribute.properties)
        case .descriptor: parent = AttributeHandle(attribute.characteristic)
        }
    }
}
