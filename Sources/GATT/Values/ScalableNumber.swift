/// A number on the air that stands for a measured quantity when divided by a constant.
public protocol ScalableNumber: Deserializable, Equatable {
    /// The number, exactly.
    var doubleValue: Double { get }
    /// The nearest number, or `nil` when it does not fit or is not a number.
    init?(nearest value: Double)
}

extension ScalableNumber where Self: FixedWidthInteger {
    public var doubleValue: Double { Double(self) }
    public init?(nearest value: Double) { self.init(exactly: value.rounded()) }
}

extension UInt8: ScalableNumber {}
extension Int8: ScalableNumber {}
extension UInt16: ScalableNumber {}
extension Int16: ScalableNumber {}
extension UInt32: ScalableNumber {}
extension Int32: ScalableNumber {}

extension UInt24: ScalableNumber {
    public var doubleValue: Double { Double(value) }
    public init?(nearest value: Double) {
        guard let number = UInt32(nearest: value) else { return nil }
        self.init(number)
    }
}

extension Int24: ScalableNumber {
    public var doubleValue: Double { Double(value) }
    public init?(nearest value: Double) {
        guard let number = Int32(nearest: value) else { return nil }
        self.init(number)
    }
}
