import Foundation
import GatewayCore
import XCTest

@testable import GatewayProgram

/// Each command gets a result.
final class CommandQueueTests: XCTestCase {
    func testAtTheEndEachCommandHasAResult() async throws {
        let yaml = """
            name: attic
            broker: {addresses: ["mqtt://127.0.0.1:1883"]}
            store: {path: /tmp/store.sqlite}
            commands: {rate: 100, scan: true}
            """
        let queue = CommandQueue(try GatewayConfiguration(yaml: yaml, file: "test"))
        let (results, continuation) = AsyncStream.makeStream(of: Bool.self)
        let (begun, began) = AsyncStream.makeStream(of: Void.self)
        let running = Task {
            await queue.run { _ in
                began.yield()
                try? await Task.sleep(for: .seconds(3_600))
                return .failure(.init(.failed, "cancelled"))
            }
        }
        // Eight are executed, the others wait.
        for number in 0..<12 {
            let job = CommandQueue.Job(
                request: CommandRequest(id: "\(number)", action: .scan(isOn: true)), device: nil
            ) { result in
                if case .failure = result { continuation.yield(true) } else { continuation.yield(false) }
            }
            XCTAssertNil(queue.add(job, name: nil, at: .zero))
        }
        var iterator = begun.makeAsyncIterator()
        for _ in 0..<8 { await iterator.next() }
        queue.end()
        await running.value
        continuation.finish()
        let all = await results.reduce(into: []) { $0.append($1) }
        XCTAssertEqual(all, Array(repeating: true, count: 12))
        let late = CommandQueue.Job(request: CommandRequest(id: "late", action: .scan(isOn: true)), device: nil) { _ in
        }
        XCTAssertNotNil(queue.add(late, name: nil, at: .seconds(1)))
    }
}
