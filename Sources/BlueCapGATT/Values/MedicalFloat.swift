public import Foundation

/// A decimal number of medical devices: `mantissa · 10^exponent`, in 32 bits (IEEE 11073-20601, FLOAT-Type).
///
/// The exponent is the highest byte, the mantissa the three others. Five mantissas with the exponent 0 are no numbers.
public struct MedicalFloat: Deserializable, Hashable {
    /// The number before the power of ten, from -8 388 608 to 8 388 607.
    public let mantissa: Int32
    /// The power of ten.
    public let exponent: Int8

    /// No number: the device has no usable measurement.
    public static let notANumber = MedicalFloat(mantissa: 0x7F_FFFF, exponent: 0)

    private init(mantissa: Int32, exponent: Int8) {
        self.mantissa = mantissa
        self.exponent = exponent
    }

    /// Creates the nearest number with so many digits after the point, 0 to 7, or ``notANumber`` if it is out of range.
    public init(_ value: Double, decimals: Int) {
        let decimals = min(max(decimals, 0), 7)
        guard let mantissa = Int32(nearest: value * pow(10, Double(decimals))), abs(mantissa) <= 0x7F_FFFD else {
            self = .notANumber
            return
        }
        self.mantissa = mantissa
        exponent = Int8(-decimals)
    }

    /// The number; infinite or not a number if the device sent that.
    public var value: Double {
        switch mantissa {
        case 0x7F_FFFF, -0x80_0000, -0x7F_FFFF: .nan
        case 0x7F_FFFE: .infinity
        case -0x7F_FFFE: -.infinity
        // Dividing by a whole power gives 36.4 where multiplying by a tenth gives 36.400000000000006.
        default:
            exponent < 0
                ? Double(mantissa) / pow(10, -Double(exponent)) : Double(mantissa) * pow(10, Double(exponent))
        }
    }

    public static var size: Int { 4 }

    public static func deserialize(_ data: Data, start: Int) -> MedicalFloat? {
        guard let mantissa = Int24.deserialize(data, start: start),
            let exponent = Int8.deserialize(data, start: start + Int24.size)
        else { return nil }
        return MedicalFloat(mantissa: mantissa.value, exponent: exponent)
    }

    public static func deserialize(_ data: Data) -> MedicalFloat? { exactly(data) }

    public func serialize() -> Data { .joined(mantissa.serialize().prefix(Int24.size), exponent.serialize()) }

    /// The number in decimal digits with as many after the point as were measured, or as `"12e9"`.
    package var text: String {
        guard value.isFinite else { return "unknown" }
        guard (-7...0).contains(exponent) else { return "\(mantissa)e\(exponent)" }
        return String(format: "%.\(-exponent)f", value)
    }

    /// Creates a number from decimal digits, of which those after the point count as measured.
    package init?(text: String) {
        let parts = text.split(separator: "e", omittingEmptySubsequences: false)
        if text == "unknown" {
            self = .notANumber
        } else if parts.count == 2 {
            let numbers = parts.compactMap { Int32($0) }
            guard numbers.count == 2, Int24(numbers[0]) != nil, let exponent = Int8(exactly: numbers[1]) else {
                return nil
            }
            self.init(mantissa: numbers[0], exponent: exponent)
        } else {
            guard let value = Double(text), value.isFinite else { return nil }
            let decimals = text.firstIndex(of: ".").map { text.distance(from: $0, to: text.endIndex) - 1 } ?? 0
            self.init(value, decimals: decimals)
        }
    }
}
