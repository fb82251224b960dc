import Foundation
import GatewayCore
import XCTest

/// The reference pages are made from code and schemas. `WRITE=1` writes them.
final class ReferenceTests: XCTestCase {
    func testThePageOfTheConfigurationIsUpToDate() throws {
        try assertPage("Configuration.md", is: try configurationPage())
    }

    func testThePageOfTheTopicsIsUpToDate() throws { try assertPage("Topics.md", is: try topicsPage()) }

    // MARK: Configuration.md

    private func configurationPage() throws -> String {
        let example = try String(
            contentsOf: gatewayFolder.appending(path: "Documentation/gateway.yaml"), encoding: .utf8)
        var page = """
            # The configuration of the gateway

            The configuration is a file in YAML. All keys have defaults: a gateway beside its broker needs no file. The program reads
            the file when it starts; after a change it must be started again.

            The program reports all faults of a file at once, each with its line, its column, what was found and what is allowed:

            ```
            \(try exampleErrors())
            ```

            Unknown and repeated keys are errors. A file has at most 256 KiB, one document, and no anchors (`&name`), aliases
            (`*name`), tags (`!name`) or texts over several lines; a text that begins with one of these characters is written in
            quotation marks, such as `"*"`. Durations are written `500ms`, `10s`, `5m`, `2h` or `7d`, sizes `512 KiB` or `100 MB`.

            Passwords and tokens are never in the file, but in files of their own: a path, or `credential:NAME` for a credential of
            systemd (`LoadCredential=NAME:/etc/…` in the unit). They are never logged.


            """
        for (title, keys) in sections() {
            page += title.isEmpty ? "## At the top\n\n" : "## `\(title)`\n\n"
            page += "| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n"
            for key in keys {
                let name = title.isEmpty ? key.path : String(key.path.dropFirst(title.count + 1))
                let cells = [key.type, key.defaultText, key.range, key.meaning].map { $0.replacing("|", with: "\\|") }
                page += "| `\(name)` | \(cells.joined(separator: " | ")) |\n"
            }
            page += "\n"
        }
        return page + "## Example\n\n```yaml\n\(example)```\n"
    }

    /// The keys by the mapping that contains them, in their order.
    private func sections() -> [(String, [ConfigurationKey])] {
        var sections: [(String, [ConfigurationKey])] = []
        for key in GatewayConfiguration.keys {
            let title = key.path.split(separator: ".").dropLast().joined(separator: ".")
            if let index = sections.firstIndex(where: { $0.0 == title }) {
                sections[index].1.append(key)
            } else {
                sections.append((title, [key]))
            }
        }
        return sections
    }

    private func exampleErrors() throws -> String {
        let yaml = "broker:\n  keepAlive: 5 years\nradio:\n  throtle:\n    heartbeat: 10s\n"
        do throws(GatewayConfigurationError) {
            _ = try GatewayConfiguration(yaml: yaml, file: "gateway.yaml")
            return ""
        } catch {
            return error.description
        }
    }

    // MARK: Topics.md

    private struct Schema: Decodable {
        var title: String
        var description: String
        var properties: [String: Member]?
        var required: [String]?
        var oneOf: [Variant]?

        struct Variant: Decodable {
            var properties: [String: Member]?
            var required: [String]?
        }

        struct Member: Decodable {
            var type: String?
            var description: String?
            var choices: [String]?

            enum CodingKeys: String, CodingKey {
                case type, description
                case choices = "enum"
            }
        }
    }

    private static let order: [(schema: String, topic: String, retained: Bool, quality: Int)] = [
        ("gateway-state", "PREFIX/GATEWAY/state", true, 1),
        ("advertisement", "PREFIX/GATEWAY/advertisement/DEVICE", false, 0),
        ("reading", "PREFIX/GATEWAY/reading/DEVICE", false, 1),
        ("value", "PREFIX/GATEWAY/value/DEVICE/SERVICE/CHARACTERISTIC", false, 1),
        ("gap", "PREFIX/GATEWAY/gap/DEVICE/SERVICE/CHARACTERISTIC", false, 1),
        ("link", "PREFIX/GATEWAY/link/DEVICE", true, 1),
        ("device", "PREFIX/device/DEVICE", true, 1), ("command", "PREFIX/GATEWAY/command", false, 1),
        ("reply", "PREFIX/GATEWAY/reply", false, 1),
    ]

