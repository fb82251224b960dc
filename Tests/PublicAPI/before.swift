public struct Meter {
    public let becomesComputed: Int = 1
    public var becomesStored: Int { 1 }
    public var losesItsSetter = 1
    public var getsASetter: Int { 1 }
    public init() {}
    public func isRenamed() {}
    public func takesAnotherType(_ value: Int) {}
    public func hasAnotherNameInside(_ value: Int) {}
    public func getsADefault(first: Int, second: Int) {}
    public func losesADefault(first: Int, second: Int = 5, third: String = "a, (b") {}
    public func hasAnotherDefault(first: Int = 1) {}
    public func getsAParameter(_ first: Int) {}
    public func isOverloaded(_ value: Int) {}
    public func isOverloaded(_ value: String) {}
    public func movesToAnExtension() {}
    public func throwsLater() {}
    public func isAsynchronousLater() {}
    public func returnsAnotherType() -> Int { 1 }
    public func takesEquatable<T: Equatable>(_ value: T) {}
    public func takesAClosure(_ body: @escaping () -> Void) {}
    @discardableResult public func hasAResult() -> Int { 1 }
    public static func belongsToTheType() {}
    public struct Inner {}
}
extension Meter: Hashable {}
public struct LosesAConformance: Sendable {}
public enum Reading {
    case stays, isRemoved
    case takesAnotherValue(Int)
}
public protocol Sensor {
    func stays()
    func hasADefault()
    var value: Int { get }
}
extension Sensor {
    public func hasADefault() {}
}
open class Base {
    public init() {}
    open func isOverridden() {}
}
public class Derived: Base {}
public typealias Level = Int
public struct Box<Content> {}
public let globalValue = 1
public func becomesUnavailable() {}
public func becomesDeprecated() {}
extension Array where Element == Meter {
    public func hasOtherConditions() {}
}
