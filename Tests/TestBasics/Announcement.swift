import Foundation

/// The seed that the environment names, and the lines that name the seeds of the tests.
enum Announcement {
    static let variable = "BLUECAP_SEED"

    /// The only seed that the tests of this process play; `nil` if the environment names none.
    static let seed: UInt64? = {
        guard let text = ProcessInfo.processInfo.environment[variable] else { return nil }
        guard let seed = UInt64(text) else {
            fatalError("\(variable) is \"\(text)\"; it must be a whole number from 0 to \(UInt64.max).")
        }
        return seed
    }()

    /// Prints a line, at its place among the lines of XCTest.
    static func show(_ line: String) {
        print(line)
        fflush(nil)
    }
}
