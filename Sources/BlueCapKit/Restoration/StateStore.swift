import Foundation

/// The state in the file of one restore identifier, and the right to write it.
///
/// Every call may wait for the disk.
struct StateStore<State: KeptState>: Sendable {
    /// The result of reading the file.
    enum Opening: Equatable, Sendable {
        /// The kept state; an empty one if nothing was kept under this identifier.
        case kept(State)
        /// The file is not a usable state; it was moved to this path.
        case damaged(RestorationDamage, setAside: String)
    }

    typealias Write = RestorationFile.Write

    private let file: RestorationFile

    /// Takes ownership of the state of this identifier.
    ///
    /// - Parameters:
    ///   - place: The place of the file.
    ///   - user: The owner of files that are trusted.
    ///   - write: Writes to a file, as `write(2)` does.
    init(
        _ place: RestorationPlace, user: uid_t = geteuid(), write: @escaping Write = { Foundation.write($0, $1, $2) }
    ) throws(StateProblem) {
        file = try RestorationFile(place, user: user, write: write)
    }

    /// Returns what was kept. A file that is not a usable state, or may be another user's, is set aside.
    ///
    /// - Throws: ``StateProblem`` if the file cannot be read, or cannot be set aside: then it must not be written
    ///   either.
    func read() throws(StateProblem) -> Opening {
        do {
            if let data = try file.contents() { return .kept(try State(decoding: data, for: file.place.identifier)) }
            return file.aside.map { .damaged(.distrusted($0.distrust), setAside: $0.path) } ?? .kept(State())
        } catch let damage as RestorationDamage {
            return .damaged(damage, setAside: try file.setAside())
        } catch {
            throw (error as? StateProblem) ?? file.problem("read", code: EIO)
        }
    }

    /// Replaces the state in the file.
    func keep(_ state: State) throws(StateProblem) {
        let data: Data
        do { data = try state.encoded(for: file.place.identifier) } catch {
            throw file.problem("encode the state for", code: EINVAL)
        }
        try file.replace(with: data)
    }

    /// Removes the state.
    func forget() throws(StateProblem) { try file.remove() }
}

/// The file of one restore identifier, and the right to write it.
///
/// A state is written completely to a second file, which then replaces the first one in a single step: after a crash, or
/// without free space, the file contains the old state or the new one and never a part.
final class RestorationFile: Sendable {
    /// A function with the signature of `write(2)`.
    typealias Write = @Sendable (Int32, UnsafeRawPointer?, Int) -> Int

    /// More than thousands of peripherals need; a larger file is not one of this library, and is not read into memory.
    private static var largestFile: Int { 16 << 20 }

    let place: RestorationPlace
    private let user: uid_t
    private let write: Write
    /// The folder through which all files are accessed.
    private let folder: StateFolder
    /// The file whose lock gives this store the ownership of the state. The lock ends with the descriptor, also when
    /// the process is killed.
    private let lock: FileHandle

    /// Takes ownership of the file. Files of other owners than `user` are not trusted.
    init(_ place: RestorationPlace, user: uid_t, write: @escaping Write) throws(StateProblem) {
        self.place = place
        self.user = user
        self.write = write
        folder = try StateFolder(of: place, for: user)
        let path = place.path(of: place.lockName)
        guard let lock = folder.open(place.lockName, O_RDWR | O_CREAT | O_NONBLOCK) else {
            throw errno == ELOOP ? .distrusted(path: path, .link) : .system(step: "open", path: path, code: errno)
        }
        self.lock = lock
        var status = stat()
        guard fstat(lock.fileDescriptor, &status) == 0 else { throw .system(step: "open", path: path, code: errno) }
        guard status.st_uid == user else { throw .distrusted(path: path, .owner(status.st_uid)) }
        guard flock(lock.fileDescriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw errno == EWOULDBLOCK
                ? .inUse(path: place.path(of: place.fileName)) : .system(step: "lock", path: path, code: errno)
        }
    }

