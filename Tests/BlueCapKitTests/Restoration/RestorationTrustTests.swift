import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// State that another user can have written was restored like one's own.
final class RestorationTrustTests: XCTestCase {
    private let identifier = RestorationSamples.identifier
    private let folder = TemporaryFolder()
    private var place: RestorationPlace { place(in: folder.path) }

    private func place(in root: String) -> RestorationPlace { RestorationPlace(identifier: identifier, root: root) }

    private func store(_ place: RestorationPlace? = nil, user: uid_t = geteuid()) throws -> RestorationStore {
        try RestorationStore(place ?? self.place, user: user)
    }

    private func keepState(in place: RestorationPlace? = nil) throws {
        try store(place).keep(RestorationSamples.full)
    }

    private func problem(_ place: RestorationPlace? = nil, user: uid_t = geteuid()) -> StateProblem? {
        do {
            _ = try store(place, user: user)
            return nil
        } catch {
            return error as? StateProblem
        }
    }

    private func setMode(_ mode: mode_t, _ path: String) { XCTAssertEqual(chmod(path, mode), 0, path) }

    private func status(_ path: String) -> stat {
        var status = stat()
        XCTAssertEqual(lstat(path, &status), 0, path)
        return status
    }

    private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    // MARK: Files

    func testAFileThatOthersCanWriteIsSetAside() throws {
        for (number, mode) in ([0o620, 0o602, 0o666] as [mode_t]).enumerated() {
            try keepState()
            setMode(mode, place.file)
            let aside = place.aside(number + 1)
            let opening = try store().read()
            guard case .damaged(.distrusted(.mode(let found)), setAside: aside) = opening else {
                return XCTFail("\(opening)")
            }
            XCTAssertEqual(found & 0o777, mode)
            XCTAssertTrue(exists(aside))
            XCTAssertEqual(try store().read(), .fresh)
        }
    }

    func testAFileThatOthersCanReadIsBelieved() throws {
        try keepState()
        setMode(0o644, place.file)
        XCTAssertEqual(try store().read(), .kept(RestorationSamples.full))
    }

    func testALinkInTheFilesPlaceIsSetAsideAndItsTargetStays() throws {
        try keepState()
        let target = folder.path + "/target"
        XCTAssertEqual(rename(place.file, target), 0)
        XCTAssertEqual(symlink(target, place.file), 0)
        let opening = try store().read()
        guard case .damaged(.distrusted(.link), _) = opening else { return XCTFail("\(opening)") }
        XCTAssertTrue(exists(target))
    }

    func testWhatIsOfAnotherOwnerIsNotBelieved() throws {
        try keepState()
        for path in [place.file, place.folder] {
            XCTAssertNil(StateFolder.Distrust.ofOwn(status(path), user: geteuid()))
            XCTAssertEqual(
                StateFolder.Distrust.ofOwn(status(path), user: geteuid() + 1), .owner(geteuid()), path)
        }
        // To this process the files' owner is another user, also of the folder that replaces the one set aside.
        XCTAssertEqual(problem(user: geteuid() + 1), .distrusted(path: place.folder, .owner(geteuid())))
        XCTAssertTrue(exists(place.folder + ".unreadable-1"))
        guard geteuid() == 0 else { return }
        // Root alone can give files away.
        try keepState()
        XCTAssertEqual(chown(place.file, 1, 1), 0)
        let opening = try store().read()
        guard case .damaged(.distrusted(.owner(1)), _) = opening else { return XCTFail("\(opening)") }
    }

    // MARK: The folder of the role

    func testAFolderThatOthersCanWriteIsSetAsideWithAllThatIsInIt() throws {
        for (number, mode) in ([0o770, 0o702, 0o1777] as [mode_t]).enumerated() {
            try keepState()
            setMode(mode, place.folder)
            let aside = place.folder + ".unreadable-\(number + 1)"
            do {
                let store = try store()
                let opening = try store.read()
                guard case .damaged(.distrusted(.mode), setAside: aside) = opening else { return XCTFail("\(opening)") }
                XCTAssertTrue(exists(aside + "/" + place.fileName))
                try store.keep(RestorationSamples.small)
            }
            XCTAssertEqual(status(place.folder).st_mode & 0o777, 0o700)
            XCTAssertEqual(try store().read(), .kept(RestorationSamples.small))
        }
    }

