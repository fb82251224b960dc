import Foundation

/// A measured quantity that is transmitted as a whole number of steps, such as hundredths of a degree.
///
/// ```swift
/// let temperature = BluetoothSIG.EnvironmentalSensingService.Temperature(21.37)
/// temperature?.rawValue       // 2137
/// temperature?.stringValue    // ["Temperature": "21.37 °C"]
/// ```
public protocol ScaledCharacteristic: RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
where RawType: ScalableNumber {
    /// The unit of ``value``, such as `"°C"`; empty if there is none.
    static var unit: String { get }
    /// How many steps of the transmitted number make one unit; 1 by default.
    static var stepsPerUnit: Double { get }
    /// The transmitted number for a quantity that is not known; by default `nil`: there is none.
    static var unknown: RawType? { get }
}

extension ScaledCharacteristic {
    public static var stepsPerUnit: Double { 1 }
    public static var unknown: RawType? { nil }
    public static var stringValues: [String] { [] }

    /// The quantity in ``unit``, or `nil` if it is not known.
    public var value: Double? { rawValue == Self.unknown ? nil : rawValue.doubleValue / Self.stepsPerUnit }

    /// Creates the quantity, in ``unit``, rounded to the nearest step; `nil` if that is out of range.
    public init?(_ value: Double) {
        guard let rawValue = RawType(nearest: value * Self.stepsPerUnit), rawValue != Self.unknown else { return nil }
        self.init(rawValue: rawValue)
    }

    /// The quantity with its unit under the characteristic's name, as `"21.37 °C"`; or `"unknown"`.
    public var stringValue: [String: String] {
        guard let value else { return [Self.name: "unknown"] }
        // Hundredths need two digits after the point, and quarters two as well.
        let digits = log10(Self.stepsPerUnit)
        let decimals = digits == digits.rounded() ? Int(digits) : Int(digits) + 2
        let number = String(format: "%.\(max(decimals, 0))f", value)
        return [Self.name: Self.unit.isEmpty ? number : "\(number) \(Self.unit)"]
    }

    /// Creates the quantity from the text under the characteristic's name, with its unit or without.
    public init?(stringValue: [String: String]) {
        let fields = TextFields(stringValue)
        if let unknown = Self.unknown, fields.text(Self.name) == "unknown" {
            self.init(rawValue: unknown)
        } else {
            guard let value = fields.text(Self.name, unit: Self.unit).flatMap({ Double($0) }) else { return nil }
            self.init(value)
        }
    }
}
