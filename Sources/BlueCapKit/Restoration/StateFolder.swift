import Foundation
import Glibc

/// The folder of one role in the state directory. Operations on its files use the descriptor of the folder that was
/// examined, so that the folder cannot be exchanged between the examination and the use.
///
/// A state determines what to connect to, and what to serve. So it is trusted only if the folder and the file belong to
/// this user, are no links, and cannot be written by others. What does not comply is set aside.
///
/// The folders above are not examined: a user who can write to them can remove the folder, but cannot replace it by a
/// folder that belongs to this user.
struct StateFolder: Sendable {
    /// Why a folder or a file is not trusted.
    enum Distrust: Equatable, Sendable {
        case owner(uid_t)
        case mode(mode_t)
        case link
    }

    /// `O_PATH` of Linux's asm-generic/fcntl.h, which Glibc's module lacks: it needs no permission to read the folder.
    private static let pathOnly: Int32 = 0o10_000_000

    private let handle: FileHandle
    /// The path to which a folder with the name of this one was moved, and why.
    private(set) var aside: (path: String, distrust: Distrust)?

    /// Opens the folder of a place. Creates it if it is missing, with those above it, for the user alone, as the XDG
    /// specification requires.
    init(of place: RestorationPlace, for user: uid_t) throws(StateProblem) {
        var path = ""
        for name in place.root.split(separator: "/") {
            path += "/\(name)"
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw .system(step: "create", path: place.folder, code: errno)
            }
        }
        var (handle, status) = try Self.openRoleFolder(place.folder)
        if let distrust = Distrust.ofOwn(status, user: user) {
            aside = (try Self.setAside(place.folder, status), distrust)
            (handle, status) = try Self.openRoleFolder(place.folder)
            // Only once: a user with write access to the state directory could cause this again and again.
            if let distrust = Distrust.ofOwn(status, user: user) {
                throw .distrusted(path: place.folder, distrust)
            }
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw .system(step: "create", path: place.folder, code: ENOTDIR)
        }
        self.handle = handle
    }

    /// A descriptor of the folder, for `openat` and similar calls.
    var descriptor: Int32 { handle.fileDescriptor }

    /// Opens a file of the folder, unless it is a link. Returns `nil` after an error, which is in `errno`.
    func open(_ name: String, _ flags: Int32) -> FileHandle? {
        let file = openat(descriptor, name, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        return file < 0 ? nil : FileHandle(fileDescriptor: file, closeOnDealloc: true)
    }

    /// Gives a file or folder the first name of the form `NAME.unreadable-1` that is free. Returns the name, or `nil`
    /// after an error, which is in `errno`.
    ///
    /// Nothing is deleted: the user may want to examine the file, or run the later version again.
    static func setAside(_ name: String, in folder: Int32) -> String? {
        var status = stat()
        var number = 1
        while fstatat(folder, "\(name).unreadable-\(number)", &status, AT_SYMLINK_NOFOLLOW) == 0 { number += 1 }
        let aside = "\(name).unreadable-\(number)"
        return renameat(folder, name, folder, aside) == 0 ? aside : nil
    }
}

// MARK: - Opening

extension StateFolder {
    private static func openRoleFolder(_ path: String) throws(StateProblem) -> (FileHandle, stat) {
        while true {
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw .system(step: "create", path: path, code: errno)
            }
            let descriptor = Foundation.open(path, pathOnly | O_NOFOLLOW | O_CLOEXEC)
            // Another process may be about to set it aside.
            if descriptor < 0, errno == ENOENT { continue }
            guard descriptor >= 0 else { throw .system(step: "open", path: path, code: errno) }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .system(step: "open", path: path, code: errno) }
            return (handle, status)
        }
    }

    /// Sets the folder of a role aside that was found to be untrusted.
    private static func setAside(_ path: String, _ untrusted: stat) throws(StateProblem) -> String {
        var status = stat()
        guard let aside = setAside(path, in: AT_FDCWD),
            // If another process was faster, this is the folder that it has created.
            lstat(aside, &status) != 0 || status.st_ino == untrusted.st_ino || rename(aside, path) == 0
        else { throw .system(step: "set aside", path: path, code: errno) }
        return aside
    }
}

// MARK: - Problems

extension StateFolder.Distrust: CustomStringConvertible {
    var description: String {
        switch self {
        case .owner(let owner): "belongs to another user (uid \(owner))"
        case .mode(let mode): "can be written by other users (mode \(String(mode & 0o7777, radix: 8)))"
        case .link: "is a link"
        }
    }

    /// Returns what to do about it, as the second half of a sentence.
    fileprivate func remedy(for path: String) -> String {
        switch self {
        case .owner: "give it to the user of this process, or choose another state directory"
        case .mode: "take that permission away (`chmod go-w \(path)`), or choose another state directory"
        case .link: "choose the folder that it leads to as the state directory"
        }
    }

    /// Returns why a file or the folder of a role is not trusted; `nil` if it is.
    static func ofOwn(_ status: stat, user: uid_t) -> Self? {
        if status.st_mode & S_IFMT == S_IFLNK { return .link }
        if status.st_uid != user { return .owner(status.st_uid) }
        return status.st_mode & 0o022 == 0 ? nil : .mode(status.st_mode)
    }
}

/// Why nothing can be kept.
enum StateProblem: Error, Equatable, CustomStringConvertible {
    /// Another manager, of this process or another one, keeps its state under this identifier.
    case inUse(path: String)
    /// An error of the system, with the step that failed and its path.
    case system(step: String, path: String, code: Int32)
    /// A folder or a file of the path is not trusted.
    case distrusted(path: String, StateFolder.Distrust)

    /// The errors of a process or a system that has reached a limit, so that a later attempt may succeed.
    static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOMEM]

    var description: String {
        switch self {
        case .inUse(let path):
            "The state in \(path) belongs to another manager that is running."
        case .system(let step, let path, let code):
            "Cannot \(step) \(path): \(String(cString: strerror(code)))."
        case .distrusted(let path, let distrust):
            "No state is read or kept, since \(path) \(distrust): \(distrust.remedy(for: path))."
        }
    }
}
