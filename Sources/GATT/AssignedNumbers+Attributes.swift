extension AssignedNumbers {
    /// The name of a descriptor, such as `"Characteristic User Description"` for 2901, or `nil` when the table does not
    /// know it.
    public static func descriptorName(_ uuid: CBUUID) -> String? { uuid.assignedNumber.flatMap { descriptors[$0] } }

    /// The name of a characteristic that belongs to no profile of ours but stands in nearly every peripheral, such as
    /// `"Service Changed"` for 2A05, or `nil` for any other.
    public static func characteristicName(_ uuid: CBUUID) -> String? {
        uuid.assignedNumber.flatMap { housekeeping[$0] }
    }

    /// Assigned Numbers, 3.7, complete.
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

    /// Of the services Generic Access and Generic Attribute (Core Specification, Vol 3, Parts C and G).
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
