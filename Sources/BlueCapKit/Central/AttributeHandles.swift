import GATT

/// The object of an attribute: a `Service`, `Characteristic` or `Descriptor`.
protocol AttributeObject: AnyObject {
    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID)
}

extension Service: AttributeObject {}
extension Characteristic: AttributeObject {}
extension Descriptor: AttributeObject {}

/// The objects of a peripheral's attributes, at most one of each attribute.
///
/// The table holds an object strongly while the attribute exists, and weakly while there are other references to it.
/// Applications capture these objects weakly, so the session must hold them. A function that removes objects returns
/// them, and the caller releases them after it has released the session's lock.
struct AttributeHandles {
    struct Memory<Handle: AnyObject> {
        private struct Weak {
            weak var handle: Handle?
        }

        private var held: [AttributeID: Handle] = [:]
        /// The objects that are held weakly. A weak reference allocates memory, so it is made only when the strong one
        /// is removed.
        private var remembered: [AttributeID: Weak] = [:]

        /// Returns the object of this attribute and holds it from now on; makes it if there is none.
        mutating func hold(_ id: AttributeID, or make: () -> Handle) -> Handle {
            if let handle = held[id] { return handle }
            let handle = remembered.removeValue(forKey: id)?.handle ?? make()
            held[id] = handle
            return handle
        }

        /// Returns the object of this attribute and does not change whether it is held; makes it if there is none.
        mutating func find(_ id: AttributeID, or make: () -> Handle) -> Handle {
            if let handle = held[id] ?? remembered[id]?.handle { return handle }
            let handle = make()
            remembered[id] = Weak(handle: handle)
            return handle
        }

        fileprivate mutating func letGo(_ id: AttributeID) -> Handle? {
            guard let handle = held.removeValue(forKey: id) else { return nil }
            remembered[id] = Weak(handle: handle)
            return handle
        }

        fileprivate mutating func letGoOfAll() -> [Handle] { held.keys.compactMap { letGo($0) } }
    }

    var services = Memory<Service>()
    var characteristics = Memory<Characteristic>()
    var descriptors = Memory<Descriptor>()

    /// Stops holding the objects of these attributes, and returns them.
    mutating func letGo(_ ids: [AttributeID]) -> [AnyObject] {
        ids.compactMap { services.letGo($0) ?? characteristics.letGo($0) ?? descriptors.letGo($0) }
    }

    /// Stops holding all objects, and returns them.
    mutating func letGoOfAll() -> [AnyObject] {
        services.letGoOfAll() as [AnyObject] + characteristics.letGoOfAll() + descriptors.letGoOfAll()
    }
}

extension Peripheral {
    /// Returns the objects of the attributes whose identifiers `ids` finds in the peripheral's table.
    func handles<Handle: AttributeObject>(
        _ memory: WritableKeyPath<AttributeHandles, AttributeHandles.Memory<Handle>>,
        _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Handle] {
        session.core.withLock { core in
            let found = core.state.readState(of: key) { state in
                ids(state.attributes.table).compactMap { id in state.attributes.table[id].map { (id, $0.uuid) } }
            }
            return (found ?? []).map { id, uuid in
                core.attributeHandles[key, default: AttributeHandles()][keyPath: memory].hold(id) {
                    Handle(peripheral: self, id: id, uuid: uuid)
                }
            }
        }
    }

    /// Returns the service of a characteristic, or the characteristic of a descriptor, even if it no longer exists.
    func parent<Handle: AttributeObject>(
        of id: AttributeID, _ memory: WritableKeyPath<AttributeHandles, AttributeHandles.Memory<Handle>>
    ) -> Handle? {
        session.core.withLock { core in
            let found = core.state.readState(of: key) { state -> (AttributeID, CBUUID)? in
                guard let parent = state.attributes.table[id]?.parent else { return nil }
                return state.attributes.table[parent].map { (parent, $0.uuid) }
            }
            return found.map { id, uuid in
                core.attributeHandles[key, default: AttributeHandles()][keyPath: memory].find(id) {
                    Handle(peripheral: self, id: id, uuid: uuid)
                }
            }
        }
    }
}
