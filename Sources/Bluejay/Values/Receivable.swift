public import Foundation

/// What can be received from a peripheral: it is made of bytes.
///
/// ```swift
/// struct BatteryLevel: Receivable {
///     let percent: UInt8
///
///     init(bluetoothData: Data) throws { percent = try bluetoothData.extract(start: 0, length: 1) }
/// }
/// ```
///
/// The fixed-width integers, `Data` and `String` conform; see ``Sendable`` for their bytes.
public protocol Receivable {
    /// Makes the value; an error that is thrown here is the failure of the read or listen that brought the bytes.
    init(bluetoothData: Data) throws
}

extension Data {
    /// The value that some of the bytes spell.
    ///
    /// ```swift
    /// let flags: UInt8 = try bluetoothData.extract(start: 0, length: 1)
    /// ```
    /// - Parameters:
    ///   - start: How many bytes to pass over. A slice counts from its own first byte.
    ///   - length: How many bytes the value has.
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` where there are not so many bytes or an argument is
    ///   negative, and what the type throws that is made of them: an integer that is wider than `length` throws the same.
    public func extract<R: Receivable>(start: Int, length: Int) throws -> R {
        guard start >= 0, length >= 0, start <= count, length <= count - start else {
            throw BluejayError.dataOutOfBounds(start: start, length: length, count: count)
        }
        let first = index(startIndex, offsetBy: start)
        return try R(bluetoothData: Data(self[first..<index(first, offsetBy: length)]))
    }
}
