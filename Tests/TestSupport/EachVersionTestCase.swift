public import BlueZSimulator
public import XCTest

/// Runs each of its tests once for each version of BlueZ, in an instance of its own for each.
///
/// A test that is skipped with one version runs with the others, and then counts as skipped, with the versions in the message.
open class EachVersionTestCase: XCTestCase {
    /// The version that the test is running on.
    public private(set) var bluez = BlueZVersion.default
    private let body: XCTestCaseClosure
    /// The instance that XCTest has made, which makes one for each version and takes their failures.
    private weak var leader: EachVersionTestCase?
    /// Whether the test itself has begun, which it does not if `setUpWithError` skips it.
    private var hasBegun = false
    private var hasFailed = false
    private var skip: XCTSkip?
    /// With which versions the test was skipped, and why; `nil` if it was with none.
    public private(set) var skipSummary: String?

    public required init(name: String, testClosure: @escaping XCTestCaseClosure) {
        body = testClosure
        super.init(name: name) { test in
            guard let test = test as? EachVersionTestCase else { return }
            try test.runBody()
        }
    }

    open var versions: [BlueZVersion] { [.v5_66, .v5_72, .v5_82, .v5_87] }

    private func runBody() throws {
        if leader == nil, let skipSummary { throw XCTSkip(skipSummary) }
        hasBegun = true
        do {
            try body(self)
        } catch let error as XCTSkip {
            skip = error
        }
    }

    override open func invokeTest() {
        guard leader == nil else { return super.invokeTest() }
        var skips: [String] = []
        for version in versions {
            bluez = version
            // The class is put before the name again.
            let test = type(of: self).init(
                name: name.split(separator: ".").last.map(String.init) ?? name, testClosure: body)
            test.leader = self
            test.bluez = version
            test.invokeTest()
            if test.skip != nil || !test.hasBegun && !test.hasFailed {
                skips.append("BlueZ \(version)" + (test.skip?.message.map { ": " + $0 } ?? ""))
            }
        }
        guard !skips.isEmpty else { return }
        skipSummary = "skipped with " + skips.joined(separator: ", ")
        // Only a test that runs can be skipped.
        super.invokeTest()
    }

    override open func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        hasFailed = true
        if let leader {
            return leader.recordFailure(
                withDescription: description, inFile: filePath, atLine: lineNumber, expected: expected)
        }
        super.recordFailure(
            withDescription: "BlueZ \(bluez): " + description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}
