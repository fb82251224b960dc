public import BlueZSimulator
public import XCTest

/// Runs each of its tests once for each version of BlueZ that the simulator has, with a stage of its own for each.
open class EachVersionTestCase: XCTestCase {
    /// The version that the test is running on.
    public private(set) var bluez = BlueZVersion.default

    open var versions: [BlueZVersion] { [.v5_66, .v5_72, .v5_82, .v5_87] }

    override open func invokeTest() {
        for version in versions {
            bluez = version
            super.invokeTest()
        }
    }

    override open func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        super.recordFailure(
            withDescription: "BlueZ \(bluez): " + description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}
