import BlueZSimulator
import Foundation
import XCTest

@testable import bluecap

final class FaultTests: XCTestCase {
    private let strap: VirtualAddress = "C0:5A:17:00:18:0D"

    func testFaultsAreReadFromTheirWords() throws {
        let faults: [(String, Fault)] = [
            ("restart-daemon", .restartDaemon(after: 1)), ("restart-daemon 0.5", .restartDaemon(after: 0.5)),
            ("power-off", .powerOff(adapter: 0)), ("power-off hci3", .powerOff(adapter: 3)),
            ("rfkill-unblock 2", .rfkill(false, adapter: 2)), ("slow-replies 3", .slowReplies(3)),
            ("refuse-call any", .refuseCalls(1, of: nil, .failed("Operation failed"))),
            (
                "refuse-call Connect org.bluez.Error.Failed it is so",
                .refuseCalls(1, of: "Connect", DaemonError(name: "org.bluez.Error.Failed", message: "it is so"))
            ),
            ("ignore-call ReadValue", .ignoreCalls(1, of: "ReadValue")),
            ("lose-link-after c0:5a:17:00:18:0d 4", .loseLinkAfter(strap, requests: 4)),
            ("refuse-connections C0:5A:17:00:18:0D", .refuseConnections(strap, 1)),
            ("in-range C0-5A-17-00-18-0D", .outOfRange(false, strap)),
        ]
        for (text, fault) in faults {
            XCTAssertEqual(try Fault(text.split(separator: " ").map(String.init)), fault, text)
        }
    }

    func testWhatCannotBeReadIsSaidWithTheUsage() {
        let mistakes = [
            ("power-off hci99", #""hci99" is not an adapter from hci0 to hci15: write `power-off [ADAPTER]`."#),
            ("power-off hci0 now", #""now" is one word too many: write `power-off [ADAPTER]`."#),
            ("lose-link", "A peripheral's address is missing: write `lose-link ADDRESS`."),
            ("lose-link strap", #""strap" is not an address: write `lose-link ADDRESS`."#),
            ("slow-replies nan", #""nan" is not a number of seconds from 0 to 3600: write `slow-replies SECONDS`."#),
            ("slow-replies inf", #""inf" is not a number of seconds from 0 to 3600: write `slow-replies SECONDS`."#),
            ("fail-discovery 0", #""0" is not a whole number from 1 to 1000000: write `fail-discovery [COUNT]`."#),
            (
                "refuse-call Connect Failed",
                #""Failed" is not an error name, such as org.bluez.Error.Failed: write `refuse-call METHOD [ERROR [TEXT]]`."#
            ),
            ("ignore-call", "The name of a method, or any, is missing: write `ignore-call METHOD`."),
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
        let desk = FaultDesk(simulator)
        let restarted = expectation(description: "restarted")
        let isRestarted = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do {
                try desk.perform(.restartDaemon(after: 3))
            } catch {
                XCTFail("\(error)")
            }
            isRestarted.signal()
            restarted.fulfill()
        }
        XCTAssertTrue(simulator.wait(until: { !simulator.isDaemonRunning }, limit: 5))
        try desk.perform(.startDaemon)
        XCTAssertTrue(simulator.isDaemonRunning)
        XCTAssertEqual(isRestarted.wait(timeout: .now()), .timedOut, "The pause is not over.")
        wait(for: [restarted], timeout: 20)
        XCTAssertTrue(simulator.isDaemonRunning)
    }
}
