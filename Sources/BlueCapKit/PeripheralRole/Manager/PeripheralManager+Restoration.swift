public import Futures

/// State restoration after a crash, a kill or a power cut.
///
/// BlueZ forgets what a program offered and advertised when the program ends. A manager with
/// `CBPeripheralManagerOptionRestoreIdentifierKey` among its options keeps that in a file:
/// `$XDG_STATE_HOME/bluecap/peripheral/IDENTIFIER.json`, or `~/.local/state/bluecap/…` if that variable is not set, or
/// in the folder of ``PeripheralManagerOptionStateDirectoryKey``. It is written a quarter of a second after a change,
/// never in part, and only the user can read it. The next manager with the same identifier offers and advertises the
/// same again as soon as the adapter is present and on:
///
/// - the services are in ``PeripheralManager/services``, with their characteristics as they were when they were added, values
///   too. Ask those for requests, and update them.
/// - the advertisements are in ``PeripheralManager/advertisements``, except that their time-outs begin again.
///
/// A program may repeat the calls of its first run: a restored service is replaced by one with the same UUID that is
/// added, a restored name or region to the one that `startAdvertising` is called with, and a restored
/// ``AdvertisingData`` to its equal. The same holds for calls that were made before the file was read.
///
/// A state is used only if no other user can have written it. The file and the folder `peripheral` must belong to the
/// user of this process, not be writable by its group or others, and be no links: otherwise they are set aside, and the
/// manager starts afresh. The state directory and the folders above it must belong to that user or to root. Others may
/// write to them only where they are sticky, as `/tmp` is; the user's private group may write to those above. Of links
/// in the path only those are followed that root has made below folders that root alone can write, as systemd does for
/// a service with `DynamicUser`. Otherwise nothing is restored or kept, and ``stateRestorationProblem`` names the
/// folder.
///
/// What is kept is what is under way. A manager that is deallocated unregisters everything, so it keeps nothing. A
/// program that merely exits, or is ended by a signal, keeps all.
extension PeripheralManager {
    /// What an earlier manager with this identifier advertised, and is being advertised again.
    ///
    /// - Returns: What `startAdvertising` was called with last; empty if nothing was advertised, as on the first run.
    ///   It succeeds when the manager's state is known, five seconds after the beginning at the latest; ``services``
    ///   has what was restored then. Every call returns the same future. It fails with
    ///
    ///   - ``PeripheralManagerError/restoreFailed`` where the file is damaged, another program's, or a later version's, or
    ///     can have been written by another user: it is set aside beside its place with `.unreadable-1` behind its name, and
    ///     the manager starts afresh; or where the file cannot be read or its folder not be written, see
    ///     ``stateRestorationProblem``. ``stateRestorationFailure`` says which.
    ///   - ``PeripheralManagerError/restoreIdentifierInUse(_:)`` where another manager, of this process or another one,
    ///     is using the identifier: this one works, but keeps nothing.
    ///   - ``PeripheralManagerError/invalidOption(_:)`` if the manager was given no identifier.
    public func whenStateRestored() -> Future<PeripheralAdvertisements> { session.restoredPromise.future }

    /// Why the state is not being kept at the moment, in one sentence, such as a full disk; `nil` while all is well. What
    /// could not be written is tried again every half minute.
    public var stateRestorationProblem: String? { session.keeper?.problem }

    /// Why nothing was restored, in one sentence that names the file or folder and where it was set aside; `nil` if a state was
    /// restored, if none was kept, and until that is known. It remains while the manager exists.
    public var stateRestorationFailure: String? { session.keeper?.failure }
}
