import Foundation

/// Three numbers of one type on the air that are a quantity along the axes x, y and z of the SensorTag.
///
/// The sensors sit on the board turned by half a circle about z, so x and y change their signs.
public protocol SensorTagAxes: RawArrayDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
where RawType: ScalableNumber & FixedWidthInteger {
    /// How many steps of the number on the air make one unit.
    static var stepsPerUnit: Double { get }
    /// The number on the air for x.
    var xRaw: RawType { get }
    /// The number on the air for y.
    var yRaw: RawType { get }
    /// The number on the air for z.
    var zRaw: RawType { get }
    init(xRaw: RawType, yRaw: RawType, zRaw: RawType)
}

extension SensorTagAxes {
    /// Three numbers.
    public static var size: Int { 3 }
    public static var stringValues: [String] { [] }
    public static var properties: CBCharacteristicProperties { [.read, .notify] }

    /// The quantity along x, in the unit that the type names.
    public var x: Double { 0 - xRaw.doubleValue / Self.stepsPerUnit }
    /// The quantity along y.
    public var y: Double { 0 - yRaw.doubleValue / Self.stepsPerUnit }
    /// The quantity along z.
    public var z: Double { zRaw.doubleValue / Self.stepsPerUnit }

    /// The quantities rounded to the nearest step, or `nil` when one is outside of what can be sent.
    public init?(x: Double, y: Double, z: Double) {
        guard let xRaw = RawType(nearest: -x * Self.stepsPerUnit), let yRaw = RawType(nearest: -y * Self.stepsPerUnit),
            let zRaw = RawType(nearest: z * Self.stepsPerUnit)
        else { return nil }
        self.init(xRaw: xRaw, yRaw: yRaw, zRaw: zRaw)
    }

    public var rawValue: [RawType] { [xRaw, yRaw, zRaw] }

    public init?(rawValue: [RawType]) {
        guard rawValue.count == 3 else { return nil }
        self.init(xRaw: rawValue[0], yRaw: rawValue[1], zRaw: rawValue[2])
    }

    /// `"x"`, `"y"`, `"z"` in the unit that the type names, and `"xRaw"`, `"yRaw"`, `"zRaw"`, the numbers on the air.
    public var stringValue: [String: String] {
        [
            "x": String(format: "%.2f", x), "y": String(format: "%.2f", y), "z": String(format: "%.2f", z),
            "xRaw": "\(xRaw)", "yRaw": "\(yRaw)", "zRaw": "\(zRaw)",
        ]
    }

    /// The value out of the numbers on the air; where none of them is given, out of the quantities.
    public init?(stringValue: [String: String]) {
        let raw = ["xRaw", "yRaw", "zRaw"].compactMap { stringValue[$0] }
        if raw.isEmpty {
            let values = ["x", "y", "z"].compactMap { stringValue[$0].flatMap { Double($0) } }
            guard values.count == 3 else { return nil }
            self.init(x: values[0], y: values[1], z: values[2])
        } else {
            self.init(rawValue: raw.compactMap { RawType($0) })
        }
    }
}
