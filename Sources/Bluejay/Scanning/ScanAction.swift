/// What a scan is to do after a discovery.
public enum ScanAction {
    /// Go on.
    case `continue`
    /// Go on, and tell no more of this peripheral in this scan.
    case blacklist
    /// End the scan.
    case stop
    /// End the scan, and connect to what was discovered. The closure is called as by
    /// `Bluejay.connect`, after the scan's `stopped`.
    ///
    /// A discovery of an action with a time-out keeps it: the action may be taken apart and put together again.
    case connect(ScanDiscovery, (ConnectionResult) -> Void)

    /// Returns the action that ends the scan, and connects to what was discovered.
    ///
    /// - Parameters:
    ///   - discovery: What was discovered.
    ///   - timeout: How long the attempt may take.
    ///   - warningOptions: Have no effect on Linux; see ``WarningOptions``.
    ///   - completion: Called once.
    public static func connect(
        _ discovery: ScanDiscovery, _ timeout: Timeout, _ warningOptions: WarningOptions?,
        _ completion: @escaping (ConnectionResult) -> Void
    ) -> ScanAction {
        var discovery = discovery
        discovery.connectionTimeout = timeout
        return .connect(discovery, completion)
    }
}
