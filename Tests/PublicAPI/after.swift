public struct Meter {
    public var becomesComputed: Int { 1 }
    public let becomesStored: Int = 1
    public private(set) var losesItsSetter = 1
    public var getsASetter = 1
    public init() {}
    public func hasBeenRenamed() {}
    public func takesAnotherType(_ value: Int64) {}
    public func hasAnotherNameInside(_ other: Int) {}
    public func getsADefault(first: Int, second: Int = 3) {}
    public func losesADefault(first: Int, second: Int, third: String = "a, (b") {}
    public func hasAnotherDefault(first: Int = 2) {}
    public func getsAParameter(_ first: Int, second: Int = 1) {}
    public func isOverloaded(_ value: Int) {}
    public func throwsLater() throws {}
    public func isAsynchronousLater() async {}
    public func returnsAnotherType() -> String { "" }
    public func takesEquatable<T: Hashable>(_ value: T) {}
    public func takesAClosure(_ body: @escaping @Sendable () -> Void) {}
    public func hasAResult() -> Int { 1 }
    public func belongsToTheType() {}
    public func isNew() {}
}
extension Meter {
    public func movesToAnExtension() {}
}
extension Meter: Equatable {}
public struct LosesAConformance {}
public enum Reading {
    case stays, isNew
    case takesAnotherValue(String)
}
public enum NewReading { case isNew }
public protocol Sensor {
    associatedtype Unit
    func stays()
    func hasADefault()
    func isNew()
    func isNewAndHasADefault()
    var value: Int { get set }
}
extension Sensor {
    public func isNewAndHasADefault() {}
}
public protocol NewSensor { func isNew() }
public class Base {
    public init() {}
    public func isOverridden() {}
}
public class Derived {}
public typealias Level = UInt
public struct Box<Content: Hashable> {}
public let globalValue = "1"
@available(*, unavailable) public func becomesUnavailable() {}
@available(*, deprecated) public func becomesDeprecated() {}
extension Array where Element: Hashable {
    public func hasOtherConditions() {}
}
