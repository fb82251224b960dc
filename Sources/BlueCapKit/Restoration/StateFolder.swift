import Foundation
import Glibc

/// A folder into which no other user can have put files. Its descriptor stays open, and all operations in the folder
/// use the descriptor that was examined, so that nothing can be exchanged between the examination and the use.
///
/// A state determines what to connect to, and what to serve. So it is trusted only if this user, or root, has written
/// it:
///
/// | | owner | others may write | a link |
/// |---|---|---|---|
/// | the folders above the state directory | this user or root | only if it is sticky, as `/tmp` is; the group, if it is this user's own | only one of the system: root's, below folders that root alone can write |
/// | the state directory | this user or root | only if it is sticky | as above |
/// | the folder of one role in it, and the files in that | this user | no | no |
///
/// The folder of a role that does not comply is set aside. If one of the other folders does not comply, the state is
/// not used, because such a folder may contain other things.
final class StateFolder: Sendable {
    /// Why a folder or a file is not trusted.
    enum Distrust: Equatable, Sendable {
        case owner(uid_t)
        case mode(mode_t)
        case link
    }

    /// The path to which a folder with the name of this one was moved, and why.
    struct Aside: Equatable, Sendable {
        var path: String
        var distrust: Distrust
    }

    /// A descriptor of the folder, for `openat` and similar calls.
    let descriptor: Int32
    let aside: Aside?

    private init(_ descriptor: Int32, aside: Aside?) { (self.descriptor, self.aside) = (descriptor, aside) }

    deinit { close(descriptor) }

    /// Opens the folder of a place. Creates it if it is missing, with those above it, for the user alone, as the XDG
    /// specification requires.
    convenience init(of place: RestorationPlace, for user: uid_t) throws(StateProblem) {
        var walk = FolderWalk(for: user)
        let root = try walk.enter(place.root, making: place.folder)
        let (leaf, aside) = try walk.enterRoleFolder(of: place, in: root)
        self.init(leaf, aside: aside)
    }
}

