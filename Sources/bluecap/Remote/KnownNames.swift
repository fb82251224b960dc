import BlueCapKit

/// The names of the devices that this user's commands have found bonded.
///
/// BlueZ has one name for a device, and changes it: an advertisement sets the advertised name, and a connection the one that BlueZ
/// reads from the device (Device Name, 2A00). A user knows the one or the other.
struct KnownNames: KeptState {
    struct Device: Codable, Equatable, Sendable {
        var address: String
        var names: [String]
    }

    static let folder = "names"
    static let version = 1
    /// A device that changes its name, and a user with many devices, cannot fill the disk.
    private static let mostNames = 4
    private static let mostDevices = 100

    /// The newest last.
    private(set) var devices: [Device] = []

    /// Returns the file; `nil` for a simulated bus, whose devices end with the command.
    static func file(for radio: Radio) -> SharedStateFile<KnownNames>? {
        radio.busAddress == nil ? SharedStateFile("names") : nil
    }

    subscript(address: BluetoothAddress) -> [String] {
        devices.first { $0.address == address.description }?.names ?? []
    }

    mutating func add(_ names: [String], of address: BluetoothAddress) {
        let known = self[address]
        let all = known + names.filter { !known.contains($0) }
        guard all != known else { return }
        remove(address)
        devices.append(Device(address: address.description, names: all.suffix(Self.mostNames)))
        devices = devices.suffix(Self.mostDevices)
    }

    mutating func remove(_ address: BluetoothAddress) { devices.removeAll { $0.address == address.description } }
}
