/// Names that the Bluetooth SIG assigned to numbers. They are for display only, never for decisions.
///
/// Taken from the SIG's public document "Assigned Numbers". The service list is complete for the range 0x1800 to 0x1859;
/// of the several thousand companies only those with common devices are here.
public enum AssignedNumbers {
    /// Returns the name of a service, such as `"Heart Rate"` for 180D, or `nil` if it is not in the table.
    public static func serviceName(_ uuid: CBUUID) -> String? {
        guard let number = uuid.assignedNumber else { return vendorServices[uuid] }
        guard let number = UInt16(exactly: number) else { return nil }
        return services[number]
    }

    /// Returns the name of the company with this identifier, such as `"Apple"` for 0x004C, or `nil` if it is not in the table.
    public static func companyName(_ identifier: UInt16) -> String? { companies[identifier] }

    /// Returns the name of an appearance, such as `"Watch"` for 0x00C0, or `nil` if it is not in the table.
    ///
    /// The upper ten bits of an appearance are its category, the lower six a kind within it. Common kinds
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

    /// Returns the name of a descriptor, such as `"Characteristic User Description"` for 2901, or `nil` if it is not in
    /// the table.
    public static func descriptorName(_ uuid: CBUUID) -> String? { uuid.assignedNumber.flatMap { descriptors[$0] } }

    /// Returns the name of a characteristic that most peripherals have and no ready-made profile describes, such as
    /// `"Service Changed"` for 2A05, or `nil` for any other.
    public static func characteristicName(_ uuid: CBUUID) -> String? {
        uuid.assignedNumber.flatMap { housekeeping[$0] }
    }

    /// All descriptors (Assigned Numbers, 3.7).
    private static let descriptors: [UInt32: String] = [
        0x2900: "Characteristic Extended Properties",
        0x2901: "Characteristic User Description",
        0x2902: "Client Characteristic Configuration",
        0x2903: "Server Characteristic Configuration",
        0x2904: "Characteristic Presentation Format",
        0x2905: "Characteristic Aggregate Format",
        0x2906: "Valid Range",
        0x2907: "External Report Reference",
        0x2908: "Report Reference",
        0x2909: "Number of Digitals",
        0x290A: "Value Trigger Setting",
        0x290B: "Environmental Sensing Configuration",
        0x290C: "Environmental Sensing Measurement",
        0x290D: "Environmental Sensing Trigger Setting",
        0x290E: "Time Trigger Setting",
        0x290F: "Complete BR-EDR Transport Block Data",
        0x2910: "Observation Schedule",
        0x2911: "Valid Range and Accuracy",
    ]

    /// Characteristics of the services Generic Access and Generic Attribute (Core Specification, Vol 3, Parts C and G).
    private static let housekeeping: [UInt32: String] = [
        0x2A05: "Service Changed",
        0x2AA6: "Central Address Resolution",
        0x2AC9: "Resolvable Private Address Only",
        0x2B29: "Client Supported Features",
        0x2B2A: "Database Hash",
        0x2B3A: "Server Supported Features",
        0x2B88: "Encrypted Data Key Material",
        0x2BF5: "LE GATT Security Levels",
    ]
}
