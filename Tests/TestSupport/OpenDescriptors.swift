import Foundation

/// Returns the files of the process's descriptors by their numbers, without timers: libdispatch makes those, at any moment, and
/// the library makes none.
public func openDescriptors() -> [String: String] {
    let folder = "/proc/self/fd"
    var files: [String: String] = [:]
    for number in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
        // Without the directory that was read.
        guard let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(number)"),
            file != "anon_inode:[timerfd]"
        else { continue }
        files[number] = file
    }
    return files
}

/// The number of threads of the managers' connections to the bus.
public func loopThreads() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).count { thread in
        (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8)) == "bluetooth\n"
    }
}