    private func topicsPage() throws -> String {
        var page = """
            # Topics and payloads of the gateway

            PREFIX is `bluecap` unless the configuration has another one, GATEWAY the gateway's name, DEVICE the address of a
            peripheral in lower-case hexadecimal digits without colons, such as `c0ffee00180d`. SERVICE and CHARACTERISTIC are UUIDs in
            lower case: four digits if that is enough, else eight, else all. Payloads are JSON objects in UTF-8. Their members are in one order,
            and absent if there is no value. Each payload has a [JSON Schema](schema) (draft 2020-12).

            | topic | payload | quality | retained |
            |---|---|---|---|

            """
        for row in Self.order {
            let schema = try schema(row.schema)
            let link = "[\(schema.title)](#\(schema.title.lowercased().replacing(" ", with: "-")))"
            page += "| `\(row.topic)` | \(link) | \(row.quality) | \(row.retained ? "yes" : "no") |\n"
        }
        page += """
            | `PREFIX/claim/DEVICE/GATEWAY` | the claim of a gateway to connect a device | 1 | yes |
            | `homeassistant/COMPONENT/bluecap_DEVICE/OBJECT/config` | [Home Assistant's discovery messages](#home-assistant) | 1 | yes |

            *Stored* messages are kept on disk until the broker has acknowledged them. Their `sequence` counts the messages of a device, so that a
            subscriber recognises what is missing (`dropped`), and what came twice (`repeated`).


            """
        for row in Self.order { page += try section(row.schema) }
        return page + """
            ## Home Assistant

            With `homeAssistant.enabled: true` the gateway publishes discovery messages: a sensor for each reading, and for each device its
            signal strength, whether it is received and, if the gateway connects it, whether it has a link. Only devices with decoded
            readings or a configured link become devices of Home Assistant.

            A device appears once, however many gateways receive it: neither the discovery topic, nor the identifiers, nor the topic of
            the state has the name of a gateway in it. One gateway, the reporter, publishes `PREFIX/device/DEVICE` and the discovery
            messages. Another gateway takes its place by publishing the next `term`, if the reporter is offline, or does not receive
            the device any longer, or if the other gateway has the link, or receives the device by 6 dB better for 10 s.

            An entity is available while the reporter's state is `online` and the device is `present`: a device is present until it was
            not received for `homeAssistant.absentAfter`. A device that no gateway has received for `homeAssistant.removeAfter` is removed: its
            discovery messages and its state are replaced by empty ones.

            Events, such as pressed buttons, are not published to Home Assistant, since a retained message would repeat them. An automation
            can use `PREFIX/+/reading/DEVICE`.

            The discovery messages are checked with the schemas of Home Assistant 2024.3.3, and by a test that runs its MQTT
            integration with a broker.

            """
    }

    private func schema(_ name: String) throws -> Schema {
        let url = gatewayFolder.appending(path: "Documentation/schema/\(name).json")
        return try JSONDecoder().decode(Schema.self, from: try Data(contentsOf: url))
    }

    private func section(_ name: String) throws -> String {
        let schema = try schema(name)
        var page = "## \(schema.title)\n\n\(schema.description) Schema: [\(name).json](schema/\(name).json).\n\n"
        guard let properties = schema.properties else {
            page += "| command | required members |\n|---|---|\n"
            for variant in schema.oneOf ?? [] {
                let command = variant.properties?["command"]
                let words = command?.choices ?? ["write"]
                let members = (variant.required ?? []).map { "`\($0)`" }.joined(separator: ", ")
                page += "| \(words.map { "`\($0)`" }.joined(separator: ", ")) | \(members) |\n"
            }
            page +=
                "\n`replyTo` is allowed in each command: \(schema.oneOf?.first?.properties?["replyTo"]?.description ?? "")\n"
            page += "`peripheral`: \(schema.oneOf?.last?.properties?["peripheral"]?.description ?? "")\n"
            page += "`value`: \(schema.oneOf?.last?.properties?["value"]?.description ?? "")\n\n"
            return page
        }
        page += "| member | type | required | meaning |\n|---|---|---|---|\n"
        let required = Set(schema.required ?? [])
        for (member, value) in properties.sorted(by: { $0.key < $1.key }) {
            let choices = value.choices.map { "one of \($0.map { "`\($0)`" }.joined(separator: ", "))" }
            let meaning = [value.description, choices].compactMap { $0 }.joined(separator: " ")
            let type = value.type ?? (choices == nil ? "true" : "string")
            page += "| `\(member)` | \(type) | \(required.contains(member) ? "yes" : "no") | \(meaning) |\n"
        }
        return page + "\n"
    }
}
