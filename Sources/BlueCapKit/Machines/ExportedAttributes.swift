import BlueZ
import Foundation
import GATT

/// The attributes of a device that BlueZ has exported, in the order of their handles.
struct ExportedAttributes {
    var declarations: [AttributeDeclaration] = []
    var values: [(handle: AttributeHandle, value: Data?, mtu: Int?)] = []
    /// The UUIDs of the services that the device was found to have.
    var services: [CBUUID] = []

    init(_ declarations: [AttributeDeclaration], services: [CBUUID]) {
        self.declarations = declarations
        self.services = services
    }

    init(of device: ObjectKey, in tree: borrowing ObjectTree) {
        if let handle = tree.handle(of: device) { tree.read(handle) { services = $0.uuids } }
        for (attribute, kind) in tree.attributes(of: device) {
            let handle = AttributeHandle(attribute.handle)
            switch kind {
            case .service: declarations += tree.service(attribute).map { AttributeDeclaration(handle, $0) }
            case .characteristic:
                guard let characteristic = tree.characteristic(attribute) else { continue }
                declarations.append(AttributeDeclaration(handle, characteristic))
                values.append((handle, characteristic.value, characteristic.mtu))
            case .descriptor: declarations += tree.descriptor(attribute).map { AttributeDeclaration(handle, $0) }
            }
        }
        guard let battery = tree.batteryLevel(of: device),
            !declarations.contains(where: { $0.uuid == .battery && $0.kind == .service })
        else { return }
        declarations += AttributeDeclaration.virtualBattery
        values.append((.batteryLevel, Data([battery]), nil))
    }
}

extension [AttributeDeclaration] {
    fileprivate static func += (list: inout [AttributeDeclaration], declaration: AttributeDeclaration?) {
        if let declaration { list.append(declaration) }
    }
}

extension AttributeDeclaration {
    fileprivate init(_ handle: AttributeHandle, _ service: GattService1) {
        self.init(
            handle: handle, uuid: service.uuid,
            role: .service(isPrimary: service.isPrimary, includes: service.includes.map { AttributeHandle($0) }))
    }

    fileprivate init(_ handle: AttributeHandle, _ characteristic: GattCharacteristic1) {
        self.init(
            handle: handle, uuid: characteristic.uuid,
            role: .characteristic(
                of: AttributeHandle(characteristic.service), properties: characteristic.properties))
    }

    fileprivate init(_ handle: AttributeHandle, _ descriptor: GattDescriptor1) {
        self.init(
            handle: handle, uuid: descriptor.uuid, role: .descriptor(of: AttributeHandle(descriptor.characteristic)))
    }
}
