/// Names that the Bluetooth SIG gave to numbers; for people to read, never to decide by.
///
/// Taken from the SIG's public document "Assigned Numbers". The service list is complete for the range 0x1800 to 0x1859;
/// of the several thousand companies only those are here whose devices people meet most.
public enum AssignedNumbers {
    /// The name of a service, such as `"Heart Rate"` for 180D, or `nil` when this table does not know it.
    public static func serviceName(_ uuid: CBUUID) -> String? {
        guard let number = uuid.assignedNumber else { return vendorServices[uuid] }
        guard let number = UInt16(exactly: number) else { return nil }
        return services[number]
    }

    /// The name of the company with this identifier, such as `"Apple"` for 0x004C, or `nil` when it is not in the table.
    public static func companyName(_ identifier: UInt16) -> String? { companies[identifier] }

    /// What a device with this appearance is, such as `"Watch"` for 0x00C0, or `nil` when the table does not know it.
    ///
    /// The upper ten bits of an appearance are its category, the lower six a kind within it. Kinds that people know
    /// (keyboard, mouse) have their own names, the others that of their category.
    public static func appearanceName(_ appearance: UInt16) -> String? {
        appearances[appearance] ?? appearanceCategories[appearance >> 6]
    }

    private static let appearances: [UInt16: String] = [
        0x03C1: "Keyboard", 0x03C2: "Mouse", 0x03C3: "Joystick", 0x03C4: "Gamepad", 0x03C5: "Digitizer Tablet",
        0x03C6: "Card Reader", 0x03C7: "Digital Pen", 0x03C8: "Barcode Scanner",
    ]

    private static let appearanceCategories: [UInt16: String] = [
        1: "Phone", 2: "Computer", 3: "Watch", 4: "Clock", 5: "Display", 6: "Remote Control", 7: "Eye-glasses",
        8: "Tag", 9: "Keyring", 10: "Media Player", 11: "Barcode Scanner", 12: "Thermometer", 13: "Heart Rate Sensor",
        14: "Blood Pressure", 15: "Human Interface Device", 16: "Glucose Meter", 17: "Running Walking Sensor",
        18: "Cycling", 19: "Control Device", 20: "Network Device", 21: "Sensor", 22: "Light Fixtures", 23: "Fan",
        24: "HVAC", 25: "Air Conditioning", 26: "Humidifier", 27: "Heating", 28: "Access Control",
        29: "Motorized Device", 30: "Power Device", 31: "Light Source", 32: "Window Covering", 33: "Audio Sink",
        34: "Audio Source", 35: "Motorized Vehicle", 36: "Domestic Appliance", 37: "Wearable Audio Device",
        38: "Aircraft", 39: "AV Equipment", 40: "Display Equipment", 41: "Hearing Aid", 42: "Gaming", 43: "Signage",
        49: "Pulse Oximeter", 50: "Weight Scale", 51: "Personal Mobility Device", 52: "Continuous Glucose Monitor",
        53: "Insulin Pump", 54: "Medication Delivery", 55: "Spirometer", 81: "Outdoor Sports Activity",
    ]
}
