import Foundation

/// The file of one restore identifier, and the right to write it.
///
/// Every call may wait for the disk. A state is written in full to a second file, which then replaces the first one at once:
/// after a crash, or without free space, the file contains the old state or the new one and never a part.
final class StateStore<State: KeptState>: Sendable {
    /// What was found.
    enum Opening: Equatable, Sendable {
        /// Nothing was kept under this identifier.
        case fresh
        case kept(State)
        /// What was kept is no state of ours; the file is set aside under this path.
        case damaged(RestorationDamage, setAside: String)
    }

    typealias Problem = StateProblem

    /// As `write(2)`.
    typealias Write = @Sendable (Int32, UnsafeRawPointer?, Int) -> Int

    /// More than thousands of peripherals need; a larger file is not ours, and is not read into memory.
    private static var largestFile: Int { 16 << 20 }

    private let place: RestorationPlace
    private let identifier: String
    private let user: uid_t
    private let write: Write
    /// All files are reached through it.
    private let folder: StateFolder
    /// The descriptor with the lock that makes the state ours. The lock ends with the descriptor, also when the process is
    /// killed.
    private let lock: Int32

    /// Takes the state of this identifier into possession.
    ///
    /// - Parameter user: The owner of files that are trusted.
    init(
        _ place: RestorationPlace, identifier: String, user: uid_t = geteuid(),
        write: @escaping Write = { Foundation.write($0, $1, $2) }
    ) throws(Problem) {
        self.place = place
        self.identifier = identifier
        self.user = user
        self.write = write
        folder = try StateFolder(of: place, for: user)
        lock = try Self.takeLock(of: place, in: folder, user: user)
    }

    deinit { close(lock) }

    private static func takeLock(
        of place: RestorationPlace, in folder: StateFolder, user: uid_t
    ) throws(Problem) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let lock = openat(folder.descriptor, place.lockName, flags, 0o600)
        guard lock >= 0 else {
            if errno == ELOOP { throw .distrusted(path: place.lock, .link) }
            throw .system(step: "open", path: place.lock, code: errno)
        }
        do throws(Problem) {
            var status = stat()
            guard fstat(lock, &status) == 0 else { throw .system(step: "open", path: place.lock, code: errno) }
            guard status.st_uid == user else { throw .distrusted(path: place.lock, .owner(status.st_uid)) }
            guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
                throw errno == EWOULDBLOCK
                    ? .inUse(path: place.file) : .system(step: "lock", path: place.lock, code: errno)
            }
        } catch {
            close(lock)
            throw error
        }
        return lock
    }

    // MARK: Reading

    /// What was kept. What is no state of ours, or may be another user's, is set aside.
    ///
    /// - Throws: ``StateProblem`` where the file cannot be read, or not be set aside: then it must not be written either.
    func read() throws(Problem) -> Opening {
        do {
            guard let data = try contents() else {
                guard let aside = folder.aside else { return .fresh }
                return .damaged(.distrusted(aside.distrust), setAside: aside.path)
            }
            return .kept(try State(decoding: data, for: identifier))
        } catch let damage as RestorationDamage {
            return .damaged(damage, setAside: try setAside())
        } catch {
            throw (error as? Problem) ?? .system(step: "read", path: place.file, code: EIO)
        }
    }

    private func contents() throws -> Data? {
        // Without waiting: a pipe in the file's place would never be ready.
        let descriptor = openat(folder.descriptor, place.fileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            if errno == ELOOP { throw RestorationDamage.distrusted(.link) }
            if errno == EACCES, let distrust = distrustOfUnreadable() { throw RestorationDamage.distrusted(distrust) }
            throw problem("open", place.file)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem("read", place.file) }
        if let distrust = StateFolder.Distrust.ofOwn(status, user: user) {
            throw RestorationDamage.distrusted(distrust)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw RestorationDamage.unreadable("It is no file.") }
        guard status.st_size <= Self.largestFile else { throw RestorationDamage.unreadable("It is too large.") }
        var data = Data(count: Int(status.st_size))
        var count = 0
        while count < data.count {
            let step = data.withUnsafeMutableBytes { bytes in
                Foundation.read(descriptor, bytes.baseAddress.map { $0 + count }, bytes.count - count)
            }
            if step > 0 {
                count += step
            } else if step == 0 {
                break
            } else if errno != EINTR {
                throw problem("read", place.file)
            }
        }
        return data.prefix(count)
    }

    /// Why a file is not believed that this process has no right to read.
    private func distrustOfUnreadable() -> StateFolder.Distrust? {
        var status = stat()
        guard fstatat(folder.descriptor, place.fileName, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return .ofOwn(status, user: user)
    }

    /// Nothing is deleted: the user may want to look at it, or run the later version again.
    private func setAside() throws(Problem) -> String {
        for number in 1... {
            let name = place.asideName(number)
            // `link` and not `rename`, which would take the place of what was set aside earlier.
            if linkat(folder.descriptor, place.fileName, folder.descriptor, name, 0) == 0 {
                guard unlink(place.fileName) == 0 else { throw problem("set aside", place.file) }
                return place.aside(number)
            }
            if errno == EEXIST { continue }
            // File systems without links, folders, and files of others: the number is free, as far as is known.
            var status = stat()
            guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) != 0, rename(place.fileName, to: name)
            else { throw problem("set aside", place.file) }
            return place.aside(number)
        }
        return place.aside(0)
    }

    private func unlink(_ name: String) -> Int32 { unlinkat(folder.descriptor, name, 0) }

    private func rename(_ name: String, to other: String) -> Bool {
        renameat(folder.descriptor, name, folder.descriptor, other) == 0
    }

    // MARK: Writing

    /// Puts this state into the place of the former.
    func keep(_ state: State) throws(Problem) {
        let data: Data
        do { data = try state.encoded(for: identifier) } catch {
            throw .system(step: "encode the state for", path: place.file, code: EINVAL)
        }
        // What a killed writer has left.
        _ = unlink(place.draftName)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = openat(folder.descriptor, place.draftName, flags, 0o600)
        guard descriptor >= 0 else { throw problem("create", place.draft) }
        do throws(Problem) {
            defer { close(descriptor) }
            try writeAll(data, to: descriptor)
            // Else the new name could outlast a power cut, and the contents not.
            guard fsync(descriptor) == 0 else { throw problem("write", place.draft) }
        } catch {
            _ = unlink(place.draftName)
            throw error
        }
        guard rename(place.draftName, to: place.fileName) else {
            let failure = problem("replace", place.file)
            _ = unlink(place.draftName)
            throw failure
        }
        syncFolder()
    }

    /// Nothing is kept any more.
    func forget() throws(Problem) {
        guard unlink(place.fileName) == 0 || errno == ENOENT else { throw problem("remove", place.file) }
        syncFolder()
    }

    private func writeAll(_ data: Data, to descriptor: Int32) throws(Problem) {
        var offset = 0
        while offset < data.count {
            let count = data.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + offset }, data.count - offset)
            }
            if count > 0 {
                offset += count
            } else if count == 0 {
                throw .system(step: "write", path: place.draft, code: EIO)
            } else if errno != EINTR {
                throw problem("write", place.draft)
            }
        }
    }

    /// Makes the new name last. Some file systems cannot; nothing can be done about that.
    private func syncFolder() {
        let descriptor = openat(folder.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private func problem(_ step: String, _ path: String) -> Problem { .system(step: step, path: path, code: errno) }
}

typealias RestorationStore = StateStore<RestorationState>
