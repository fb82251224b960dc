import Foundation

/// The file of one restore identifier, and the right to write it.
///
/// Every call may wait for the disk: use it where that holds up nobody. A state is written in full beside the old one
/// and then takes its place at once, so that whoever is killed meanwhile, or runs out of disk, finds the old one or the
/// new one and never a half.
final class StateStore<State: KeptState>: Sendable {
    /// What was found.
    enum Opening: Equatable, Sendable {
        /// Nothing was kept under this identifier.
        case fresh
        case kept(State)
        /// What was kept is no state of ours; the file is set aside under this path.
        case damaged(RestorationDamage, setAside: String)
    }

    /// Why nothing can be kept.
    enum Problem: Error, Equatable, CustomStringConvertible {
        /// Another manager, of this process or another one, keeps its state under this identifier.
        case inUse(path: String)
        /// What the system said, of which step, at which path.
        case system(step: String, path: String, code: Int32)

        var description: String {
            switch self {
            case .inUse(let path):
                "The state in \(path) belongs to another manager that is running."
            case .system(let step, let path, let code):
                "Cannot \(step) \(path): \(String(cString: strerror(code)))."
            }
        }
    }

    /// As `write(2)`.
    typealias Write = @Sendable (Int32, UnsafeRawPointer?, Int) -> Int

    /// More than thousands of peripherals need; a larger file is not ours, and is not read into memory.
    private static var largestFile: Int { 16 << 20 }

    private let place: RestorationPlace
    private let identifier: String
    private let write: Write
    /// The descriptor whose lock makes the state ours; the lock ends with it, also when the process is killed.
    private let lock: Int32

    /// Takes the state of this identifier into possession.
    init(
        _ place: RestorationPlace, identifier: String, write: @escaping Write = { Foundation.write($0, $1, $2) }
    ) throws(Problem) {
        self.place = place
        self.identifier = identifier
        self.write = write
        lock = try Self.takeLock(of: place)
    }

    deinit { close(lock) }

    private static func takeLock(of place: RestorationPlace) throws(Problem) -> Int32 {
        try makeFolder(place.folder)
        let lock = open(place.lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw .system(step: "open", path: place.lock, code: errno) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(lock)
            throw code == EWOULDBLOCK ? .inUse(path: place.file) : .system(step: "lock", path: place.lock, code: code)
        }
        return lock
    }

    // MARK: Reading

    /// What was kept. A file that is no state of ours is set aside.
    ///
    /// - Throws: ``Problem`` where the file cannot be read, or not be set aside: then it must not be written either.
    func read() throws(Problem) -> Opening {
        do {
            guard let data = try contents() else { return .fresh }
            return .kept(try State(decoding: data, for: identifier))
        } catch let damage as RestorationDamage {
            return .damaged(damage, setAside: try setAside())
        } catch {
            throw (error as? Problem) ?? .system(step: "read", path: place.file, code: EIO)
        }
    }

    private func contents() throws -> Data? {
        // Without waiting: a pipe in the file's place would never be ready.
        let descriptor = open(place.file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            if errno == ELOOP { throw RestorationDamage.unreadable("It is a link.") }
            throw problem("open", place.file)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem("read", place.file) }
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

    /// Nothing is thrown away: somebody may want to look at it, or run the later version again.
    private func setAside() throws(Problem) -> String {
        for number in 1... {
            let path = place.aside(number)
            // `link` and not `rename`, which would take the place of what was set aside earlier.
            if link(place.file, path) == 0 {
                guard unlink(place.file) == 0 else { throw problem("set aside", place.file) }
                return path
            }
            if errno == EEXIST { continue }
            // File systems without links, and folders: the number is free, as far as anybody can tell.
            guard access(path, F_OK) != 0, rename(place.file, path) == 0 else {
                throw problem("set aside", place.file)
            }
            return path
        }
        return place.aside(0)
    }

    // MARK: Writing

    /// Puts this state into the place of the former.
    func keep(_ state: State) throws(Problem) {
        let data: Data
        do { data = try state.encoded(for: identifier) } catch {
            throw .system(step: "encode the state for", path: place.file, code: EINVAL)
        }
        // What a killed writer has left.
        unlink(place.draft)
        let descriptor = open(place.draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw problem("create", place.draft) }
        do throws(Problem) {
            defer { close(descriptor) }
            try writeAll(data, to: descriptor)
            // Else the new name could outlast a power cut, and the contents not.
            guard fsync(descriptor) == 0 else { throw problem("write", place.draft) }
        } catch {
            unlink(place.draft)
            throw error
        }
        guard rename(place.draft, place.file) == 0 else {
            let failure = problem("replace", place.file)
            unlink(place.draft)
            throw failure
        }
        syncFolder()
    }

    /// Nothing is kept any more.
    func forget() throws(Problem) {
        guard unlink(place.file) == 0 || errno == ENOENT else { throw problem("remove", place.file) }
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
        let descriptor = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private func problem(_ step: String, _ path: String) -> Problem { .system(step: step, path: path, code: errno) }

    /// The folder and those above it, for the user alone, as the XDG specification asks.
    private static func makeFolder(_ path: String) throws(Problem) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let parent = (path as NSString).deletingLastPathComponent
        guard errno == ENOENT, parent != path else { throw .system(step: "create", path: path, code: errno) }
        try makeFolder(parent)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system(step: "create", path: path, code: errno) }
    }
}

typealias RestorationStore = StateStore<RestorationState>
