import XCTest

/// Plays a table with a machine: the orders that follow each event, in words.
///
/// ```
/// A link that is lost is reported once:
/// connected; lost → linkWentDown, report disconnected; lost → none
/// ```
///
/// A line that ends with a colon names a play, which begins with a new machine. The other lines have its steps, separated
/// by semicolons: an event, and behind an arrow what the machine returns. Without an arrow that is not compared. A failure
/// has the name, the step and its line, if the table is a literal below the call.
///
/// - Parameter machine: Makes a machine. Its result executes an event, and returns the orders, or the state that the event
///   asks for.
public func play(
    _ table: String, file: StaticString = #filePath, line: UInt = #line,
    with machine: () -> (_ event: [String]) throws -> String
) {
    var name = ""
    var send = machine()
    for (index, text) in table.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        if text.hasSuffix(":") {
            (name, send) = (String(text), machine())
            continue
        }
        for step in text.split(separator: ";") {
            XCTAssertFalse(
                step.contains("->"), "\(name) \(step): write → instead of ->", file: file, line: line + UInt(index) + 2)
            let parts = step.split(separator: "→").map { $0.split(separator: " ").joined(separator: " ") }
            let result: String
            do {
                result = try send(parts[0].split(separator: " ").map(String.init))
                guard parts.count > 1, result != parts[1] else { continue }
            } catch {
                result = "\(error)"
            }
            XCTFail(
                "\(name) \(parts.joined(separator: " → ")), not \(result)", file: file, line: line + UInt(index) + 2)
        }
    }
}

/// A step of a table whose event the machine does not have.
public struct UnknownEvent: Error, CustomStringConvertible {
    public let description: String
    public init(_ event: [String]) { description = "no such event: \(event.joined(separator: " "))" }
}
