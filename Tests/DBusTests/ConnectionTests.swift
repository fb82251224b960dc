import TestSupport
import XCTest

/// Connections on the in-process bus; the same tests run on a real daemon in the wire tests.
final class ConnectionTests: XCTestCase {
    func testConnectionsAreGivenNames() throws { try BusBodies(on: .loopback()).connectionsAreGivenNames() }
    func testCallsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder() throws {
        try BusBodies(on: .loopback()).callsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder()
    }
    func testClosingFailsEveryCallOnceAndIsReported() throws {
        try BusBodies(on: .loopback()).closingFailsEveryCallOnceAndIsReported()
    }
    func testTheLossOfTheBusFailsEveryCallOnceAndIsReported() throws {
        try BusBodies(on: .loopback()).theLossOfTheBusFailsEveryCallOnceAndIsReported()
    }
    func testReleasingAConnectionClosesIt() throws { try BusBodies(on: .loopback()).releasingAConnectionClosesIt() }
    func testACallIsAnswered() throws { try BusBodies(on: .loopback()).aCallIsAnswered() }
    func testARefusalHasItsNameAndText() throws { try BusBodies(on: .loopback()).aRefusalHasItsNameAndText() }
    func testACallToNobodyIsRefusedByTheBus() throws { try BusBodies(on: .loopback()).aCallToNobodyIsRefusedByTheBus() }
    func testALateAnswerIsNotTakenForAnother() throws {
        try BusBodies(on: .loopback()).aLateAnswerIsNotTakenForAnother()
    }
    func testAThousandCallsAreAnsweredInOrderAtMostAHundredAtATime() throws {
        try BusBodies(on: .loopback()).aThousandCallsAreAnsweredInOrderAtMostAHundredAtATime()
    }
    func testTheDeathOfTheCalleeIsAnAnswer() throws { try BusBodies(on: .loopback()).theDeathOfTheCalleeIsAnAnswer() }
    func testAnInvocationThatNobodyAnswersAnswersItself() throws {
        try BusBodies(on: .loopback()).anInvocationThatNobodyAnswersAnswersItself()
    }
    func testDescriptorsTravelBothWays() throws { try BusBodies(on: .loopback()).descriptorsTravelBothWays() }
    func testSignalsComeByRule() throws { try BusBodies(on: .loopback()).signalsComeByRule() }
    func testACancelledSubscriptionReceivesNothingMore() throws {
        try BusBodies(on: .loopback()).aCancelledSubscriptionReceivesNothingMore()
    }
    func testARuleWithANameFollowsItsOwner() throws { try BusBodies(on: .loopback()).aRuleWithANameFollowsItsOwner() }
    func testAnswersAndSignalsComeInTheOrderOfTheWire() throws {
        try BusBodies(on: .loopback()).answersAndSignalsComeInTheOrderOfTheWire()
    }
    func testSignalsComeInBatches() throws { try BusBodies(on: .loopback()).signalsComeInBatches() }
    func testNamesHaveOneOwnerAndAQueue() throws { try BusBodies(on: .loopback()).namesHaveOneOwnerAndAQueue() }
    func testANameIsWatchedAcrossTheDeathOfItsOwner() throws {
        try BusBodies(on: .loopback()).aNameIsWatchedAcrossTheDeathOfItsOwner()
    }
    func testASecondWatcherOfANameReceivesItToo() throws {
        try BusBodies(on: .loopback()).aSecondWatcherOfANameReceivesItToo()
    }
}
