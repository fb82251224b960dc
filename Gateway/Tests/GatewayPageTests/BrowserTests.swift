import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

@testable import GatewayPage

/// The page in a real browser. Pictures are written into the directory of `BLUECAP_SCREENSHOTS`, if it is set.
final class BrowserTests: XCTestCase {
    private static let hostile = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"

    /// A board that has been running for five minutes.
    private func furnishedBoard() -> StatusBoard {
        let begin = ContinuousClock.now
        let time = Offset()
        let board = StatusBoard(
            gateway: "kitchen", version: "0.3.0", broker: "broker.example:8883",
            uptime: { ContinuousClock.now - begin + time.value })
        var random = SeededNumbers(29)
        let names = [
            "Living room", "Greenhouse", "Freezer", "Pulse Strap 7F", "Ruuvi 9A1C", "ATC_8F22B1", nil, "Front door",
            Self.hostile, nil, "Cellar", "A device whose name is as long as names of devices can be, or nearly",
            "Boiler",
        ]
        board.broker(connected: true)
        for step in 0..<60 {
            time.value = .seconds(step * 5)
            for (number, name) in names.enumerated() where (step + number) % 17 != 0 {
                let strength = -45 - number * 4 + Int(6 * sin(Double(step) / 5 + Double(number)))
                board.reported(device(number), name: name, strength: strength + Int.random(in: -2...2, using: &random))
            }
            let depth = step > 20 && step < 40 ? (step - 20) * 12 : 0
            board.queue(depth: depth, stored: 4_000 + step * 12, acknowledged: 4_000 + step * 12 - depth, dropped: 0)
        }
        time.value = .seconds(300)
        func number(_ name: String, _ number: Double, _ unit: String) -> StatusReading {
            StatusReading(name: name, value: .number(number), unit: unit)
        }
        for index in [0, 1, 2, 4, 5, 10] {
            board.decoded(
                device(index),
                [
                    number("temperature", 21.4 - Double(index) * 4.04, "°C"),
                    number("humidity", 48 + Double(index), "%"), number("battery", 90 - Double(index) * 7, "%"),
                ])
        }
        board.decoded(
            device(4), [number("pressure", 1013.25, "hPa"), StatusReading(name: "motion", value: .flag(true))])
        board.decoded(device(7), [StatusReading(name: "opening", value: .flag(false))])
        board.decoded(device(8), [StatusReading(name: Self.hostile, value: .text(Self.hostile))])
        board.link(device(3), .connected)
        board.link(device(0), .connected)
        board.link(device(7), .connecting)
        board.link(device(12), .elsewhere, detail: "garage")
        board.value(device(3), service: "180d", characteristic: "2a37", text: "72 bpm")
        board.value(device(3), service: "180f", characteristic: "2a19", text: "64 %")
        board.value(
            device(0), service: "e3223119-9445-4e96-a4a1-85358c4046a2",
            characteristic: "e3223120-9445-4e96-a4a1-85358c4046a2", text: "0a1b2c3d4e5f")
        board.refused("write c0ffee000003/180d/2a39", why: "The characteristic is not in the list of writable ones.")
        board.queue(depth: 14, stored: 4_733, acknowledged: 4_719, dropped: 0)
        return board
    }

    // `@unchecked`: `offset` is accessed only while `lock` is held.
    private final class Offset: @unchecked Sendable {
        private let lock = NSLock()
        private var offset = Duration.zero
        var value: Duration {
            get { lock.withLock { offset } }
            set { lock.withLock { offset = newValue } }
        }
    }

    private let column = "return [...document.querySelectorAll('#rows td."

