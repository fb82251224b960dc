import ArgumentParser
import BlueCapKit

/// A peripheral on the command line: its address, its name, or the beginning of its name.
struct PeripheralArgument: ExpressibleByArgument, Equatable, Sendable {
    enum Fit: Equatable, Comparable, Sendable {
        /// The name begins so.
        case beginning
        /// That is its name.
        case name
        /// That is its address, which nobody else has.
        case address
    }

    let text: String
    /// `nil` where it is a name.
    let address: BluetoothAddress?

    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        text = argument
        // The hyphens of other systems, and of file names.
        address = BluetoothAddress(argument.replacing("-", with: ":"))
    }

    /// How well a peripheral with this address and name fits; `nil` where it does not.
    func fit(address: BluetoothAddress, name: String?) -> Fit? {
        if let wanted = self.address { return address == wanted ? .address : nil }
        guard let name = name?.lowercased() else { return nil }
        let wanted = text.lowercased()
        return name == wanted ? .name : name.hasPrefix(wanted) ? .beginning : nil
    }
}
