import TestBasics
import XCTest

/// What the compiler accepts as an observer, in both language modes: a method of either spelling compiles. Another method does
/// not, if the protocol can exclude it.
///
/// The test compiles small files against the modules of this build.
final class ObserverSpellingTests: XCTestCase, StartsPrograms {
    /// The messages of the compiler about a file that imports Bluejay.
    private func diagnostics(_ source: String, mode: Int) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spelling-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("Program.swift")
        try "import Bluejay\nimport Foundation\n\(source)\n".write(to: file, atomically: true, encoding: .utf8)
        let products = try XCTUnwrap(Bundle.main.executableURL).deletingLastPathComponent()
        // The modules of C that SwiftPM has made a map for.
        let maps = try FileManager.default.contentsOfDirectory(at: products, includingPropertiesForKeys: nil)
            .map { $0.appendingPathComponent("module.modulemap").path }
            .filter { FileManager.default.fileExists(atPath: $0) }
            .flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
        let compiler = TestProgram.process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments =
            [
                "swiftc", "-typecheck", "-swift-version", "\(mode)", "-module-name", "Program",
                "-I", products.appendingPathComponent("Modules").path,
            ] + maps + [file.path]
        let output = Pipe()
        compiler.standardError = output
        try compiler.run()
        let messages = output.fileHandleForReading.readDataToEndOfFile()
        compiler.waitUntilExit()
        return String(decoding: messages, as: UTF8.self)
    }

    /// - Parameter message: What an error of the compiler contains; `nil` for a program without errors.
    private func check(
        _ source: String, fails message: String? = nil, file: StaticString = #filePath, line: UInt = #line
    ) throws {
        for mode in [5, 6] {
            let messages = try diagnostics(source, mode: mode)
            if let message {
                XCTAssertTrue(
                    messages.contains("error: \(message)"), "Swift \(mode): \(messages)", file: file, line: line)
            } else {
                XCTAssertFalse(messages.contains("error:"), "Swift \(mode): \(messages)", file: file, line: line)
            }
        }
    }

    private static let noConformance = "type 'A' does not conform to protocol"
    private static let disconnect = "with error: Error?, willReconnect autoReconnect: Bool) -> AutoReconnectMode"

    func testEitherSpellingCompiles() throws {
        try check(
            """
            class A: ConnectionObserver { func connected(to peripheral: Peripheral) {} }
            class B: ConnectionObserver { func connected(to peripheral: PeripheralIdentifier) {} }
            class C: DisconnectHandler {
                func didDisconnect(from peripheral: Peripheral, \(Self.disconnect) { .noChange }
            }
            class D: DisconnectHandler {
                func didDisconnect(from peripheral: PeripheralIdentifier, \(Self.disconnect) { .noChange }
            }
            class E: ListenRestorer {
                func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool { true }
            }
            class F: ListenRestorer {
                func didReceiveUnhandledListen(
                    from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
                ) -> ListenRestoreAction { .stopListen }
            }
            func program(_ bluejay: Bluejay, _ handler: DisconnectHandler, _ observer: ConnectionObserver) {
                bluejay.registerDisconnectHandler(handler: handler)
                bluejay.register(connectionObserver: observer)
                bluejay.disconnect { result in
                    switch result {
                    case .success: break
                    case .failure: break
                    }
                }
                bluejay.disconnect { result in
                    switch result {
                    case .disconnected: break
                    case .failure: break
                    }
                }
            }
            """)
    }

    func testADisconnectHandlerOfAnotherTypeOrNameDoesNotCompile() throws {
        try check(
            "class A: DisconnectHandler { func didDisconnect(from peripheral: String, \(Self.disconnect) { .noChange } }",
            fails: Self.noConformance)
        try check(
            """
            class A: DisconnectHandler {
                func didDisconect(from peripheral: PeripheralIdentifier, \(Self.disconnect) { .noChange }
            }
            """, fails: Self.noConformance)
    }

    func testADisconnectHandlerOfBothSpellingsDoesNotCompile() throws {
        try check(
            """
            class A: DisconnectHandler {
                func didDisconnect(from peripheral: Peripheral, \(Self.disconnect) { .noChange }
                func didDisconnect(from peripheral: PeripheralIdentifier, \(Self.disconnect) { .noChange }
            }
            """, fails: Self.noConformance)
    }

    func testAListenRestorerWithoutEitherMethodDoesNotCompile() throws {
        try check("class A: ListenRestorer {}", fails: Self.noConformance)
        try check(
            "class A: ListenRestorer { func willRestoreListen(on characteristic: ServiceIdentifier) -> Bool { true } }",
            fails: Self.noConformance)
        try check(
            """
            class A: ListenRestorer {
                func didReceiveUnhandledListen(
                    from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data
                ) -> ListenRestoreAction { .stopListen }
            }
            """, fails: Self.noConformance)
    }

    func testAListenRestorerWithOneMethodMayHaveTheOtherMisspelled() throws {
        let misspelled = [
            """
            func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool { true }
            func didReceiveUnhandledListen(
                from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data
            ) -> ListenRestoreAction { .stopListen }
            """,
            """
            func willRestoreListen(on characteristic: ServiceIdentifier) -> Bool { true }
            func didReceiveUnhandledListen(
                from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
            ) -> ListenRestoreAction { .stopListen }
            """,
        ]
        for methods in misspelled {
            try check("class A: ListenRestorer { \(methods) }")
            for mode in [5, 6] {
                let messages = try diagnostics("class A {}\nextension A: ListenRestorer { \(methods) }", mode: mode)
                XCTAssertTrue(messages.contains("nearly matches defaulted requirement"), messages)
            }
        }
    }

    func testHandlersAndRestorersForwardToOthers() throws {
        try check(
            """
            class Handler: DisconnectHandler {
                let other: any DisconnectHandler
                init(_ other: any DisconnectHandler) { self.other = other }
                func didDisconnect(from peripheral: Peripheral, \(Self.disconnect) {
                    other.didDisconnect(from: peripheral, with: error, willReconnect: autoReconnect)
                }
            }
            class Restorer: ListenRestorer {
                weak var other: (any ListenRestorer)?
                func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool {
                    other?.willRestoreListen(on: characteristic) ?? false
                }
            }
            func forward(_ restorer: any ListenRestorer, _ identifier: CharacteristicIdentifier) -> Bool {
                let keep: Bool = restorer.willRestoreListen(on: identifier)
                let keeps = restorer.willRestoreListen(on: identifier)
                if restorer.willRestoreListen(on: identifier) { return keeps }
                return keep
            }
            func forward(
                _ restorer: any ListenRestorer, _ peripheral: PeripheralIdentifier, _ identifier: CharacteristicIdentifier
            ) -> ListenRestoreAction {
                let action = restorer.didReceiveUnhandledListen(from: peripheral, on: identifier, with: nil)
                return action
            }
            func forward<R: ListenRestorer>(_ restorer: R, _ identifier: CharacteristicIdentifier) -> Bool {
                restorer.willRestoreListen(on: identifier)
            }
            func forward<H: DisconnectHandler>(_ handler: H, _ peripheral: Peripheral) -> AutoReconnectMode {
                handler.didDisconnect(from: peripheral, with: nil, willReconnect: true)
            }
            """)
    }

    func testAnObserverOfASingleSubjectWithAnotherMethodDoesNotCompile() throws {
        for source in [
            "class A: LogObserver { func logFileUpdated(logs: String) {} }",
            "class A: RSSIObserver { func didReadRSSI(from peripheral: Peripheral) {} }",
            "class A: ServiceObserver { func didModifyServices(from peripheral: Peripheral) {} }",
            "class A: BackgroundRestorer {}",
        ] {
            try check(source, fails: Self.noConformance)
        }
    }

    func testAConnectionObserverThatNearlyMatchesIsAWarningInAnExtension() throws {
        for mode in [5, 6] {
            let messages = try diagnostics(
                """
                class A {}
                extension A: ConnectionObserver { func connected(to peripheral: String) {} }
                """, mode: mode)
            XCTAssertTrue(messages.contains("nearly matches defaulted requirement"), messages)
        }
    }

    func testTheResultOfTheGuideHasNoCaseOfVersion08() throws {
        try check(
            "func f(_ result: DisconnectionResult) { if case .disconnected = result {} }",
            fails: "reference to member 'disconnected' cannot be resolved")
    }
}
