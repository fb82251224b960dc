import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

final class FaultTests: XCTestCase, StartsPrograms {
    private let strap: VirtualAddress = "C0:5A:17:00:18:0D"

    func testFaultsAreReadFromTheirWords() throws {
        func fault(_ text: String) throws -> Fault { try Fault(text.split(separator: " ").map(String.init)) }
        XCTAssertEqual(try fault("restart-daemon").seconds, 1)
        XCTAssertEqual(try fault("restart-daemon 0.5").seconds, 0.5)
        XCTAssertEqual(try fault("power-off").adapter, 0)
        XCTAssertEqual(try fault("power-off hci3").adapter, 3)
        XCTAssertEqual(try fault("rfkill-unblock 2").adapter, 2)
        XCTAssertEqual(try fault("slow-replies 3").seconds, 3)
        let any = try fault("refuse-call any")
        XCTAssertNil(any.method)
        XCTAssertEqual(any.error, .failed("Operation failed"))
        let connect = try fault("refuse-call Connect org.bluez.Error.Failed it is so")
        XCTAssertEqual(connect.method, "Connect")
        XCTAssertEqual(connect.error, DaemonError(name: "org.bluez.Error.Failed", message: "it is so"))
        XCTAssertEqual(try fault("ignore-call ReadValue").method, "ReadValue")
        let loss = try fault("lose-link-after c0:5a:17:00:18:0d 4")
        XCTAssertEqual(loss.address, strap)
        XCTAssertEqual(loss.count, 4)
        let refusal = try fault("refuse-connections C0:5A:17:00:18:0D")
        XCTAssertEqual(refusal.address, strap)
        XCTAssertEqual(refusal.count, 1)
        XCTAssertEqual(try fault("late-objects C0:5A:17:00:18:0D").seconds, 0.005)
        XCTAssertEqual(try fault("late-objects C0:5A:17:00:18:0D 0.1").seconds, 0.1)
        XCTAssertEqual(try fault("attenuate C0:5A:17:00:18:0D 40 hci2").decibels, 40)
        XCTAssertEqual(try fault("attenuate C0:5A:17:00:18:0D 40 hci2").adapter, 2)
        XCTAssertEqual(try fault("lose-keys C0:5A:17:00:18:0D").address, strap)
        XCTAssertEqual(try fault("fail-pairing C0:5A:17:00:18:0D 3").count, 3)
        XCTAssertEqual(try fault("in-range C0-5A-17-00-18-0D").address, strap)
    }

    func testAFaultAndItsOppositeAreSeenOnTheBus() throws {
        let simulator = try Simulator.onPrivateBus(room: .furnished)
        defer { simulator.end() }
        let injector = FaultInjector(simulator)
        var isPowered: Bool? { simulator.adapters.first?.isPowered }
        for (words, expected) in [
            ("power-off", false), ("power-on", true), ("rfkill-block hci0", false), ("rfkill-unblock", true),
        ] {
            try injector.perform(Fault(words.split(separator: " ").map(String.init)))
            XCTAssertEqual(isPowered, expected, words)
        }
        try injector.perform(Fault(["remove-adapter"]))
        XCTAssertEqual(simulator.adapters.count, 0)
        try injector.perform(Fault(["add-adapter", "2"]))
        XCTAssertEqual(simulator.adapters.map(\.path), ["/org/bluez/hci2"])
    }

    func testWhatCannotBeReadIsSaidWithTheUsage() {
        let mistakes = [
            ("power-off hci99", #""hci99" is not an adapter from hci0 to hci15. Usage: power-off [ADAPTER]"#),
            ("power-off hci0 now", #"Unexpected argument "now". Usage: power-off [ADAPTER]"#),
            (
                "attenuate C0:5A:17:00:18:0D -3",
                #""-3" is not a number of decibels from 0 to 147. Usage: attenuate ADDRESS DECIBELS [ADAPTER]"#
            ),
            ("lose-link", "A peripheral's address is missing. Usage: lose-link ADDRESS"),
            ("lose-link strap", #""strap" is not an address. Usage: lose-link ADDRESS"#),
            ("slow-replies nan", #""nan" is not a number of seconds from 0 to 3600. Usage: slow-replies SECONDS"#),
            ("slow-replies inf", #""inf" is not a number of seconds from 0 to 3600. Usage: slow-replies SECONDS"#),
            ("fail-discovery 0", #""0" is not a whole number from 1 to 1000000. Usage: fail-discovery [COUNT]"#),
            (
                "refuse-call Connect Failed",
                #""Failed" is not an error name, such as org.bluez.Error.Failed. Usage: refuse-call METHOD [ERROR [TEXT]]"#
            ),
            ("ignore-call", "The name of a method, or any, is missing. Usage: ignore-call METHOD"),
        ]
        for (text, sentence) in mistakes {
            XCTAssertThrowsError(try Fault(text.split(separator: " ").map(String.init)), text) { error in
                XCTAssertEqual("\(error)", sentence)
            }
        }
    }

    func testAnUnknownFaultListsThoseThereAre() {
        for words in [[], ["restart"]] {
            XCTAssertThrowsError(try Fault(words)) { error in
                for form in Fault.forms { XCTAssertTrue("\(error)".contains(form.name), "\(form.name) \(error)") }
            }
        }
        XCTAssertEqual(Set(Fault.forms.map(\.name)).count, Fault.forms.count)
    }

    func testOtherFaultsAreDoneWhileARestartPauses() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let injector = FaultInjector(simulator)
        let restarted = expectation(description: "restarted")
        let isRestarted = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do {
                try injector.perform(Fault(["restart-daemon", "3"]))
            } catch {
                XCTFail("\(error)")
            }
            isRestarted.signal()
            restarted.fulfill()
        }
        XCTAssertTrue(simulator.wait(until: { !simulator.isDaemonRunning }, limit: 5))
        try injector.perform(Fault(["start-daemon"]))
        XCTAssertTrue(simulator.isDaemonRunning)
        XCTAssertEqual(isRestarted.wait(timeout: .now()), .timedOut, "The pause is not over.")
        wait(for: [restarted], timeout: 60)
        XCTAssertTrue(simulator.isDaemonRunning)
    }
}
