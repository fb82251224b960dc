import OpenCombine

/// The work done by OpenCombine, on the thread that completes.
enum Combine {
    static let name = "OpenCombine"

    /// A future and the function that completes it.
    private static func pending() -> (Future<Int, Never>, Future<Int, Never>.Promise) {
        var complete: Future<Int, Never>.Promise = { _ in }
        let future = Future<Int, Never> { complete = $0 }
        return (future, complete)
    }

    static let promise = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let (future, complete) = pending()
            let subscription = future.sink { sink &+= $0 }
            complete(.success(number))
            subscription.cancel()
        }
    }

    static let map = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let (future, complete) = pending()
            // Ten maps in a row, each a publisher of its own type; one closure that adds would fuse them.
            let chain =
                future
                .map { $0 &+ 1 }.eraseToAnyPublisher().map { $0 &+ 1 }.eraseToAnyPublisher()
                .map { $0 &+ 1 }.eraseToAnyPublisher().map { $0 &+ 1 }.eraseToAnyPublisher()
                .map { $0 &+ 1 }.eraseToAnyPublisher().map { $0 &+ 1 }.eraseToAnyPublisher()
                .map { $0 &+ 1 }.eraseToAnyPublisher().map { $0 &+ 1 }.eraseToAnyPublisher()
                .map { $0 &+ 1 }.eraseToAnyPublisher().map { $0 &+ 1 }
            let subscription = chain.sink { sink &+= $0 }
            complete(.success(number))
            subscription.cancel()
        }
    }

    static let flatMap = Contender(name: name) { repetitions in
        for number in 0..<repetitions {
            let (future, complete) = pending()
            var chain = AnyPublisher<Int, Never>(future)
            for _ in 0..<10 {
                chain = chain.flatMap { value in Future<Int, Never> { $0(.success(value &+ 1)) } }.eraseToAnyPublisher()
            }
            let subscription = chain.sink { sink &+= $0 }
            complete(.success(number))
            subscription.cancel()
        }
    }

    static let stream = Contender(name: name) { repetitions in
        let subject = PassthroughSubject<Int, Never>()
        let subscription = subject.map { $0 &+ 1 }.filter { $0 & 1 == 0 }.sink { sink &+= $0 }
        for number in 0..<repetitions { subject.send(number) }
        subscription.cancel()
    }

    static let sequence = Contender(name: name) { repetitions in
        for _ in 0..<repetitions {
            let pairs = (0..<1_000).map { _ in pending() }
            let subscription = Publishers.Sequence<[Future<Int, Never>], Never>(sequence: pairs.map(\.0))
                .flatMap { $0 }.collect().sink { sink &+= $0.count }
            for (number, pair) in pairs.enumerated() { pair.1(.success(number)) }
            subscription.cancel()
        }
    }
}
