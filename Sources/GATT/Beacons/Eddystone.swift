public import Foundation

/// Google's beacon: frames of several kinds, as data of the service FEAA (*Eddystone Protocol Specification*).
///
/// One beacon usually sends its frames in turn. BlueZ keeps the newest of them, so they are met one after another.
/// Encrypted telemetry and ephemeral identities (EID) mean nothing without their keys, and are not read.
///
/// The frames give the strength at no distance: 41 dB more than at one metre, says the specification.
public enum Eddystone {
    /// The service whose data the frames are.
    public static let service = CBUUID(0xFEAA)
    /// What a signal loses on its first metre, in dB.
    static let lossAtOneMetre = 41

    /// The identity of a beacon: ten bytes of its owner's, and six of its own.
    public struct UID: Hashable, Sendable {
        /// The strength at no distance in dBm.
        public var powerAtZeroMetres: Int8
        /// Ten bytes that an owner's beacons share.
        public let namespace: Data
        /// Six bytes that tell them apart.
        public let instance: Data

        /// `nil` unless `namespace` has ten bytes and `instance` six.
        /// - Parameters:
        ///   - namespace: Ten bytes that an owner's beacons share.
        ///   - instance: Six bytes that tell them apart.
        ///   - powerAtZeroMetres: dBm, from -100 to +20: what is measured at one metre, and 41 more.
        public init?(namespace: Data, instance: Data, powerAtZeroMetres: Int8 = -18) {
            guard namespace.count == 10, instance.count == 6 else { return nil }
            self.powerAtZeroMetres = powerAtZeroMetres
            // A slice keeps its indices; a value of ours begins at 0.
            self.namespace = Data(namespace)
            self.instance = Data(instance)
        }

        /// Reads data of the service FEAA; `nil` where they are no UID frame. The last two bytes are reserved, and many
        /// beacons leave them out.
        public init?(data: Data) {
            let bytes = [UInt8](data)
            guard bytes.count == 18 || bytes.count == 20, bytes[0] == 0x00 else { return nil }
            self.init(
                namespace: Data(bytes[2..<12]), instance: Data(bytes[12..<18]),
                powerAtZeroMetres: Int8(bitPattern: bytes[1]))
        }

        /// The service data, twenty bytes.
        public var data: Data {
            Data([0x00, UInt8(bitPattern: powerAtZeroMetres)]) + namespace + instance + Data([0, 0])
        }
    }

    /// Telemetry of a beacon, unencrypted.
    public struct TLM: Hashable, Sendable {
        /// The battery's voltage in mV; `nil` for a beacon that does not measure it.
        public var batteryMillivolts: UInt16?
        private var rawTemperature: Int16
        /// How many advertisements it has sent since it was switched on.
        public var advertisementCount: UInt32
        /// Tenths of a second since it was switched on.
        public var tenthsOfUptime: UInt32

        private static let noTemperature = Int16.min

        /// The temperature in degrees Celsius; `nil` for a beacon that does not measure it.
        ///
        /// Setting rounds to 1/256 degree, within -127.996 and +127.996; what is no number is none.
        public var temperature: Double? {
            get { rawTemperature == TLM.noTemperature ? nil : Double(rawTemperature) / 256 }
            set {
                guard let newValue, !newValue.isNaN else { return rawTemperature = TLM.noTemperature }
                rawTemperature = Int16(min(max((newValue * 256).rounded(), -32_767), 32_767))
            }
        }

        /// Seconds since it was switched on.
        public var uptime: TimeInterval { Double(tenthsOfUptime) / 10 }

        public init(
            batteryMillivolts: UInt16? = nil, temperature: Double? = nil, advertisementCount: UInt32,
            tenthsOfUptime: UInt32
        ) {
            // 0 mV is the frame's word for "not measured".
            self.batteryMillivolts = batteryMillivolts == 0 ? nil : batteryMillivolts
            rawTemperature = TLM.noTemperature
            self.advertisementCount = advertisementCount
            self.tenthsOfUptime = tenthsOfUptime
            self.temperature = temperature
        }

        /// Reads data of the service FEAA; `nil` where they are no unencrypted TLM frame.
        public init?(data: Data) {
            let bytes = [UInt8](data)
            guard bytes.count == 14, bytes[0] == 0x20, bytes[1] == 0x00 else { return nil }
            self.init(
                batteryMillivolts: UInt16(bigEndian: bytes[2], bytes[3]),
                advertisementCount: bytes[6..<10].reduce(0) { $0 << 8 | UInt32($1) },
                tenthsOfUptime: bytes[10..<14].reduce(0) { $0 << 8 | UInt32($1) })
            rawTemperature = Int16(bitPattern: UInt16(bigEndian: bytes[4], bytes[5]))
        }

        /// The service data, fourteen bytes.
        public var data: Data {
            Data(
                [0x20, 0x00] + (batteryMillivolts ?? 0).bigEndianBytes + rawTemperature.bigEndianBytes
                    + advertisementCount.bigEndianBytes + tenthsOfUptime.bigEndianBytes)
        }
    }
}
