import DBus

extension ObjectTree {
    /// Takes over another interface of an adapter: the reader stands at its `a{sv}`.
    /// - Returns: Whether that is news to those who know the adapter.
    mutating func extraAdded(
        _ extra: Adapter1.Interfaces, to key: ObjectKey, _ reader: inout MessageReader
    ) -> Bool {
        var entry = adapters[key] ?? AdapterEntry(adapter: Adapter1(), isAdapter: false)
        let isNew = entry.adapter.interfaces.insert(extra).inserted
        entry.adapter.take(extra, &reader)
        adapters[key] = entry
        return isNew && entry.isAdapter
    }

    /// Makes an adapter's capabilities what all that is known now amounts to.
    /// - Parameter isNew: Whether the adapter is reported as added by the same message.
    mutating func settleCapabilities(of key: ObjectKey, isNew: Bool = false, into changes: inout ChangeBuffer) {
        guard let entry = adapters[key], entry.isAdapter else { return }
        let capabilities = DaemonCapabilities(of: entry.adapter, hints)
        guard capabilities != entry.adapter.capabilities else { return }
        adapters[key]?.adapter.capabilities = capabilities
        if !isNew { changes.append(.adapterChanged(key, .capabilities)) }
    }

    /// More is known of the daemon.
    mutating func learn(into changes: inout ChangeBuffer, _ change: (inout DaemonHints) -> Void) {
        let before = hints
        change(&hints)
        guard hints != before else { return }
        for key in adapterKeys { settleCapabilities(of: key, into: &changes) }
    }
}

extension Adapter1 {
    /// Takes over properties of another interface: the reader stands at an `a{sv}`.
    mutating func take(_ extra: Interfaces, _ reader: inout MessageReader) {
        switch extra {
        case .advertisingManager: advertising.take(&reader)
        case .advertisementMonitorManager:
            var types = monitorTypes
            reader.dictionary { entry in
                guard entry.string() == "SupportedMonitorTypes" else { return }
                _ = entry.variant { value in
                    if let names = value.strings() { types = names }
                }
            }
            monitorTypes = types
        default: break
        }
    }

    mutating func keepExtras(of old: Adapter1?) {
        guard let old else { return }
        interfaces = old.interfaces
        advertising = old.advertising
        monitorTypes = old.monitorTypes
        capabilities = old.capabilities
    }

    mutating func remove(_ extra: Interfaces) {
        interfaces.remove(extra)
        if extra == .advertisingManager { advertising = AdvertisingCapabilities() }
        if extra == .advertisementMonitorManager { monitorTypes = [] }
    }
}