    func testALinkInTheFoldersPlaceIsSetAsideAndItsTargetStays() throws {
        let elsewhere = TemporaryFolder()
        try keepState(in: place(in: elsewhere.path))
        XCTAssertEqual(symlink(elsewhere.path + "/central", place.folder), 0)
        do {
            let store = try store()
            XCTAssertEqual(
                try store.read(), .damaged(.distrusted(.link), setAside: place.folder + ".unreadable-1"))
            try store.keep(RestorationSamples.small)
        }
        XCTAssertEqual(try store(place(in: elsewhere.path)).read(), .kept(RestorationSamples.full))
        XCTAssertEqual(try store().read(), .kept(RestorationSamples.small))
    }

    func testAFolderThatIsExchangedWhileItIsInUseChangesNothing() throws {
        let elsewhere = TemporaryFolder()
        let store = try store()
        XCTAssertEqual(rename(place.folder, folder.path + "/moved"), 0)
        XCTAssertEqual(symlink(elsewhere.path, place.folder), 0)
        try store.keep(RestorationSamples.full)
        XCTAssertEqual(elsewhere.files, [])
        XCTAssertTrue(exists(folder.path + "/moved/" + place.fileName))
        XCTAssertEqual(try store.read(), .kept(RestorationSamples.full))
    }

    // MARK: The folders above

    func testTheFoldersAboveAreMadeForTheUserAlone() throws {
        let place = place(in: folder.path + "/a/b")
        try keepState(in: place)
        for path in ["/a", "/a/b"] { XCTAssertEqual(status(folder.path + path).st_mode & 0o777, 0o700) }
        XCTAssertEqual(try store(place).read(), .kept(RestorationSamples.full))
    }

    func testAFolderThatCannotBeMadeIsSaid() throws {
        let text = problem(place(in: "/proc/self/fdinfo")).map { "\($0)" } ?? ""
        XCTAssertTrue(text.hasPrefix("Cannot create /proc/self/fdinfo/central"), text)
    }

    // MARK: Managers

    func testTheManagersSayWhatWasSetAsideAndWhy() throws {
        let simulator = Simulator.inProcess(room: .empty)
        try keepState()
        setMode(0o666, place.file)
        let manager = try CentralManager(
            configuration: .init(
                busAddress: simulator.address, restoreIdentifier: identifier, stateDirectory: folder.path))
        let peripheral = RestorationPlace(
            identifier: identifier, root: folder.path, kind: PeripheralRestorationState.folder)
        XCTAssertEqual(mkdir(peripheral.folder, 0o700), 0)
        setMode(0o777, peripheral.folder)
        let server = try PeripheralManager(
            configuration: .init(
                busAddress: simulator.address, restoreIdentifier: identifier, stateDirectory: folder.path))
        let restored: Future<Void> = manager.whenStateRestored()
        let served = server.whenStateRestored()
        RestorationKeeper.waitForAll()
        XCTAssertTrue(simulator.advance(until: { restored.completed && served.completed }, limit: 10))

        XCTAssertEqual(restored.failure as? CentralManagerError, .restoreFailed)
        XCTAssertEqual(served.failure as? PeripheralManagerError, .restoreFailed)
        XCTAssertEqual(
            manager.stateRestorationFailure,
            "\(place.file) can be written by other users (mode 666): it is set aside as \(place.aside(1)).")
        XCTAssertEqual(
            server.stateRestorationFailure,
            "\(peripheral.folder) can be written by other users (mode 777): "
                + "it is set aside as \(peripheral.folder).unreadable-1.")
        XCTAssertNil(manager.stateRestorationProblem)
        XCTAssertNil(server.stateRestorationProblem)
    }
}

extension Future {
    fileprivate var failure: (any Error)? {
        if case .failure(let error)? = result { error } else { nil }
    }
}
