/// The work done with Swift's own concurrency.
///
/// A value that arrives later is a continuation where somebody waits for it at once, and a task where somebody may.
enum Async {
    static let name = "async/await"

    static let promise = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            sink &+= await withCheckedContinuation { $0.resume(returning: number) }
        }
    }

    static let map = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            var task = Task { number }
            for _ in 0..<10 {
                let before = task
                task = Task { await before.value &+ 1 }
            }
            sink &+= await task.value
        }
    }

    static let flatMap = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            var task = Task { number }
            for _ in 0..<10 {
                let before = task
                task = Task {
                    let value = await before.value
                    return await Task { value &+ 1 }.value
                }
            }
            sink &+= await task.value
        }
    }

    static let stream = Contender(name: name) { repetitions in
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let consumer = Task {
            for await value in stream.map({ $0 &+ 1 }).filter({ $0 & 1 == 0 }) { sink &+= value }
        }
        for number in 0..<repetitions { continuation.yield(number) }
        continuation.finish()
        await consumer.value
    }

    static let sequence = Contender(name: name) { repetitions in
        for _ in 0..<repetitions {
            let tasks = (0..<1_000).map { number in Task { number } }
            var values: [Int] = []
            for task in tasks { values.append(await task.value) }
            sink &+= values.count
        }
    }
}
