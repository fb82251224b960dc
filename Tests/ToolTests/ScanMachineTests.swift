import XCTest

@testable import bluecap

final class ScanMachineTests: XCTestCase {
    private let strap = Samples.strap

    private func scanning(duration: Double? = nil, since start: Double = 1) -> ScanMachine {
        var machine = ScanMachine(duration: duration)
        _ = machine.handle(.radio(.ready), at: start)
        return machine
    }

    func testAReadyRadioStartsTheScanAndItsClock() {
        var machine = ScanMachine(duration: 3)
        XCTAssertEqual(machine.handle(.radio(.ready), at: 0), [.startScan, .startClock(3)])
        var endless = ScanMachine(duration: nil)
        XCTAssertEqual(endless.handle(.radio(.ready), at: 0), [.startScan])
    }

    func testAnUnusableRadioIsAFailureWithoutASummary() {
        var machine = ScanMachine(duration: nil)
        XCTAssertEqual(machine.handle(.radio(.unusable("It is off.")), at: 0), [.end(.failed("It is off."))])
        XCTAssertEqual(machine.handle(.radio(.ready), at: 1), [])
    }

    func testADaemonThatSaysNothingIsAFailureOnlyBeforeTheScan() {
        var machine = ScanMachine(duration: nil)
        XCTAssertEqual(
            machine.handle(.patienceIsOver("No answer."), at: 10), [.end(.failed("No answer."))])
        var running = scanning()
        XCTAssertEqual(running.handle(.patienceIsOver("No answer."), at: 10), [])
    }

    func testAStopThatNobodyConfirmsEndsAllTheSame() {
        var machine = scanning()
        XCTAssertEqual(machine.handle(.stopIsOverdue, at: 2), [])
        XCTAssertEqual(machine.handle(.interrupted, at: 3), [.stopScan])
        XCTAssertEqual(
            machine.handle(.stopIsOverdue, at: 8),
            [.report(.finished(ScanSummary(peripherals: 0, seconds: 2))), .end(.asked)])
        XCTAssertEqual(machine.handle(.discoveryIsOff, at: 9), [])
    }

    func testAnInterruptBeforeTheScanEndsItWithAnEmptySummary() {
        var machine = ScanMachine(duration: nil)
        XCTAssertEqual(
            machine.handle(.interrupted, at: 5),
            [.report(.finished(ScanSummary(peripherals: 0, seconds: 0))), .end(.asked)])
    }

    func testTheFirstSightingIsADiscoveryAndTheLaterOnesAreUpdates() {
        var machine = scanning()
        XCTAssertEqual(machine.handle(.sighted(strap), at: 2), [.report(.discovered(strap))])

        var stronger = strap
        stronger.rssi = -40
        stronger.makers[0].data = Data([1])
        XCTAssertEqual(machine.handle(.sighted(stronger), at: 3), [.report(.updated(stronger, isNews: false))])

        var named = stronger
        named.name = "Pulse"
        XCTAssertEqual(machine.handle(.sighted(named), at: 4), [.report(.updated(named, isNews: true))])
        XCTAssertEqual(machine.handle(.sighted(named), at: 5), [.report(.updated(named, isNews: false))])
    }

    func testWhoReturnsFromSilenceIsNewsButNotDiscoveredTwice() {
        var machine = scanning()
        _ = machine.handle(.sighted(strap), at: 2)
        XCTAssertEqual(machine.handle(.fellSilent(strap.identifier), at: 32), [.report(.expired(strap))])
        XCTAssertEqual(machine.handle(.fellSilent(strap.identifier), at: 33), [])
        XCTAssertEqual(machine.handle(.sighted(strap), at: 40), [.report(.updated(strap, isNews: true))])
    }

    func testSilenceOfSomebodyUnheardOfIsIgnored() {
        var machine = scanning()
        XCTAssertEqual(machine.handle(.fellSilent(strap.identifier), at: 32), [])
    }

    func testEveryEndWaitsUntilDiscoveryIsOff() {
        let endings: [(ScanMachine.Event, ScanMachine.Ending)] = [
            (.interrupted, .asked), (.timeIsOver, .asked), (.readerLeft, .readerLeft),
            (.scanFailed("Refused."), .failed("Refused.")),
        ]
        for (event, ending) in endings {
            var machine = scanning(since: 1)
            _ = machine.handle(.sighted(strap), at: 2)
            _ = machine.handle(.sighted(Samples.nameless), at: 2)
            XCTAssertEqual(machine.handle(event, at: 4.5), [.stopScan], "\(event)")
            XCTAssertEqual(machine.handle(.sighted(strap), at: 4.6), [], "\(event)")
            XCTAssertEqual(machine.handle(.interrupted, at: 4.7), [], "\(event)")
            XCTAssertEqual(
                machine.handle(.discoveryIsOff, at: 5),
                [.report(.finished(ScanSummary(peripherals: 2, seconds: 3.5))), .end(ending)], "\(event)")
            XCTAssertEqual(machine.handle(.discoveryIsOff, at: 6), [], "\(event)")
        }
    }

    func testARadioThatGoesAwayIsWaitedFor() {
        var machine = scanning()
        XCTAssertEqual(
            machine.handle(.radio(.away("bluetoothd is gone.")), at: 2),
            [.notice("bluetoothd is gone. The scan goes on when it is back.")])
        XCTAssertEqual(machine.handle(.radio(.ready), at: 3), [.notice("Bluetooth is back; the scan goes on.")])
        XCTAssertEqual(machine.handle(.radio(.ready), at: 4), [])
        XCTAssertEqual(machine.handle(.sighted(strap), at: 5), [.report(.discovered(strap))])
    }
}
