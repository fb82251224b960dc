import BlueCapKit
import BlueZSimulator
import XCTest

@testable import bluecap

/// The decisions of a served peripheral, as tables.
final class ServingMachineTests: XCTestCase {
    private typealias Key = ServingMachine.Key

    private func machine(_ name: String) throws -> ServingMachine {
        ServingMachine(try XCTUnwrap(PeripheralModel.builtin.first { $0.name == name }).model.services)
    }

    private func key(_ uuid: String, in machine: ServingMachine) throws -> Key {
        try XCTUnwrap(machine.keys.first { machine[$0].uuid == CBUUID(string: uuid) }, uuid)
    }

    private func bytes(_ effects: [ServingMachine.Effect], of key: Key) -> [UInt8]? {
        for case .value(key, let data) in effects { return [UInt8](data) }
        return nil
    }

    private func wake(_ effects: [ServingMachine.Effect], of key: Key) -> (round: Int, after: Double)? {
        for case .wake(key, let round, let pause) in effects { return (round, pause) }
        return nil
    }

    func testAnEchoComesFromTheCharacteristicThatNotifies() {
        let uuid = CBUUID(string: "FFF1")
        var machine = ServingMachine([
            .init(
                uuid: CBUUID(string: "FFF0"),
                characteristics: [
                    .init(uuid: uuid, properties: .write, behaviour: .echoes(to: uuid)),
                    .init(uuid: uuid, properties: .notify),
                ])
        ])
        let (code, effects) = machine.written(Data([9]), to: machine.keys[0], at: 0)
        XCTAssertEqual(code, .success)
        XCTAssertEqual(effects, [.value(machine.keys[1], Data([9]))])
    }

    // MARK: Values that change

    func testAHeartRateComesEverySecondAndVaries() throws {
        var machine = try machine("heart-rate")
        let measurement = try key("2A37", in: machine)
        var wake = try XCTUnwrap(wake(machine.begin(), of: measurement))
        var rates: Set<UInt16> = []
        for second in 1...30 {
            XCTAssertEqual(wake.after, 1)
            let effects = machine.due(measurement, round: wake.round, at: Double(second))
            let data = try XCTUnwrap(bytes(effects, of: measurement))
            let value = try XCTUnwrap(BluetoothSIG.HeartRateService.Measurement.deserialize(Data(data)))
            XCTAssertTrue((55...95).contains(value.beatsPerMinute), "\(value)")
            rates.insert(value.beatsPerMinute)
            wake = try XCTUnwrap(self.wake(effects, of: measurement))
        }
        XCTAssertGreaterThan(rates.count, 5)
    }

    func testAWakeUpThatIsOutOfDateMeansNothing() throws {
        var machine = try machine("battery")
        let level = try key("2A19", in: machine)
        let wake = try XCTUnwrap(wake(machine.begin(), of: level))
        XCTAssertEqual(bytes(machine.due(level, round: wake.round, at: 10), of: level), [99])
        XCTAssertEqual(machine.due(level, round: wake.round, at: 20), [])
    }

    func testABatteryIsChangedBeforeItIsEmpty() {
        let source = ValueSource.battery(pace: 1)
        let levels = (0..<300).map { source.value(at: Double($0))[0] }
        XCTAssertEqual(levels.max(), 100)
        XCTAssertEqual(levels.min(), 5)
    }

    func testACounterAndACycleGoOnByTime() {
        let counter = ValueSource(.counter(size: 2, every: 0.1))
        XCTAssertEqual([UInt8](counter.value(at: 0.1)), [1, 0])
        XCTAssertEqual([UInt8](counter.value(at: 25.7)), [1, 1])
        let cycle = ValueSource(.cycle([[1], [2]], every: 2))
        XCTAssertEqual([0, 2, 4, 6].map { cycle.value(at: $0)[0] }, [1, 2, 1, 2])
    }

    // MARK: Writes

