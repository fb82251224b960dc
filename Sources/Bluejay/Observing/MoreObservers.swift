public import BlueCapKit
public import Foundation

// The observers of single subjects: as in Bluejay since version 0.8, and of pairings. Their methods have no defaults, so a
// class that misspells one does not compile. Bluejay holds them weakly and calls them on its callback queue.

/// An object that receives the results of ``Bluejay/readRSSI()``.
public protocol RSSIObserver: AnyObject {
    /// Called once for each call of ``Bluejay/readRSSI()``, with the signal strength in dBm; 127 if it could not be
    /// read.
    ///
    /// - `error`: Why it could not be read. BlueZ has no signal strength of a connected peripheral that does
    ///   not advertise: `PeripheralError.rssiUnavailable`.
    func didReadRSSI(from peripheral: PeripheralIdentifier, RSSI: NSNumber, error: (any Error)?)
}

/// An object that is called when a connected peripheral changes its services.
public protocol ServiceObserver: AnyObject {
    /// Called with the services that the connected peripheral has removed or replaced; none if it has only added some.
    func didModifyServices(from peripheral: PeripheralIdentifier, invalidatedServices: [ServiceIdentifier])
}

/// An object that answers the requests of pairings, and receives the changes of the peripheral's pairing.
public protocol PairingObserver: AnyObject {
    /// Called when a pairing needs an answer, which requires the policy `PairingPolicy.ask`.
    ///
    /// Show the number or ask the user for it, and call `confirm()`, `enter(_:)` or `reject()` of the request, now or later,
    /// on any thread. The first answer counts. Without one the request is rejected after `PairingPolicy.answerTimeout`, and
    /// without an observer at once.
    ///
    /// A background task may wait for the answer. Its thread is not that of the callback queue, so do not block that queue
    /// until the task has ended.
    func didReceivePairingRequest(_ request: PairingRequest, from peripheral: PeripheralIdentifier)

    /// Called when the peripheral has been paired or its bond has ended, whichever program did it, and when a pairing has
    /// failed. A peripheral that is used for the first time since the start reports its last change, if there is one.
    func didChangePairing(of peripheral: PeripheralIdentifier, to change: PairingChange)
}

/// An object that receives a line of text about each step of ``Bluejay``, for the log of a program.
public protocol LogObserver: AnyObject {
    /// Called with each line: a sentence without a time and without an end of line, whose wording may change.
    func debug(_ text: String)
}
