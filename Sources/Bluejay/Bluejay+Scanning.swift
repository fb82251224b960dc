public import BlueCapKit
public import Foundation

extension Bluejay {
    /// Looks for peripherals.
    ///
    /// ```swift
    /// bluejay.scan(
    ///     serviceIdentifiers: [heartRateService],
    ///     discovery: { discovery, discoveries in .continue },
    ///     stopped: { discoveries, error in print(discoveries.count) })
    /// ```
    ///
    /// A request to connect ends the scan.
    /// - Parameters:
    ///   - duration: In seconds; 0 for no end.
    ///   - allowDuplicates: Whether each advertisement is a discovery, and not the first of each peripheral alone.
    ///   - serviceIdentifiers: Who advertises one of these; `nil` or none for everybody.
    ///   - discovery: Called with what was discovered and all that has been so far, the newest state of each.
    ///   - expired: Called with one that has not been heard for 30 seconds or more (see
    ///     `CentralManager.whenPeripheralsExpire()`) and those that are left; only where duplicates are allowed.
    ///   - stopped: Called once, when the scan is over, with what it has found. The error is `nil` where it was stopped or
    ///     its duration has passed.
    public func scan(
        duration: TimeInterval = 0, allowDuplicates: Bool = false, serviceIdentifiers: [ServiceIdentifier]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)? = nil,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        scan(
            duration: duration, allowDuplicates: allowDuplicates, throttleRSSIDelta: 0,
            serviceIdentifiers: serviceIdentifiers, discovery: discovery, expired: expired, stopped: stopped)
    }

    /// Looks for peripherals, and ignores discoveries whose signal strength has hardly changed, as since version 0.6.5.
    ///
    /// The rest is as of the form without `throttleRSSIDelta`.
    /// - Parameters:
    ///   - duration: In seconds; 0 for no end.
    ///   - allowDuplicates: Whether each advertisement is a discovery, or only the first one of each peripheral.
    ///   - throttleRSSIDelta: In dB: if duplicates are allowed, a peripheral is discovered again only if its strength
    ///     differs by at least this from that of its last discovery. 0 and less ignore nothing.
    ///   - serviceIdentifiers: Only peripherals that advertise one of these services; `nil` or none for all.
    ///   - discovery: Called with the discovery and all discoveries so far, the newest state of each.
    ///   - expired: Called with a peripheral that has not been received for 30 seconds or more, and those that are left;
    ///     only if duplicates are allowed.
    ///   - stopped: Called once, when the scan has ended, with its discoveries. The error is `nil` if it was stopped or its
    ///     duration has passed.
    public func scan(
        duration: TimeInterval = 0, allowDuplicates: Bool = false, throttleRSSIDelta: Int,
        serviceIdentifiers: [ServiceIdentifier]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)? = nil,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        do {
            let services = try serviceIdentifiers?.map { try $0.checked() }
            session.scan(
                Scan(
                    duration: duration, allowsDuplicates: allowDuplicates, throttle: throttleRSSIDelta,
                    services: services, discovery: discovery, expired: expired, stopped: stopped))
        } catch {
            session.call { stopped([], error) }
        }
    }

    /// Ends the scan, as the action ``ScanAction/stop`` does. Without one it does nothing.
    public func stopScanning() { session.stopScanning() }
}
