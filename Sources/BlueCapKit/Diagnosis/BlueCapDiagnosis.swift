import BlueCapBlueZ
import BlueCapDBus
import Dispatch
public import Foundation
import BlueCapFutures
import BlueCapReactor

/// What this machine's Bluetooth can do, and what prevents its use: a list of findings, each with what to do.
///
/// ```swift
/// let diagnosis = await BlueCapDiagnosis.report()
/// print(diagnosis)
/// if diagnosis.hasProblem { print("Bluetooth cannot be used.") }
/// ```
///
/// The tool prints it with `bluecap doctor`.
public struct BlueCapDiagnosis: Hashable, Sendable, Codable, CustomStringConvertible {
    /// How much a finding matters.
    public enum Severity: String, Hashable, Sendable, Codable, CaseIterable, Comparable {
        /// It is as it should be.
        case ok
        /// A property of this machine that explains a behaviour.
        case note
        /// Something may fail because of it.
        case warning
        /// Bluetooth cannot be used until it is changed.
        case problem

        public static func < (one: Self, other: Self) -> Bool {
            (allCases.firstIndex(of: one) ?? 0) < (allCases.firstIndex(of: other) ?? 0)
        }
    }

    /// One result.
    public struct Finding: Hashable, Sendable, Codable, CustomStringConvertible {
        /// How much it matters.
        public let severity: Severity
        /// What was examined, such as `bus` or `adapter hci0`.
        public let subject: String
        /// What was found, in one sentence.
        public let found: String
        /// What to do about it; `nil` if there is nothing to do.
        public let advice: String?

        public var description: String {
            "\(severity.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)) \(subject): \(found)"
                + (advice.map { "\n         → \($0)" } ?? "")
        }
    }

    /// The findings: about the process, the bus, `bluetoothd`, the adapters and the kernel, in this order.
    public let findings: [Finding]
    /// What BlueZ and the adapter in use can do, as far as it is known.
    public let capabilities: BluetoothCapabilities

    /// Whether Bluetooth cannot be used.
    public var hasProblem: Bool { findings.contains { $0.severity == .problem } }

    public var description: String { findings.map(\.description).joined(separator: "\n") }

    /// Examines this machine. It does not scan, and changes nothing.
    ///
    /// - Parameters:
    ///   - configuration: The bus and the adapter to examine; the rest is not used. With a bus of its own, such as a
    ///     simulator's, only what that bus shows is examined, and not the kernel. An invalid value is a finding.
    ///   - timeout: How long the bus and `bluetoothd` may take to reply. The report takes one second more at most.
    public static func report(
        configuration: CentralManager.Configuration = CentralManager.Configuration(), timeout: Duration = .seconds(5)
    ) async -> BlueCapDiagnosis {
        await report(
            CentralManager.Configuration.reading(nil, over: configuration), timeout: timeout.seconds, root: "/")
    }

    /// Examines this machine with the options of a dictionary.
    @available(*, deprecated, message: "Use report(configuration:timeout:).")
    public static func report(options: [String: Any]?, timeout: TimeInterval = 5) async -> BlueCapDiagnosis {
        await report(CentralManager.Configuration.reading(options), timeout: timeout, root: "/")
    }

    /// - Parameter root: The folder in which the files of the system are.
    static func report(
        _ configuration: (CentralManager.Configuration, problem: String?), timeout: TimeInterval, root: String
    ) async -> BlueCapDiagnosis {
        if let problem = configuration.problem {
            let finding = Finding(
                severity: .problem, subject: "configuration", found: problem, advice: "Correct the value.")
            return BlueCapDiagnosis(findings: [finding], capabilities: BluetoothCapabilities())
        }
        let (busAddress, wanted) = (configuration.0.busAddress, configuration.0.adapter)
        let manager = CentralManager(on: nil, nil, configuration)
        let facts = Promise<DiagnosisFacts>()
        let settled = Future<Void>()
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
            if state != .unknown, state != .resetting { settled.success(()) }
        }
        let timer = manager.timer(after: timeout) { settled.success(()) }
        settled.onSuccess(context: ImmediateContext()) {
            timer.cancel()
            // BlueZ's objects are read on the loop.
            manager.session.loop.post { facts.success(DiagnosisFacts(of: manager, wanted: wanted, root: root)) }
        }
        // A bus that does not accept connections blocks the loop, and its timers with it.
        if busAddress.map({ LoopbackBus.at(address: $0) == nil }) ?? true {
            DispatchQueue.global().asyncAfter(deadline: .now() + timeout + 1) {
                var known = DiagnosisFacts(availability: .connecting, wanted: wanted)
                if busAddress == nil { known.machine = DiagnosisFacts.Machine(root: root) }
                facts.success(known)
            }
        }
        // It never fails.
        let known = (try? await facts.future.value) ?? DiagnosisFacts(availability: .connecting)
        return BlueCapDiagnosis(findings: known.findings, capabilities: known.capabilities)
    }
}
