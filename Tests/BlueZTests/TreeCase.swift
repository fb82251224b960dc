import BlueCapDBus
import XCTest

@testable import BlueCapBlueZ

/// A test of a tree. It has the changes that the last message has made.
class TreeCase: XCTestCase {
    let deviceKey = ObjectKey(BlueZMessages.device)
    var tree = ObjectTree()
    private(set) var changes: [Change] = []

    /// Loads the objects into a new tree.
    func load(_ objects: [(ObjectPath, TestInterfaces)]) {
        tree = ObjectTree()
        change { $0.load(BlueZMessages.managedObjects(objects), into: &$1) }
    }

    func apply(_ message: Message) { change { $0.apply(message, into: &$1) } }

    func change(_ body: (inout ObjectTree, inout [Change]) -> Void) {
        changes = []
        body(&tree, &changes)
    }
}
