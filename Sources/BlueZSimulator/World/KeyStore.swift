/// The keys of all devices, each of which keeps its own: adapters by their addresses, virtual devices by their identities.
struct KeyStore: Hashable, Sendable {
    struct Key: Hashable, Sendable {
        /// The pairing that it comes from: both devices have keys of the same number.
        fileprivate(set) var number: UInt64
        var security: LinkSecurity
        /// Whether it is kept when the link ends.
        var isBonded: Bool
        /// Whether the kernel has it. One that is only stored is loaded when bluetoothd starts.
        var isLoaded = true
    }

    /// What an attempt to encrypt a link leads to.
    enum Encryption: Hashable, Sendable {
        case success(LinkSecurity)
        /// The central has no key.
        case unpaired
        /// The peripheral does not have the key of the central.
        case keyMissing
    }

    private struct Place: Hashable, Sendable {
        var owner: VirtualAddress
        var peer: VirtualAddress
    }

    private var keys: [Place: Key] = [:]
    private var count: UInt64 = 0

    func key(of owner: VirtualAddress, for peer: VirtualAddress) -> Key? {
        keys[Place(owner: owner, peer: peer)].flatMap { $0.isLoaded ? $0 : nil }
    }

    /// Gives two devices the keys of a pairing, in place of those that they had.
    mutating func add(_ first: VirtualAddress, _ second: VirtualAddress, _ security: LinkSecurity, isBonded: Bool) {
        count += 1
        let key = Key(number: count, security: security, isBonded: isBonded)
        keys[Place(owner: first, peer: second)] = key
        keys[Place(owner: second, peer: first)] = key
    }

    /// Returns what happens if a central encrypts its link with the key that it has.
    func encryption(from central: VirtualAddress, to peripheral: VirtualAddress) -> Encryption {
        guard let key = key(of: central, for: peripheral) else { return .unpaired }
        return self.key(of: peripheral, for: central)?.number == key.number ? .success(key.security) : .keyMissing
    }

    /// Deletes the key that a device has for a peer. The peer keeps its own.
    mutating func remove(of owner: VirtualAddress, for peer: VirtualAddress) {
        keys[Place(owner: owner, peer: peer)] = nil
    }

    /// Deletes the key in the kernel, and keeps the stored one.
    mutating func unload(of owner: VirtualAddress, for peer: VirtualAddress) {
        keys[Place(owner: owner, peer: peer)]?.isLoaded = false
    }

    /// Loads the stored keys of an adapter.
    mutating func load(of owner: VirtualAddress) {
        for place in keys.keys where place.owner == owner { keys[place]?.isLoaded = true }
    }

    /// Deletes the keys that are for one link only.
    mutating func linkEnded(_ first: VirtualAddress, _ second: VirtualAddress) {
        for place in [Place(owner: first, peer: second), Place(owner: second, peer: first)]
        where keys[place]?.isBonded == false {
            keys[place] = nil
        }
    }
}
