/// What a sensor measured, decoded from one advertisement.
public struct SensorReading: Hashable, Sendable {
    /// The name of the format, in lower case: `bthome_v2`, `ruuvi_5`, `ruuvi_3`, `eddystone_tlm`, `atc1441`, `pvvx`, `govee`,
    /// `mibeacon`, `service_data`, `swift_pair`, `fast_pair` or `apple_continuity`; of other decoders, the name that they have.
    public var format: String
    /// The values, in the order in which the advertisement contains them. A value that the sensor marks as not available is
    /// not in the list. Empty if ``isEncrypted`` is `true`.
    public var values: [SensorValue]
    /// A number of the sensor's that changes with each measurement, or with each advertisement; `nil` if the advertisement
    /// contains none.
    ///
    /// Two readings of a format with the same number are usually one that was received twice. The number begins again at 0
    /// after the highest number of its format: 255 of BTHome, ATC1441, pvvx and MiBeacon, 65 534 of Ruuvi. That of encrypted BTHome data
    /// and of Eddystone has 32 bits.
    public var sequenceNumber: UInt32?
    /// The address that the data itself contains; `nil` if it contains none. It can differ from the address of the sender.
    public var address: BluetoothAddress?
    /// Whether the data is encrypted, so that there are no values.
    public var isEncrypted: Bool
    /// Whether the sensor sends when something occurs, such as a button that is pressed, and otherwise may be silent for any
    /// time. `false` if it sends at an interval, or if the format does not have this property.
    public var isTriggerBased: Bool

    /// Creates a reading from its properties.
    public init(
        format: String, values: [SensorValue] = [], sequenceNumber: UInt32? = nil, address: BluetoothAddress? = nil,
        isEncrypted: Bool = false, isTriggerBased: Bool = false
    ) {
        (self.format, self.values, self.sequenceNumber) = (format, values, sequenceNumber)
        (self.address, self.isEncrypted, self.isTriggerBased) = (address, isEncrypted, isTriggerBased)
    }

    /// Returns the first value of a quantity; `nil` if there is none.
    public subscript(quantity: SensorQuantity) -> SensorValue? { values.first { $0.quantity == quantity } }
}

/// One value of a ``SensorReading``: what is measured, the value and its unit.
public struct SensorValue: Hashable, Sendable {
    /// The value itself.
    public enum Value: Hashable, Sendable {
        /// A number, in the unit ``SensorValue/unit``. The decoders of this package create finite numbers only.
        case number(Double)
        /// A state, of which `true` has the meaning that is documented with the quantity.
        case flag(Bool)
        /// A text, or the name of an event in lower case. The sensor determines a text: it may contain any characters.
        case text(String)
    }

    /// What the value is a value of.
    public var quantity: SensorQuantity
    /// The number of the value among those of this quantity in the reading, from 1; `nil` if it is the only one.
    ///
    /// A sensor that sends several values of a quantity sends them in the same order in each advertisement.
    public var number: Int?
    /// The value.
    public var value: Value
    /// The unit as a symbol, such as `°C`, `%` or `m/s²`; empty if there is none.
    public var unit: String

    /// Creates a value from its properties.
    public init(_ quantity: SensorQuantity, _ value: Value, unit: String = "", number: Int? = nil) {
        (self.quantity, self.number, self.value, self.unit) = (quantity, number, value, unit)
    }

    /// A name that no other value of the reading has: `temperature`, or `temperature_2` for the second of several.
    public var name: String { number.map { "\(quantity.rawValue)_\($0)" } ?? quantity.rawValue }
}