    func testTheControlPointResetsTheEnergyAndRefusesWhatItDoesNotKnow() throws {
        var machine = try machine("heart-rate")
        let (measurement, control) = (try key("2A37", in: machine), try key("2A39", in: machine))
        func energy(at seconds: Double, _ round: Int) throws -> UInt16? {
            let data = try XCTUnwrap(bytes(machine.due(measurement, round: round, at: seconds), of: measurement))
            return BluetoothSIG.HeartRateService.Measurement.deserialize(Data(data))?.energyExpended
        }
        _ = machine.begin()
        XCTAssertEqual(try energy(at: 100, 1), 10)
        XCTAssertEqual(machine.written(Data([1]), to: control, at: 100).0, .success)
        XCTAssertEqual(try energy(at: 120, 2), 2)
        XCTAssertEqual(machine.written(Data([9]), to: control, at: 120).0.rawValue, 0x80)
    }

    func testAUARTSendsBackWhatItIsSent() throws {
        var machine = try machine("uart")
        let (rx, tx) = (
            try key("6E400002-B5A3-F393-E0A9-E50E24DCCA9E", in: machine),
            try key("6E400003-B5A3-F393-E0A9-E50E24DCCA9E", in: machine)
        )
        // Bytes that are no text, too.
        let (result, effects) = machine.written(Data([0xFF, 0x00]), to: rx, at: 0)
        XCTAssertEqual(result, .success)
        XCTAssertEqual(effects, [.value(tx, Data([0xFF, 0x00]))])
    }

    func testASensorThatIsOffHasZerosAndOneThatIsOnMeasuresInItsPeriod() throws {
        var machine = try machine("sensortag")
        let data = try key(TISensorTag.AccelerometerService.Data.uuid, in: machine)
        let enabled = try key(TISensorTag.AccelerometerService.Enabled.uuid, in: machine)
        let period = try key(TISensorTag.AccelerometerService.UpdatePeriod.uuid, in: machine)
        XCTAssertEqual(machine[data].value, Data([0, 0, 0]))
        XCTAssertNil(wake(machine.begin(), of: data))

        let (result, effects) = machine.written(Data([1]), to: enabled, at: 5)
        XCTAssertEqual(result, .success)
        let first = try XCTUnwrap(wake(effects, of: data))
        XCTAssertEqual(first.after, 1)
        let measured = machine.due(data, round: first.round, at: 6)
        XCTAssertEqual(bytes(measured, of: data)?[2], 64)

        let faster = try XCTUnwrap(wake(machine.written(Data([20]), to: period, at: 6).1, of: data))
        XCTAssertEqual(faster.after, 0.2)
        let before = try XCTUnwrap(wake(measured, of: data))
        XCTAssertEqual(machine.due(data, round: before.round, at: 7), [], "the old period goes on")

        let off = machine.written(Data([0]), to: enabled, at: 8).1
        XCTAssertNil(wake(off, of: data))
        XCTAssertEqual(bytes(off, of: data), [0, 0, 0])
        XCTAssertEqual(machine.due(data, round: faster.round, at: 9), [])
    }

    func testASwitchRefusesWhatIsNoValueOfIt() throws {
        var machine = try machine("sensortag")
        let enabled = try key(TISensorTag.AccelerometerService.Enabled.uuid, in: machine)
        for bytes in [Data(), Data([2]), Data([1, 1])] {
            let (result, effects) = machine.written(bytes, to: enabled, at: 0)
            XCTAssertEqual(result, .invalidAttributeValueLength)
            XCTAssertEqual(effects, [])
        }
        XCTAssertEqual(machine[enabled].value, Data([0]))
    }

    func testWhatNoProfileKnowsTakesEverythingAndSendsIt() {
        let characteristic = PeripheralModel.Characteristic(
            uuid: CBUUID(string: "AA01"), properties: [.read, .write, .notify])
        var machine = ServingMachine([
            .init(uuid: CBUUID(string: "AA00"), characteristics: [characteristic])
        ])
        let key = Key(service: 0, characteristic: 0)
        let (result, effects) = machine.written(Data("hi".utf8), to: key, at: 0)
        XCTAssertEqual(result, .success)
        XCTAssertEqual(effects, [.value(key, Data("hi".utf8))])
        XCTAssertEqual(machine[key].value, Data("hi".utf8))
    }
}
