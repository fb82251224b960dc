import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

/// Restores connections and subscriptions after a crash, a kill or a power failure.
///
/// A manager with a ``Configuration/restoreIdentifier`` saves its active operations in a file:
/// `$XDG_STATE_HOME/bluecap/central/IDENTIFIER.json`, or `~/.local/state/bluecap/…` if that variable is not set, or in
/// the folder of ``Configuration/stateDirectory``. The file is written a quarter of a second after a change.
/// It is replaced as a whole, and only the user can read it. The next manager with the same identifier restores from it
///
/// - the peripherals that were connected or being connected: from `connect` until `disconnect()`, `terminate()` or
///   `.giveUp`. The manager connects them again, with the arguments of that `connect`. It takes over a link that
///   outlived the program, as BlueZ's links do. Until the application calls `connect` itself, to get a stream of
///   events, the manager calls `reconnect()` after each time-out and each lost link.
/// - the subscriptions. The manager resumes each one when the peripheral's services are known. The application
///   calls ``Peripheral/notificationEvents(_:over:capacity:timeout:)`` as usual.
/// - the services and options of the scan. The manager does not start the scan; the application does.
///
/// A saved state is used only if no other user can have written it: the file and the folder `central` must belong to the
/// user of this process, must not be writable by its group or by others, and must not be symbolic links. Otherwise they
/// are renamed, and the manager starts with an empty state.
///
/// Only active operations are saved. A manager that is deallocated ends its scan and its links, so nothing remains
/// saved; with ``Configuration/keepsLinks`` the links stay, and everything remains saved. Everything also
/// remains saved if the program exits or is ended by a signal.
///
/// ```swift
/// let manager = try CentralManager(configuration: .init(restoreIdentifier: "us.gnos.gateway"))
/// let restored = try await manager.whenStateRestored().map { peripherals, _, _ in peripherals }.value
/// for peripheral in restored { keep(peripheral) }
/// ```
extension CentralManager {
    /// Returns the peripherals, services and scan options that an earlier manager with this identifier has saved.
    ///
    /// Every call returns the same result. A task cannot receive the options, which are not `Sendable`. It waits for the rest:
    /// `try await manager.whenStateRestored().map { $0.peripherals }.value`.
    /// - Returns: The peripherals, the services of the scan (empty if it had no filter, or if there was no scan), and the options of
    ///   that scan. All are empty if nothing was saved, as on the first run. The future succeeds when the state of Bluetooth is
    ///   known, at the latest five seconds after the manager was created. It fails with
    ///
    ///   - ``CentralManagerError/restoreFailed`` if the file is damaged, belongs to another program or a later version,
    ///     or can have been written by another user. It is then renamed within its folder, with `.unreadable-1`
    ///     appended to its name, and the manager starts with an empty state. The error also means that the file cannot
    ///     be read or its folder cannot be written, see ``stateRestorationProblem``. ``stateRestorationFailure``
    ///     contains the reason.
    ///   - ``CentralManagerError/restoreIdentifierInUse(_:)`` if another manager, of this process or another one, is
    ///     using the identifier. This manager then saves nothing, and is otherwise usable.
    ///   - ``CentralManagerError/invalidOption(_:)`` if the manager was created without an identifier.
    public func whenStateRestored() -> Future<
        (peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])
    > {
        session.restoredPromise.future.map(context: ImmediateContext()) { restored in
            (
                peripherals: restored.peripherals,
                scannedServices: restored.scan?.services ?? [],
                options: restored.scan?.restoredOptions ?? [:]
            )
        }
    }

    /// Why the state cannot be saved at the moment, in one sentence, such as a full disk; `nil` if there is no problem.
    /// A failed write is retried every half minute.
    public var stateRestorationProblem: String? { session.keeper?.problem }

    /// Why nothing was restored, in one sentence that names the file or folder and its new name if it was renamed.
    ///
    /// It is `nil` if a state was restored, if none was saved, and until that is known. It does not change again while
    /// the manager exists.
    public var stateRestorationFailure: String? { session.keeper?.failure }
}

extension ScanRequest {
    /// The options in the form that `startScanning` takes, without those that have their default values.
    var restoredOptions: [String: AnyObject] {
        var options: [String: AnyObject] = [:]
        if allowsDuplicates { options[CBCentralManagerScanOptionAllowDuplicatesKey] = NSNumber(value: true) }
        if let rssiThreshold { options["CentralManagerScanOptionRSSIThresholdKey"] = NSNumber(value: rssiThreshold) }
        if let pattern { options["CentralManagerScanOptionPatternKey"] = NSString(string: pattern) }
        if watchdog != ScanRequest().watchdog {
            options["CentralManagerScanOptionWatchdogKey"] = NSNumber(value: watchdog)
        }
        return options
    }
}

extension Peripheral {
    /// Subscriptions of an earlier process that have not been resumed yet, for programs that ask the user about each
    /// one.
    package var restoredSubscriptions: [CharacteristicIdentifier] {
        let restored = session.use(of: key) { $0.state.restoredSubscriptions } ?? []
        return restored.map { each in
            let service = ServiceIdentifier(uuid: each.service)
            var identifier = CharacteristicIdentifier(uuid: each.characteristic, service: service)
            // Handles distinguish those that would be the same otherwise.
            let alike = restored.count { ($0.service, $0.characteristic) == (each.service, each.characteristic) }
            if alike > 1 { identifier.handle = each.handle }
            return identifier
        }
    }

    /// Removes a subscription of an earlier process, unless it has been resumed.
    package func forgetRestoredSubscription(to characteristic: CharacteristicIdentifier) {
        session.decideIfUsed(key) { state, _ in
            state.removeRestored {
                $0.characteristic == characteristic.uuid && $0.service == characteristic.service.uuid
                    && (characteristic.handle == nil || $0.handle == characteristic.handle)
            }
        }
        session.loop.perform { [session] in session.keepSoon() }
    }
}
