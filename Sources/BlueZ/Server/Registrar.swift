import DBus

/// The two calls by which something of ours comes into `bluetoothd` and leaves it: they differ by their names only.
///
/// On the client's loop; its completions too, each exactly once.
struct Registrar: Sendable {
    /// A day: users have time-outs of their own, the machines call again after ``RegistrationAttempts/patience``, and a later
    /// answer is still needed to unregister what BlueZ has registered. If the daemon ends before it answers, the bus reports
    /// an error at once.
    private static let registerTimeout = 86_400.0
    static let endTimeout = 5.0

    let client: BlueZClient
    let adapter: ObjectKey
    /// The interface of the adapter that takes it.
    let manager: String
    /// What the methods' names end with: `RegisterApplication`, `UnregisterApplication`.
    let noun: String

    func register(_ path: ObjectPath, completion: @escaping @Sendable (BlueZError?) -> Void) {
        client.daemon.call(
            adapter, interface: manager, member: "Register" + noun, timeout: Self.registerTimeout,
            body: {
                $0.objectPath(path)
                $0.dictionary(key: "s", value: "v") { _ in }
            },
            completion: { completion($0.failure) })
    }

    func unregister(
        _ path: ObjectPath, timeout: Double = Self.endTimeout,
        completion: @escaping @Sendable (BlueZError?) -> Void = { _ in }
    ) {
        client.daemon.call(
            adapter, interface: manager, member: "Unregister" + noun, timeout: timeout,
            body: { $0.objectPath(path) }, completion: { completion($0.failure) })
    }
}
