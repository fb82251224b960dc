import BlueCapKit
import BlueZSimulator
import Bluejay
import XCTest

/// Bluejay beside a peripheral of a ``CentralStage``: the guide's heart rate example, in real time.
///
/// The callbacks run on a queue of their own, the background task on its thread, and the test waits for the notes that
/// they leave.
// Unchecked: the fields are set in `init` alone.
public final class BluejayBodies: @unchecked Swift.Sendable {
    private let stage: any CentralStage
    private let bluejay = Bluejay(callbackQueue: DispatchQueue(label: "callbacks"))
    private let notes = Notes()

    private static let heartRate = ServiceIdentifier(uuid: "180D")
    private static let measurement = CharacteristicIdentifier(uuid: "2A37", service: heartRate)
    private static let location = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
    private static let control = CharacteristicIdentifier(uuid: "2A39", service: heartRate)

    /// What LightBlue Explorer calls a heart rate sensor. Its name is what it advertises; once it is connected BlueZ reads
    /// another from it.
    private static let sensor = StagePeripheral(
        name: "Heart",
        applications: [
            [
                StageService(
                    "180D",
                    [
                        .init("measurement", "2A37", [.notify], [0, 60]),
                        .init("location", "2A38", [.read, .write], [1]),
                        .init("control", "2A39", [.write], [0]),
                    ])
            ]
        ])

    public init(on stage: any CentralStage) { self.stage = stage }

    // MARK: Bodies

    /// Scan, connect, read, write, listen, a batch, disconnect.
    public func theHeartRateExampleRuns() throws {
        try connect()
        bluejay.read(from: Self.location) { [notes] (result: ReadResult<UInt8>) in notes.note("read", result) }
        try expect("read 1")
        bluejay.write(to: Self.location, value: UInt8(3)) { [notes] in notes.note("write", $0) }
        try expect("write ()")
        XCTAssertEqual(try stage.value(of: "location"), [3])

        listen()
        // The next turn begins when the listen is set up.
        bluejay.read(from: Self.location) { [notes] (result: ReadResult<UInt8>) in notes.note("then", result) }
        try expect("then 3")
        try stage.notify("measurement", [[0, 72], [0, 74]])
        try expect("beat 74")
        XCTAssertEqual(notes.texts.filter { $0.hasPrefix("beat") }, ["beat 72", "beat 74"])

        bluejay.run(backgroundTask: { peripheral -> UInt8 in
            try peripheral.endListen(to: Self.measurement)
            try peripheral.write(to: Self.location, value: UInt8(0))
            return try peripheral.read(from: Self.location)
        }) { [notes] (result: RunResult<UInt8>) in notes.note("reset", result) }
        try expect("reset 0")

        bluejay.disconnect { [notes] in notes.note("disconnect", $0) }
        try expect("disconnect ()")
        XCTAssertFalse(bluejay.shouldAutoReconnect)
    }

    /// A batch is waiting for a value when the peripheral ends the link: it fails, Bluejay reconnects, and the next one runs.
    public func aBatchFailsWithItsLinkAndTheNextOneRuns() throws {
        try connect()
        let observer = Observer(notes)
        bluejay.register(observer: observer)
        try expect("connected")
        bluejay.run(backgroundTask: { [notes] peripheral in
            try peripheral.writeAndListen(writeTo: Self.control, value: UInt8(1), listenTo: Self.measurement) {
                (beat: Beat) -> ListenAction in
                notes.note("beat \(beat.rate)")
                return .keepListening
            }
        }) { [notes] in notes.note("batch", $0) }
        try expect("written") { [stage] _ in (try? stage.value(of: "control")) == [1] }
        try stage.notify("measurement", [[0, 80]])
        try expect("beat 80")
        try stage.drop()
        try expect("disconnected")
        XCTAssertTrue(notes.texts.contains("batch \(BluejayError.notConnected)"), "\(notes.texts)")
        try expect("the connection", limit: 60) { texts in texts.filter { $0 == "connected" }.count == 2 }
        bluejay.run(backgroundTask: { try $0.read(from: Self.location) as UInt8 }) { [notes] in
            notes.note("next", $0)
        }
        try expect("next 1")
        bluejay.disconnect(immediate: true) { [notes] in notes.note("disconnect", $0) }
        try expect("disconnect ()")
        withExtendedLifetime(observer) {}
    }

    // MARK: Parts

    private struct Beat: Receivable {
        let rate: UInt8
        init(bluetoothData: Data) throws { rate = try bluetoothData.extract(start: 1, length: 1) }
    }

    private func connect() throws {
        try stage.serve(Self.sensor)
        bluejay.start(
            mode: .new(
                StartOptions(
                    enableBluetoothAlert: false, backgroundRestore: .disable,
                    managerConfiguration: stage.centralConfiguration)))
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { [notes] discovery, _ in
                guard discovery.peripheralIdentifier.name == "Heart" else { return .continue }
                return .connect(discovery) { notes.note("connect", $0) }
            }, stopped: { _, _ in })
        try expect("connect ()", limit: 60)
    }

    private func listen() {
        bluejay.listen(to: Self.measurement) { [notes] (result: ReadResult<Beat>) in
            switch result {
            case .success(let beat): notes.note("beat \(beat.rate)")
            case .failure(let error): notes.note("listen \(error)")
            }
        }
    }

    private struct Missing: Error {}

    private func expect(_ text: String, limit: TimeInterval = 20) throws {
        try expect(text, limit: limit) { $0.contains(text) }
    }

    private func expect(
        _ what: String, limit: TimeInterval = 20, _ condition: ([String]) -> Bool
    ) throws {
        // On a busy host the clock of an emulated processor is inexact.
        guard notes.wait(limit: 3 * limit, until: condition) else {
            XCTFail("\(what) did not come; noted: \(notes.texts)")
            throw Missing()
        }
    }
}

// Unchecked: called on the callback queue alone.
private final class Observer: ConnectionObserver, @unchecked Swift.Sendable {
    private let notes: Notes
    init(_ notes: Notes) { self.notes = notes }
    func connected(to peripheral: Peripheral) { notes.note("connected") }
    func disconnected(from peripheral: Peripheral) { notes.note("disconnected") }
}

extension Notes {
    /// Notes the value or the error of a result.
    fileprivate func note(_ name: String, _ result: some Any) {
        let value = Mirror(reflecting: result).children.first?.value
        note("\(name) \(value is Peripheral ? () : value ?? ())")
    }
}
