/// A key that a file has and the format does not.
struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}

extension Decoder {
    /// The keyed container, after a look for keys that the format does not know: a mistyped key in a room's file must
    /// be said, or its peripheral would quietly behave in the default way.
    func strictContainer<Key: CodingKey & CaseIterable>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        let present = try container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
        let known = Set(Key.allCases.map(\.stringValue))
        if let stranger = present.sorted().first(where: { !known.contains($0) }) {
            let list = Key.allCases.map(\.stringValue).joined(separator: ", ")
            throw DecodingError.dataCorrupted(
                .init(codingPath: codingPath, debugDescription: "unknown key \"\(stranger)\"; there are: \(list)"))
        }
        return try container(keyedBy: type)
    }
}
