public import BlueCapKit
public import Foundation

/// The object that decides on the listens of an earlier run of the program. It is called on the callback queue of
/// ``Bluejay``, which holds it weakly.
///
/// A class implements ``willRestoreListen(on:)``, as in the guide, or ``didReceiveUnhandledListen(from:on:with:)``, as
/// in Bluejay since version 0.8, or both: then the guide's method decides first whether a listen stays, and values of
/// one that stays without a closure go to the other method. A class that implements neither does not compile. In a
/// class that implements one, the other with a wrong name or type compiles and is not called; the compiler warns of it
/// as for a ``ConnectionObserver``. The associated types are inferred. As a type the protocol is written
/// `any ListenRestorer`.
public protocol ListenRestorer: AnyObject {
    /// `Bool` if the class implements ``willRestoreListen(on:)``.
    associatedtype ListenDecision: ListenRestorerDecision
    /// ``ListenRestoreAction`` if the class implements ``didReceiveUnhandledListen(from:on:with:)``.
    associatedtype UnhandledListenAction: ListenRestorerAction

    /// Called before the connection is restored, for each characteristic with a listen of the earlier run.
    ///
    /// - Returns: `true` after ``Bluejay/restoreListen(to:completion:)`` was called for it; `false` to have the listen
    ///   ended.
    @_disfavoredOverload  // on `any ListenRestorer` it is the method that returns `Bool`
    func willRestoreListen(on characteristic: CharacteristicIdentifier) -> ListenDecision

    /// Called with each value of a restored listen that has no closure, until there is one.
    ///
    /// - Returns: ``ListenRestoreAction/promiseRestoration`` if the application is going to call
    ///   ``Bluejay/listen(to:multipleListenOption:completion:)``; ``ListenRestoreAction/stopListen`` to have the listen
    ///   ended.
    @_disfavoredOverload  // on `any ListenRestorer` it is the method that returns ``ListenRestoreAction``
    func didReceiveUnhandledListen(
        from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
    ) -> UnhandledListenAction
}

/// The decision on a restored listen without a closure.
public enum ListenRestoreAction: Hashable, Swift.Sendable {
    /// The listen stays; its values go to the ``ListenRestorer`` until the application listens.
    case promiseRestoration
    /// The listen is ended.
    case stopListen
}

/// The result of ``ListenRestorer/willRestoreListen(on:)``: `Bool`, or in this library ``NoListenRestorerMethod``.
public protocol ListenRestorerDecision {}

/// The result of ``ListenRestorer/didReceiveUnhandledListen(from:on:with:)``: ``ListenRestoreAction``, or in this library
/// ``NoListenRestorerMethod``.
public protocol ListenRestorerAction {}

/// Stands for a method of ``ListenRestorer`` that a class does not implement.
public struct NoListenRestorerMethod: ListenRestorerDecision, ListenRestorerAction {
    init() {}
}

extension Bool: ListenRestorerDecision {}
extension ListenRestoreAction: ListenRestorerAction {}

extension ListenRestorer where UnhandledListenAction == ListenRestoreAction {
    /// Stands for the method that a class with the other one does not implement. The library does not call it.
    public func willRestoreListen(on characteristic: CharacteristicIdentifier) -> NoListenRestorerMethod {
        NoListenRestorerMethod()
    }
}

extension ListenRestorer where ListenDecision == Bool {
    /// Stands for the method that a class with the other one does not implement. The library does not call it.
    public func didReceiveUnhandledListen(
        from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
    ) -> NoListenRestorerMethod {
        NoListenRestorerMethod()
    }
}

extension ListenRestorer {
    /// Asks a restorer of either spelling whether a listen stays: the call on `any ListenRestorer`, for example of a restorer
    /// that forwards to another one. `true` if it implements only ``didReceiveUnhandledListen(from:on:with:)``.
    ///
    /// - `unused`: Omitted by the caller. With it the method is no default of the requirement.
    public func willRestoreListen(on characteristic: CharacteristicIdentifier, _ unused: Void = ()) -> Bool {
        let decision: ListenDecision = willRestoreListen(on: characteristic)
        return decision as? Bool ?? true
    }

    /// Reports a value to a restorer of either spelling: the call on `any ListenRestorer`. Returns
    /// ``ListenRestoreAction/promiseRestoration`` if it implements only ``willRestoreListen(on:)``.
    ///
    /// - `unused`: Omitted by the caller.
    public func didReceiveUnhandledListen(
        from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?,
        _ unused: Void = ()
    ) -> ListenRestoreAction {
        let action: UnhandledListenAction = didReceiveUnhandledListen(
            from: peripheral, on: characteristic, with: value)
        return action as? ListenRestoreAction ?? .promiseRestoration
    }

    /// Whether values without a closure are reported.
    var receivesUnhandledListens: Bool { UnhandledListenAction.self == ListenRestoreAction.self }
}
