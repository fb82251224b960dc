public import Foundation

/// Text in UTF-8, as GATT's `utf8s`.
///
/// ```swift
/// let text: String? = SerDe.deserialize(Data("Hi".utf8))  // "Hi"
/// ```
extension String: CharacteristicCodable {
    /// Returns the text of the bytes; `nil` if they are not UTF-8.
    ///
    /// Some peripherals fill a value of a fixed length with NUL: these bytes are not part of the text.
    public static func deserialize(_ data: Data) -> String? { String(paddedText: data) }

    /// Returns the text in UTF-8.
    public func serialize() -> Data { Data(utf8) }

    /// Creates the text of bytes in UTF-8, or returns `nil` if they are not UTF-8. Zeros at the end, with which devices fill up a
    /// value of fixed length, are not a part of it.
    package init?(paddedText data: Data) {
        let end: Data.Index = data.lastIndex { $0 != 0 }.map { $0 + 1 } ?? data.startIndex
        self.init(validating: data[..<end], as: UTF8.self)
    }
}
