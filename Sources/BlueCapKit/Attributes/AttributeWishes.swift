import GATT

/// Who waits for the services of a peripheral to be known, and what is shown to them then.
struct AttributeWishes {
    enum Wish {
        case services(Set<CBUUID>?)
        case characteristics(Set<CBUUID>?, of: AttributeID)
        /// One that is known by its name alone.
        case attribute(AttributeName)
    }

    private var wishes: [OperationID: Wish] = [:]
    /// Those of them that wait for the next link.
    private var waitingForLink: Set<OperationID> = []
    /// Those that a lost link does not fail: they wait for the next one.
    private var lasting: Set<OperationID> = []
    /// The attributes that were found by their names, until they are fetched.
    private var found: [OperationID: AttributeID] = [:]

    func contains(_ id: OperationID) -> Bool { wishes[id] != nil }

    mutating func add(_ wish: Wish, _ id: OperationID, isForNextLink: Bool = false, outlivesLinks: Bool = false) {
        wishes[id] = wish
        if isForNextLink { waitingForLink.insert(id) }
        if outlivesLinks { lasting.insert(id) }
    }

    /// The next link is here: nothing waits for it any more.
    mutating func takeWaitingForLink() -> [OperationID] {
        defer { waitingForLink = [] }
        return waitingForLink.sorted { $0.rawValue < $1.rawValue }
    }

    /// There will be no next link: those that wait for it alone.
    mutating func takeWaitingForNextLink() -> [OperationID] {
        defer { waitingForLink.formIntersection(lasting) }
        return waitingForLink.subtracting(lasting).sorted { $0.rawValue < $1.rawValue }
    }

    /// The link is lost: whether this one waits for the next.
    mutating func waitsForNextLink(_ id: OperationID) -> Bool {
        guard lasting.contains(id) else { return false }
        waitingForLink.insert(id)
        return true
    }

    /// The lasting ones are not wanted any more; those for this name, or all.
    mutating func takeLasting(_ name: AttributeName?) -> [OperationID] {
        let taken = lasting.filter { id in
            guard let name, case .attribute(let wanted)? = wishes[id] else { return name == nil }
            return wanted == name
        }
        for id in taken { forget(id) }
        return taken.sorted { $0.rawValue < $1.rawValue }
    }

    private mutating func forget(_ id: OperationID) {
        wishes[id] = nil
        waitingForLink.remove(id)
        lasting.remove(id)
    }

    /// Shows what was wished for: it counts as asked for from now on. Answers why it cannot be shown.
    mutating func grant(_ id: OperationID, from table: inout AttributeTable) -> PeripheralFailure? {
        defer { forget(id) }
        switch wishes[id] {
        case .services(let uuids)?:
            table.discoverServices(uuids)
        case .characteristics(let uuids, let service)?:
            guard table[service]?.isPresent == true else { return .service(.invalidated) }
            table.discoverCharacteristics(uuids, of: service)
        case .attribute(let name)?:
            switch table.discover(name) {
            case .success(let attribute): found[id] = attribute
            case .failure(let failure): return failure
            }
        case nil:
            break
        }
        return nil
    }

    /// Nothing will be shown, for this reason.
    mutating func deny(_ id: OperationID, _ error: PeripheralError) -> PeripheralFailure {
        deny(id, .peripheral(error))
    }

    mutating func deny(_ id: OperationID, _ failure: PeripheralFailure) -> PeripheralFailure {
        forget(id)
        return failure
    }

    /// The time of a wish is up. Answers what that means for whoever has it; `nil` where there is no such wish.
    mutating func timedOut(_ id: OperationID) -> PeripheralFailure? {
        defer { forget(id) }
        switch wishes[id] {
        case .services?, .attribute?: return .peripheral(.serviceDiscoveryTimeout)
        case .characteristics?: return .service(.characteristicDiscoveryTimeout)
        case nil: return nil
        }
    }

    /// The attribute that a name was found to stand for.
    mutating func takeFound(_ id: OperationID) -> AttributeID? { found.removeValue(forKey: id) }
}
