/// How a program can show a passkey to its user, and ask the user for one. Both sides' abilities decide how a pairing
/// proceeds (Bluetooth Core Specification 5.4, volume 3, part H, 2.3.5.1).
public enum InputOutputCapability: String, Hashable, Sendable, CaseIterable {
    /// It can show a passkey.
    case displayOnly
    /// It can show a number, and ask whether it equals the one that the other side shows.
    case displayYesNo
    /// It can ask for a passkey.
    case keyboardOnly
    /// It can do neither: every pairing is one without protection against a device in the middle.
    case noInputNoOutput
    /// It can show a passkey, and ask for one.
    case keyboardDisplay
}

/// What a manager replies when a pairing needs an answer.
///
/// Policies are those of a process: BlueZ has one pairing agent for each program, and the agent has one capability. If
/// managers of one process have several policies, the agent has the capability that covers all of them.
///
/// With any policy but ``reject``, BlueZ makes every adapter of the machine pairable while the manager exists, unless
/// another program has done so already. Pairings that this process has not requested are rejected nevertheless.
public struct PairingPolicy: Hashable, Sendable {
    /// Registers no agent: this manager neither pairs nor answers. This is the policy of a new manager.
    ///
    /// If another program of the machine has registered an agent, such as a desktop's, BlueZ asks that one, and a
    /// peripheral can become paired: see ``Peripheral/whenPairingChanges()``.
    public static let reject = PairingPolicy(.noInputNoOutput, answers: .rejects)
    /// Accepts pairings that need no user, for pairings of this application. They protect against listeners that come
    /// later, and not against a device in the middle.
    public static let justWorks = PairingPolicy(.noInputNoOutput, answers: .acceptsJustWorks)
    /// Asks the application, whose user can read and enter a passkey.
    public static let ask = PairingPolicy.ask(.keyboardDisplay)

    /// Asks the application, in a stream of requests: about each pairing that it has not requested itself, and for the numbers
    /// and passkeys of all. Without a handler of that stream requests are rejected.
    public static func ask(_ capability: InputOutputCapability) -> PairingPolicy {
        PairingPolicy(capability, answers: .asks)
    }

    enum Answers: Hashable, Sendable { case rejects, acceptsJustWorks, asks }

    let answers: Answers
    /// What this program can show its user, and ask its user for.
    public var capability: InputOutputCapability
    /// Whether an operation on a protected value pairs, and is then repeated. Otherwise it fails with
    /// ``CharacteristicError/pairingRequired(_:_:)``. ``reject`` never pairs.
    public var pairsOnDemand: Bool
    /// Whether pairings that the other device begins are accepted, or passed to the application. `nil`, the initial value:
    /// a peripheral manager does so, because centrals begin all of its pairings, and a central manager does not.
    public var acceptsIncoming: Bool?
    /// The time that the application has to answer a request, from 1 to 29 seconds; 25 by default. The Security Manager
    /// Protocol ends the link after 30 (Bluetooth Core Specification 5.4, volume 3, part H, 3.4).
    public var answerTimeout: Duration {
        get { timeout }
        set { timeout = min(.seconds(29), max(.seconds(1), newValue)) }
    }
    private var timeout = Duration.seconds(25)
    /// Whether the process's agent becomes the default agent of the machine: BlueZ then asks it about every pairing that
    /// no other program has requested. Pairings that are not of this process are rejected, for all programs.
    public var isDefaultAgent = false

    private init(_ capability: InputOutputCapability, answers: Answers) {
        self.capability = capability
        self.answers = answers
        pairsOnDemand = answers != .rejects
    }

    /// Returns the same policy with ``isDefaultAgent``. A ``reject`` with it refuses every pairing of the machine that
    /// no other program has requested.
    public func asDefaultAgent() -> PairingPolicy {
        var policy = self
        policy.isDefaultAgent = true
        return policy
    }

    /// Whether an agent has to be registered.
    var needsAgent: Bool { answers != .rejects || isDefaultAgent }
}
