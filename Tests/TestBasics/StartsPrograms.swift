public import Foundation
import XCTest

/// A class of tests that start programs, such as `dbus-daemon`, `bluecap`, a shell or a compiler.
///
///     final class ReadmeTests: XCTestCase, StartsPrograms {
///
/// `make test-fast` leaves these classes out; `Scripts/run-tests` reads the declarations. The classes of `WireTests`, of which
/// each starts programs, need no such declaration.
public protocol StartsPrograms {}

/// The programs that tests start.
public enum TestProgram {
    /// Returns a process with which a helper of tests starts a program. Tests make no `Process` in another way; `make lint`
    /// checks it.
    ///
    /// Under `run-tests`, a test fails when it calls this and its class is not declared as ``StartsPrograms``.
    public static func process() -> Process {
        if ProcessInfo.processInfo.environment["BLUECAP_STARTS_NO_PROGRAMS"] != nil {
            XCTFail("This test starts a program: declare its class as StartsPrograms (Tests/TestBasics).")
        }
        return Process()
    }
}
