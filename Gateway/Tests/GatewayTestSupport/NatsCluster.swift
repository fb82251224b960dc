internal import Foundation

/// A real cluster of three `nats-server` on 127.0.0.1, with JetStream and MQTT 3.1.1, whose nodes can be killed and
/// restarted. They end with the test.
public final class NatsCluster: @unchecked Sendable {
    private struct Node {
        let name: String
        let mqtt: UInt16
        let monitor: UInt16
        let configuration: String
        var process: ServerProcess?
    }

    public let directory: TemporaryDirectory
    // `@unchecked`: accessed only while the lock is held.
    private let lock = NSLock()
    private var nodes: [Node] = []

    /// Starts a cluster, and waits until it has a leader, which takes about ten seconds.
    public init() async throws {
        directory = try TemporaryDirectory()
        let ports = try Loopback.freePorts(12)
        let routes = ports[0..<3].map { "nats://127.0.0.1:\($0)" }.joined(separator: ", ")
        for index in 0..<3 {
            let name = "n\(index + 1)"
            let (route, client, mqtt, monitor) = (ports[index], ports[3 + index], ports[6 + index], ports[9 + index])
            let text = """
                server_name: \(name)
                listen: 127.0.0.1:\(client)
                http: 127.0.0.1:\(monitor)
                jetstream { store_dir: "\(directory.path(name))" }
                mqtt {
                  listen: 127.0.0.1:\(mqtt)
                  stream_replicas: 3
                  consumer_replicas: 3
                }
                cluster {
                  name: lab
                  listen: 127.0.0.1:\(route)
                  routes: [\(routes)]
                }

                """
            let file = try directory.write("\(name).conf", text)
            nodes.append(Node(name: name, mqtt: mqtt, monitor: monitor, configuration: file))
        }
        for index in 0..<3 { try start(index) }
        try await waitForLeader()
    }

    /// The addresses of the nodes as a transport takes them, in the order of their indices 0…2.
    public var addresses: [String] { copy.map { "mqtt://127.0.0.1:\($0.mqtt)" } }

    private var copy: [Node] {
        lock.lock()
        defer { lock.unlock() }
        return nodes
    }

    /// Ends a node with SIGKILL.
    public func kill(_ index: Int) { copy[index].process?.end() }

    /// Starts a node with its earlier data, if it does not run.
    public func start(_ index: Int) throws {
        lock.lock()
        defer { lock.unlock() }
        if let process = nodes[index].process, process.isRunning { return }
        let log = directory.url.appendingPathComponent("\(nodes[index].name).log")
        nodes[index].process = try ServerProcess("/usr/sbin/nats-server", ["-c", nodes[index].configuration], log: log)
    }

    /// Whether a node's process runs.
    public func isRunning(_ index: Int) -> Bool { copy[index].process?.isRunning ?? false }

    /// The index of the node that leads the cluster, as the running nodes report it, or `nil` if there is none.
    public var leader: Int? {
        struct Answer: Decodable {
            struct Cluster: Decodable { var leader: String? }
            // swift-format-ignore: AlwaysUseLowerCamelCase
            var meta_cluster: Cluster?
        }
        let nodes = copy
        let names = nodes.filter { $0.process?.isRunning ?? false }.map { node in
            Loopback.get("/jsz", port: node.monitor)
                .flatMap { try? JSONDecoder().decode(Answer.self, from: $0) }?.meta_cluster?.leader
        }
        // One that is dead may still be named for some seconds.
        guard let name = names.first ?? nil, names.allSatisfy({ $0 == name }) else { return nil }
        return nodes.firstIndex { $0.name == name && ($0.process?.isRunning ?? false) }
    }

    /// The index of the node that leads a stream, such as `$MQTT_msgs`, in which messages of MQTT are kept.
    public func leader(ofStream stream: String) -> Int? {
        struct Answer: Decodable {
            struct Account: Decodable {
                // swift-format-ignore: AlwaysUseLowerCamelCase
                var stream_detail: [Stream]?
            }
            struct Stream: Decodable {
                struct Cluster: Decodable { var leader: String? }
                var name: String
                var cluster: Cluster?
            }
            // swift-format-ignore: AlwaysUseLowerCamelCase
            var account_details: [Account]?
        }
        let nodes = copy
        for node in nodes where node.process?.isRunning ?? false {
            let answer = Loopback.get("/jsz?accounts=true&streams=true", port: node.monitor)
                .flatMap { try? JSONDecoder().decode(Answer.self, from: $0) }
            let streams = (answer?.account_details ?? []).flatMap { $0.stream_detail ?? [] }
            guard let name = streams.first(where: { $0.name == stream })?.cluster?.leader else { continue }
            return nodes.firstIndex { $0.name == name && ($0.process?.isRunning ?? false) }
        }
        return nil
    }

    /// Waits until the running nodes agree on a leader that runs.
    public func waitForLeader(limit: Duration = .seconds(40)) async throws {
        try await eventually(limit: limit, "a leader of the cluster") {
            if let dead = copy.first(where: { $0.process.map { $0.exitStatus.map { $0 != SIGKILL } ?? false } ?? false }
            ) {
                throw LimitExceeded("\(dead.name) has ended: \(dead.process?.output ?? "")")
            }
            return leader != nil
        }
    }
}
