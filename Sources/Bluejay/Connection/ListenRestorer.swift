public import BlueCapKit
public import Foundation

/// The object that takes up listens again that an earlier run of the program has left; it is called on the callback queue
/// of ``Bluejay``, which holds it weakly.
///
/// ## Two spellings
/// A class implements ``willRestoreListen(on:)``, as in the guide, or
/// ``didReceiveUnhandledListen(from:on:with:)``, as in Bluejay since version 0.8, or both. A class that implements neither,
/// or one of them with other types, does not compile. The associated types are inferred. As a type the protocol is written
/// `any ListenRestorer`.
///
/// If a class implements both, the guide's method decides first whether a listen stays; values of one that stays without
/// a closure go to the other method.
public protocol ListenRestorer: AnyObject {
    /// `Bool` if the class implements ``willRestoreListen(on:)``.
    associatedtype ListenDecision: ListenRestorerDecision
    /// ``ListenRestoreAction`` if the class implements ``didReceiveUnhandledListen(from:on:with:)``.
    associatedtype UnhandledListenAction: ListenRestorerAction

    /// Called before the connection is restored, for each characteristic that is still listened to. The guide's spelling.
    ///
    /// - Parameter characteristic: The characteristic, which has no closure that receives its values.
    /// - Returns: `true` after ``Bluejay/restoreListen(to:completion:)`` was called for it; `false` to have the listen
    ///   ended.
    func willRestoreListen(on characteristic: CharacteristicIdentifier) -> ListenDecision

    /// Called with each value of a restored listen that has no closure, until there is one. The spelling since version
    /// 0.8.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral that has sent the value.
    ///   - characteristic: The characteristic.
    ///   - value: The value.
    /// - Returns: ``ListenRestoreAction/promiseRestoration`` if the application is going to call
    ///   ``Bluejay/listen(to:multipleListenOption:completion:)``; ``ListenRestoreAction/stopListen`` to have the listen
    ///   ended.
    func didReceiveUnhandledListen(
        from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
    ) -> UnhandledListenAction
}

/// What becomes of a restored listen that has no closure.
public enum ListenRestoreAction: Hashable, Swift.Sendable {
    /// The listen stays; its values go to the ``ListenRestorer`` until the application listens.
    case promiseRestoration
    /// The listen is ended.
    case stopListen
}

/// What ``ListenRestorer/willRestoreListen(on:)`` returns: `Bool`, and of this library alone ``NoListenRestorerMethod``.
public protocol ListenRestorerDecision {}

/// What ``ListenRestorer/didReceiveUnhandledListen(from:on:with:)`` returns: ``ListenRestoreAction``, and of this library
/// alone ``NoListenRestorerMethod``.
public protocol ListenRestorerAction {}

/// Stands for a method of ``ListenRestorer`` that a class does not implement.
public struct NoListenRestorerMethod: ListenRestorerDecision, ListenRestorerAction {
    init() {}
}

extension Bool: ListenRestorerDecision {}
extension ListenRestoreAction: ListenRestorerAction {}

extension ListenRestorer where UnhandledListenAction == ListenRestoreAction {
    public func willRestoreListen(on characteristic: CharacteristicIdentifier) -> NoListenRestorerMethod {
        NoListenRestorerMethod()
    }
}

extension ListenRestorer where ListenDecision == Bool {
    public func didReceiveUnhandledListen(
        from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
    ) -> NoListenRestorerMethod {
        NoListenRestorerMethod()
    }
}

extension ListenRestorer {
    /// Whether a listen stays.
    func keeps(_ characteristic: CharacteristicIdentifier) -> Bool {
        willRestoreListen(on: characteristic) as? Bool ?? true
    }

    /// Whether values without a closure are reported.
    var receivesUnhandledListens: Bool { UnhandledListenAction.self == ListenRestoreAction.self }

    /// What becomes of a listen that has brought a value.
    func action(
        for value: Data, on characteristic: CharacteristicIdentifier, from peripheral: PeripheralIdentifier
    ) -> ListenRestoreAction {
        didReceiveUnhandledListen(from: peripheral, on: characteristic, with: value) as? ListenRestoreAction
            ?? .promiseRestoration
    }
}
