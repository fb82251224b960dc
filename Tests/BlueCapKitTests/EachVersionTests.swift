import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Tests that run once for each version of BlueZ.
final class EachVersionTests: XCTestCase {
    private final class Sample: EachVersionTestCase {}

    func testASkipIsVisibleWithItsVersionsAndTheOthersRun() {
        let ran = Locked<[String]>([])
        let sample = Sample(name: "testSample") { test in
            let test = try XCTUnwrap(test as? Sample)
            ran.withLock { $0.append("\(test.name) \(test.bluez)") }
            if test.bluez == .v5_72 { throw XCTSkip("no reason") }
        }
        sample.invokeTest()
        XCTAssertEqual(
            ran.withLock { $0 },
            ["5.66", "5.72", "5.82", "5.87"].map { "Sample.testSample \($0)" })
        XCTAssertEqual(sample.skipSummary, "skipped with BlueZ 5.72: no reason")
    }

    func testWithoutASkipThereIsNoSummary() {
        let sample = Sample(name: "testSample") { _ in }
        sample.invokeTest()
        XCTAssertNil(sample.skipSummary)
    }
}
