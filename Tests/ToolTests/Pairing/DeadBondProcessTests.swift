import TestBasics
import XCTest

/// Commands with a peripheral that has lost the keys of its bond, each a process of its own, with four versions of BlueZ. Up to
/// 5.82 BlueZ reports nothing of it: the link ends before it is encrypted.
final class DeadBondProcessTests: XCTestCase, StartsPrograms {
    private static let address = "C0:00:00:00:00:44"
    private static let room = #"""
        { "name": "lock", "peripherals": [
          { "address": "C0:00:00:00:00:44", "addressType": "random", "interval": 0.2,
            "advertisement": { "localName": "Lockbox", "serviceUUIDs": ["aa10"] },
            "services": [ { "uuid": "AA10", "characteristics": [
              { "uuid": "AA11", "flags": ["read", "notify"], "value": "01", "security": { "read": "encrypted" } } ] } ],
            "security": { "capability": "NoInputNoOutput" } }
        ] }
        """#

    /// Each command prints its status, and standard error.
    private static let script = """
        try() { "$BLUECAP" "$@" --timeout 20 > /dev/null 2> "$XDG_STATE_HOME/errors"; echo "$1 $? $(cat "$XDG_STATE_HOME/errors")"; }
        try pair Lockbox --yes
        "$BLUECAP" simulate fault lose-keys C0:00:00:00:00:44
        try read Lockbox AA11
        try pair Lockbox --yes
        try read Lockbox AA11
        try explore Lockbox
        try notify Lockbox AA11 --count 1
        try pair Lockbox --yes
        "$BLUECAP" unpair Lockbox 2> /dev/null; echo "unpair $?"
        try pair Lockbox --yes
        "$BLUECAP" read Lockbox AA11
        ls "$XDG_STATE_HOME/bluecap/bonds"
        """

    func testFromTheSecondCommandOnTheWayOutIsNamed() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("dead-bond-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("lock.json").path
        try Data(Self.room.utf8).write(to: URL(fileURLWithPath: file))
        let versions = ["5.66", "5.72", "5.82", "5.87"]
        let runs = try versions.map { version in
            try ToolRun(
                ["simulate", "--bluez", version, "--peripherals", file, "--", "bash", "-c", Self.script],
                environment: ["BLUECAP": ToolRun.executable.path, "XDG_STATE_HOME": folder.path + "/users"])
        }
        for (version, run) in zip(versions, runs) {
            let result = try run.finish()
            let lines = result.lines
            XCTAssertEqual(result.status, 0, "\(version) \(lines) \(result.errors)")
            guard lines.count >= 10 else {
                XCTFail("\(version) \(lines) \(result.errors)")
                continue
            }
            XCTAssertEqual(lines[0], "pair 0 ", version)
            // One link that ends may have another reason, unless BlueZ has reported this one.
            XCTAssertTrue(lines[1].hasPrefix(version == "5.87" ? "read 4 " : "read 1 "), "\(version) \(lines[1])")
            for (line, command) in zip(lines[2...6], ["pair", "read", "explore", "notify", "pair"]) {
                XCTAssertTrue(line.hasPrefix("\(command) 4 bluecap: "), "\(version) \(line)")
                XCTAssertTrue(
                    line.hasSuffix("`bluecap unpair \(Self.address)`, then `bluecap pair \(Self.address)`."),
                    "\(version) \(line)")
                XCTAssertFalse(line.contains("try again"), "\(version) \(line)")
            }
            XCTAssertEqual(Array(lines[7...9]), ["unpair 0", "pair 0 ", "01"], version)
        }
        // What they keep about a simulated bond is not kept among the user's files.
        XCTAssertFalse(FileManager.default.fileExists(atPath: folder.path + "/users"))
    }
}
