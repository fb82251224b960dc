/// The attributes of all devices, found by device and handle without a search.
///
/// Each kind lies in an array of its own; a table of numbers leads from a device's place and a handle to the place there.
struct AttributeStore {
    /// Values of one kind; places of removed ones are used again.
    struct Shelf<Value> {
        private(set) var values: [Value] = []
        private var free: [Int] = []

        subscript(place: Int) -> Value {
            _read { yield values[place] }
            _modify { yield &values[place] }
        }

        mutating func insert(_ value: Value) -> Int {
            guard let place = free.popLast() else {
                values.append(value)
                return values.count - 1
            }
            values[place] = value
            return place
        }

        /// Puts a value that holds nothing in the place of the removed one.
        mutating func remove(_ place: Int, leaving vacant: Value) {
            values[place] = vacant
            free.append(place)
        }
    }

    /// Where an attribute lies: its shelf and the place there.
    struct Place {
        let kind: AttributeKind
        let index: Int

        fileprivate init(packed: Int) {
            // Written by `packed` alone, so it names a kind.
            kind = AttributeKind(rawValue: UInt8(packed >> 28)) ?? .service
            index = packed & 0xFFF_FFFF
        }

        init(_ kind: AttributeKind, _ index: Int) {
            self.kind = kind
            self.index = index
        }

        fileprivate var packed: Int { Int(kind.rawValue) << 28 | index }
    }

    var services = Shelf<GattService1>()
    var characteristics = Shelf<GattCharacteristic1>()
    var descriptors = Shelf<GattDescriptor1>()
    private var places = SlotTable()
    /// The handles of each device that has attributes, sorted.
    private var handles: [Int: [UInt16]] = [:]

    /// How many attributes there are.
    var count: Int { places.count }

    func place(of handle: UInt16, device slot: Int) -> Place? {
        places.slot(of: AttributeStore.number(handle, slot)).map(Place.init(packed:))
    }

    /// The handles of a device's attributes, sorted.
    func handles(device slot: Int) -> [UInt16] { handles[slot] ?? [] }

    mutating func insert(_ handle: UInt16, device slot: Int, at place: Place) {
        places.insert(AttributeStore.number(handle, slot), slot: place.packed)
        let list = handles[slot] ?? []
        // They come in order, nearly always.
        let index = list.last.map { $0 < handle } ?? true ? list.count : list.firstIndex { $0 > handle } ?? list.count
        handles[slot, default: []].insert(handle, at: index)
    }

    mutating func remove(_ handle: UInt16, device slot: Int) {
        guard let place = place(of: handle, device: slot) else { return }
        places.remove(AttributeStore.number(handle, slot))
        switch place.kind {
        case .service: services.remove(place.index, leaving: GattService1())
        case .characteristic: characteristics.remove(place.index, leaving: GattCharacteristic1(service: 0))
        case .descriptor: descriptors.remove(place.index, leaving: GattDescriptor1(service: 0, characteristic: 0))
        }
        guard let index = handles[slot]?.firstIndex(of: handle) else { return }
        handles[slot]?.remove(at: index)
        if handles[slot]?.isEmpty == true { handles[slot] = nil }
    }

    private static func number(_ handle: UInt16, _ slot: Int) -> UInt64 { UInt64(slot) << 16 | UInt64(handle) }
}
