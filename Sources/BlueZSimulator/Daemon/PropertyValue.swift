/// The value of a property or an argument, of the kinds that BlueZ's interfaces have; absent is nil, never a kind.
enum PropertyValue: Hashable, Sendable {
    case string(String)
    case objectPath(String)
    case bool(Bool)
    case byte(UInt8)
    case int16(Int16)
    case uint16(UInt16)
    case uint32(UInt32)
    case strings([String])
    case objectPaths([String])
    case bytes([UInt8])
    /// `a{qv}` with `ay` inside.
    case manufacturerData([AdvertisingReport.ManufacturerData])
    /// `a{sv}` with `ay` inside.
    case serviceData([AdvertisingReport.ServiceData])
    /// `a{yv}` with `ay` inside.
    case advertisingData([AdvertisingReport.OtherData])
    /// `a{sv}`.
    case options([NamedValue])

    /// The D-Bus signature.
    var signature: String {
        switch self {
        case .string: "s"
        case .objectPath: "o"
        case .bool: "b"
        case .byte: "y"
        case .int16: "n"
        case .uint16: "q"
        case .uint32: "u"
        case .strings: "as"
        case .objectPaths: "ao"
        case .bytes: "ay"
        case .manufacturerData: "a{qv}"
        case .serviceData, .options: "a{sv}"
        case .advertisingData: "a{yv}"
        }
    }

    /// The same property as a daemon gone wrong would write it: a valid message, of another type.
    var mistyped: PropertyValue {
        switch self {
        case .string, .objectPath: .uint32(0xBAD)
        case .bool, .byte, .int16, .uint16, .uint32: .string("not what you expect")
        case .strings, .objectPaths: .string("0000180d-0000-1000-8000-00805f9b34fb")
        case .bytes: .string("0102")
        case .manufacturerData, .serviceData, .advertisingData, .options: .strings(["not", "bytes"])
        }
    }
}

/// A property with its name.
struct NamedValue: Hashable, Sendable {
    var name: String
    var value: PropertyValue
}
