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

    // MARK: Two adapters with one address

    /// Each order of the candidates: a dictionary's keys may come in any.
    private func eachOrder(
        of candidates: [AdapterChoice.Candidate], _ body: ([AdapterChoice.Candidate]) -> Void
    ) {
        guard let first = candidates.first else { return body([]) }
        eachOrder(of: Array(candidates.dropFirst())) { rest in
            for place in 0...rest.count { body(Array(rest[..<place]) + [first] + Array(rest[place...])) }
        }
    }

    private func twins(_ numbers: Int...) -> [AdapterChoice.Candidate] {
        numbers.map { AdapterChoice.Candidate(name: "hci\($0)", address: second.address) }
    }

    func testOfTwinsTheLowestIndexIsUsedFirst() {
        for wanted in [nil, second.address, second.address.lowercased()] {
            eachOrder(of: twins(10, 2, 1)) { candidates in
                var choice = AdapterChoice(wanted: wanted)
                XCTAssertEqual(choice.choose(from: candidates)?.name, "hci1")
            }
        }
    }

    func testOfTwinsTheOneThatWasUsedLastIsKept() {
        for wanted in [nil, second.address] {
            eachOrder(of: twins(0, 1, 2)) { candidates in
                var choice = AdapterChoice(wanted: wanted)
                XCTAssertEqual(choice.choose(from: twins(1, 2))?.name, "hci1")
                XCTAssertEqual(choice.choose(from: candidates)?.name, "hci1")
                XCTAssertEqual(choice.choose(from: candidates.filter { $0.name != "hci1" })?.name, "hci0")
                XCTAssertEqual(choice.choose(from: candidates)?.name, "hci0")
            }
        }
    }

    func testATwinUnderTheLastNameIsPreferredAfterNoAdapterWasThere() {
        eachOrder(of: twins(0, 1)) { candidates in
            var choice = AdapterChoice(wanted: nil)
            _ = choice.choose(from: twins(1))
            XCTAssertNil(choice.choose(from: []))
            XCTAssertEqual(choice.choose(from: candidates)?.name, "hci1")
        }
    }

    func testOfTwinsThatReturnOneByOneTheOneThatWasUsedLastIsUsedAgain() {
        for wanted in [nil, second.address] {
            var choice = AdapterChoice(wanted: wanted)
            _ = choice.choose(from: twins(1))
            XCTAssertNil(choice.choose(from: []))
            XCTAssertEqual(
                choice.choose(from: twins(0))?.name, "hci0", "It is chosen until the wanted adapter is present.")
            XCTAssertEqual(choice.choose(from: twins(2, 0))?.name, "hci0")
            XCTAssertEqual(choice.choose(from: twins(2, 0, 1))?.name, "hci1")
            XCTAssertEqual(choice.choose(from: twins(2, 0))?.name, "hci0")
            XCTAssertEqual(choice.choose(from: twins(2, 0, 1))?.name, "hci0", "It has taken over.")
        }
    }

    func testAfterTheDaemonsEndTheTwinThatWasUsedLastIsWaitedFor() {
        var choice = AdapterChoice(wanted: nil)
        choice.allWent()
        XCTAssertEqual(choice.choose(from: twins(1))?.name, "hci1")
        choice.allWent()
        XCTAssertEqual(choice.choose(from: twins(0))?.name, "hci0")
        choice.allWent()
        XCTAssertEqual(choice.choose(from: twins(0))?.name, "hci0")
        XCTAssertEqual(choice.choose(from: twins(0, 1))?.name, "hci1")
    }

    func testAdaptersWithoutANumberAreChosenByTheirNames() {
        let others = ["vhci", "usb"].map { AdapterChoice.Candidate(name: $0, address: second.address) }
        eachOrder(of: others) { candidates in
            var choice = AdapterChoice(wanted: nil)
            XCTAssertEqual(choice.choose(from: candidates)?.name, "usb")
        }
    }

    func testAWantedAdapterIsFoundByNameOrAddressAndNeverReplaced() {
        var byName = AdapterChoice(wanted: "hci1")
        XCTAssertEqual(byName.choose(from: [first, second]), second)
        XCTAssertNil(byName.choose(from: [first]))
        var byAddress = AdapterChoice(wanted: "00:00:00:00:00:02")
        XCTAssertEqual(byAddress.choose(from: [first, second]), second)
    }
}
