import BlueZ
import Foundation
import GATT

/// The file with the notes about bonds, in the state directory: one for all programs of a user.
///
/// Each call takes ownership of the file for the time of the call. Notes are rare, so a call waits for the disk. Without a
/// usable state directory they hold for the process only.
final class BondNoteFile: BondNoteStore {
    private static let identifier = "notes"
    /// How often a file that another process is writing is tried, once in a millisecond.
    private static let mostTries = 50

    private let place: RestorationPlace

    /// - Parameter folder: The state directory; `nil` for the default one.
    init(folder: String?) {
        place = RestorationPlace(
            identifier: Self.identifier, root: RestorationPlace.root(folder), kind: BondNotes.folder)
    }

    /// Returns the store of the notes for a bus; `nil` for another bus than the system's, whose devices are simulated, without a
    /// state directory of its own.
    static func store(bus: String?, folder: String?) -> BondNoteFile? {
        folder == nil && bus != nil ? nil : BondNoteFile(folder: folder)
    }

    func read() -> [BondNote] {
        guard FileManager.default.fileExists(atPath: place.path(of: place.fileName)), let store = open() else {
            return []
        }
        return notes(of: store).notes.map(\.note)
    }

    func replace(_ old: BondNote, by new: BondNote) {
        guard let store = open() else { return }
        var kept = notes(of: store)
        kept.notes.removeAll { $0.note.isAbout(old) || $0.note.isAbout(new) }
        if !new.isEmpty { kept.notes.append(BondNotes.Entry(new)) }
        if kept.isEmpty { try? store.forget() } else { try? store.keep(kept) }
    }

    private func open() -> StateStore<BondNotes>? {
        for _ in 0..<Self.mostTries {
            do throws(StateProblem) {
                return try StateStore(place, identifier: Self.identifier)
            } catch .inUse {
                // The other process holds the lock for one write. Nothing reports its end.
                usleep(1_000)
            } catch {
                return nil
            }
        }
        return nil
    }

    private func notes(of store: StateStore<BondNotes>) -> BondNotes {
        guard case .kept(let notes)? = try? store.read() else { return BondNotes() }
        return notes
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
