extension Device1 {
    /// Takes over what another word on the same device has new.
    ///
    /// A sighting changes a strength and a few bytes; copying all the rest would cost as much as decoding them.
    package mutating func take(_ new: Fields, from other: borrowing Device1) {
        guard new.isSubset(of: [.rssi, .manufacturerData, .serviceData]) else {
            self = copy other
            return
        }
        fields = other.fields
        rawRSSI = other.rawRSSI
        if new.contains(.manufacturerData) { manufacturerData = other.manufacturerData }
        if new.contains(.serviceData) { serviceData = other.serviceData }
    }
}
