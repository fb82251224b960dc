import BlueCapKit
import XCTest

@testable import bluecap

final class ScanFilterTests: XCTestCase {
    private func accepts(
        _ sighting: Sighting, _ wanted: [[ScanFilter.Criterion]] = [], not unwanted: [ScanFilter.Criterion] = []
    ) -> Bool {
        ScanFilter(wanted: wanted, unwanted: unwanted).accepts(sighting)
    }

    func testANameIsComparedByItsBeginningOrByAnExpression() throws {
        for (text, fits) in [
            ("Pulse", true), ("pulse", false), ("Strap", false), ("C0:5A", true), ("c0:5a:17", true), ("/Strap/", true),
            ("/^Strap/", false), ("/(?i)STRAP [0-9]F$/", true), ("/", false), ("//", false), ("/x*/", true),
        ] {
            XCTAssertEqual(accepts(Samples.strap, [[try .name(text)]]), fits, text)
        }
        XCTAssertFalse(accepts(Samples.nameless, [[try .name("/x*/")]]), "There is no name.")
    }

    func testOneOfEachKindHasToFit() throws {
        let (pulse, other) = (try ScanFilter.Criterion.name("Pulse"), try ScanFilter.Criterion.name("Other"))
        XCTAssertTrue(accepts(Samples.strap))
        XCTAssertTrue(accepts(Samples.strap, [[other, pulse], [.company([0x004C, 0x006B])], []]))
        XCTAssertFalse(accepts(Samples.strap, [[other, pulse], [.company([0x004C])], []]))
        XCTAssertFalse(accepts(Samples.strap, [[other]]))
    }

    func testWhatNotNamesIsExcluded() throws {
        for (text, isExcluded) in [
            ("named", true), ("name=Pulse", true), ("name=/7f/", false), ("name=a=b", false), ("address=C0-5A", true),
            ("address=C0:5A:17:00:18:02", false), ("service=Heart Rate", true), ("service=1809", false),
            ("manufacturer=Polar", true), ("manufacturer=0x004C", false), ("manufacturer=107", true),
            ("manufacturer-data=7208", true), ("manufacturer-data=08", false),
        ] {
            XCTAssertEqual(accepts(Samples.strap, not: [try .any(text)]), !isExcluded, text)
        }
        XCTAssertTrue(accepts(Samples.nameless, not: [.named]))
    }

    func testBlueZComparesASinglePrefix() throws {
        XCTAssertEqual(ScanFilter(wanted: [[try .name("Pulse")], []]).prefix, "Pulse")
        XCTAssertNil(ScanFilter(wanted: [[try .name("Pulse"), try .name("Keys")]]).prefix)
        XCTAssertNil(ScanFilter(wanted: [[try .name("/Pulse/")], [.named]]).prefix)
    }

    func testACompanyIsItsNumberOrTheBeginningOfItsName() throws {
        XCTAssertEqual(try Arguments.companies("0x004c"), [0x004C])
        XCTAssertEqual(try Arguments.companies("76"), [0x004C])
        XCTAssertTrue(try Arguments.companies("apple").contains(0x004C))
        XCTAssertTrue(try Arguments.companies("Samsung").contains(0x0075))
    }
}
