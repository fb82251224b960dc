import ArgumentParser
import CoreMetrics
import Foundation
import GatewayCore
import GatewayPage
import GatewayProgram
import Logging
import ServiceLifecycle
import UnixSignals

@main
struct BlueCapGateway: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bluecap-gateway",
        abstract: "Publish what a Bluetooth LE radio receives to an MQTT broker, and take commands.",
        discussion: """
            It runs in the foreground until SIGTERM or SIGINT. Then it ends its links, and publishes that it is offline. \
            Values that the broker has not acknowledged stay in the store, and are sent at the next start.

            Examples:
              bluecap-gateway --config gateway.yaml
              bluecap-gateway --config gateway.yaml --check
              bluecap simulate -- bluecap-gateway --config gateway.yaml

            Status: 0 after a signal, 64 for wrong arguments, 78 for a wrong configuration, 1 for another error.
            """,
        version: "bluecap-gateway \(Gateway.version)")

    private static let standardFile = "/etc/bluecap-gateway/gateway.yaml"

    @Option(
        name: .shortAndLong,
        help: """
            The configuration, a YAML file. Without it \(standardFile), or the defaults of all keys if there is no such file.
            """)
    var config: String?

    @Flag(help: "Check the configuration, print what is wrong with it, and exit.")
    var check = false

    func run() async throws {
        let configuration: GatewayConfiguration
        do {
            configuration = try GatewayConfiguration(yaml: try text(), file: file)
        } catch let error as GatewayConfigurationError {
            throw fail("\(error)", 78)
        }
        if check {
            return print(isMissing ? "\(file) does not exist: all keys have their defaults" : "\(file): no errors")
        }
        var logger = Logger(label: "bluecap-gateway") { _ in StandardErrorLog() }
        logger.logLevel = Logger.Level(rawValue: configuration.logLevel.rawValue) ?? .info
        if isMissing { logger.notice("\(file) does not exist: all keys have their defaults") }
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        let gateway: Gateway
        do {
            gateway = try Gateway(configuration, logger: logger, metrics: metrics) { [logger, configuration] port in
                let address = configuration.page?.address ?? ""
                logger.notice("the page: http://\(address.contains(":") ? "[\(address)]" : address):\(port)/")
            }
        } catch {
            throw fail("\(error)", 1)
        }
        let group = ServiceGroup(
            services: [gateway], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        do {
            try await group.run()
        } catch {
            throw fail("\(error)", 1)
        }
    }

    private var file: String { config ?? Self.standardFile }
    private var isMissing: Bool { config == nil && !FileManager.default.fileExists(atPath: file) }

    /// Returns the text of the configuration.
    private func text() throws -> String {
        guard !isMissing else { return "" }
        do {
            let data = try Data(contentsOf: URL(filePath: file))
            guard let text = String(data: data, encoding: .utf8) else { throw fail("\(file): not in UTF-8", 78) }
            return text
        } catch CocoaError.fileReadNoSuchFile {
            throw fail("\(file): no such file. Write one, or name another with --config.", 78)
        } catch CocoaError.fileReadNoPermission {
            throw fail("\(file): this user may not read the file.", 78)
        } catch let error as ExitCode {
            throw error
        } catch {
            throw fail("\(file): not a file that can be read.", 78)
        }
    }

    private func fail(_ text: String, _ status: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("bluecap-gateway: \(text)\n".utf8))
        return ExitCode(status)
    }
}
