import BlueCapKit
import Foundation

/// What the code in the documentation of the modules GATT and Profiles assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum ValuesContext {
    enum MyService: ServiceConfigurable {
        static let uuid = "F000AA10-0451-4000-B000-000000000000"
        static let name = "My Service"
        static let tag = "com.example"
    }

    static var characteristic: Characteristic { fatalError() }
    static var floor: UUID { fatalError() }
}
