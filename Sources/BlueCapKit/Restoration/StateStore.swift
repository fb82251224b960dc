import Foundation

/// The file of one restore identifier, and the right to write it.
///
/// Every call may wait for the disk. A state is written completely to a second file, which then replaces the first one
/// in a single step: after a crash, or without free space, the file contains the old state or the new one and never a
/// part.
final class StateStore<State: KeptState>: Sendable {
    /// The result of reading the file.
    enum Opening: Equatable, Sendable {
        /// Nothing was kept under this identifier.
        case fresh
        case kept(State)
        /// The file is not a usable state; it was moved to this path.
        case damaged(RestorationDamage, setAside: String)
    }

    typealias Problem = StateProblem

    /// A function with the signature of `write(2)`.
    typealias Write = @Sendable (Int32, UnsafeRawPointer?, Int) -> Int

    /// More than thousands of peripherals need; a larger file is not one of this library, and is not read into memory.
    private static var largestFile: Int { 16 << 20 }

    private let place: RestorationPlace
    private let identifier: String
    private let user: uid_t
    private let write: Write
    /// The folder through which all files are accessed.
    private let folder: StateFolder
    /// The descriptor of the lock that gives this store the ownership of the state. The lock ends with the descriptor,
    /// also when the process is killed.
    private let lock: Int32

    /// Takes ownership of the state of this identifier.
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

    /// Returns what was kept. A file that is not a usable state, or may be another user's, is set aside.
    ///
    /// - Throws: ``StateProblem`` if the file cannot be read, or cannot be set aside: then it must not be written
    ///   either.
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
        // Opened without blocking: a pipe in place of the file would never become ready.
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

    /// Returns why a file that this process may not read is not trusted.
    private func distrustOfUnreadable() -> StateFolder.Distrust? {
        var status = stat()
        guard fstatat(folder.descriptor, place.fileName, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return .ofOwn(status, user: user)
    }

    /// Nothing is deleted: the user may want to examine the file, or run the later version again.
    private func setAside() throws(Problem) -> String {
        for number in 1... {
            let name = place.asideName(number)
            // `link` and not `rename`, which would replace a file that was set aside earlier.
            if linkat(folder.descriptor, place.fileName, folder.descriptor, name, 0) == 0 {
                guard unlink(place.fileName) == 0 else { throw problem("set aside", place.file) }
                return place.aside(number)
            }
            if errno == EEXIST { continue }
            // For file systems without links, folders, and files of others: the number is free, as far as is known.
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

    /// Replaces the state in the file.
    func keep(_ state: State) throws(Problem) {
        let data: Data
        do { data = try state.encoded(for: identifier) } catch {
            throw .system(step: "encode the state for", path: place.file, code: EINVAL)
        }
        // Removes the draft of a writer that was killed.
        _ = unlink(place.draftName)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = openat(folder.descriptor, place.draftName, flags, 0o600)
        guard descriptor >= 0 else { throw problem("create", place.draft) }
        do throws(Problem) {
            defer { close(descriptor) }
            try writeAll(data, to: descriptor)
            // Without this, the new name could survive a power cut, and the contents not.
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

    /// Removes the state.
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

    /// Makes the new name durable. Some file systems cannot do that, and the error is ignored.
    private func syncFolder() {
        let descriptor = openat(folder.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private func problem(_ step: String, _ path: String) -> Problem { .system(step: step, path: path, code: errno) }
}

typealias RestorationStore = StateStore<RestorationState>
