import BlueCapKit
import Foundation
import BlueCapFutures

/// What the code in the documentation of the module Futures assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum FuturesContext {
    struct Sensor: Sendable {
        var readings: FutureStream<Double> { fatalError() }
        func read() async throws -> Double { fatalError() }
        func read(_ body: @escaping @Sendable (Double, (any Error)?) -> Void) {}
        func onReading(_ body: @escaping @Sendable (Double) -> Void) {}
    }

    struct Device: Sendable {
        func temperature() -> Future<Double> { fatalError() }
        func read() -> Future<Int> { fatalError() }
    }

    struct Server: Sendable {
        func format(_ value: Double) -> Future<String> { fatalError() }
    }

    final class View: @unchecked Sendable {
        var text = ""
        var level = 0
        func add<T>(_ value: T) {}
        func show<T>(_ value: T) {}
    }

    static let sensor = Sensor()
    static let server = Server()
    static let sensors = [Device()]
    static let (battery, counter, label, list, view) = (View(), View(), View(), View(), View())
    static var reading: Future<Int> { fatalError() }
    static var readings: StreamPromise<Double> { fatalError() }
    static var stream: FutureStream<Int> { fatalError() }
    static var summary: Future<String> { fatalError() }
    static func discover() -> Future<Device> { fatalError() }
    static func humidity() -> Future<Double> { fatalError() }
    static func temperature() -> Future<Double> { fatalError() }

    static var manager: CentralManager { fatalError() }
}
