public import Foundation

/// Apple's beacon: a UUID shared by all beacons of an owner, and two numbers that distinguish them.
///
/// Manufacturer data of company 0x004C (Apple, *Proximity Beacon Specification*, release R1): `02 15`, the UUID, major and
/// minor with the most significant byte first, and the measured power; 23 bytes.
///
/// ```swift
/// let beacon = IBeacon(uuid: floor, major: 1, minor: 7)
/// beacon.data                       // 02 15 … 00 01 00 07 C5
/// IBeacon(data: beacon.data)        // the same beacon
/// ```
public struct IBeacon: Hashable, Sendable {
    /// The company identifier under which it is advertised.
    public static let company: UInt16 = 0x004C

    /// The proximity UUID, which all beacons of an owner share.
    public var uuid: UUID
    /// The group within the UUID's beacons.
    public var major: UInt16
    /// The beacon within the group.
    public var minor: UInt16
    /// The signal strength at a distance of one metre in dBm; -59 is usual for a telephone that acts as a beacon.
    public var measuredPower: Int8

    /// Creates a beacon of its fields.
    public init(uuid: UUID, major: UInt16, minor: UInt16, measuredPower: Int8 = -59) {
        self.uuid = uuid
        self.major = major
        self.minor = minor
        self.measuredPower = measuredPower
    }

    /// Reads manufacturer data without its company identifier; `nil` if they do not begin with an iBeacon's 23 bytes. Some
    /// beacons add bytes, such as the level of a battery; they are ignored.
    public init?(data: Data) {
        let bytes = [UInt8](data)
        guard bytes.count >= 23, bytes[0] == 0x02, bytes[1] == 0x15, let uuid = CBUUID(validating: Data(bytes[2..<18]))
        else {
            return nil
        }
        self.init(
            uuid: uuid.nsuuid, major: UInt16(bigEndian: bytes[18..<20]),
            minor: UInt16(bigEndian: bytes[20..<22]), measuredPower: Int8(bitPattern: bytes[22]))
    }

    /// The manufacturer data, without the company identifier, as BlueZ expects it for company ``company``.
    public var data: Data {
        // Not `CBUUID.data`: that is shorter for a UUID on Bluetooth's base.
        let id = withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) }
        return Data(
            [0x02, 0x15] + id + major.bigEndianBytes + minor.bigEndianBytes + [UInt8(bitPattern: measuredPower)])
    }
}

/// The open counterpart of iBeacon: twenty bytes of identity, under any company's identifier.
///
/// *AltBeacon Protocol Specification* 1.0 (Radius Networks): `BE AC`, twenty bytes of which an owner shares the first
/// sixteen among its beacons, the strength at one metre, and a byte of the manufacturer's; 24 bytes.
public struct AltBeacon: Hashable, Sendable {
    /// The manufacturer's company identifier (Bluetooth Assigned Numbers, 7.1).
    public var company: UInt16
    /// The first sixteen bytes of the identity, the owner's.
    public var organization: UUID
    /// The last four bytes of the identity, the most significant first; many use them as major and minor.
    public var number: UInt32
    /// The signal strength at a distance of one metre in dBm.
    public var measuredPower: Int8
    /// A byte of the manufacturer's.
    public var manufacturerReserved: UInt8

    /// Creates a beacon of its fields. 0x0118, Radius Networks, is the company of the specification's examples.
    public init(
        company: UInt16 = 0x0118, organization: UUID, number: UInt32, measuredPower: Int8 = -59,
        manufacturerReserved: UInt8 = 0
    ) {
        self.company = company
        self.organization = organization
        self.number = number
        self.measuredPower = measuredPower
        self.manufacturerReserved = manufacturerReserved
    }

    /// Reads manufacturer data without its company identifier; `nil` if they do not begin with an AltBeacon's 24 bytes. Bytes
    /// that follow are ignored.
    public init?(company: UInt16, data: Data) {
        let bytes = [UInt8](data)
        guard bytes.count >= 24, bytes[0] == 0xBE, bytes[1] == 0xAC, let id = CBUUID(validating: Data(bytes[2..<18]))
        else {
            return nil
        }
        self.init(
            company: company, organization: id.nsuuid, number: UInt32(bigEndian: bytes[18..<22]),
            measuredPower: Int8(bitPattern: bytes[22]), manufacturerReserved: bytes[23])
    }

    /// The manufacturer data, without the company identifier, as BlueZ expects it for company ``company``.
    public var data: Data {
        let id = withUnsafeBytes(of: organization.uuid) { [UInt8]($0) }
        return Data(
            [0xBE, 0xAC] + id + number.bigEndianBytes + [UInt8(bitPattern: measuredPower), manufacturerReserved])
    }
}

extension FixedWidthInteger {
    init(bigEndian bytes: ArraySlice<UInt8>) { self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) } }

    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}
