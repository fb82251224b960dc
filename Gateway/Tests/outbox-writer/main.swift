import Foundation
import GatewayCore
import GatewayStore

// Uses an outbox as a test tells it, and prints each result as a line when it is known.
//
//     outbox-writer append PATH     append and acknowledge until the program is killed
//     outbox-writer fill PATH       append until the disk is full, and go on when a line arrives
//     outbox-writer step PATH AGE   append one value for each line that arrives; AGE in seconds is the limit

func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

func value(_ device: Int, _ bytes: Int = 40) throws -> NewValue {
    guard let name = DeviceName("00000000000\(device)") else { throw CocoaError(.keyValueValidation) }
    let body = #"{"v":"\#(String(repeating: "x", count: bytes))"}"#
    return NewValue(device: name, topic: "bluecap/g/value/\(name)/180f/2a19", time: Date(), body: Data(body.utf8))
}

/// Appends and acknowledges. `stored D S` follows an append, `deleting D S` precedes an acknowledgement.
func append(_ path: String) throws {
    let outbox = try Outbox(path: path)
    var round = 0
    while true {
        round += 1
        let stored = try outbox.append((0...round % 4).map { try value(($0 + round) % 3) })
        for value in stored { say("stored \(value.device) \(value.sequence)") }
        guard round % 5 == 0 else { continue }
        let oldest = try outbox.values(after: 0, count: 3)
        for value in oldest { say("deleting \(value.device) \(value.sequence)") }
        try outbox.acknowledge(oldest.map(Delivery.init))
    }
}

/// Appends until the disk is full; returns how many values were stored.
func appendUntilFull(_ outbox: Outbox) throws -> Int {
    var count = 0
    while true {
        do { count += try outbox.append((0..<4).map { _ in try value(1, 1_000) }).count } catch OutboxError.diskFull {
            return count
        }
    }
}

/// Fills the disk twice: with a foreign file that is removed, and with values that are acknowledged.
func fill(_ path: String) throws {
    let outbox = try Outbox(path: path)
    var total = 0
    for _ in 0..<50 { total += try outbox.append((0..<4).map { _ in try value(1, 1_000) }).count }

    let ballast = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent("ballast")
    try Data().write(to: ballast)
    let file = try FileHandle(forWritingTo: ballast)
    while (try? file.write(contentsOf: Data(count: 4_096))) != nil {}
    try file.close()
    let first = try appendUntilFull(outbox)
    total += first
    say(
        "full \(first) \(try outbox.values(after: 0, count: .max).count - total) \(try outbox.statistics().depth - total)"
    )

    try FileManager.default.removeItem(at: ballast)
    let second = try appendUntilFull(outbox)
    total += second
    say("recovered \(second) \(try outbox.values(after: 0, count: .max).count - total)")

    var deleted = 0
    while true {
        let oldest = try outbox.values(after: 0, count: 50)
        if oldest.isEmpty { break }
        try outbox.acknowledge(oldest.map(Delivery.init))
        deleted += oldest.count
    }
    say("acknowledged \(deleted - total)")
    let third = try appendUntilFull(outbox)
    let last = try outbox.values(after: 0, count: .max).map(\.sequence)
    say("reused \(third) \(last.count - third)")
    say("numbers \((last.first ?? 0) - Int64(total)) \((last.last ?? 0) - Int64(total + third))")
}

func step(_ path: String, _ age: Int64) throws {
    let outbox = try Outbox(path: path, limits: OutboxLimits(age: .seconds(age)))
    while readLine() != nil {
        let stored = try outbox.append([value(1)])
        try outbox.expire()
        let text = String(bytes: stored[0].payload(repeated: false), encoding: .utf8) ?? ""
        say("\(try outbox.statistics().depth) \(text)")
    }
}

do {
    switch CommandLine.arguments.dropFirst().first {
    case "append": try append(CommandLine.arguments[2])
    case "fill": try fill(CommandLine.arguments[2])
    case "step": try step(CommandLine.arguments[2], Int64(CommandLine.arguments[3]) ?? 0)
    default: say("usage: outbox-writer append|fill|step PATH")
    }
} catch { say("error \(error)") }
