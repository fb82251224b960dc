import BlueZSimulator
import Foundation

/// A virtual central that connects again and again, so that a served peripheral can be observed without a radio.
///
/// It connects as soon as a connectable peripheral is advertised, reads and subscribes to everything, writes the values that it
/// has, stays connected for a while, and disconnects. If an operation needs an encrypted link, it pairs.
struct Visitor: Sendable {
    /// Seconds between two requests, so that the output can be followed.
    private static let pause = 0.2
    /// Seconds that it stays connected, and seconds until it connects again.
    private static let stay = 8.0
    private static let absence = 5.0
    /// Seconds that a response may take.
    private static let patience = 5.0
    /// Seconds that a pairing may take.
    private static let pairingPatience = 35.0
    /// The codes of the attribute protocol for a link without enough security.
    private static let lacksSecurity: Set<UInt8> = [0x05, 0x0F]

    /// BlueZ's own services, which it does not use.
    private static let skipped: Set<String> = ["1800", "1801", "180A"]

    let simulator: Simulator
    /// The number of the adapter that it connects to.
    let adapter: Int

    /// Starts a visitor of each adapter, on a thread of its own, which lasts as long as the process.
    static func visitAdapters(of simulator: Simulator) {
        for adapter in simulator.adapters.indices {
            let visitor = Visitor(simulator: simulator, adapter: adapter)
            Thread.detachNewThread {
                while true {
                    visitor.visit()
                    Thread.sleep(forTimeInterval: absence)
                }
            }
        }
    }

    private func visit() {
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"), to: adapter)
        // The link waits until a peripheral advertises.
        guard simulator.wait(until: { link.state != .connecting }, limit: 3600), link.state == .connected else {
            return
        }
        let characteristics = link.services.filter { !Self.skipped.contains($0.uuid.uppercased()) }
            .flatMap(\.characteristics)
        // By handle: several characteristics may have one UUID.
        func finishEach(
            with flags: Set<CharacteristicFlag>,
            _ send: (CentralLink, ServedCharacteristic, AttributeSelector) -> CentralRequest
        ) {
            for characteristic in characteristics where !characteristic.flags.isDisjoint(with: flags) {
                finish(link) { send($0, characteristic, .handle(characteristic.valueHandle)) }
            }
        }
        finishEach(with: [.read]) { $0.read($2) }
        finishEach(with: [.notify, .indicate]) { $0.subscribe(to: $2, indications: !$1.flags.contains(.notify)) }
        finishEach(with: [.write, .writeWithoutResponse]) {
            $0.write(Self.bytes(for: $1.uuid), to: $2, type: $1.flags.contains(.write) ? .request : .command)
        }
        _ = simulator.wait(until: { link.state == .disconnected }, limit: Self.stay)
        link.disconnect()
        _ = simulator.wait(until: { link.state == .disconnected }, limit: Self.patience)
    }

    /// Waits for a response, and repeats the request once if it needs a pairing.
    private func finish(_ link: CentralLink, _ send: (CentralLink) -> CentralRequest) {
        func wait(for request: CentralRequest, _ limit: Double) -> Result<[UInt8], CentralLinkError>? {
            _ = simulator.wait(until: { request.result != nil }, limit: limit)
            return request.result
        }
        if case .failure(.attribute(let code))? = wait(for: send(link), Self.patience),
            Self.lacksSecurity.contains(code), case .success? = wait(for: link.pair(), Self.pairingPatience)
        {
            _ = wait(for: send(link), Self.patience)
        }
        Thread.sleep(forTimeInterval: Self.pause)
    }

    /// The value that it writes: a greeting to a serial line; "on", or the first command, to everything else.
    private static func bytes(for uuid: String) -> [UInt8] {
        switch uuid.uppercased() {
        case "6E400002-B5A3-F393-E0A9-E50E24DCCA9E": Array("hello".utf8)
        // The period of a SensorTag's sensor: a second, in hundredths.
        case "F000AA13-0451-4000-B000-000000000000", "F000AA33-0451-4000-B000-000000000000": [100]
        // The gyroscope's three axes.
        case "F000AA52-0451-4000-B000-000000000000": [7]
        default: [1]
        }
    }
}
