import BlueCapGATT
import XCTest

final class BeaconDistanceTests: XCTestCase {
    func testAtTheMeasuredPowerItIsOneMetreAway() throws {
        let distance = try XCTUnwrap(DistanceModel().distance(rssi: -59, measuredPower: -59))
        XCTAssertEqual(distance.metres, 1, accuracy: 1e-9)
    }

    func testInFreeSpaceTwentyDecibelsAreAFactorOfTen() throws {
        let distance = try XCTUnwrap(DistanceModel(exponent: 2).distance(rssi: -79, measuredPower: -59))
        XCTAssertEqual(distance.metres, 10, accuracy: 1e-9)
        let indoors = try XCTUnwrap(DistanceModel(exponent: 4).distance(rssi: -79, measuredPower: -59))
        XCTAssertEqual(indoors.metres, 10.0.squareRoot(), accuracy: 1e-9)
    }

    func testTheUncertaintyIsAFactorThatAveragingLessens() throws {
        let model = DistanceModel(exponent: 2, shadowing: 3, fading: 4)
        let one = try XCTUnwrap(model.distance(rssi: -59, measuredPower: -59))
        XCTAssertEqual(one.factor, 1.7783, accuracy: 1e-4, "5 dB")
        XCTAssertEqual(one.range.lowerBound, 1 / one.factor, accuracy: 1e-9)
        XCTAssertEqual(one.range.upperBound, one.factor, accuracy: 1e-9)
        let many = try XCTUnwrap(model.distance(rssi: -59, measuredPower: -59, sightings: 1e9))
        XCTAssertEqual(many.factor, 1.4125, accuracy: 1e-4, "3 dB, which no averaging lessens")
    }

    func testWhatIsNoStrengthGivesNoDistance() {
        for rssi in [127, 21, -128, Double.nan, .infinity] {
            XCTAssertNil(DistanceModel().distance(rssi: rssi, measuredPower: -59), "\(rssi)")
        }
        XCTAssertNil(DistanceModel().distance(rssi: -59, measuredPower: .nan))
    }

    func testAModelOutOfAllBoundsIsTakenAsTheNearest() {
        let model = DistanceModel(exponent: 0, shadowing: -1, fading: .nan)
        XCTAssertEqual(model, DistanceModel(exponent: 1, shadowing: 0))
        XCTAssertNotNil(
            DistanceModel(exponent: 1, shadowing: 40, fading: 40).distance(rssi: -127, measuredPower: 128)?.range)
    }

    func testProximityIsTheRangeThatTheDistanceFallsIn() {
        func proximity(_ rssi: Double) -> BeaconProximity {
            BeaconProximity(DistanceModel().distance(rssi: rssi, measuredPower: -59))
        }
        XCTAssertEqual(proximity(-50), .immediate)
        XCTAssertEqual(proximity(-59), .near)
        XCTAssertEqual(proximity(-68), .near)
        XCTAssertEqual(proximity(-69), .far)
        XCTAssertEqual(proximity(127), .unknown)
    }

    func testTheFirstSightingIsTheAverage() {
        var smoother = SignalSmoother()
        XCTAssertNil(smoother.average)
        smoother.add(-70, after: 0)
        XCTAssertEqual(smoother.average, -70)
        XCTAssertEqual(smoother.weight, 1)
    }

    func testTheAverageFollowsWithItsTimeConstant() throws {
        var smoother = SignalSmoother(timeConstant: 2)
        smoother.add(-60, after: 0)
        smoother.add(-80, after: 2)
        XCTAssertEqual(try XCTUnwrap(smoother.average), -60 * exp(-1) - 80 * (1 - exp(-1)), accuracy: 1e-9)
        smoother.add(-50, after: 1_000)
        XCTAssertEqual(try XCTUnwrap(smoother.average), -50, accuracy: 1e-9, "what is long ago counts for nothing")
        XCTAssertEqual(smoother.weight, 1, accuracy: 1e-9)
    }

    func testManySightingsAreWorthMore() {
        var smoother = SignalSmoother(timeConstant: 2)
        for _ in 0..<1_000 { smoother.add(-70, after: 0.1) }
        // For small steps: twice the time constant over the step.
        XCTAssertEqual(smoother.weight, 40, accuracy: 0.1)
        XCTAssertEqual(smoother.average ?? 0, -70, accuracy: 1e-9)
    }

    func testNoInputMakesTheAverageNoNumber() throws {
        for constant in [0, -1, .infinity, Double.nan] {
            var smoother = SignalSmoother(timeConstant: constant)
            for (rssi, seconds) in [(-60, 0), (.nan, 1), (-70, -5), (-70, .nan), (-70, .infinity), (-70, 0.0)] {
                smoother.add(rssi, after: seconds)
            }
            XCTAssertTrue(try XCTUnwrap(smoother.average).isFinite, "\(constant)")
            XCTAssertGreaterThanOrEqual(smoother.weight, 1)
        }
    }
}
