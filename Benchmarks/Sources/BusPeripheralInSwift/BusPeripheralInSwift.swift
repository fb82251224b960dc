// Our peripheral, through the public API, which sends notifications to one subscriber.
//
//     BusPeripheralInSwift
//
// It prints `ready` when it serves its characteristic and a central has subscribed. Then, for each line
//
//     signal|socket|nothing COUNT RATE
//
// it sends COUNT values of 20 bytes: to all subscribers, which takes a signal each, or to that one, over its socket. RATE is in
// values a second; 0 is as fast as they are taken. `nothing` only waits as the others do. It prints `sent COUNT` when all were
// taken. The bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.

import BlueCapKit
import Foundation

@main
struct BusPeripheralInSwift {
    static func main() {
        let peripheral = NotifyingPeripheral()
        peripheral.serve()
        say("ready")
        while let line = readLine() {
            let words = line.split(separator: " ")
            guard words.count == 3, let way = Way(rawValue: String(words[0])), let count = Int(words[1]),
                let rate = Double(words[2])
            else { fail("no such order: \(line)") }
            peripheral.send(count, way, rate: rate)
            say("sent \(count)")
        }
    }
}

enum Way: String {
    case signal, socket, nothing
}

final class NotifyingPeripheral {
    private let manager = PeripheralManager()
    private let level = MutableCharacteristic(
        uuid: "C0000021-0000-4000-8000-00805F9B34FB", properties: .notify, permissions: .readable)

    func serve() {
        let powered = DispatchSemaphore(value: 0)
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
            if state == .poweredOn { powered.signal() }
        }
        powered.wait()
        let service = MutableService(uuid: "C0000002-0000-4000-8000-00805F9B34FB")
        service.characteristics = [level]
        wait(for: manager.add(service))
        let subscribed = DispatchSemaphore(value: 0)
        level.whenSubscribersChange().onSuccess(context: ImmediateContext()) { subscribers in
            if !subscribers.isEmpty { subscribed.signal() }
        }
        subscribed.wait()
    }

    func send(_ count: Int, _ way: Way, rate: Double) {
        guard let subscriber = level.subscribers.first else { fail("the subscriber has left") }
        var value = Data(count: 20)
        let start = now()
        do {
            for number in 1...count {
                let word = number == count ? UInt32.max : UInt32(number)
                withUnsafeBytes(of: word) { value.replaceSubrange(0..<4, with: $0) }
                switch way {
                case .signal: try level.update(withData: value)
                case .socket: try level.update(withData: value, for: subscriber)
                case .nothing: break
                }
                if rate > 0 {
                    sleep(until: start + Double(number) / rate)
                } else if number % 512 == 0 {
                    wait(for: level.whenUpdatesSent())
                }
            }
        } catch { fail("\(error)") }
        wait(for: level.whenUpdatesSent())
    }
}

private func wait<T>(for future: Future<T>) {
    let done = DispatchSemaphore(value: 0)
    future.onComplete(context: ImmediateContext()) { result in
        if case .failure(let error) = result { fail("\(error)") }
        done.signal()
    }
    done.wait()
}

private func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

private func sleep(until instant: Double) {
    var time = timespec(tv_sec: Int(instant), tv_nsec: Int((instant - instant.rounded(.down)) * 1e9))
    while clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
}

/// Past `stdout`, whose lock another thread may hold that waits for input.
private func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

private func fail(_ reason: String) -> Never {
    FileHandle.standardError.write(Data("BusPeripheralInSwift: \(reason)\n".utf8))
    exit(1)
}