    // MARK: Reading

    /// The file that was set aside when the folder was opened.
    var aside: (path: String, distrust: StateFolder.Distrust)? { folder.aside }

    /// Moves the file to another name, and returns that path.
    func setAside() throws(StateProblem) -> String {
        guard let aside = StateFolder.setAside(place.fileName, in: folder.descriptor) else {
            throw problem("set aside", place.fileName)
        }
        return place.path(of: aside)
    }

    /// Returns the bytes of the file; `nil` if it does not exist.
    func contents() throws -> Data? {
        var status = stat()
        // Opened without blocking: a pipe in place of the file would never become ready.
        guard let file = folder.open(place.fileName, O_RDONLY | O_NONBLOCK) else {
            let code = errno
            if code == ENOENT { return nil }
            if code == ELOOP { throw RestorationDamage.distrusted(.link) }
            if code == EACCES, fstatat(folder.descriptor, place.fileName, &status, AT_SYMLINK_NOFOLLOW) == 0,
                let distrust = StateFolder.Distrust.ofOwn(status, user: user)
            {
                throw RestorationDamage.distrusted(distrust)
            }
            throw StateProblem.system(step: "open", path: place.path(of: place.fileName), code: code)
        }
        guard fstat(file.fileDescriptor, &status) == 0 else { throw problem("read", place.fileName) }
        if let distrust = StateFolder.Distrust.ofOwn(status, user: user) {
            throw RestorationDamage.distrusted(distrust)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw RestorationDamage.unreadable("It is no file.") }
        guard status.st_size <= Self.largestFile else { throw RestorationDamage.unreadable("It is too large.") }
        return try file.readToEnd() ?? Data()
    }

    // MARK: Writing

    /// Replaces the bytes of the file.
    func replace(with data: Data) throws(StateProblem) {
        // Removes the draft of a writer that was killed.
        unlink(place.draftName)
        do throws(StateProblem) {
            try writeDraft(data)
            guard renameat(folder.descriptor, place.draftName, folder.descriptor, place.fileName) == 0 else {
                throw problem("replace", place.fileName)
            }
        } catch {
            unlink(place.draftName)
            throw error
        }
        syncFolder()
    }

    private func writeDraft(_ data: Data) throws(StateProblem) {
        guard let draft = folder.open(place.draftName, O_WRONLY | O_CREAT | O_EXCL) else {
            throw problem("create", place.draftName)
        }
        var offset = 0
        while offset < data.count {
            let count = data.withUnsafeBytes {
                write(draft.fileDescriptor, $0.baseAddress.map { $0 + offset }, data.count - offset)
            }
            if count == 0 { throw .system(step: "write", path: place.path(of: place.draftName), code: EIO) }
            guard count > 0 || errno == EINTR else { throw problem("write", place.draftName) }
            offset += max(count, 0)
        }
        // Without this, the new name could survive a power cut, and the contents not.
        guard fsync(draft.fileDescriptor) == 0 else { throw problem("write", place.draftName) }
    }

    /// Removes the file.
    func remove() throws(StateProblem) {
        guard unlink(place.fileName) == 0 || errno == ENOENT else { throw problem("remove", place.fileName) }
        syncFolder()
    }

    @discardableResult
    private func unlink(_ name: String) -> Int32 { unlinkat(folder.descriptor, name, 0) }

    /// Makes the new name durable. Some file systems cannot do that, and the error is ignored.
    private func syncFolder() {
        if let folder = folder.open(".", O_RDONLY | O_DIRECTORY) { fsync(folder.fileDescriptor) }
    }

    /// Returns the error `code`, for the file.
    func problem(_ step: String, code: Int32) -> StateProblem {
        .system(step: step, path: place.path(of: place.fileName), code: code)
    }

    /// Returns the present error of the system, for a file of this name.
    private func problem(_ step: String, _ name: String) -> StateProblem {
        .system(step: step, path: place.path(of: name), code: errno)
    }
}