    func testThePageShowsWhatHappensWhileItHappens() throws {
        let board = furnishedBoard()
        let page = try TestPage(board: board)
        defer { page.end() }
        let browser = try Browser()
        defer { browser.end() }
        let reports = Task {
            while !Task.isCancelled {
                for number in 0..<13 { board.reported(device(number), name: nil, strength: -45 - number * 4) }
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        defer { reports.cancel() }

        try browser.open("http://127.0.0.1:\(page.port)/")
        try browser.wait("document.querySelectorAll('#rows tr').length === 13")
        _ = try browser.run("window.sameDocument = true")
        XCTAssertEqual(try browser.strings("return [document.getElementById('gateway').textContent]"), ["kitchen"])

        // Sorted by strength, strongest first.
        let strengths = try browser.strings(column + "strength')].map(td => td.textContent)")
            .map { Int($0.replacing("\u{2212}", with: "-").split(separator: " ")[0]) ?? 0 }
        XCTAssertEqual(strengths, strengths.sorted(by: >))
        XCTAssertEqual(strengths.count, 13)
        let lines = try browser.strings(column + "chart path')].map(path => path.getAttribute('d'))")
        XCTAssertTrue(lines.allSatisfy { $0.split(separator: "L").count > 40 }, "\(lines.first ?? "")")

        // Names of devices are text.
        let names = try browser.strings(column + "name')].map(td => td.textContent)")
        XCTAssertTrue(names.contains(Self.hostile), "\(names)")
        XCTAssertEqual(try browser.number("return document.querySelectorAll('main img, main script').length"), 0)
        XCTAssertEqual(try browser.strings("return [typeof window.hacked]"), ["undefined"])
        XCTAssertEqual(
            try browser.strings("return [document.querySelector('#refusals li').textContent]").first?
                .contains("not in the list of writable ones"), true)
        XCTAssertEqual(try browser.number("return document.querySelectorAll('#values li').length"), 3)
        XCTAssertEqual(try browser.number("return document.querySelectorAll('.link-cell .connected').length"), 2)

        // Changes appear without a reload.
        board.reported(device(99), name: "Newcomer", strength: -36)
        board.refused("read c0ffee000063/180a/2a29", why: "No such peripheral is configured.")
        board.broker(connected: false, reason: "connection refused")
        board.decoded(device(0), [StatusReading(name: "temperature", value: .number(99.5), unit: "°C")])
        try browser.wait("document.querySelector('#rows tr .name').textContent === 'Newcomer'")
        try browser.wait("document.querySelector('#refusals li').textContent.includes('No such peripheral')")
        try browser.wait("document.getElementById('broker').textContent === 'disconnected'")
        try browser.wait("[...document.querySelectorAll('.reading')].some(r => r.textContent.includes('99.5\u{A0}°C'))")
        XCTAssertEqual(try browser.run("return window.sameDocument") as? Bool, true)
        board.broker(connected: true)

        // Other orders, and a filter.
        try browser.click("th button[data-sort=address]")
        let addresses = try browser.strings(column + "address')].map(td => td.textContent)")
        XCTAssertEqual(addresses, addresses.sorted())
        XCTAssertEqual(
            try browser.strings("return [document.querySelector('[aria-sort]').textContent]"), ["Address"])
        try browser.click("th button[data-sort=address]")
        let reversed = try browser.strings(column + "address')].map(td => td.textContent)")
        XCTAssertEqual(reversed, addresses.reversed())
        try browser.type("freez", into: "#filter")
        try browser.wait("document.querySelectorAll('#rows tr').length === 1")
        try browser.type(String(repeating: "\u{E003}", count: 5), into: "#filter")  // the backspace key
        try browser.click("th button[data-sort=strength]")
        try browser.wait("document.querySelector('#rows tr .name').textContent === 'Newcomer'")

        // It fits all widths.
        try browser.wait("document.getElementById('broker').textContent === 'connected'")
        for (name, width, height) in [("desktop", 1440, 1000), ("tablet", 900, 1200), ("phone", 400, 1600)] {
            for isDark in [false, true] {
                try browser.show(width: width, height: height, isDark: isDark)
                XCTAssertLessThanOrEqual(
                    try browser.number("return document.documentElement.scrollWidth"), Double(width), name)
                try browser.screenshot(name + (isDark ? "-dark" : ""))
            }
        }
        XCTAssertEqual(try browser.log(), [])
    }

    func testTwoThousandDevicesStayQuick() throws {
        let board = StatusBoard(gateway: "hall", version: "1", broker: "localhost:1883")
        func report() {
            for number in 0..<2_000 {
                board.reported(device(number), name: "Device \(number)", strength: -30 - number % 70)
            }
        }
        report()
        for number in 0..<2_000 {
            board.decoded(device(number), [StatusReading(name: "battery", value: .number(50), unit: "%")])
        }
        let page = try TestPage(board: board)
        defer { page.end() }
        let browser = try Browser()
        defer { browser.end() }
        let reports = Task {
            while !Task.isCancelled {
                report()
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        defer { reports.cancel() }
        try browser.open("http://localhost:\(page.port)/")
        try browser.wait("document.getElementById('devices-count').textContent === '2,000'")
        XCTAssertEqual(try browser.number("return document.querySelectorAll('#rows tr').length"), 100)
        try browser.click("#more")
        XCTAssertEqual(try browser.number("return document.querySelectorAll('#rows tr').length"), 200)
        // The time that the page takes for one message in which all devices have changed.
        _ = try browser.run(
            """
            window.times = [];
            const original = window.receive;
            window.receive = (snapshot) => {
                const begin = performance.now();
                original(snapshot);
                if (snapshot.devices.length >= 1000) window.times.push(performance.now() - begin);
            };
            """)
        try browser.wait("window.times.length >= 3")
        let times = try browser.run("return window.times") as? [NSNumber] ?? []
        print("2,000 devices: a message takes the page \(times.map { Int($0.doubleValue) }) ms")
        XCTAssertLessThan(times.map(\.doubleValue).min() ?? .infinity, 200)
        try browser.screenshot("many")
        XCTAssertEqual(try browser.log(), [])
    }

    func testThePageConnectsAgain() throws {
        let board = furnishedBoard()
        let first = try TestPage(board: board)
        var isOpen = true
        defer { if isOpen { first.end() } }
        let browser = try Browser()
        defer { browser.end() }
        try browser.open("http://127.0.0.1:\(first.port)/")
        try browser.wait("document.querySelectorAll('#rows tr').length === 13")
        XCTAssertEqual(try browser.run("return document.getElementById('alert').hidden") as? Bool, true)
        first.end()
        isOpen = false
        try browser.wait("!document.getElementById('alert').hidden")
        try browser.show(width: 1440, height: 400, isDark: false)
        try browser.screenshot("lost")
        let second = try TestPage(configure: { $0.port = first.port })
        defer { second.end() }
        second.board.reported(device(5), name: "After", strength: -50)
        try browser.wait("document.getElementById('alert').hidden")
        XCTAssertEqual(try browser.strings(column + "name')].map(td => td.textContent)"), ["After"])
    }
}
