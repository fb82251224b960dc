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

    /// By owner and peer.
    private var keys: [VirtualAddress: [VirtualAddress: Key]] = [:]
    private var count: UInt64 = 0

    /// The key that a device has for a peer, also one that is only stored. The peer has its own.
    subscript(owner: VirtualAddress, peer: VirtualAddress) -> Key? {
        get { keys[owner]?[peer] }
        set { keys[owner, default: [:]][peer] = newValue }
    }

    /// The key that the kernel has.
    func key(of owner: VirtualAddress, for peer: VirtualAddress) -> Key? {
        self[owner, peer].flatMap { $0.isLoaded ? $0 : nil }
    }

    /// Gives two devices the keys of a pairing, in place of those that they had.
    mutating func add(_ first: VirtualAddress, _ second: VirtualAddress, _ security: LinkSecurity, isBonded: Bool) {
        count += 1
        let key = Key(number: count, security: security, isBonded: isBonded)
        (self[first, second], self[second, first]) = (key, key)
    }

    /// Returns the security of a link that a central encrypts with its key; nil if one of both lacks that key.
    func encryption(from central: VirtualAddress, to peripheral: VirtualAddress) -> LinkSecurity? {
        guard let key = key(of: central, for: peripheral) else { return nil }
        return self.key(of: peripheral, for: central)?.number == key.number ? key.security : nil
    }

    /// Loads the stored keys of an adapter.
    mutating func load(of owner: VirtualAddress) {
        for peer in (keys[owner] ?? [:]).keys { keys[owner]?[peer]?.isLoaded = true }
    }

    /// Deletes the keys that are for one link only.
    mutating func linkEnded(_ first: VirtualAddress, _ second: VirtualAddress) {
        for (owner, peer) in [(first, second), (second, first)] where self[owner, peer]?.isBonded == false {
            self[owner, peer] = nil
        }
    }
}
