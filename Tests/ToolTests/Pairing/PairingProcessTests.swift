import ArgumentParser
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// One virtual lock, on a bus of its own, for processes that pair with it.
private final class LockBench: ToolBench {
    static let address: VirtualAddress = "C0:00:00:00:00:0A"
    static let text = "C0:00:00:00:00:0A"
    /// The lock's passkey.
    static let passkey = "264811"

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("lock-\(UUID().uuidString)")

    /// - Parameters:
    ///   - security: Of the lock's value.
    ///   - name: The advertised name.
    ///   - deviceName: The name that BlueZ reads from it; `nil` for the same.
    init(
        _ capability: PairingCapability, value security: AttributeSecurity = .encrypted, name: String = "Front Door",
        deviceName: String? = nil, bluez: BlueZVersion = .default
    ) throws {
        let access = deviceName.map {
            VirtualService("1800", characteristics: [VirtualCharacteristic("2A00", [.read], value: Array($0.utf8))])
        }
        let lock = VirtualPeripheral(
            Self.address, addressType: .random, advertisement: Advertisement(localName: name), interval: 0.05,
            services: (access.map { [$0] } ?? []) + [
                VirtualService(
                    "B001",
                    characteristics: [
                        VirtualCharacteristic("B002", [.read, .write], value: [2], security: security),
                        VirtualCharacteristic(
                            "B003", [.notify], notifications: .cycle([[7]], every: 0.02), security: security),
                        VirtualCharacteristic("B004", [.read], value: [4], security: .authenticated),
                        VirtualCharacteristic("B005", [.read], value: [5]),
                    ])
            ],
            security: VirtualSecurity(capability, user: VirtualUser(displays: Int(Self.passkey))))
        super.init(try .onPrivateBus(room: Room(peripherals: [lock]), bluez: bluez))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The commands have one state directory, which keeps notes about bonds from one command to the next.
    private var environment: [String: String] {
        ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address, "XDG_STATE_HOME": folder.path]
    }

    override func start(_ arguments: [String]) throws -> ToolRun { try ToolRun(arguments, environment: environment) }

    func run(_ arguments: String...) throws -> ToolRun.Result {
        try start(arguments).finish()
    }

    /// Starts a command on a terminal of its own, with standard output and standard error in files.
    func startOnTerminal(_ arguments: String) throws -> ToolRun {
        try ToolRun(
            script: """
                export TERM=xterm DBUS_SYSTEM_BUS_ADDRESS='\(simulator.address)' XDG_STATE_HOME='\(folder.path)'
                script -qec "exec $BLUECAP \(arguments) >\(folder.path)/output 2>\(folder.path)/errors" /dev/null
                """)
    }

    /// Returns what a command on a terminal has written into its files.
    func written() throws -> (output: String, errors: String) {
        func text(_ name: String) throws -> String {
            try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
        }
        return (try text("output"), try text("errors"))
    }

    /// Removes the keys of both sides.
    func forget() throws {
        XCTAssertEqual(try run("unpair", Self.text).status, 0)
        simulator.simulateKeyLoss(of: Self.address)
    }

    func assertNotBonded(file: StaticString = #filePath, line: UInt = #line) throws {
        XCTAssertEqual(try run("bonds", "--json").lines, [], file: file, line: line)
    }
}

