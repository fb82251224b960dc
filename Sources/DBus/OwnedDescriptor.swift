import Futures
import Glibc

/// A file descriptor with one owner, which closes it: when released, unless taken before.
package final class OwnedDescriptor: Sendable {
    private let held: Locked<Int32?>

    /// Takes over an open descriptor.
    package init(owning descriptor: Int32) {
        held = Locked(descriptor)
    }

    deinit {
        close()
    }

    /// The descriptor, which stays this object's; nil after it was closed or taken.
    package var rawValue: Int32? { held.withLock { $0 } }

    /// Hands the descriptor over: closing it is the caller's affair from now on.
    package func take() -> Int32? {
        held.withLock { held in
            defer { held = nil }
            return held
        }
    }

    /// Closes the descriptor now; a second call does nothing.
    package func close() {
        if let descriptor = take() { _ = Glibc.close(descriptor) }
    }
}
