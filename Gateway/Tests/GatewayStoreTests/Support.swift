import Foundation
import GatewayCore
import GatewayStore
import GatewayTestSupport
import Logging
import XCTest

let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// A folder that is removed when the test ends.
func temporaryFolder(_ test: XCTestCase, inMemory: Bool = false) throws -> URL {
    let shared = URL(fileURLWithPath: "/dev/shm")
    let parent =
        inMemory && FileManager.default.isWritableFile(atPath: shared.path)
        ? shared : FileManager.default.temporaryDirectory
    let folder = parent.appendingPathComponent("outbox-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    test.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    return folder
}

func device(_ number: Int) throws -> DeviceName { try XCTUnwrap(DeviceName("c0ffee00000\(number)")) }

func value(_ number: Int, body: String = #"{"v":1}"#, time: Date = Date(timeIntervalSince1970: 0)) throws -> NewValue {
    let device = try device(number)
    return NewValue(device: device, topic: "bluecap/g/reading/\(device)", time: time, body: Data(body.utf8))
}

/// The envelope of a published payload.
struct Envelope: Decodable, Hashable {
    var sequence: Int64
    var time: String
    var repeated: Bool?
    var dropped: Int64?
    var restarted: Bool?

    init(_ payload: Data) throws { self = try JSONDecoder().decode(Self.self, from: payload) }
}

/// Waits until a condition holds, with a limit.
func eventually(
    _ what: String, within limit: Duration = .seconds(10), file: StaticString = #filePath, line: UInt = #line,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now.advanced(by: limit)
    while try await !condition() {
        guard ContinuousClock.now < end else { return XCTFail("not within \(limit): \(what)", file: file, line: line) }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// A program that is started for a test, with its standard input and output, for 30 s at most.
final class Child {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())
    private var buffer = Data()
    /// Ends the program, and so the output that a test waits for.
    private var limit: (any DispatchSourceTimer)?

    init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        // Without it, reading does not end when the child does.
        try? output.fileHandleForWriting.close()
        let (timer, identifier) = (DispatchSource.makeTimerSource(), process.processIdentifier)
        timer.setEventHandler { Foundation.kill(identifier, SIGKILL) }
        timer.schedule(deadline: .now() + 30)
        timer.resume()
        limit = timer
    }

    deinit { kill() }

    func send(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

    /// Returns the next complete line, or `nil` at the end of the output.
    func line() -> String? {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                defer { buffer = Data(buffer[(end + 1)...]) }
                return String(bytes: buffer[..<end], encoding: .utf8)
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { return nil }
            buffer += more
        }
    }

    /// Ends the program. What it has started itself ends with the standard input.
    func kill() {
        limit?.cancel()
        try? input.fileHandleForWriting.close()
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }
}
