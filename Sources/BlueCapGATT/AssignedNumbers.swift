/// Names that the Bluetooth SIG assigned to numbers. They are for display only, never for decisions.
///
/// Taken from the SIG's public document "Assigned Numbers". The service list is complete for the range 0x1800 to 0x1859;
/// of the several thousand companies only those with common devices are here.
public enum AssignedNumbers {
    /// Returns the name of a service, such as `"Heart Rate"` for 180D, or `nil` if it is not in the table.
    public static func serviceName(_ uuid: CBUUID) -> String? {
        guard let number = uuid.assignedNumber else { return vendorServices[uuid] }
        return services[number]
    }

    /// Returns the name of the company with this identifier, such as `"Apple"` for 0x004C, or `nil` if it is not in the table.
    public static func companyName(_ identifier: UInt16) -> String? { companies[UInt32(identifier)] }

    /// Returns the name of an appearance, such as `"Watch"` for 0x00C0, or `nil` if it is not in the table.
    ///
    /// The upper ten bits of an appearance are its category, the lower six a kind within it. Common kinds
    /// (keyboard, mouse) have their own names, the others that of their category.
    public static func appearanceName(_ appearance: UInt16) -> String? {
        appearances[UInt32(appearance)] ?? appearanceCategories[UInt32(appearance >> 6)]
    }

    /// Returns the names that the lines of `text` give to hexadecimal numbers. A dictionary literal of so many entries takes the
    /// compiler as long as a file of code. Like such a literal with a number twice, a line in another form traps: the texts are
    /// those of this module, and a test reads each.
    static func names(_ text: StaticString) -> [UInt32: String] {
        Dictionary(
            uniqueKeysWithValues: text.description.split(separator: "\n").map { line in
                let end = line.firstIndex(of: " ")!
                return (UInt32(line[..<end], radix: 16)!, String(line[line.index(after: end)...]))
            })
    }

    private static let appearances = names(
        """
        03C1 Keyboard
        03C2 Mouse
        03C3 Joystick
        03C4 Gamepad
        03C5 Digitizer Tablet
        03C6 Card Reader
        03C7 Digital Pen
        03C8 Barcode Scanner
        """)

    private static let appearanceCategories = names(
        """
        01 Phone
        02 Computer
        03 Watch
        04 Clock
        05 Display
        06 Remote Control
        07 Eye-glasses
        08 Tag
        09 Keyring
        0A Media Player
        0B Barcode Scanner
        0C Thermometer
        0D Heart Rate Sensor
        0E Blood Pressure
        0F Human Interface Device
        10 Glucose Meter
        11 Running Walking Sensor
        12 Cycling
        13 Control Device
        14 Network Device
        15 Sensor
        16 Light Fixtures
        17 Fan
        18 HVAC
        19 Air Conditioning
        1A Humidifier
        1B Heating
        1C Access Control
        1D Motorized Device
        1E Power Device
        1F Light Source
        20 Window Covering
        21 Audio Sink
        22 Audio Source
        23 Motorized Vehicle
        24 Domestic Appliance
        25 Wearable Audio Device
        26 Aircraft
        27 AV Equipment
        28 Display Equipment
        29 Hearing Aid
        2A Gaming
        2B Signage
        31 Pulse Oximeter
        32 Weight Scale
        33 Personal Mobility Device
        34 Continuous Glucose Monitor
        35 Insulin Pump
        36 Medication Delivery
        37 Spirometer
        51 Outdoor Sports Activity
        """)

    /// Returns the name of a descriptor, such as `"Characteristic User Description"` for 2901, or `nil` if it is not in
    /// the table.
    public static func descriptorName(_ uuid: CBUUID) -> String? { uuid.assignedNumber.flatMap { descriptors[$0] } }

    /// Returns the name of a characteristic that most peripherals have and no ready-made profile describes, such as
    /// `"Service Changed"` for 2A05, or `nil` for any other.
    public static func characteristicName(_ uuid: CBUUID) -> String? {
        uuid.assignedNumber.flatMap { housekeeping[$0] }
    }

    /// All descriptors (Assigned Numbers, 3.7).
    private static let descriptors = names(
        """
        2900 Characteristic Extended Properties
        2901 Characteristic User Description
        2902 Client Characteristic Configuration
        2903 Server Characteristic Configuration
        2904 Characteristic Presentation Format
        2905 Characteristic Aggregate Format
        2906 Valid Range
        2907 External Report Reference
        2908 Report Reference
        2909 Number of Digitals
        290A Value Trigger Setting
        290B Environmental Sensing Configuration
        290C Environmental Sensing Measurement
        290D Environmental Sensing Trigger Setting
        290E Time Trigger Setting
        290F Complete BR-EDR Transport Block Data
        2910 Observation Schedule
        2911 Valid Range and Accuracy
        """)

    /// Characteristics of the services Generic Access and Generic Attribute (Core Specification, Vol 3, Parts C and G).
    private static let housekeeping = names(
        """
        2A05 Service Changed
        2AA6 Central Address Resolution
        2AC9 Resolvable Private Address Only
        2B29 Client Supported Features
        2B2A Database Hash
        2B3A Server Supported Features
        2B88 Encrypted Data Key Material
        2BF5 LE GATT Security Levels
        """)
}
