import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// With three nodes of a real `nats-server` cluster; about thirty seconds, a minute if the election of leaders is slow.
final class ClusterTests: XCTestCase {
    func testLosesNothingAcknowledgedWhenTheLeadingNodeIsKilled() async throws {
        let cluster = try await NatsCluster()
        let addresses = cluster.addresses
        // The streams of MQTT are made with the first connection.
        let first = try await Subscriber([addresses[0]], ["bluecap/none"], identifier: "first")
        await first.stop()
        try await eventually(limit: .seconds(20), "a leader of the messages") {
            cluster.leader(ofStream: "$MQTT_msgs") != nil
        }
        let leader = try XCTUnwrap(cluster.leader(ofStream: "$MQTT_msgs"))
        let others = (0..<3).filter { $0 != leader }.map { addresses[$0] }
        let subscriber = try await Subscriber(others, ["bluecap/g/value"])
        var options = MosquittoOptions(
            addresses: try ([addresses[leader]] + others).map(BrokerAddress.init), clientIdentifier: "gateway")
        options.will = message("bluecap/g/state", "offline", retained: true)
        let client = try Client(options)
        try await client.connected()
        XCTAssertEqual(client.transport.statistics.address, options.addresses[0])
        for token in 1...1_500 {
            await client.submit(message("bluecap/g/value", "\(token)"), token: UInt64(token))
            if token == 500 {
                try await eventually(limit: .seconds(20), "an acknowledgement") {
                    await client.acknowledged.count > 100
                }
                cluster.kill(leader)
            }
        }
        try await eventually(limit: .seconds(90), "all acknowledgements") { await client.acknowledged.count == 1_500 }
        try await eventually(limit: .seconds(30), "all messages") {
            await firstOccurrences(subscriber.messages).count == 1_500
        }
        XCTAssertNotNil(cluster.leader)
        XCTAssertFalse(cluster.isRunning(leader))
        // The node that was dead takes part again.
        try cluster.start(leader)
        try await cluster.waitForLeader()
        await client.stop()
        let received = await subscriber.messages
        await subscriber.stop()
        // The cluster may deliver a message later that was on its way to the subscriber when the node died.
        let numbers = firstOccurrences(received).compactMap(Int.init)
        XCTAssertEqual(numbers.sorted(), Array(1...1_500))
        let acknowledged = await client.acknowledged
        XCTAssertEqual(Set(acknowledged.values), [1])
        let connections = await client.connections
        XCTAssertGreaterThanOrEqual(connections, 2)
    }

    func testTheWillOfAKilledProcessReachesAnotherNodeAndIsRetained() async throws {
        let cluster = try await NatsCluster()
        let subscriber = try await Subscriber([cluster.addresses[1]], ["bluecap/helper/state"])
        let helper = try ServerProcess(
            ProcessInfo.processInfo.arguments[0], ["GatewayBrokerTests.HelperProcess/testHoldsAConnection"],
            environment: ["BLUECAP_HELPER_BROKER": cluster.addresses[0]],
            log: cluster.directory.url.appendingPathComponent("helper.log"))
        _ = try await subscriber.messages(atLeast: 1, limit: .seconds(30))
        helper.signal(SIGKILL)
        let messages = try await subscriber.messages(atLeast: 2, limit: .seconds(10))
        XCTAssertEqual(messages.map(\.text), ["online", "offline"])
        let later = try await Subscriber([cluster.addresses[2]], ["bluecap/+/state"])
        let retained = try await later.messages(atLeast: 1)
        XCTAssertEqual(retained, [message("bluecap/helper/state", "offline", retained: true)])
        await later.stop()
        await subscriber.stop()
    }
}
