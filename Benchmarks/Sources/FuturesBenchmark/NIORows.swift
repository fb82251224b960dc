import NIOCore
import NIOEmbedded

/// The work done by SwiftNIO's futures, on the loop that they belong to.
enum NIO {
    static let name = "SwiftNIO"

    static let promise = Contender(name: name) { repetitions in
        let loop = EmbeddedEventLoop()
        for number in 0..<repetitions {
            let promise = loop.makePromise(of: Int.self)
            promise.futureResult.whenSuccess { sink &+= $0 }
            promise.succeed(number)
        }
    }

    static let map = Contender(name: name) { repetitions in
        let loop = EmbeddedEventLoop()
        for number in 0..<repetitions {
            let promise = loop.makePromise(of: Int.self)
            var future = promise.futureResult
            for _ in 0..<10 { future = future.map { $0 &+ 1 } }
            future.whenSuccess { sink &+= $0 }
            promise.succeed(number)
        }
    }

    static let flatMap = Contender(name: name) { repetitions in
        let loop = EmbeddedEventLoop()
        let eventLoop: any EventLoop = loop
        for number in 0..<repetitions {
            let promise = loop.makePromise(of: Int.self)
            var future = promise.futureResult
            for _ in 0..<10 { future = future.flatMap { eventLoop.makeSucceededFuture($0 &+ 1) } }
            future.whenSuccess { sink &+= $0 }
            promise.succeed(number)
        }
    }

    static let sequence = Contender(name: name) { repetitions in
        let loop = EmbeddedEventLoop()
        for _ in 0..<repetitions {
            let promises = (0..<1_000).map { _ in loop.makePromise(of: Int.self) }
            EventLoopFuture.whenAllSucceed(promises.map(\.futureResult), on: loop).whenSuccess { sink &+= $0.count }
            for (number, promise) in promises.enumerated() { promise.succeed(number) }
        }
    }
}
