import BlueCapBlueZ
import Foundation
import BlueCapGATT

/// The file with the notes about bonds: one for all programs of a user. Without a usable state directory they hold for the process
/// only.
struct BondNoteFile: BondNoteStore {
    private let file: SharedStateFile<BondNotes>

    /// - Parameter folder: The state directory; `nil` for the default one.
    init(folder: String?) { file = SharedStateFile("notes", folder: folder) }

    func read() -> [BondNote] { file.read().notes.map(\.note) }

    func replace(_ old: BondNote, by new: BondNote) {
        file.change { kept in
            kept.notes.removeAll { $0.note.isAbout(old) || $0.note.isAbout(new) }
            if !new.isEmpty { kept.notes.append(BondNotes.Entry(new)) }
        }
    }
}

extension BlueZClient {
    /// Returns the client for a bus, which keeps its notes about bonds in the state directory; not those of another bus than the
    /// system's, whose devices are simulated, without a state directory of its own.
    static func shared(at bus: String?, notesIn folder: String?) -> BlueZClient {
        let client = shared(at: bus)
        if folder != nil || bus == nil { client.daemon.keepNotes(in: BondNoteFile(folder: folder)) }
        return client
    }
}

/// The contents of that file.
struct BondNotes: KeptState {
    struct Entry: Codable, Equatable, Sendable {
        var adapter: String?
        var address: String
        var isRandom: Bool?
        var isRefused: Bool?
        var shortLinks: Int?

        init(_ note: BondNote) {
            adapter = note.adapter?.description
            address = note.address.description
            isRandom = note.addressType == .random ? true : nil
            isRefused = note.isRefused ? true : nil
            shortLinks = note.shortLinks == 0 ? nil : note.shortLinks
        }

        var note: BondNote {
            BondNote(
                adapter: adapter.flatMap { BluetoothAddress($0) },
                address: BluetoothAddress(address) ?? BluetoothAddress(rawValue: 0),
                addressType: isRandom == true ? .random : .public, isRefused: isRefused ?? false,
                shortLinks: max(0, shortLinks ?? 0))
        }
    }

    static let folder = "bonds"
    static let version = 1

    var notes: [Entry] = []
}
