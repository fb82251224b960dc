/// What becomes of a listen when somebody else listens to the same characteristic.
public enum MultipleListenOption: Int, Hashable, Swift.Sendable {
    /// It stays, and the other one fails with ``BluejayError/multipleListenTrapped``.
    case trap
    /// The other one takes its place: it ends with ``BluejayError/multipleListenReplaced``.
    case replaceable
}
