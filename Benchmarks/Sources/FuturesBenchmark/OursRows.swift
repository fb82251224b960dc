import BlueCapFutures

/// The work done by this library, on the immediate context.
enum Ours {
    static let name = "Futures"
    private static let immediate = ImmediateContext()

    static let promise = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let promise = Promise<Int>()
            promise.future.onSuccess(context: immediate) { sink &+= $0 }
            promise.success(number)
        }
    }

    static let map = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let promise = Promise<Int>()
            var future = promise.future
            for _ in 0..<10 { future = future.map(context: immediate) { $0 &+ 1 } }
            future.onSuccess(context: immediate) { sink &+= $0 }
            promise.success(number)
        }
    }

    static let flatMap = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let promise = Promise<Int>()
            var future = promise.future
            for _ in 0..<10 {
                future = future.flatMap(context: immediate) { value -> Future<Int> in Future(value: value &+ 1) }
            }
            future.onSuccess(context: immediate) { sink &+= $0 }
            promise.success(number)
        }
    }

    static func stream(capacity: Int) -> @Sendable (Int) async -> Void {
        { repetitions in
            let promise = StreamPromise<Int>(capacity: capacity)
            promise.stream
                .map(context: immediate) { $0 &+ 1 }
                .withFilter(context: immediate) { $0 & 1 == 0 }
                .onSuccess(context: immediate) { sink &+= $0 }
            for number in 0..<repetitions { promise.success(number) }
        }
    }

    static let stream = Contender(name: name, work: stream(capacity: 0))
    static let keepingStream = Contender(name: "Futures, keeping 4096", work: stream(capacity: .max))

    static let sequence = Contender(name: name) { repetitions in
        for _ in 0..<repetitions {
            let promises = (0..<1_000).map { _ in Promise<Int>() }
            promises.map(\.future).sequence(context: immediate).onSuccess(context: immediate) { sink &+= $0.count }
            for (number, promise) in promises.enumerated() { promise.success(number) }
        }
    }
}
