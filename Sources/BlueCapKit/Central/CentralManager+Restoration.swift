import Foundation
public import Futures
public import GATT
import Reactor

/// Coming back after a crash, a kill or a power cut.
///
/// A manager with `CBCentralManagerOptionRestoreIdentifierKey` among its options keeps what is under way in a file:
/// `$XDG_STATE_HOME/bluecap/central/IDENTIFIER.json`, where that variable is not set `~/.local/state/bluecap/…`, or in
/// the folder of ``CentralManagerOptionStateDirectoryKey``. It is written a quarter of a second after a change, never in
/// part, and for the user alone. The next manager with the same identifier finds there
///
/// - the peripherals that were connected or wished to be: from `connect` on until `disconnect()`, `terminate()` or
///   `.giveUp`. They are connected again, with the arguments of that `connect`; a link that outlived the program, as
///   BlueZ's links do, is taken over. Until the application calls `connect` itself, to have a stream of events, the
///   manager answers time-outs and losses with `reconnect()`.
/// - the subscriptions: each is taken up again once the peripheral's services are known. The application discovers its
///   characteristics as usual, and receives with `receiveNotificationUpdates()`.
/// - the services and options of the scan, which is not begun again by itself.
///
/// A state is believed only if no other user can have written it. The file and the folder `central` must belong to the user of
/// this process, not be writable by its group or others, and be no links: otherwise they are set aside, and the manager
/// starts afresh. The state directory and the folders above it must belong to that user or to root. Others may write to them
/// only where they are sticky, as `/tmp` is; the user's private group may write to those above. Of links in the path only
/// those are followed that root has made below folders that root alone can write, as systemd does for a service with
/// `DynamicUser`. Otherwise nothing is restored or kept, and ``stateRestorationProblem`` names the folder.
///
/// What is kept is what is under way. A manager that is deallocated ends its scan and its links, so it keeps nothing;
/// with ``CentralManagerOptionKeepsLinksKey`` the links stay, and all is kept. A program that merely exits, or is ended by
/// a signal, keeps all.
///
/// ```swift
/// let manager = CentralManager(options: [CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.gateway"])
/// manager.whenStateRestored().onSuccess { peripherals, scannedServices, options in
///     for peripheral in peripherals { keep(peripheral) }
/// }
/// ```
extension CentralManager {
    /// What an earlier manager with this identifier left under way.
    ///
    /// - Returns: The peripherals, the services that were scanned for (empty for everybody, and where there was no scan),
    ///   and the options of that scan; all empty where nothing was kept, as on the first run. It succeeds when it is
    ///   known how Bluetooth stands, five seconds after the beginning at the latest. Every call answers the same. It
    ///   fails with
    ///
    ///   - ``CentralManagerError/restoreFailed`` where the file is damaged, another program's, or a later version's, or
    ///     can have been written by another user: it is set aside beside its place with `.unreadable-1` behind its name, and
    ///     the manager starts afresh; or where the file cannot be read or its folder not be written, see
    ///     ``stateRestorationProblem``. ``stateRestorationFailure`` says which.
    ///   - ``CentralManagerError/restoreIdentifierInUse(_:)`` where another manager, of this process or another one, is
    ///     using the identifier: this one keeps nothing, and works all the same.
    ///   - ``CentralManagerError/invalidOption(_:)`` where the manager was given no identifier.
    public func whenStateRestored() -> Future<
        (peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])
    > {
        session.restoredPromise.future.map(context: ImmediateContext()) { restored in
            (
                peripherals: restored.peripherals,
                scannedServices: restored.scan?.services?.sorted(by: CBUUID.precedes) ?? [],
                options: restored.scan?.restoredOptions ?? [:]
            )
        }
    }

    /// The form of the latest revision: that there is a state, or nothing was kept, is a success without a value.
    @_disfavoredOverload
    public func whenStateRestored() -> Future<Void> {
        session.restoredPromise.future.map(context: ImmediateContext()) { _ in }
    }

    /// Why the state is not being kept at the moment, in one sentence, such as a full disk; `nil` while all is well. What
    /// could not be written is tried again every half minute.
    public var stateRestorationProblem: String? { session.keeper?.problem }

    /// Why nothing was restored, in one sentence that names the file or folder and where it was set aside; `nil` if a state was
    /// restored, if none was kept, and until that is known. It remains while the manager exists.
    public var stateRestorationFailure: String? { session.keeper?.failure }
}

extension ScanRequest {
    /// The options as `startScanning` takes them; those that have their usual values are left out.
    var restoredOptions: [String: AnyObject] {
        var options: [String: AnyObject] = [:]
        if allowsDuplicates { options[CBCentralManagerScanOptionAllowDuplicatesKey] = NSNumber(value: true) }
        if let rssiThreshold { options[CentralManagerScanOptionRSSIThresholdKey] = NSNumber(value: rssiThreshold) }
        if let pattern { options[CentralManagerScanOptionPatternKey] = NSString(string: pattern) }
        if watchdog != ScanRequest().watchdog {
            options[CentralManagerScanOptionWatchdogKey] = NSNumber(value: watchdog ?? 0)
        }
        return options
    }
}

extension Peripheral {
    /// Subscriptions of an earlier process that have not been resumed so far, for programs that ask the user about each.
    package var restoredSubscriptions: [CharacteristicIdentifier] {
        session.readState(of: key) { state in
            state.restoredSubscriptions.map {
                CharacteristicIdentifier(uuid: $0.characteristic, service: ServiceIdentifier(uuid: $0.service))
            }
        } ?? []
    }

    /// Forgets a subscription of an earlier process, unless it has been resumed.
    package func forgetRestoredSubscription(to characteristic: CharacteristicIdentifier) {
        guard let uuid = characteristic.uuid, let service = characteristic.service.uuid else { return }
        session.decide { core in
            core.state.updateState(of: key) { state in
                state.removeRestored { $0.characteristic == uuid && $0.service == service }
            }
        }
        session.loop.perform { [session] in session.keepSoon() }
    }
}
