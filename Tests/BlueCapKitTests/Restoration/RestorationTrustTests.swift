import BlueZSimulator
import Foundation
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

    // MARK: Groups

    func testAGroupIsSharedWithAUserWhoseOwnGroupItIs() throws {
        let accounts = folder.path + "/passwd"
        let own = "ann:x:1000:1000:Ann:/home/ann:/bin/sh\n"
        try (own + "bob:x:1001:1001::/home/bob:/bin/sh\n").write(toFile: accounts, atomically: true, encoding: .utf8)
        XCTAssertFalse(StateFolder.isGroupOfOther(1000, than: 1000, accounts: accounts))
        XCTAssertTrue(StateFolder.isGroupOfOther(1001, than: 1000, accounts: accounts))
        try (own + "eve:x:1002:1000::/home/eve:/bin/sh\n").write(toFile: accounts, atomically: true, encoding: .utf8)
        XCTAssertTrue(StateFolder.isGroupOfOther(1000, than: 1000, accounts: accounts))
        XCTAssertTrue(StateFolder.isGroupOfOther(1000, than: 1000, accounts: folder.path + "/none"))
    }

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
        // To this process the files' owner is another user.
        let path = folder.path
        switch problem(user: geteuid() + 1) {
        case .distrusted(path, .owner(geteuid())): break
        // Of root: the folders above the role's are trusted; that one is set aside, and so is not another of root's.
        case .distrusted(place.folder, .owner(0)): XCTAssertTrue(exists(place.folder + ".unreadable-1"))
        case let other: XCTFail("\(String(describing: other))")
        }
        guard geteuid() == 0 else { return }
        // Root alone can give files away.
        try keepState()
        XCTAssertEqual(chown(place.file, 1, 1), 0)
        let opening = try store().read()
        guard case .damaged(.distrusted(.owner(1)), _) = opening else { return XCTFail("\(opening)") }
        XCTAssertEqual(chown(folder.path, 1, 1), 0)
        XCTAssertEqual(problem(), .distrusted(path: folder.path, .owner(1)))
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

    // MARK: The state directory and those above

    func testAStateDirectoryThatOthersCanWriteIsNotUsed() throws {
        try keepState()
        for mode in [0o720, 0o702, 0o777] as [mode_t] {
            setMode(mode, folder.path)
            guard case .distrusted(folder.path, .mode)? = problem() else { return XCTFail("\(mode)") }
        }
        XCTAssertTrue(exists(place.file), "the file was set aside")
        setMode(0o1777, folder.path)
        XCTAssertEqual(try store().read(), .kept(RestorationSamples.full), "sticky, as /tmp")
    }

    func testAFolderAboveThatOthersCanWriteIsNotPassed() throws {
        let place = place(in: folder.path + "/a/b")
        try keepState(in: place)
        setMode(0o707, folder.path + "/a")
        guard case .distrusted(folder.path + "/a", .mode)? = problem(place) else { return XCTFail("passed") }
        setMode(0o755, folder.path + "/a")
        XCTAssertEqual(try store(place).read(), .kept(RestorationSamples.full))
    }

    func testALinkedStateDirectoryIsNotUsed() throws {
        let elsewhere = TemporaryFolder()
        try keepState(in: place(in: elsewhere.path))
        let link = folder.path + "/link"
        XCTAssertEqual(symlink(elsewhere.path, link), 0)
        XCTAssertEqual(problem(place(in: link)), .distrusted(path: link, .link))
        XCTAssertEqual(problem(place(in: link + "/below")), .distrusted(path: link, .link))
        XCTAssertEqual(elsewhere.files.filter { $0.contains("below") }, [])
    }

    func testLinksOfTheSystemAreFollowed() throws {
        // Root's, below folders that root alone can write: on the way to a folder where no process can make files.
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

    func testAManagerSaysThatItsStateDirectoryIsNotUsed() throws {
        let simulator = Simulator.inProcess(room: .empty)
        setMode(0o777, folder.path)
        let manager = try CentralManager(
            configuration: .init(
                busAddress: simulator.address, restoreIdentifier: identifier, stateDirectory: folder.path))
        let restored: Future<Void> = manager.whenStateRestored()
        RestorationKeeper.waitForAll()
        XCTAssertTrue(simulator.advance(until: { restored.completed }, limit: 10))
        XCTAssertEqual(restored.failure as? CentralManagerError, .restoreFailed)
        XCTAssertEqual(
            manager.stateRestorationProblem,
            "No state is read or kept, since \(folder.path) can be written by other users (mode 777): "
                + "take that permission away (`chmod go-w \(folder.path)`), or choose another state directory.")
        XCTAssertEqual(manager.stateRestorationFailure, manager.stateRestorationProblem)
        XCTAssertEqual(folder.files, [])
    }
}

extension Future {
    fileprivate var failure: (any Error)? {
        if case .failure(let error)? = result { error } else { nil }
    }
}
