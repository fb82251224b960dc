import TestSupport
import XCTest

/// Connections on a real daemon; the same tests run on the in-process bus in DBusTests.
final class DBusConnectionTests: XCTestCase {
    func testConnectionsAreGivenNames() throws { try BusBodies(on: .daemon()).connectionsAreGivenNames() }
    func testCallsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder() throws {
        try BusBodies(on: .daemon()).callsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder()
    }
    func testClosingFailsEveryCallOnceAndIsReported() throws {
        try BusBodies(on: .daemon()).closingFailsEveryCallOnceAndIsReported()
    }
    func testTheLossOfTheBusFailsEveryCallOnceAndIsReported() throws {
        try BusBodies(on: .daemon()).theLossOfTheBusFailsEveryCallOnceAndIsReported()
    }
    func testReleasingAConnectionClosesIt() throws { try BusBodies(on: .daemon()).releasingAConnectionClosesIt() }
    func testACallIsAnswered() throws { try BusBodies(on: .daemon()).aCallIsAnswered() }
    func testARefusalHasItsNameAndText() throws { try BusBodies(on: .daemon()).aRefusalHasItsNameAndText() }
    func testACallToNobodyIsRefusedByTheBus() throws { try BusBodies(on: .daemon()).aCallToNobodyIsRefusedByTheBus() }
    func testALateAnswerIsNotTakenForAnother() throws { try BusBodies(on: .daemon()).aLateAnswerIsNotTakenForAnother() }
    func testAThousandCallsAreAnsweredInOrderAtMostAHundredAtATime() throws {
        try BusBodies(on: .daemon()).aThousandCallsAreAnsweredInOrderAtMostAHundredAtATime()
    }
    func testTheDeathOfTheCalleeIsAnAnswer() throws { try BusBodies(on: .daemon()).theDeathOfTheCalleeIsAnAnswer() }
    func testAnInvocationThatNobodyAnswersAnswersItself() throws {
        try BusBodies(on: .daemon()).anInvocationThatNobodyAnswersAnswersItself()
    }
    func testDescriptorsTravelBothWays() throws { try BusBodies(on: .daemon()).descriptorsTravelBothWays() }
    func testSignalsComeByRule() throws { try BusBodies(on: .daemon()).signalsComeByRule() }
    func testACancelledSubscriptionReceivesNothingMore() throws {
        try BusBodies(on: .daemon()).aCancelledSubscriptionReceivesNothingMore()
    }
    func testARuleWithANameFollowsItsOwner() throws { try BusBodies(on: .daemon()).aRuleWithANameFollowsItsOwner() }
    func testAnswersAndSignalsComeInTheOrderOfTheWire() throws {
        try BusBodies(on: .daemon()).answersAndSignalsComeInTheOrderOfTheWire()
    }
    func testSignalsComeInBatches() throws { try BusBodies(on: .daemon()).signalsComeInBatches() }
    func testNamesHaveOneOwnerAndAQueue() throws { try BusBodies(on: .daemon()).namesHaveOneOwnerAndAQueue() }
    func testANameIsWatchedAcrossTheDeathOfItsOwner() throws {
        try BusBodies(on: .daemon()).aNameIsWatchedAcrossTheDeathOfItsOwner()
    }
    func testASecondWatcherOfANameReceivesItToo() throws {
        try BusBodies(on: .daemon()).aSecondWatcherOfANameReceivesItToo()
    }
}
