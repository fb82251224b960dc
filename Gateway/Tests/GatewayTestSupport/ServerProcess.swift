public import Foundation

/// A program that runs beside a test, and ends with it: when the test has finished, and when the test's process ends, in
/// whatever way.
public final class ServerProcess: EndsWithTest, @unchecked Sendable {
    /// The process identifier. It stays that of this process until it has been waited for.
    public let identifier: pid_t
    /// The file with all that the program writes.
    public let log: URL
    // `@unchecked`: the state below is accessed only while the lock is held.
    private let lock = NSLock()
    private var status: Int32?

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - executable: A path, or a name that is looked for in `PATH`.
    ///   - arguments: Those after the program's name.
    ///   - environment: Variables that are set besides those of the test.
    ///   - log: Receives the program's output, after what is in it.
    public init(_ executable: String, _ arguments: [String], environment: [String: String] = [:], log: URL) throws {
        self.log = log
        let words = ["setpriv", "--pdeathsig", "KILL", "--", executable] + arguments
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let path = log.path
        identifier = try Spawner.shared.run { try Self.spawn(words, variables.map { "\($0)=\($1)" }, path) }
        Lifetime.keep(self)
    }

    private static func spawn(_ words: [String], _ variables: [String], _ log: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // An inherited socket would stay open after the test has closed it.
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            if let descriptor = Int32(name), descriptor > 2 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        }
        // Signals that Swift's runtime or libmosquitto ignores are not ignored in the program.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) } + [nil]
        defer { for pointer in arguments + environment { free(pointer) } }
        var identifier: pid_t = 0
        let error = posix_spawnp(&identifier, "setpriv", &actions, &attributes, &arguments, &environment)
        guard error == 0 else { throw LimitExceeded("setpriv cannot be started: \(String(cString: strerror(error)))") }
        return identifier
    }

    /// Whether the process has not ended.
    public var isRunning: Bool { exitStatus == nil }

    /// The status as `waitpid` returns it, or `nil` while the process runs.
    public var exitStatus: Int32? {
        lock.lock()
        defer { lock.unlock() }
        if status == nil {
            var value: Int32 = 0
            if waitpid(identifier, &value, WNOHANG) == identifier { status = value }
        }
        return status
    }

    /// Sends a signal, if the process runs.
    public func signal(_ number: Int32) {
        lock.lock()
        defer { lock.unlock() }
        if status == nil { kill(identifier, number) }
    }

    /// Ends the process with SIGKILL and waits for its end.
    public func end() {
        lock.lock()
        defer { lock.unlock() }
        guard status == nil else { return }
        kill(identifier, SIGKILL)
        var value: Int32 = 0
        while waitpid(identifier, &value, 0) < 0 && errno == EINTR {}
        status = value
    }

    /// Requests the end of the process with SIGTERM, and waits for it.
    public func terminate(limit: Duration = .seconds(10)) async throws {
        signal(SIGTERM)
        try await eventually(limit: limit, "the end of process \(identifier)") { !isRunning }
    }

    /// The end of what the program has written, for messages of errors.
    public var output: String { String(decoding: ((try? Data(contentsOf: log)) ?? Data()).suffix(2000), as: UTF8.self) }
}

/// Returns the path of a program that was built with the tests.
public func builtProgram(_ name: String) -> String {
    URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent(name).path
}

/// A thread that never ends and starts all programs: Linux kills a child with `PR_SET_PDEATHSIG` when the thread that has
/// started it ends, and threads of Swift's pool may end before the test.
private final class Spawner: @unchecked Sendable {
    static let shared = Spawner()

    // `@unchecked`: the state below is accessed only while the condition is locked.
    private let condition = NSCondition()
    private var jobs: [() -> Void] = []

    private init() {
        let thread = Thread { [self] in
            while true {
                condition.lock()
                while jobs.isEmpty { condition.wait() }
                let job = jobs.removeFirst()
                condition.unlock()
                job()
            }
        }
        thread.name = "spawner"
        thread.start()
    }

    func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
        let result = Result()
        condition.lock()
        defer { condition.unlock() }
        jobs.append { [condition] in
            let value = Swift.Result { try body() }.map { $0 as any Sendable }
            condition.lock()
            result.value = value
            condition.broadcast()
            condition.unlock()
        }
        condition.broadcast()
        while result.value == nil { condition.wait() }
        // The value is what `body` has returned.
        return try result.value!.get() as! R
    }

    private final class Result {
        var value: Swift.Result<any Sendable, any Error>?
    }
}

/// Runs a program to its end.
///
/// - Throws: If it ends with another status than 0; the error has its output.
public func run(_ executable: String, _ arguments: [String], in directory: TemporaryDirectory) async throws {
    let log = directory.url.appendingPathComponent("output-\(UUID().uuidString)")
    let process = try ServerProcess(executable, arguments, log: log)
    try await eventually(limit: .seconds(30), "the end of \(executable)") { !process.isRunning }
    guard process.exitStatus == 0 else {
        throw LimitExceeded("\(executable) \(arguments.joined(separator: " ")): \(process.output)")
    }
}
