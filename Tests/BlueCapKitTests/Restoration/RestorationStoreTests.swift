import XCTest

@testable import BlueCapKit

final class RestorationStoreTests: XCTestCase {
    private let identifier = RestorationSamples.identifier
    private let folder = TemporaryFolder()
    private var place: RestorationPlace { RestorationPlace(identifier: identifier, root: folder.path) }

    private func store(write: RestorationStore.Write? = nil) throws -> RestorationStore {
        if let write { return try RestorationStore(place, write: write) }
        return try RestorationStore(place)
    }

    private func put(_ text: String) throws {
        _ = try store()
        try text.write(toFile: place.file, atomically: false, encoding: .utf8)
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        lstat(path, &status)
        return status.st_mode & 0o777
    }

    // MARK: Keeping

    func testThereIsNothingAtFirst() throws {
        XCTAssertEqual(try store().read(), .fresh)
    }

    func testWhatIsKeptIsThereForTheNext() throws {
        do {
            let store = try store()
            try store.keep(RestorationSamples.small)
            try store.keep(RestorationSamples.full)
        }
        XCTAssertEqual(try store().read(), .kept(RestorationSamples.full))
    }

    func testWhatIsForgottenIsGone() throws {
        let store = try store()
        try store.keep(RestorationSamples.full)
        try store.forget()
        try store.forget()
        XCTAssertEqual(try store.read(), .fresh)
    }

    func testTheStateIsForTheUserAlone() throws {
        try store().keep(RestorationSamples.full)
        XCTAssertEqual(mode(place.file), 0o600)
        XCTAssertEqual(mode(place.lock), 0o600)
        XCTAssertEqual(mode(place.folder), 0o700)
    }

    func testADraftThatAKilledWriterLeftIsNoHindrance() throws {
        let store = try store()
        try store.keep(RestorationSamples.small)
        try "half a sta".write(toFile: place.draft, atomically: false, encoding: .utf8)
        XCTAssertEqual(try store.read(), .kept(RestorationSamples.small))
        try store.keep(RestorationSamples.full)
        XCTAssertEqual(try store.read(), .kept(RestorationSamples.full))
        XCTAssertFalse(FileManager.default.fileExists(atPath: place.draft))
    }

    // MARK: Damage

    func testADamagedFileIsSetAsideUntouched() throws {
        try put("{\"format\":")
        let aside = place.aside(1)
        let opening = try store().read()
        guard case .damaged(.unreadable, setAside: aside) = opening else { return XCTFail("\(opening)") }
        XCTAssertEqual(try String(contentsOfFile: aside, encoding: .utf8), "{\"format\":")
        XCTAssertEqual(try store().read(), .fresh)
    }

    func testWhatWasSetAsideEarlierStaysToo() throws {
        for number in 1...3 {
            try put("mess \(number)")
            let aside = place.aside(number)
            guard case .damaged(_, setAside: aside) = try store().read() else { return XCTFail("\(number)") }
        }
        XCTAssertEqual(try String(contentsOfFile: place.aside(1), encoding: .utf8), "mess 1")
        XCTAssertEqual(try String(contentsOfFile: place.aside(3), encoding: .utf8), "mess 3")
    }

    func testAnEmptyFileIsDamaged() throws {
        try put("")
        guard case .damaged = try store().read() else { return XCTFail("taken") }
    }

    func testWhatIsNoFileIsSetAsideWithoutWaitingForIt() throws {
        _ = try store()
        for make in [
            { mkfifo($0, 0o600) }, { mkdir($0, 0o700) }, { symlink("/dev/zero", $0) },
        ] as [(String) -> Int32] {
            XCTAssertEqual(make(place.file), 0)
            guard case .damaged = try store().read() else { return XCTFail("taken") }
            XCTAssertEqual(try store().read(), .fresh)
        }
    }

    // MARK: Disks

