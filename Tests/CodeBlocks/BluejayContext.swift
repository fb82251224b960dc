import Bluejay
import Dispatch
import Foundation

/// What the code in the documentation of Bluejay assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum BluejayContext {
    static var bluejay: Bluejay { fatalError() }
    static var location: CharacteristicIdentifier { fatalError() }
}
