import ArgumentParser
import BlueCapKit
import Foundation

/// What every command understands that is a peripheral.
struct ServingOptions: ParsableArguments {
    @OptionGroup var radio: RadioOptions

    @Option(
        help: ArgumentHelp("End after so many seconds.", valueName: "seconds"),
        transform: NumberArgument.seconds)
    var duration: Double?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var common: CommonOptions

    /// What the help of each of them says at its end.
    static let statuses = """
        Status: 0 when it ended as asked, also by Ctrl-C; 1 when bluetoothd refused, or did not answer within 10 s or \
        --duration, with one line that says why; 3 without \
        a usable Bluetooth adapter; 64 for bad arguments, an advertisement that does not fit among them; 128 and the \
        signal's number where a signal ended it before it was on the air. Nothing of it is left behind in BlueZ.
        """

    /// Serves and advertises until the time is over or the first signal comes.
    func run(
        services: [PeripheralModel.Service] = [], advertising advertisements: [AdvertisingPlan],
        showsUpdates: Bool = false
    ) async throws {
        // Log lines and the line of progress would tear one another.
        let progress = Progress(on: .error, isEnabled: Output.error.isTerminal && common.verbose == 0)
        let logger = common.makeLogger()
        try await radio.run(isVisited: true) { [self] busAddress in
            let request = ServingRequest(
                busAddress: busAddress, adapter: radio.adapter, services: services, advertisements: advertisements,
                duration: duration, showsUpdates: showsUpdates)
            let reporter = ServingReporter(isJSON: json)
            try await ServingSession(request: request, reporter: reporter, progress: progress, logger: logger).run()
        }
    }

    /// Says before anything is begun what BlueZ would refuse.
    static func check(_ advertisement: AdvertisingData) throws {
        do {
            try advertisement.check()
        } catch let error as PeripheralManagerError {
            throw ValidationError(ServingWording.text(for: error))
        }
    }
}