    func testAFullDiskLeavesTheFormerState() throws {
        for room in [0, 1, 100] {
            try store().keep(RestorationSamples.small)
            let disk = FullDisk(room: room)
            let store = try store(write: disk.write)
            XCTAssertThrowsError(try store.keep(RestorationSamples.full)) { error in
                XCTAssertEqual(
                    error as? StateProblem, .system(step: "write", path: place.draft, code: ENOSPC))
            }
            XCTAssertEqual(try store.read(), .kept(RestorationSamples.small))
            XCTAssertFalse(FileManager.default.fileExists(atPath: place.draft))
        }
    }

    func testADiskThatTakesLittleAtATimeGetsAll() throws {
        let store = try store { Foundation.write($0, $1, min($2, 7)) }
        try store.keep(RestorationSamples.full)
        XCTAssertEqual(try store.read(), .kept(RestorationSamples.full))
    }

    func testAFolderThatCannotBeMadeIsNamed() throws {
        try "a file".write(toFile: folder.path + "/blocked", atomically: false, encoding: .utf8)
        let place = RestorationPlace(identifier: identifier, root: folder.path + "/blocked")
        XCTAssertThrowsError(try RestorationStore(place)) { error in
            XCTAssertEqual(
                (error as? StateProblem)?.description,
                "Cannot create \(place.folder): Not a directory.")
        }
    }

    func testAFolderThatTakesNoFileIsNamed() throws {
        // No user can create files here, not even root.
        let place = RestorationPlace(identifier: identifier, root: "/proc/self")
        XCTAssertThrowsError(try RestorationStore(place)) { error in
            guard case .system("create", "/proc/self/central", _) = error as? StateProblem else {
                return XCTFail("\(error)")
            }
        }
    }

    // MARK: Others

    func testASecondOwnerIsTurnedAwayUntilTheFirstHasGone() throws {
        do {
            let first = try store()
            try first.keep(RestorationSamples.small)
            XCTAssertThrowsError(try store()) { error in
                XCTAssertEqual(error as? StateProblem, .inUse(path: place.file))
            }
        }
        XCTAssertEqual(try store().read(), .kept(RestorationSamples.small))
    }

    func testOtherIdentifiersAreOtherStates() throws {
        let other = RestorationPlace(identifier: "other", root: folder.path)
        let first = try store()
        let second = try RestorationStore(other)
        try first.keep(RestorationSamples.small)
        try second.keep(RestorationSamples.full)
        XCTAssertEqual(try first.read(), .kept(RestorationSamples.small))
        XCTAssertEqual(try second.read(), .kept(RestorationSamples.full))
    }

    func testWhoReadsWhileOthersWriteFindsAWholeState() throws {
        let writer = try store()
        try writer.keep(RestorationSamples.small)
        let path = place.file
        let identifier = identifier
        let readers = DispatchQueue(label: "readers", attributes: .concurrent)
        let group = DispatchGroup()
        let isOver = Flag()
        for _ in 0..<2 {
            readers.async(group: group) {
                while !isOver.isSet {
                    let data = FileManager.default.contents(atPath: path) ?? Data()
                    XCTAssertNotNil(try? RestorationState(decoding: data, for: identifier))
                }
            }
        }
        for _ in 0..<50 {
            try writer.keep(RestorationSamples.full)
            try writer.keep(RestorationSamples.small)
        }
        isOver.set()
        group.wait()
    }
}

/// A disk that takes so many bytes and no more.
private final class FullDisk: @unchecked Sendable {
    // Unchecked because one thread uses it.
    private var room: Int

    init(room: Int) { self.room = room }

    var write: RestorationStore.Write {
        { descriptor, bytes, count in
            guard self.room > 0 else {
                errno = ENOSPC
                return -1
            }
            let taken = min(self.room, count)
            self.room -= taken
            return Foundation.write(descriptor, bytes, taken)
        }
    }
}

private final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    /// Under `lock`.
    private var value = false

    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
}
