public import BlueCapKit
public import Foundation

// The observers of single subjects, which Bluejay has since version 0.8. Their methods have no defaults, so a class that
// misspells one does not compile. Bluejay holds them weakly and calls them on its callback queue.

/// An object that receives the results of ``Bluejay/readRSSI()``.
public protocol RSSIObserver: AnyObject {
    /// Called once for each call of ``Bluejay/readRSSI()``.
    ///
    /// - Parameters:
    ///   - peripheral: The connected peripheral.
    ///   - RSSI: The signal strength in dBm; 127 if it could not be read.
    ///   - error: The reason why it could not be read. BlueZ has no signal strength of a connected peripheral that does not
    ///     advertise: `PeripheralError.rssiUnavailable`.
    func didReadRSSI(from peripheral: PeripheralIdentifier, RSSI: NSNumber, error: (any Error)?)
}

/// An object that is called when a connected peripheral changes its services.
public protocol ServiceObserver: AnyObject {
    /// Called when the connected peripheral has changed its services.
    ///
    /// - Parameters:
    ///   - peripheral: The connected peripheral.
    ///   - invalidatedServices: The services that the peripheral has removed or replaced; empty if it has only added some.
    func didModifyServices(from peripheral: PeripheralIdentifier, invalidatedServices: [ServiceIdentifier])
}

/// An object that receives a line of text about each step of ``Bluejay``, for the log of a program.
public protocol LogObserver: AnyObject {
    /// Called with each line.
    ///
    /// - Parameter text: A sentence for people, without a time and without an end of line. Its wording may change.
    func debug(_ text: String)
}
