/// What a scan is to do after a discovery.
public enum ScanAction {
    /// Go on.
    case `continue`
    /// Go on, and tell no more of this peripheral in this scan.
    case blacklist
    /// End the scan.
    case stop
    /// End the scan, and connect to what was discovered. The closure is called as by
    /// ``Bluejay/connect(_:timeout:warningOptions:completion:)``, after the scan's `stopped`.
    case connect(ScanDiscovery, Timeout, WarningOptions?, (ConnectionResult) -> Void)

    /// End the scan, and connect to what was discovered, however long that takes.
    public static func connect(
        _ discovery: ScanDiscovery, _ completion: @escaping (ConnectionResult) -> Void
    ) -> ScanAction {
        .connect(discovery, .none, nil, completion)
    }
}