final class PairProcessTests: XCTestCase, StartsPrograms {
    func testAPairingWithoutPasskeyIsListedUsedAndRemoved() throws {
        let bench = try LockBench(.noInputNoOutput)
        let pair = try bench.run("pair", "front", "--json", "--trust")
        XCTAssertEqual(pair.status, 0, "\(pair.errors)")
        XCTAssertEqual(pair.errors, [])
        let bond = try XCTUnwrap(pair.objects().first)
        XCTAssertEqual(bond["address"] as? String, LockBench.text)
        XCTAssertEqual(bond["name"] as? String, "Front Door")
        XCTAssertEqual(bond["bonded"] as? Bool, true)
        XCTAssertEqual(bond["trusted"] as? Bool, true)

        XCTAssertEqual(try bench.run("bonds").lines, ["C0:00:00:00:00:0A  random  Front Door  trusted"])
        let listed = try bench.run("bonds", "--json")
        XCTAssertTrue(listed.output.contains(#""name":"Front Door","bonded":true,"trusted":true,"connected":false}"#))
        XCTAssertEqual(try bench.run("read", "front", "B002").lines, ["02"])
        let head = try XCTUnwrap(bench.run("explore", "front", "--no-values").lines.first)
        XCTAssertTrue(head.hasPrefix("Front Door  C0:00:00:00:00:0A  random") && head.hasSuffix("  bonded"), head)
        let tree = try bench.run("explore", "front", "--no-values", "--json").output
        XCTAssertTrue(tree.contains(#""paired":true,"bonded":true,"#), tree)
        // A second pairing finds the bond.
        XCTAssertEqual(try bench.run("pair", "front").status, 0)

        let other = try bench.run("unpair", "Kitchen")
        assertOneLine(other, "no bond with a device named \"Kitchen\": `bluecap bonds`")
        let unpair = try bench.run("unpair", "front")
        assertOneLine(unpair, "Removed the bond with Front Door", status: 0)
        assertOneLine(try bench.run("bonds"), "no bonds: `bluecap pair`", status: 0)
    }

    func testAPasskeyInAnArgumentOrOnStandardInputIsEntered() throws {
        let bench = try LockBench(.displayOnly, value: .authenticated)
        let pair = try bench.run("pair", LockBench.text, "--passkey", LockBench.passkey)
        XCTAssertEqual(pair.status, 0, "\(pair.errors)")
        XCTAssertEqual(try bench.run("read", LockBench.text, "B002").lines, ["02"])
        try bench.forget()

        let typed = try bench.start("pair", LockBench.text, "--passkey", "-", "-vv")
        typed.type(LockBench.passkey + "\n")
        let result = try typed.finish(status: 0)
        XCTAssertFalse((result.output + result.errors.joined()).contains(LockBench.passkey))
    }

    func testAWrongPasskeyIsStatus4AndLeavesNoBond() throws {
        let bench = try LockBench(.displayOnly)
        assertOneLine(try bench.run("pair", LockBench.text, "--passkey", "111111"), "passkey was wrong", status: 4)
        let typed = try bench.start("pair", LockBench.text, "--passkey", "-")
        typed.type("4 digits\n")
        assertOneLine(try typed.finish(), "was not a passkey, which has one to six digits", status: 4)
        let empty = try bench.start("pair", LockBench.text, "--passkey", "-")
        empty.closeInput()
        assertOneLine(try empty.finish(), "Standard input had no passkey", status: 4)
        try bench.assertNotBonded()
    }

    /// No file of the command's has a terminal, and its process group is not in the foreground of one.
    func testWithoutATerminalARequestIsRejectedWithTheOptionToGive() throws {
        let cases: [(capability: PairingCapability, part: String)] = [
            (.displayOnly, "give it with --passkey"), (.displayYesNo, "agree without a comparison with --yes"),
            (.keyboardOnly, "No option can choose this passkey"),
        ]
        let benches = try cases.map { try LockBench($0.capability) }
        let runs = try benches.map { try $0.start("pair", LockBench.text) }
        for (index, run) in runs.enumerated() {
            assertOneLine(try run.finish(), cases[index].part, status: 4)
            try benches[index].assertNotBonded()
        }
    }

    func testYesConfirmsANumber() throws {
        let bench = try LockBench(.displayYesNo, value: .authenticated)
        XCTAssertEqual(try bench.run("pair", LockBench.text, "--yes").status, 0)
        XCTAssertEqual(try bench.run("read", LockBench.text, "B002").lines, ["02"])
    }

    func testAPairingThatThePeripheralRefusesIsStatus4() throws {
        let bench = try LockBench(.noInputNoOutput)
        bench.simulator.simulatePairingFailures(1, of: LockBench.address)
        assertOneLine(try bench.run("pair", LockBench.text), "has refused", status: 4)
        try bench.assertNotBonded()
    }

    func testAnAgentThatIsNotRegisteredIsNoUserWhoDoesNotAnswer() throws {
        let bench = try LockBench(.noInputNoOutput)
        bench.simulator.simulateUnansweredCalls(100, of: "RegisterAgent")
        let unanswered = try bench.run("pair", LockBench.text, "--timeout", "3")
        assertOneLine(unanswered, "does not let this program pair", status: 4)
        XCTAssertFalse(unanswered.errors.joined().contains("25 s"), "\(unanswered.errors)")
    }

    func testARemovalThatBlueZRefusesIsNoWrongPasskey() throws {
        let bench = try LockBench(.noInputNoOutput)
        XCTAssertEqual(try bench.run("pair", LockBench.text).status, 0)
        bench.simulator.simulateRefusedCalls(of: "RemoveDevice", error: .bluez("Failed", "Not now"))
        let refused = try bench.run("unpair", LockBench.text)
        assertOneLine(refused, "was not removed (org.bluez.Error.Failed: Not now)")
        XCTAssertFalse(refused.errors.joined().contains("passkey"), "\(refused.errors)")
    }

    func testLostKeysAreStatus4AndTheAdviceHelps() throws {
        let bench = try LockBench(.noInputNoOutput, bluez: .v5_87)
        XCTAssertEqual(try bench.run("pair", LockBench.text).status, 0)
        bench.simulator.simulateKeyLoss(of: LockBench.address)
        assertOneLine(
            try bench.run("read", LockBench.text, "B002"), "`bluecap unpair \(LockBench.text)`, then `bluecap pair",
            status: 4)
        XCTAssertEqual(try bench.run("unpair", LockBench.text).status, 0)
        XCTAssertEqual(try bench.run("pair", LockBench.text).status, 0)
    }

    func testAllBondsAreRemovedIfTheUserAgrees() throws {
        let bench = try LockBench(.noInputNoOutput)
        XCTAssertEqual(try bench.run("unpair", "--all").status, 0)
        XCTAssertEqual(try bench.run("pair", LockBench.text).status, 0)
        assertOneLine(try bench.run("unpair", "--all"), "add --yes")
        let refused = try bench.startOnTerminal("unpair --all")
        try refused.waitForText("Remove the bond of the adapter? [y/N] ")
        refused.type("\n")
        XCTAssertEqual(try refused.finish().status, 1)
        XCTAssertTrue(try bench.written().errors.contains("No bond was removed."))
        XCTAssertEqual(try bench.run("unpair", "--all", "--yes").status, 0)
        try bench.assertNotBonded()
    }

    func testWrongArgumentsAreRefusedWithWhatToDo() throws {
        let mistakes: [(arguments: String, part: String)] = [
            ("pair", "peripheral"), ("pair x --passkey 1234567", "It takes one to six digits"),
            ("pair x --passkey", "--passkey"), ("pair x --capability all", "--capability"),
            ("pair x --capability none --passkey 1", "--capability keyboard or full"),
            ("unpair", "Name one peripheral"), ("unpair x --all", "Name one peripheral"),
            ("unpair x --yes", "--yes answers"), ("read x 2A19 --pair always", "--pair"),
            ("read x 2A19 --pair just-works --passkey 1", "write --pair ask"),
            ("notify x 2A37 --pair never --yes", "write --pair ask"),
        ]
        for (arguments, part) in mistakes {
            expectRefusal(of: arguments.split(separator: " ").map(String.init), part)
        }
        for arguments in ["pair x --passkey -", "pair x --passkey 000001 --capability full", "explore x --pair ask"] {
            XCTAssertNoThrow(try BlueCapTool.parseAsRoot(arguments.split(separator: " ").map(String.init)), arguments)
        }
    }
}

/// Questions on a terminal, and that their digits are in no output.
final class PairingPromptTests: XCTestCase, StartsPrograms {
    func testAPasskeyIsAskedForOnTheTerminalAndIsInNoOutputOrLog() throws {
        let bench = try LockBench(.displayOnly, value: .authenticated)
        let run = try bench.startOnTerminal("pair Front -vv")
        let question = "Enter the passkey that Front Door (C0:00:00:00:00:0A) shows: "
        try run.waitForText(question)
        run.type("12345678\n")
        try run.waitForText("A passkey has one to six digits. \(question)")
        run.type(LockBench.passkey + "\n")
        XCTAssertEqual(try run.finish().status, 0)
        let (output, errors) = try bench.written()
        XCTAssertEqual(output, "C0:00:00:00:00:0A  random  Front Door  connected\n")
        XCTAssertFalse(errors.isEmpty)
        XCTAssertFalse(errors.contains(LockBench.passkey) || errors.contains("12345678"), errors)
    }

    func testANumberIsComparedOnTheTerminal() throws {
        let bench = try LockBench(.displayYesNo)
        let no = try bench.startOnTerminal("pair Front")
        try no.waitForText("? [y/N] ")
        no.type("n\n")
        let refused = try no.finish(status: 4)
        let match = try XCTUnwrap(refused.output.firstMatch(of: #/show the number (\d{6})\? \[y/N\] /#), refused.output)
        let written = try bench.written()
        XCTAssertEqual(written.output, "")
        XCTAssertEqual(written.errors, "bluecap: The pairing with Front Door (C0:00:00:00:00:0A) was rejected.\n")
        XCTAssertFalse(written.errors.contains(match.1))
        try bench.assertNotBonded()

        let yes = try bench.startOnTerminal("pair Front")
        try yes.waitForText("? [y/N] ")
        yes.type("y\n")
        XCTAssertEqual(try yes.finish().status, 0)
    }

    func testAPasskeyToEnterAtTheOtherSideIsShownOnTheTerminalOnly() throws {
        let bench = try LockBench(.keyboardOnly)
        let run = try bench.startOnTerminal("pair Front -vv")
        let result = try run.finish()
        XCTAssertEqual(result.status, 0, result.output)
        let match = try XCTUnwrap(
            result.output.firstMatch(of: /The passkey to enter at Front Door \(C0:00:00:00:00:0A\) is (\d{6})\./))
        let (output, errors) = try bench.written()
        XCTAssertFalse((output + errors).contains(match.1), errors)
    }

    func testCtrlCEndsAQuestionAndLeavesNoBond() throws {
        let bench = try LockBench(.displayOnly)
        let run = try bench.startOnTerminal("pair Front")
        try run.waitForText("shows: ")
        run.type("\u{03}")
        XCTAssertEqual(try run.finish().status, 128 + SIGINT)
        try bench.assertNotBonded()
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    func testANameCannotImitateAQuestion() throws {
        let bench = try LockBench(.displayYesNo, name: "A\u{1B}[2J")
        let run = try bench.startOnTerminal("pair \(LockBench.text)")
        try run.waitForText("? [y/N] ")
        run.type("y\n")
        let result = try run.finish(status: 0)
        XCTAssertTrue(result.output.contains("A\\u{1B}[2J (C0:00:00:00:00:0A)"), result.output)
        XCTAssertFalse(result.output.contains("\u{1B}[2J"))
    }
}

/// Commands that pair because a value needs it, from BlueZ 5.66, which replies to a refused operation, and from 5.82.
final class PairingOnDemandTests: XCTestCase, StartsPrograms {
    private let versions: [BlueZVersion] = [.v5_66, .v5_82]

    func testAValueThatNeedsAPairingIsReadWrittenAndSubscribedTo() throws {
        let commands = [
            ["read", LockBench.text, "B002", "--pair", "just-works"], ["read", LockBench.text, "B002", "--yes"],
            ["write", LockBench.text, "B002", "05", "--pair", "ask", "--yes"],
            ["notify", LockBench.text, "B003", "--count", "1", "--yes"],
        ]
        for version in versions {
            let benches = try commands.map { _ in try LockBench(.noInputNoOutput, bluez: version) }
            let runs = try zip(benches, commands).map { try $0.start($1) }
            for (index, run) in runs.enumerated() {
                try run.finish(status: 0, note: "\(version) \(commands[index])")
                XCTAssertEqual(try benches[index].run("bonds").lines.count, 1, "\(version) \(commands[index])")
            }
        }
    }

    func testWithoutPermissionNothingIsPairedAndTheNextCommandMayPair() throws {
        for version in versions {
            let bench = try LockBench(.noInputNoOutput, bluez: version)
            let result = try bench.run("read", LockBench.text, "B002", "--timeout", "3")
            XCTAssertNotEqual(result.status, 0, "\(version)")
            XCTAssertEqual(result.errors.count, 1, "\(version) \(result.errors)")
            XCTAssertTrue(result.errors.first?.contains("`bluecap pair \(LockBench.text)`") == true, "\(result.errors)")
            try bench.assertNotBonded()
            XCTAssertEqual(
                try bench.run("read", LockBench.text, "B002", "--pair", "just-works", "--timeout", "20").lines, ["02"],
                "\(version)")
        }
    }

    func testOnlyADeviceThatHasForgottenAnOperationIsRemoved() throws {
        func removals(_ run: ToolRun.Result) -> Int { run.errors.count { $0.contains("removing") } }
        for version in versions {
            let bench = try LockBench(.noInputNoOutput, bluez: version)
            bench.simulator.simulateDropAfter(requests: 0, of: LockBench.address)
            let lost = try bench.run("read", LockBench.text, "B005", "-v")
            XCTAssertTrue(lost.errors.contains { $0.contains("ended the connection") }, "\(version) \(lost.errors)")
            XCTAssertEqual(removals(lost), 0, "\(version) \(lost.errors)")
            let refused = try bench.run("read", LockBench.text, "B002", "-v", "--timeout", "3")
            XCTAssertEqual(removals(refused), version == .v5_66 ? 0 : 1, "\(version) \(refused.errors)")
        }
    }

    func testARefusedQuestionIsStatus4AndLeavesNoBond() throws {
        for version in versions {
            let bench = try LockBench(.noInputNoOutput, bluez: version)
            assertOneLine(
                try bench.run("read", LockBench.text, "B002", "--pair", "ask"), "agree with --yes", status: 4)
            let run = try bench.startOnTerminal("read Front B002 --pair ask")
            try run.waitForText("Pair with Front Door (C0:00:00:00:00:0A)? [y/N] ")
            run.type("\n")
            let result = try run.finish(status: 4, note: "\(version)")
            XCTAssertEqual(result.output.ranges(of: "[y/N]").count, 1, result.output)
            try bench.assertNotBonded()
        }
    }

    /// It reads two protected values: the refusal ends it before the second one.
    func testARefusalEndsACommandWithSeveralOperationsAndIsNotAskedAgain() throws {
        for version in versions {
            let bench = try LockBench(.noInputNoOutput, bluez: version)
            let run = try bench.startOnTerminal("explore Front --pair ask")
            try run.waitForText("Pair with Front Door (C0:00:00:00:00:0A)? [y/N] ")
            run.type("n\n")
            let result = try run.finish(status: 4, note: "\(version)")
            XCTAssertEqual(result.output.ranges(of: "[y/N]").count, 1, result.output)
            XCTAssertEqual(
                try bench.written().errors, "bluecap: The pairing with Front Door (C0:00:00:00:00:0A) was rejected.\n")
            try bench.assertNotBonded()
        }
    }

    func testAWrongPasskeyIsStatus4() throws {
        for version in versions {
            let bench = try LockBench(.displayOnly, bluez: version)
            assertOneLine(
                try bench.run("read", LockBench.text, "B002", "--passkey", "111111", "--timeout", "20"),
                "passkey was wrong", status: 4)
            XCTAssertEqual(
                try bench.run("read", LockBench.text, "B002", "--passkey", LockBench.passkey, "--timeout", "20").lines,
                ["02"], "\(version)")
        }
    }

    /// A connection replaces the advertised name by the one that BlueZ reads, and the next advertisement that again.
    func testABondIsAddressedByEachOfItsNames() throws {
        for name in ["Front Door", "Gateway 2000"] {
            let bench = try LockBench(.noInputNoOutput, deviceName: "Gateway 2000")
            XCTAssertEqual(try bench.run("pair", "Front Door", "--yes").status, 0)
            XCTAssertEqual(try bench.run("read", "Front Door", "B005").lines, ["05"])
            let bonds = try bench.run("bonds")
            XCTAssertTrue(bonds.output.contains("Gateway 2000"), "\(bonds)")
            XCTAssertEqual(try bench.run("read", name, "B005", "--timeout", "20").lines, ["05"], name)
            let removal = try bench.run("unpair", name)
            XCTAssertEqual(removal.status, 0, "\(removal)")
            XCTAssertEqual(try bench.run("bonds").output, "")
            assertOneLine(try bench.run("unpair", name), "no bond with a device named")
        }
    }

    func testAPairingWithoutPasskeyDoesNotSufficeForAnAuthenticatedValue() throws {
        let bench = try LockBench(.noInputNoOutput)
        let hint = "If the value needs a pairing with a passkey, `bluecap unpair \(LockBench.text)`"
        let tree = try bench.run("explore", LockBench.text, "--pair", "just-works")
        XCTAssertEqual(tree.status, 1)
        XCTAssertTrue(tree.output.contains("B002  @000b  read write  02"), tree.output)
        // BlueZ tries to pair again, and the link ends. The next value is read over another one.
        XCTAssertTrue(tree.output.contains("B004  @0010  read  (link lost)"), tree.output)
        XCTAssertTrue(tree.output.contains("B005  @0012  read  05"), tree.output)
        XCTAssertTrue(tree.problems.count == 1 && tree.problems[0].contains(hint), "\(tree.errors)")
        let other = try LockBench(.noInputNoOutput)
        XCTAssertEqual(try other.run("pair", LockBench.text, "--yes").status, 0)
        assertOneLine(try other.run("read", LockBench.text, "B004"), hint)
        let several = try other.run("read", LockBench.text, "B004", "B002", "B005")
        assertOneLine(several, " Not read: B002, B005.")
        XCTAssertTrue(several.problems.first?.hasPrefix("bluecap: B004: ") == true, "\(several)")
    }
}
