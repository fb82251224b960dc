import Foundation
import XCTest

/// Debian's chromium without a window, driven by chromedriver over WebDriver's HTTP protocol.
final class Browser {
    private let process = Process()
    private let directory: URL
    private var port: UInt16 = 0
    private var session = ""

    /// Starts the driver and the browser.
    ///
    /// - Throws: `XCTSkip` if one of them is not installed.
    init() throws {
        let driver = "/usr/bin/chromedriver"
        guard ["/usr/bin/chromium", driver].allSatisfy(FileManager.default.isExecutableFile) else {
            throw XCTSkip("chromium and chromium-driver are not installed (apt-get install chromium chromium-driver).")
        }
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("browser-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: driver)
        process.arguments = ["--port=0"]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["HOME": directory.path, "TMPDIR": directory.path], uniquingKeysWith: { $1 })
        (process.standardOutput, process.standardError) = (output, output)
        try process.run()
        do {
            port = try Self.port(in: output.fileHandleForReading)
            let arguments = [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
                "--disable-extensions", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
                "--user-data-dir=\(directory.path)/profile", "--window-size=1440,1000",
            ]
            let answer = try call(
                "POST", "/session",
                [
                    "capabilities": [
                        "alwaysMatch": [
                            "browserName": "chrome", "goog:loggingPrefs": ["browser": "ALL"],
                            "goog:chromeOptions": ["binary": "/usr/bin/chromium", "args": arguments],
                        ] as [String: Any]
                    ]
                ])
            guard let id = (answer as? [String: Any])?["sessionId"] as? String else {
                throw TestFailure(text: "no session: \(answer)")
            }
            session = "/session/\(id)"
        } catch {
            end()
            throw error
        }
    }

    /// Ends the browser and the driver.
    func end() {
        if !session.isEmpty { _ = try? call("DELETE", session) }
        process.terminate()
        process.waitUntilExit()
        endRest()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Ends the processes of a browser whose session was not created or not ended, which outlive the driver. Their
    /// arguments have the name of this browser's directory.
    private func endRest() {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for process in processes.compactMap(pid_t.init) {
            let arguments = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
            guard arguments.firstRange(of: Data(directory.lastPathComponent.utf8)) != nil else { continue }
            kill(process, SIGKILL)
        }
    }

    func open(_ address: String) throws { _ = try call("POST", session + "/url", ["url": address]) }

    /// Runs a function's body in the page and returns its result.
    func run(_ script: String) throws -> Any {
        try call("POST", session + "/execute/sync", ["script": script, "args": [Any]()])
    }

    func strings(_ script: String) throws -> [String] {
        guard let strings = try run(script) as? [String] else { throw TestFailure(text: "no strings: \(script)") }
        return strings
    }

    func number(_ script: String) throws -> Double {
        guard let number = try run(script) as? NSNumber else { throw TestFailure(text: "no number: \(script)") }
        return number.doubleValue
    }

    /// Waits until an expression is true, at most 10 s.
    func wait(_ expression: String) throws {
        let end = Date() + 10
        while (try run("return Boolean(\(expression))") as? Bool) != true {
            guard Date() < end else {
                throw TestFailure(text: "not true in 10 s: \(expression); the log has \(try log())")
            }
            usleep(50_000)
        }
    }

    func click(_ selector: String) throws {
        _ = try call("POST", try element(selector) + "/click", [:])
    }

    func type(_ text: String, into selector: String) throws {
        _ = try call("POST", try element(selector) + "/value", ["text": text])
    }

    /// Returns the messages of the console since the last call.
    func log() throws -> [String] {
        let entries = try call("POST", session + "/se/log", ["type": "browser"]) as? [[String: Any]]
        return (entries ?? []).compactMap { $0["message"] as? String }
    }

    /// Sets the size of the page and its colours.
    func show(width: Int, height: Int, isDark: Bool) throws {
        try command(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false])
        try command(
            "Emulation.setEmulatedMedia",
            ["features": [["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]]])
    }

    /// Writes a picture of the page into the directory of `BLUECAP_SCREENSHOTS`, if it is set.
    func screenshot(_ name: String) throws {
        guard let directory = ProcessInfo.processInfo.environment["BLUECAP_SCREENSHOTS"] else { return }
        guard let text = try call("GET", session + "/screenshot") as? String, let data = Data(base64Encoded: text)
        else {
            throw TestFailure(text: "no picture")
        }
        try data.write(to: URL(fileURLWithPath: directory).appendingPathComponent(name + ".png"))
    }

    private func command(_ name: String, _ parameters: [String: Any]) throws {
        _ = try call("POST", session + "/goog/cdp/execute", ["cmd": name, "params": parameters])
    }

    private func element(_ selector: String) throws -> String {
        let found = try call("POST", session + "/element", ["using": "css selector", "value": selector])
        guard let id = (found as? [String: String])?.values.first else {
            throw TestFailure(text: "no element: \(selector)")
        }
        return session + "/element/" + id
    }

    private func call(_ method: String, _ path: String, _ body: [String: Any]? = nil) throws -> Any {
        let data = try body.map { try JSONSerialization.data(withJSONObject: $0) } ?? Data()
        let client = try Client(port: port, seconds: 30)
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(data.count)\r\n\r\n"
        try client.send(Data(head.utf8) + data)
        let response = try client.readResponse()
        let answer = try JSONSerialization.jsonObject(with: response.body) as? [String: Any]
        guard response.status == 200, let value = answer?["value"] else {
            throw TestFailure(text: "\(method) \(path): \(response.status) \(response.text)")
        }
        return value
    }

    /// Reads the port that the driver has chosen.
    private static func port(in output: FileHandle) throws -> UInt16 {
        let found = Waiter<Result<UInt16, TestFailure>>()
        // A thread of its own: reading goes on until the driver ends, so that the driver never waits for the pipe.
        Thread.detachNewThread {
            var text = ""
            var isFound = false
            while case let data = output.availableData, !data.isEmpty {
                guard !isFound else { continue }
                text += String(decoding: data, as: UTF8.self)
                guard let range = text.range(of: "started successfully on port "),
                    case let rest = text[range.upperBound...], let end = rest.firstIndex(of: "."),
                    let port = UInt16(rest[..<end])
                else { continue }
                isFound = true
                found.set(.success(port))
            }
            if !isFound { found.set(.failure(TestFailure(text: "chromedriver has ended: \(text)"))) }
        }
        return try found.wait("chromedriver has not named its port.").get()
    }
}
