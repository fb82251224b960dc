import TestSupport
import XCTest

/// ``BusBodies``; WireTests has a link to this file.
extension BusBodiesTests {
    func testConnectionsAreGivenNames() throws { try bodies().connectionsAreGivenNames() }
    func testCallsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder() throws {
        try bodies().callsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder()
    }
    func testClosingFailsEveryCallOnceAndIsReported() throws {
        try bodies().closingFailsEveryCallOnceAndIsReported()
    }
    func testTheLossOfTheBusFailsEveryCallOnceAndIsReported() throws {
        try bodies().theLossOfTheBusFailsEveryCallOnceAndIsReported()
    }
    func testReleasingAConnectionClosesIt() throws { try bodies().releasingAConnectionClosesIt() }
    func testACallIsAnswered() throws { try bodies().aCallIsAnswered() }
    func testARefusalHasItsNameAndText() throws { try bodies().aRefusalHasItsNameAndText() }
    func testACallToNobodyIsRefusedByTheBus() throws { try bodies().aCallToNobodyIsRefusedByTheBus() }
    func testALateAnswerIsNotTakenForAnother() throws { try bodies().aLateAnswerIsNotTakenForAnother() }
    func testAThousandCallsAreAnsweredInOrderAtMostAHundredAtATime() throws {
        try bodies().aThousandCallsAreAnsweredInOrderAtMostAHundredAtATime()
    }
    func testTheDeathOfTheCalleeIsAnAnswer() throws { try bodies().theDeathOfTheCalleeIsAnAnswer() }
    func testAnInvocationThatNobodyAnswersAnswersItself() throws {
        try bodies().anInvocationThatNobodyAnswersAnswersItself()
    }
    func testDescriptorsTravelBothWays() throws { try bodies().descriptorsTravelBothWays() }
    func testSignalsComeByRule() throws { try bodies().signalsComeByRule() }
    func testACancelledSubscriptionReceivesNothingMore() throws {
        try bodies().aCancelledSubscriptionReceivesNothingMore()
    }
    func testARuleWithANameFollowsItsOwner() throws { try bodies().aRuleWithANameFollowsItsOwner() }
    func testAnswersAndSignalsComeInTheOrderOfTheWire() throws {
        try bodies().answersAndSignalsComeInTheOrderOfTheWire()
    }
    func testSignalsComeInBatches() throws { try bodies().signalsComeInBatches() }
    func testNamesHaveOneOwnerAndAQueue() throws { try bodies().namesHaveOneOwnerAndAQueue() }
    func testANameIsWatchedAcrossTheDeathOfItsOwner() throws {
        try bodies().aNameIsWatchedAcrossTheDeathOfItsOwner()
    }
    func testASecondWatcherOfANameReceivesItToo() throws {
        try bodies().aSecondWatcherOfANameReceivesItToo()
    }
}
