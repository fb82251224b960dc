public import BlueCapKit

/// Somebody who takes up listens again that an earlier run of the program has left; called on the callback queue of
/// ``Bluejay``, which holds it weakly.
public protocol ListenRestorer: AnyObject {
    /// A characteristic is still being listened to, and nobody receives the values.
    ///
    /// - Returns: `true` after ``Bluejay/restoreListen(to:completion:)`` was called for it; `false` to have the listen
    ///   ended.
    func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool
}
