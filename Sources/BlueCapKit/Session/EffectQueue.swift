/// What was decided under a session's lock and waits to be done on the loop, in the order of the decisions.
struct EffectQueue<Effect> {
    var pending: [Effect] = []
    /// Somebody is about to do what is pending.
    private var isDraining = false

    /// Whether the loop has to be asked to do what is pending; true for one asker only.
    mutating func mustWake() -> Bool {
        guard !pending.isEmpty, !isDraining else { return false }
        isDraining = true
        return true
    }

    /// Takes what is to be done next, all of it; empty when that was all.
    mutating func take(into effects: inout [Effect]) {
        swap(&effects, &pending)
        isDraining = !effects.isEmpty
    }
}
