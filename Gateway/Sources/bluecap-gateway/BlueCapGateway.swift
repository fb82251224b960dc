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
        version: Gateway.version)

    @Option(name: .shortAndLong, help: "The configuration, a YAML file.")
    var config = "/etc/bluecap-gateway/gateway.yaml"

    @Flag(help: "Check the configuration, print what is wrong with it, and exit.")
    var check = false

    func run() async throws {
        let configuration: GatewayConfiguration
        do {
            let text = try String(contentsOfFile: config, encoding: .utf8)
            configuration = try GatewayConfiguration(yaml: text, file: config)
        } catch let error as GatewayConfigurationError {
            throw fail("\(error)", 78)
        } catch {
            throw fail("\(config): \(error.localizedDescription)", 78)
        }
        if check { return print("\(config): no errors") }
        var logger = Logger(label: "bluecap-gateway") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = Logger.Level(rawValue: configuration.logLevel.rawValue) ?? .info
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

    private func fail(_ text: String, _ status: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("bluecap-gateway: \(text)\n".utf8))
        return ExitCode(status)
    }
}
