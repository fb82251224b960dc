public import BlueZSimulator
public import XCTest

/// Runs each of its tests once for each version of BlueZ, in an instance of its own for each.
open class EachVersionTestCase: XCTestCase {
    /// The version that the test is running on.
    public private(set) var bluez = BlueZVersion.default
    private let body: XCTestCaseClosure
    /// The instance that XCTest has made, which makes one for each version and takes their failures.
    private weak var leader: EachVersionTestCase?

    public required init(name: String, testClosure: @escaping XCTestCaseClosure) {
        body = testClosure
        super.init(name: name, testClosure: testClosure)
    }

    open var versions: [BlueZVersion] { [.v5_66, .v5_72, .v5_82, .v5_87] }

    override open func invokeTest() {
        guard leader == nil else { return super.invokeTest() }
        for version in versions {
            bluez = version
            let test = type(of: self).init(name: name, testClosure: body)
            test.leader = self
            test.bluez = version
            test.invokeTest()
        }
    }

    override open func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        if let leader {
            return leader.recordFailure(
                withDescription: description, inFile: filePath, atLine: lineNumber, expected: expected)
        }
        super.recordFailure(
            withDescription: "BlueZ \(bluez): " + description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}
