import BlueCapFutures
import BlueCapKit
import BlueZSimulator
import XCTest

/// What tests of notifications do with an ``AttributeStage``.
extension AttributeStage {
    static let heart = VirtualService(
        "180D",
        characteristics: [
            VirtualCharacteristic("2A37", [.notify, .read], value: [0]),
            VirtualCharacteristic("2A38", [.read], value: [1]),
            VirtualCharacteristic("2A39", [.indicate]),
            VirtualCharacteristic("2A3A", [.notify, .read]),
            VirtualCharacteristic("2A3B", [.write, .writeWithoutResponse]),
        ])

    /// Returns a stage with a connected peripheral and discovered characteristics.
    static func explored(
        link: VirtualLink = VirtualLink(), bluez: BlueZVersion = .default
    ) throws -> AttributeStage {
        let stage = try AttributeStage([heart], link: link, bluez: bluez)
        try stage.explore()
        return stage
    }

    /// The same, with the characteristic 2A37.
    static func rate(
        link: VirtualLink = VirtualLink(), bluez: BlueZVersion = .default
    ) throws -> (AttributeStage, Characteristic) {
        let stage = try explored(link: link, bluez: bluez)
        return (stage, try stage.characteristic("2A37"))
    }

    /// The same, subscribed, with the journal watching.
    static func subscribed(
        _ journal: NotificationJournal? = nil, over transport: NotificationTransport = .signals
    ) throws -> (AttributeStage, Characteristic) {
        let (stage, characteristic) = try rate()
        journal?.watch(characteristic.receiveNotificationUpdates())
        try stage.start(characteristic, over: transport)
        return (stage, characteristic)
    }

    func start(
        _ characteristic: Characteristic, over transport: NotificationTransport = .signals,
        file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let started: Future<Characteristic> = characteristic.startNotifying(over: transport)
        try wait(started, file: file, line: line)
    }

    /// The peripheral notifies one byte after another, and there is time for them to arrive.
    func notify(_ bytes: UInt8..., from uuid: String = "2A37") {
        for byte in bytes { simulator.notify(Self.address, characteristic: .uuid(uuid), value: [byte]) }
        simulator.advance(by: 0.5)
    }

    func loseLink(file: StaticString = #filePath, line: UInt = #line) {
        simulator.simulateLinkLoss(of: Self.address)
        XCTAssertTrue(simulator.advance(until: { !isLinked }, limit: 30), file: file, line: line)
    }

    func reconnect(file: StaticString = #filePath, line: UInt = #line) {
        peripheral.reconnect()
        XCTAssertTrue(simulator.advance(until: { isLinked }, limit: 60), file: file, line: line)
    }

    /// The link is lost and made again, until values come again.
    func interrupt(_ characteristic: Characteristic, file: StaticString = #filePath, line: UInt = #line) {
        loseLink(file: file, line: line)
        reconnect(file: file, line: line)
        awaitNotifying(characteristic, file: file, line: line)
    }

    /// Waits until values come again.
    func awaitNotifying(_ characteristic: Characteristic, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertTrue(
            simulator.advance(until: { characteristic.isNotifying }, limit: 60), "not notifying", file: file, line: line
        )
    }

    func subscriptionCount(_ uuid: String = "2A37") -> Int {
        simulator.subscriptions(to: .uuid(uuid), at: Self.address).count
    }

    func count(of call: String) -> Int { simulator.statistics.count(of: call) }

    /// Starts a flood of numbered values.
    func flood(_ count: Int, size: Int, from uuid: String = "2A37") {
        simulator.simulateNotifications(count: count, size: size, of: Self.address, characteristic: .uuid(uuid))
    }
}

/// Returns the number in a value of a flood.
func number(of bytes: some Sequence<UInt8>) -> Int {
    bytes.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
}

/// Another manager of this process, at the same peripheral.
struct SecondManager {
    let manager: CentralManager
    let peripheral: Peripheral

    /// A connected peripheral does not advertise: if it has a link, that is lost and made again.
    init(beside stage: AttributeStage) throws {
        let isLinked = stage.isLinked
        if isLinked { stage.loseLink() }
        (manager, peripheral) = try AttributeStage.find(on: stage.simulator)
        if isLinked { try stage.explore() }
    }

    func explore(_ uuid: String = "2A37", on stage: AttributeStage) throws -> Characteristic {
        try stage.explore(peripheral)
        return try XCTUnwrap(peripheral.services.lazy.compactMap { $0.characteristic(CBUUID(string: uuid)) }.first)
    }
}

/// What a stream brought: values, gaps and failures in their order.
final class NotificationJournal: Sendable {
    enum Entry: Equatable {
        case value([UInt8])
        case gap
        case failure(String)

        static func number(_ byte: UInt8) -> Entry { .value([byte]) }
    }

    private let state = Locked<[Entry]>([])

    var entries: [Entry] { state.withLock { $0 } }
    var values: [[UInt8]] {
        entries.compactMap { if case .value(let bytes) = $0 { bytes } else { nil } }
    }
    var bytes: [UInt8] { values.compactMap(\.first) }

    private func write(_ entry: Entry) { state.withLock { $0.append(entry) } }

    private func write(_ error: any Error) { write(.failure("\(error)")) }

    private func write(_ data: Data?) { write(data.map { .value(Array($0)) } ?? .gap) }

    func watch(
        _ stream: FutureStream<(characteristic: Characteristic, data: Data?)>,
        context: any ExecutionContext = ImmediateContext()
    ) {
        stream.onSuccess(context: context) { _, data in self.write(data) }
        stream.onFailure(context: context) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Data?>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Data>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }

    func watch(_ stream: FutureStream<Characteristic>) {
        stream.onSuccess(context: ImmediateContext()) { self.write($0.dataValue) }
        stream.onFailure(context: ImmediateContext()) { self.write($0) }
    }
}
