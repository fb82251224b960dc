import TestSupport
import XCTest

/// The tool as a peripheral beside real `bluetoothd`: it serves on `hci1`, and looks from `hci0`.
final class RadioToolServingTests: XCTestCase {
    /// The tool is built beside the tests.
    private var tool: String {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("bluecap")
            .path
    }

    override func setUpWithError() throws { try RadioLab.reset() }
    override func tearDownWithError() throws { try RadioLab.reset() }

    /// What the visitor printed, and what the peripheral did, which is interrupted when the visitor is done.
    private func visit(
        _ arguments: String, _ visitor: String
    ) throws -> (visitor: [String], peripheral: [[String: Any]]) {
        let script = """
            set -e
            coproc serving { exec "$0" \(arguments) --adapter hci1 --json; }
            exec {lines}<&"${serving[0]}"
            # Its first line comes when it is on the air.
            read -r first <&"$lines"
            \(visitor)
            kill -INT "$serving_PID"
            wait "$serving_PID"
            echo ---
            echo "$first"
            cat <&"$lines"
            """
        let lines = try RadioLab.run("bash", "-c", script, tool).split(separator: "\n").map(String.init)
        let end = try XCTUnwrap(lines.firstIndex(of: "---"), "\(lines)")
        let objects = try lines[(end + 1)...].map { line in
            try XCTUnwrap(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], line)
        }
        return (Array(lines[..<end]), objects)
    }

    private func events(_ objects: [[String: Any]]) -> [String] { objects.compactMap { $0["event"] as? String } }

    private func assertNothingIsLeft(file: StaticString = #filePath, line: UInt = #line) throws {
        let uuids = try RadioLab.property("UUIDs", of: "hci1")
        XCTAssertTrue(uuids.contains("00001801"), uuids, file: file, line: line)
        XCTAssertFalse(uuids.contains("0000180d"), uuids, file: file, line: line)
        let instances = try RadioLab.property(
            "ActiveInstances", of: "hci1", interface: "org.bluez.LEAdvertisingManager1")
        XCTAssertEqual(instances, "0", file: file, line: line)
    }

    func testWhatACentralDoesIsPrintedAndNothingIsLeftInBlueZ() throws {
        let (visitor, peripheral) = try visit(
            "serve heart-rate uart --name Desk",
            """
            "$0" read Desk "Body Sensor Location" --adapter hci0
            "$0" write Desk "UART RX" hello --as text --adapter hci0
            "$0" notify Desk "Heart Rate Measurement" --count 2 --as hex --adapter hci0
            """)
        XCTAssertEqual(visitor.first, "Chest")
        XCTAssertEqual(visitor.count, 3)
        let address = try RadioLab.property("Address", of: "hci0")
        let read = try XCTUnwrap(peripheral.first { $0["event"] as? String == "read" })
        XCTAssertEqual(read["name"] as? String, "Body Sensor Location")
        XCTAssertEqual(read["central"] as? String, address)
        let write = try XCTUnwrap(peripheral.first { $0["event"] as? String == "write" })
        XCTAssertEqual(write["fields"] as? [String: String], ["UART RX": "hello"])
        XCTAssertTrue(events(peripheral).contains("subscribed"))
        XCTAssertTrue(events(peripheral).contains("connected"), "\(events(peripheral))")
        XCTAssertEqual(events(peripheral).last, "finished")
        try assertNothingIsLeft()
    }

    func testServicesAndAdvertisementAreBackAfterTheDaemonDied() throws {
        let (visitor, peripheral) = try visit(
            "serve heart-rate --name Desk",
            """
            "$0" read Desk "Body Sensor Location" --adapter hci0
            radio-bluetoothd restart >&2
            "$0" read Desk "Body Sensor Location" --adapter hci0
            """)
        XCTAssertEqual(visitor, ["Chest", "Chest"])
        XCTAssertEqual(events(peripheral).filter { $0 == "read" }.count, 2)
        try assertNothingIsLeft()
    }

    func testABeaconIsReportedAsItsKind() throws {
        // Filters by service: bluetoothd does not report a broadcast to a scan without a filter.
        let (visitor, peripheral) = try visit(
            "beacon --url https://example.com/", #""$0" scan --service FEAA --duration 6 --adapter hci0 --json"#)
        XCTAssertTrue(visitor.contains { $0.contains(#""kind":"eddystoneURL","url":"https://example.com/""#) })
        XCTAssertEqual(events(peripheral), ["serving", "finished"])
        try assertNothingIsLeft()
    }
}
