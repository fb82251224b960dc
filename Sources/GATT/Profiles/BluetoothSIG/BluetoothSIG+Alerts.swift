/// How loudly a device calls for attention (Alert Level, 2A06).
public protocol AlertLevelCharacteristic: RawDeserializable, StringDeserializable, CharacteristicConfigurable,
    CaseIterable, Hashable
{}

extension AlertLevelCharacteristic {
    public static var uuid: String { "2A06" }
    public static var name: String { "Alert Level" }
    public static var stringValues: [String] { ["No Alert", "Mild Alert", "High Alert"] }
}

extension BluetoothSIG {
    /// What the device does when the link is lost (Link Loss Service 1.0.1).
    public enum LinkLossService: ServiceConfigurable {
        public static let uuid = "1803"
        public static let name = "Link Loss"
        public static let tag = BluetoothSIG.tag

        /// How loudly the device calls when the link is lost.
        public enum AlertLevel: UInt8, AlertLevelCharacteristic {
            case none = 0
            case mild = 1
            case high = 2
            public static let properties: CBCharacteristicProperties = [.read, .write]
        }
    }

    /// Makes the device call at once (Immediate Alert Service 1.0).
    public enum ImmediateAlertService: ServiceConfigurable {
        public static let uuid = "1802"
        public static let name = "Immediate Alert"
        public static let tag = BluetoothSIG.tag

        /// How loudly the device calls from now on. It is written without an answer, and cannot be read.
        public enum AlertLevel: UInt8, AlertLevelCharacteristic {
            case none = 0
            case mild = 1
            case high = 2
            public static let properties: CBCharacteristicProperties = [.writeWithoutResponse]
            public static let permissions: CBAttributePermissions = [.writeable]
        }
    }
}
