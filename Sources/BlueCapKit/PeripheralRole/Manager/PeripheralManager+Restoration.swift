public import BlueCapFutures

/// State restoration after a crash, a kill or a power cut.
///
/// BlueZ removes what a program offered and advertised when the program ends. A manager with a
/// ``Configuration/restoreIdentifier`` keeps that state in a file:
/// `$XDG_STATE_HOME/bluecap/peripheral/IDENTIFIER.json`, or `~/.local/state/bluecap/…` if that variable is not set, or
/// in the folder of ``Configuration/stateDirectory``. The file is written a quarter of a second after a
/// change, always as a whole, and only the user can read it. The next manager with the same identifier offers and
/// advertises the same again as soon as the adapter is present and on:
///
/// - The services are in ``PeripheralManager/services``, with their characteristics and values as they were when they
///   were added. Start to respond to requests on these characteristics, and update them.
/// - The advertisements are in ``PeripheralManager/advertisements``, except that their time-outs begin again.
///
/// A program may repeat the calls of its first run. A restored service is replaced when a service with the same UUID is
/// added, a restored name or region when `startAdvertising` is called with one, and a restored ``AdvertisingData`` when
/// an equal one is started. The same holds for calls that were made before the file was read.
///
/// The conditions under which a file is used are those of ``CentralManager``, for the folder `peripheral`.
///
/// The state contains what is under way. A manager that is deallocated unregisters everything, so it keeps nothing. A
/// program that exits without deallocating it, or is ended by a signal, keeps everything.
extension PeripheralManager {
    /// Returns what an earlier manager with this identifier advertised, and what is being advertised again.
    ///
    /// - Returns: What `startAdvertising` was called with last; empty if nothing was advertised, as on the first run.
    ///   It succeeds when the manager's state is known, after five seconds at the latest; ``services`` then has the
    ///   restored services. Every call returns the same future. It fails with
    ///   - ``PeripheralManagerError/restoreFailed`` if the file is damaged, another program's, or a later version's, or
    ///     can have been written by another user: it is then set aside in the same folder with `.unreadable-1` appended
    ///     to its name, and the manager starts without a state; or if the file cannot be read or its folder cannot be
    ///     written, see ``stateRestorationProblem``. ``stateRestorationFailure`` is the reason.
    ///   - ``PeripheralManagerError/restoreIdentifierInUse(_:)`` if another manager, of this process or another one, is
    ///     using the identifier: this manager works, but keeps nothing.
    ///   - ``PeripheralManagerError/invalidOption(_:)`` if the manager was given no identifier.
    public func whenStateRestored() -> Future<PeripheralAdvertisements> { session.restoredPromise.future }

    /// Why the state is not being kept now, in one sentence, such as a full disk; `nil` if it is being kept. A write
    /// that failed is repeated every half minute.
    public var stateRestorationProblem: String? { session.keeper?.problem }

    /// Why nothing was restored, in one sentence that names the file or folder and the path to which it was moved;
    /// `nil` if a state was restored, if none was kept, and until that is known. It remains while the manager exists.
    public var stateRestorationFailure: String? { session.keeper?.failure }
}
