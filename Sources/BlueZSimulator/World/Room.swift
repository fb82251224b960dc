public import Foundation

/// The virtual peripherals of a simulator: a value from a program, a JSON file or a built-in name.
///
/// ```json
/// { "name": "desk", "peripherals": [ { "address": "C0:FF:EE:00:18:0D", "rssi": -58,
///     "advertisement": { "localName": "Heart Strap", "serviceUUIDs": ["180d"] } } ] }
/// ```
public struct Room: Hashable, Sendable {
    /// Its name, for messages.
    public var name: String
    /// The peripherals; no two have the same address.
    public var peripherals: [VirtualPeripheral]

    /// Creates a room with this name and these peripherals.
    public init(name: String = "room", peripherals: [VirtualPeripheral]) {
        self.name = name
        self.peripherals = peripherals
    }

    /// No peripherals.
    public static let empty = Room(name: "empty", peripherals: [])

    /// Returns the peripherals with that name: `room`, `empty`, or `crowd:N` with N generated peripherals; else those of the
    /// JSON file at that path.
    ///
    /// - Throws: ``RoomError``, with a text that names the error and its place.
    public static func named(_ name: String) throws(RoomError) -> Room {
        switch name {
        case "room":
            return .furnished
        case "empty":
            return .empty
        default:
            guard name.hasPrefix("crowd:") else { return try contents(ofFile: name) }
            guard let count = Int(name.dropFirst("crowd:".count)), (0...crowdLimit).contains(count) else {
                throw .noSuchCrowd(name)
            }
            return .crowd(count)
        }
    }

    /// Returns the peripherals that a JSON file describes.
    ///
    /// - Throws: ``RoomError``.
    public static func contents(ofFile path: String) throws(RoomError) -> Room {
        guard let data = FileManager.default.contents(atPath: path) else { throw .noSuchRoom(path) }
        return try decoded(from: data, source: path)
    }

    /// Returns the peripherals that JSON describes; errors call it `source`.
    ///
    /// - Throws: ``RoomError``, for a number out of its range too: `room, line 12, column 17: peripherals[2].link.mtu: 9 is
    ///   not a whole number from 23 to 517.`
    public static func decoded(from data: Data, source: String = "room") throws(RoomError) -> Room {
        do {
            return try DescriptionFile.decode(Room.self, from: data)
        } catch {
            throw .unreadable(source: source, reason: error.description)
        }
    }

    /// More peripherals than this are beyond any radio and any bus daemon.
    static let crowdLimit = 1_000_000
}

extension Room: Codable {
    private enum Key: String, CodingKey, CaseIterable { case name, peripherals }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        name = try container.decodeIfPresent(String.self, forKey: .name) ?? "room"
        peripherals = try container.decode([VirtualPeripheral].self, forKey: .peripherals)
        var seen: Set<VirtualAddress> = []
        for (index, address) in peripherals.map(\.address).enumerated() where !seen.insert(address).inserted {
            throw container.failure(
                .peripherals, "the address \(address) is there twice", at: [FileKey(intValue: index)])
        }
    }
}

/// Why a ``Room`` could not be made. A later version may add cases.
public enum RoomError: Error, Hashable, Sendable {
    /// Neither a built-in name nor a file that can be read.
    case noSuchRoom(String)
    /// `crowd:` without a usable number.
    case noSuchCrowd(String)
    /// The file describes no peripherals; the reason begins with the line and the column, and names the member.
    case unreadable(source: String, reason: String)
}

extension RoomError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .noSuchRoom(let name):
            "There is no room \"\(name)\": it is neither a file that can be read nor one of room, empty, crowd:N."
        case .noSuchCrowd(let name):
            "\"\(name)\" is no crowd; write crowd: and a number from 0 to \(Room.crowdLimit), such as crowd:1000."
        case .unreadable(let source, let reason):
            "\(source), \(reason)."
        }
    }
}
