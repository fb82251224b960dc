import ArgumentParser
import BlueCapKit
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// `bluecap serve --secure`, and the pairings of centrals.
final class SecureServingTests: XCTestCase, StartsPrograms {
    private static let address = "C0:FF:EE:00:CE:01"

    private func code(_ result: Result<[UInt8], CentralLinkError>?) -> UInt8? {
        guard case .failure(.attribute(let code))? = result else { return nil }
        return code
    }

    func testACentralHasToPairBeforeItReadsAndSubscribes() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery", "--secure", "--pair", "just-works", "--json")
        _ = try run.line { $0.contains(#""event":"serving""#) }
        let phone = bench.central(VirtualSecurity(.noInputNoOutput))
        XCTAssertEqual(code(bench.result(phone.read("2A19"))), 0x0F)
        XCTAssertEqual(code(bench.result(phone.subscribe(to: "2A19"))), 0x0F)
        XCTAssertNoThrow(try bench.result(phone.pair())?.get())
        let line = try run.line { $0.contains(#""event":"paired""#) }
        XCTAssertTrue(line.contains(#""central":"\#(Self.address)","bonded":true}"#), line)
        XCTAssertEqual(try bench.result(phone.read("2A19"))?.get(), [100])
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: "2A19"))?.get())
        let result = try run.end()
        XCTAssertEqual(result.problems, [])
        bench.assertNothingIsLeft()
    }

    func testWithoutATerminalARequestIsRejectedWithTheOptionToGive() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery", "--secure")
        try run.errorLine { $0.contains("Serving Battery") }
        let phone = bench.central(VirtualSecurity(.displayYesNo))
        guard case .failure(.pairing)? = bench.result(phone.pair()) else { return XCTFail("it was paired") }
        _ = try run.line { $0.hasSuffix("\(Self.address)  wants to pair, and shows a number to compare") }
        try run.errorLine { $0.contains("bluecap: \(Self.address) shows a number") && $0.contains("--yes") }
        _ = try run.line { $0.hasSuffix("\(Self.address)  did not pair: rejected here") }
        try run.end()
    }

    func testAPasskeyIsEnteredAndIsInNoLine() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery", "--secure", "--passkey", "-", "--json", "-vv")
        _ = try run.line { $0.contains(#""event":"serving""#) }
        let phone = bench.central(VirtualSecurity(.displayOnly, user: VirtualUser(displays: 264_811)))
        let pairing = phone.pair()
        let line = try run.line { $0.contains(#""event":"pairing-requested""#) }
        XCTAssertTrue(line.hasSuffix(#""needs":"enter"}"#), line)
        run.type("264811\n")
        XCTAssertNoThrow(try bench.result(pairing)?.get())
        _ = try run.line { $0.contains(#""event":"paired""#) }
        run.signal(SIGINT)
        let result = try run.finish()
        XCTAssertFalse((result.output + result.errors.joined()).contains("264811"))
    }

    func testTheUserComparesNumbersOnTheTerminal() throws {
        let bench = try ServingBench()
        let run = try ToolRun(onTerminal: "serve battery --secure", bench.bus)
        try run.waitForText("Serving Battery")
        let phone = bench.central(VirtualSecurity(.displayYesNo))
        let pairing = phone.pair()
        try run.waitForText("Does \(Self.address) show the number ")
        try run.waitForText("? [y/N] ")
        run.type("yes\n")
        XCTAssertNoThrow(try bench.result(pairing)?.get())
        try run.waitForText("\(Self.address)  paired")
        run.type("\u{03}")
        try run.finish(status: 0)
    }

    func testCentralsPairForALimitedTime() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery", "--pair", "just-works", "--pairable", "1")
        try run.errorLine { $0.contains("Serving Battery") }
        let phone = bench.central(VirtualSecurity(.noInputNoOutput))
        // Without a number of seconds in the test: the pairing is refused as soon as the time is over.
        bench.wait("still pairable") { bench.simulator.adapters.first?.isPairable == false }
        guard case .failure(.pairing)? = bench.result(phone.pair()) else { return XCTFail("it was paired") }
        try run.end()
    }

    func testTheLimitOfPairingsEndsWithTheCommand() throws {
        let bench = try ServingBench()
        // Its agent is the default one, so that the end of the command's agent does not make BlueZ change `Pairable`.
        let other = try PeripheralManager(
            configuration: .init(busAddress: bench.simulator.address, pairingPolicy: .justWorks))
        bench.wait("no agent") { other.isPairable }
        for (isPairable, timeout) in [(false, nil), (false, 600), (true, nil), (true, 600)] as [(Bool, Double?)] {
            let limit = timeout.map { Duration.seconds($0) }
            let isSet = other.setPairable(true, timeout: timeout)
            bench.wait("no reply") { isSet.completed }
            other.setPairable(isPairable, timeout: timeout)
            bench.wait("not set") { other.isPairable == isPairable && other.pairableTimeout == limit }
            let run = try bench.start("serve", "battery", "--pair", "just-works", "--pairable", "30")
            try run.errorLine { $0.contains("Serving Battery") }
            bench.wait("no limit") { other.isPairable && other.pairableTimeout == .seconds(30) }
            try run.end()
            bench.wait("not restored") { other.isPairable == isPairable && other.pairableTimeout == limit }
        }
    }

    func testTheVisitorOfASimulationPairs() throws {
        let run = try ToolRun("serve", "battery", "--secure", "--yes", "--simulated", "--json")
        _ = try run.line { $0.contains(#""event":"paired""#) }
        _ = try run.line { $0.contains(#""event":"subscribed""#) }
        try run.end()
    }

    func testEachOperationNeedsAnEncryptedLink() throws {
        let model = PeripheralModel.Characteristic(
            uuid: CBUUID(string: "AA01"), properties: [.read, .writeWithoutResponse, .notify, .indicate])
        XCTAssertEqual(model.permissions, [.readable, .writeable])
        let secured = model.secured
        XCTAssertEqual(
            secured.permissions, [.readable, .writeable, .readEncryptionRequired, .writeEncryptionRequired])
        XCTAssertTrue(secured.properties.contains([.notifyEncryptionRequired, .indicateEncryptionRequired]))
        XCTAssertFalse(model.properties.contains(.notifyEncryptionRequired))
    }

    func testALimitWithoutPairingsIsRefused() {
        XCTAssertThrowsError(try BlueCapTool.parseAsRoot(["serve", "battery", "--pairable", "9"])) { error in
            XCTAssertTrue(BlueCapTool.message(for: error).contains("add --pair ask"))
        }
    }
}