extension StateFolder {
    /// Returns whether an account of another user has this group as its own, which the group's entry does not list.
    /// `true` if the accounts cannot be read.
    static func isGroupOfOther(_ group: gid_t, than user: uid_t, accounts path: String = "/etc/passwd") -> Bool {
        guard let file = fopen(path, "re") else { return true }
        defer { fclose(file) }
        let size = 16 << 10
        // The records point into it.
        let texts = UnsafeMutablePointer<CChar>.allocate(capacity: size)
        defer { texts.deallocate() }
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        while true {
            let code = fgetpwent_r(file, &account, texts, size, &found)
            guard code == 0 else { return code != ENOENT }
            if account.pw_gid == group, account.pw_uid != user { return true }
        }
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

/// Follows a path from the root directory down, folder by folder, and examines each.
private struct FolderWalk {
    /// `O_PATH` of Linux's asm-generic/fcntl.h, which Glibc's module lacks: it needs no permission to read the folder.
    private static let pathOnly: Int32 = 0o10_000_000
    /// The number of links that the kernel follows.
    private static let mostLinks = 40

    private let user: uid_t
    private var links = 0
    /// Whether only root can have changed the contents of the folders so far.
    private var isRootsAlone = true
    /// The path as far as it was followed, for messages.
    private var path = ""

    init(for user: uid_t) { self.user = user }

    /// Follows an absolute path, and creates the folders that are missing. The caller closes the descriptor.
    /// - Parameter whole: The complete path that is needed, for the message that it cannot be created.
    mutating func enter(_ path: String, making whole: String) throws(StateProblem) -> Int32 {
        var current = try openRoot()
        var rest = Array(path.split(separator: "/").reversed())
        while let name = rest.popLast() {
            guard name != "." else { continue }
            let parent = current
            defer { close(parent) }
            let (descriptor, status) = try open(String(name), in: parent, making: whole)
            guard status.st_mode & S_IFMT == S_IFLNK else {
                current = descriptor
                do {
                    try examine(status, isLast: rest.isEmpty)
                } catch {
                    close(descriptor)
                    throw error
                }
                continue
            }
            close(descriptor)
            let target = try follow(String(name), status, in: parent)
            rest += target.split(separator: "/").reversed()
            if target.hasPrefix("/") {
                current = try openRoot()
            } else {
                self.path = (self.path as NSString).deletingLastPathComponent
                current = fcntl(parent, F_DUPFD_CLOEXEC, 0)
                guard current >= 0 else { throw .system(step: "open", path: self.path, code: errno) }
            }
        }
        return current
    }

    private mutating func openRoot() throws(StateProblem) -> Int32 {
        (path, isRootsAlone) = ("", true)
        let descriptor = Foundation.open("/", Self.pathOnly | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(step: "open", path: "/", code: errno) }
        return descriptor
    }

    private mutating func open(
        _ name: String, in parent: Int32, making whole: String
    ) throws(StateProblem) -> (Int32, stat) {
        path += "/" + name
        var descriptor = openat(parent, name, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT {
            guard mkdirat(parent, name, 0o700) == 0 || errno == EEXIST else {
                throw .system(step: "create", path: whole, code: errno)
            }
            descriptor = openat(parent, name, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw .system(step: "open", path: path, code: errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let code = errno
            close(descriptor)
            throw .system(step: "open", path: path, code: code)
        }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFDIR || kind == S_IFLNK else {
            close(descriptor)
            throw .system(step: "create", path: whole, code: ENOTDIR)
        }
        return (descriptor, status)
    }

    private mutating func examine(_ status: stat, isLast: Bool) throws(StateProblem) {
        guard status.st_uid == 0 || status.st_uid == user else { throw .distrusted(path: path, .owner(status.st_uid)) }
        let isSticky = status.st_mode & S_ISVTX != 0
        let othersWrite = status.st_mode & 0o002 != 0
        let groupWrites = status.st_mode & 0o020 != 0 && (isLast || !isOwnGroup(status.st_gid))
        guard isSticky || !(othersWrite || groupWrites) else { throw .distrusted(path: path, .mode(status.st_mode)) }
        if status.st_uid != 0 || status.st_mode & 0o022 != 0 { isRootsAlone = false }
    }

    private mutating func follow(_ name: String, _ status: stat, in parent: Int32) throws(StateProblem) -> String {
        guard status.st_uid == 0, isRootsAlone else { throw .distrusted(path: path, .link) }
        links += 1
        guard links <= Self.mostLinks else { throw .system(step: "open", path: path, code: ELOOP) }
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlinkat(parent, name, &target, target.count)
        guard count > 0 else { throw .system(step: "open", path: path, code: errno) }
        return String(decoding: target[..<count].map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    /// Returns whether a group is the user's private one, as distributions create for each user: its name is the
    /// user's, and it has no other member, neither in the group's entry nor as the group of an account in
    /// `/etc/passwd`. With such a group, folders are normally writable by the group (umask 002).
    private func isOwnGroup(_ group: gid_t) -> Bool {
        let size = 16 << 10
        // The records point into these.
        let (texts, groupTexts) = (
            UnsafeMutablePointer<CChar>.allocate(capacity: size), UnsafeMutablePointer<CChar>.allocate(capacity: size)
        )
        defer {
            texts.deallocate()
            groupTexts.deallocate()
        }
        var account = passwd()
        var entry = Glibc.group()
        var found: UnsafeMutablePointer<passwd>?
        var foundGroup: UnsafeMutablePointer<Glibc.group>?
        guard getpwuid_r(user, &account, texts, size, &found) == 0, found != nil, account.pw_gid == group,
            getgrgid_r(group, &entry, groupTexts, size, &foundGroup) == 0, foundGroup != nil,
            let name = account.pw_name, let groupName = entry.gr_name, strcmp(name, groupName) == 0
        else { return false }
        var member = entry.gr_mem
        while let text = member?.pointee {
            guard strcmp(text, name) == 0 else { return false }
            member = member?.advanced(by: 1)
        }
        return !StateFolder.isGroupOfOther(group, than: user)
    }

    /// Opens the folder of a role in the state directory. A folder that is not trusted is set aside, and another one is
    /// created. Takes ownership of `root`.
    func enterRoleFolder(
        of place: RestorationPlace, in root: Int32
    ) throws(StateProblem) -> (Int32, StateFolder.Aside?) {
        defer { close(root) }
        var aside: StateFolder.Aside?
        while true {
            guard mkdirat(root, place.kind, 0o700) == 0 || errno == EEXIST else {
                throw .system(step: "create", path: place.folder, code: errno)
            }
            let descriptor = openat(root, place.kind, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
            // Another process may be about to set it aside.
            if descriptor < 0, errno == ENOENT { continue }
            guard descriptor >= 0 else { throw .system(step: "open", path: place.folder, code: errno) }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                close(descriptor)
                throw .system(step: "open", path: place.folder, code: errno)
            }
            guard let distrust = StateFolder.Distrust.ofOwn(status, user: user) else {
                guard status.st_mode & S_IFMT == S_IFDIR else {
                    close(descriptor)
                    throw .system(step: "create", path: place.folder, code: ENOTDIR)
                }
                return (descriptor, aside)
            }
            close(descriptor)
            // Only once: a user with write access to the state directory could cause this again and again.
            guard aside == nil else { throw .distrusted(path: place.folder, distrust) }
            aside = StateFolder.Aside(path: try setAside(status, of: place, in: root), distrust: distrust)
        }
    }

    private func setAside(_ judged: stat, of place: RestorationPlace, in root: Int32) throws(StateProblem) -> String {
        var number = 1
        while true {
            let name = "\(place.kind).unreadable-\(number)"
            var status = stat()
            if fstatat(root, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
                number += 1
                continue
            }
            guard renameat(root, place.kind, root, name) == 0 else {
                throw .system(step: "set aside", path: place.folder, code: errno)
            }
            if fstatat(root, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_ino != judged.st_ino {
                // Another process was faster, and this is the folder that it has created.
                guard renameat(root, name, root, place.kind) == 0 else {
                    throw .system(step: "set aside", path: place.folder, code: errno)
                }
            }
            return "\(place.root)/\(name)"
        }
    }
}
