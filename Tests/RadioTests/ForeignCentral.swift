import TestSupport
import XCTest

/// `bleak`, by the lab's `radio-central`.
final class ForeignCentral: StageCentral {
    init() throws { try start() }

    deinit { _ = try? RadioLab.order(.server, "stop", "central") }

    private func start() throws { try RadioLab.order(.server, "central", "hci0") }

    @discardableResult
    private func order(_ words: String...) throws -> String { try RadioLab.order(.central, words) }

    func connect(to name: String, advertising service: String) throws { try order("connect", name) }

    func table() throws -> [StageRow] {
        try order("services").split(separator: "\n").map { line in
            let words = line.split(separator: " ").map(String.init)
            return StageRow(
                words[0], words[1], Set(words[2].split(separator: ",").map(String.init)), Set(words.dropFirst(3)))
        }
    }

    private func answer(_ text: String) -> StageAnswer {
        let words = text.split(separator: " ")
        guard words.first == "refused" else { return .value(bytes(text)) }
        return .refused(words.last.flatMap { UInt8($0, radix: 16) })
    }

    func read(_ uuid: String) throws -> StageAnswer { answer(try order("read", uuid)) }

    func readDescriptor(_ descriptor: String, of uuid: String) throws -> [UInt8] {
        bytes(try order("describe", uuid, "0000\(descriptor)-0000-1000-8000-00805f9b34fb"))
    }

    func write(_ bytes: [UInt8], to uuid: String, withResponse: Bool) throws -> StageAnswer {
        let text = try order("write", uuid, hex(bytes), withResponse ? "request" : "command")
        return text == "written" ? .value([]) : answer(text)
    }

    func subscribe(to uuid: String) throws { try order("subscribe", uuid, "signals") }

    func unsubscribe(from uuid: String) throws { try order("unsubscribe", uuid) }

    func values(of uuid: String, count: Int) throws -> [[UInt8]] {
        try order("values", uuid, String(count)).split(separator: " ").map { bytes(String($0)) }
    }

    /// bleak does not notice that `bluetoothd` has ended, and keeps the objects of the former daemon. A new process replaces
    /// it.
    func awaitLoss() throws { try start() }

    func disconnect() throws { try order("disconnect") }

    /// Begins to pair, and returns without waiting for the end.
    func beginPairing() throws { try order("pair") }

    /// Waits for the end of the pairing; what `bleak` says of its failure, nil if it has succeeded.
    func outcomeOfPairing() throws -> String? {
        let text = try order("paired")
        return text == "paired" ? nil : text
    }
}

/// A row of hexadecimal bytes, as far as it is one.
func bytes(_ text: String) -> [UInt8] {
    var rest = Substring(text)
    var bytes: [UInt8] = []
    while let byte = UInt8(rest.prefix(2), radix: 16) {
        bytes.append(byte)
        rest = rest.dropFirst(2)
    }
    return bytes
}
