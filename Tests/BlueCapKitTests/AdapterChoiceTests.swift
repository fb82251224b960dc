import XCTest

@testable import BlueCapKit

final class AdapterChoiceTests: XCTestCase {
    private let first = AdapterChoice.Candidate(name: "hci0", address: "00:00:00:00:00:01")
    private let second = AdapterChoice.Candidate(name: "hci1", address: "00:00:00:00:00:02")
    private let tenth = AdapterChoice.Candidate(name: "hci10", address: "00:00:00:00:00:10")

    func testTheDefaultIsTheLowestNumber() {
        var choice = AdapterChoice(wanted: nil)
        XCTAssertEqual(choice.choose(from: [tenth, second]), second)
    }

    func testTheDefaultIsKeptByItsAddressWhenAnotherAppears() {
        var choice = AdapterChoice(wanted: nil)
        XCTAssertEqual(choice.choose(from: [second]), second)
        XCTAssertEqual(choice.choose(from: [first, second]), second)
    }

    func testTheDefaultIsFoundUnderANewName() {
        var choice = AdapterChoice(wanted: nil)
        _ = choice.choose(from: [second])
        let renamed = AdapterChoice.Candidate(name: "hci5", address: second.address)
        XCTAssertEqual(choice.choose(from: [first, renamed]), renamed)
    }

    func testWithoutTheKeptOneAnotherServes() {
        var choice = AdapterChoice(wanted: nil)
        _ = choice.choose(from: [second])
        XCTAssertEqual(choice.choose(from: [first]), first)
        XCTAssertEqual(choice.choose(from: [first, second]), second)
    }

    func testAWantedAdapterIsFoundByNameOrAddressAndNeverReplaced() {
        var byName = AdapterChoice(wanted: "hci1")
        XCTAssertEqual(byName.choose(from: [first, second]), second)
        XCTAssertNil(byName.choose(from: [first]))
        var byAddress = AdapterChoice(wanted: "00:00:00:00:00:02")
        XCTAssertEqual(byAddress.choose(from: [first, second]), second)
    }
}
