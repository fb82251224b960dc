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

            Passwords, tokens and keys are never in the file, but in files of their own: a path, or `credential:NAME` for a credential of
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

    /// A schema, as far as the page shows it.
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

        final class Member: Decodable {
            var type: String?
            var description: String?
            var choices: [String]?
            var properties: [String: Member]?
            var required: [String]?
            var items: Member?
            /// The only value: a word, a number or `true`.
            var constant: String?

            enum CodingKeys: String, CodingKey {
                case type, description, properties, required, items
                case choices = "enum"
                case constant = "const"
            }

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                type = try? container.decode(String.self, forKey: .type)  // or a list of types
                description = try container.decodeIfPresent(String.self, forKey: .description)
                choices = try container.decodeIfPresent([String].self, forKey: .choices)
                properties = try container.decodeIfPresent([String: Member].self, forKey: .properties)
                required = try container.decodeIfPresent([String].self, forKey: .required)
                items = try container.decodeIfPresent(Member.self, forKey: .items)
                constant =
                    (try? container.decode(Bool.self, forKey: .constant)).map { "\($0)" }
                    ?? (try? container.decode(Int.self, forKey: .constant)).map { "\($0)" }
                    ?? (try? container.decode(String.self, forKey: .constant)).map { "`\($0)`" }
            }
        }
    }

    private struct Row {
        var schema: String
        var topic: String
        var isRetained = false
        var quality = 1
        var isStored = false
        var note = ""
    }

    private static let rows = [
        Row(schema: "gateway-state", topic: "PREFIX/GATEWAY/state", isRetained: true),
        Row(
            schema: "advertisement", topic: "PREFIX/GATEWAY/advertisement/DEVICE", quality: 0,
            note:
                "Sent at a change of the data, a change of the strength by `radio.throttle.strengthChange`, and at each `heartbeat`."
        ),
        Row(
            schema: "reading", topic: "PREFIX/GATEWAY/reading/DEVICE", isStored: true,
            note:
                "Sent at a change, and at each `radio.throttle.heartbeat`. If a sensor advertises its quantities in turn, this holds for each of these advertisements."
        ),
        Row(schema: "value", topic: "PREFIX/GATEWAY/value/DEVICE/SERVICE/CHARACTERISTIC", isStored: true),
        Row(schema: "gap", topic: "PREFIX/GATEWAY/gap/DEVICE/SERVICE/CHARACTERISTIC", isStored: true),
        Row(schema: "link", topic: "PREFIX/GATEWAY/link/DEVICE", isRetained: true),
        Row(schema: "device", topic: "PREFIX/device/DEVICE", isRetained: true),
        Row(schema: "claim", topic: "PREFIX/claim/DEVICE/GATEWAY", isRetained: true),
        Row(
            schema: "command", topic: "PREFIX/GATEWAY/command",
            note:
                "The gateway subscribes; send with quality 1 and not retained, for a retained command is ignored. `POST /command` of the page takes the same."
        ),
        Row(schema: "reply", topic: "PREFIX/GATEWAY/reply"),
        Row(
            schema: "discovery", topic: "homeassistant/COMPONENT/bluecap_DEVICE/OBJECT/config", isRetained: true,
            note: "`homeassistant` is `homeAssistant.prefix` of the configuration."),
    ]

    private func topicsPage() throws -> String {
        var page = """
            # Topics and payloads of the gateway

            PREFIX is `bluecap` unless the configuration has another one, GATEWAY the gateway's name, DEVICE the address of a
            peripheral in lower-case hexadecimal digits without colons, such as `c0ffee00180d`. SERVICE and CHARACTERISTIC are UUIDs in
            lower case: four digits if that is enough, else eight, else all. Payloads are JSON objects in UTF-8. Their members are in one order,
            and absent if there is no value. Each payload has a [JSON Schema](schema) (draft 2020-12).

            | topic | payload | quality of service | retained | stored |
            |---|---|---|---|---|

            """
        func link(_ title: String) -> String { "[\(title)](#\(title.lowercased().replacing(" ", with: "-")))" }
        for row in Self.rows {
            let flags = [row.isRetained, row.isStored].map { $0 ? "yes" : "no" }.joined(separator: " | ")
            page += "| `\(row.topic)` | \(link(try schema(row.schema).title)) | \(row.quality) | \(flags) |\n"
        }
        page += """

            *Stored* messages are kept on disk until the broker has acknowledged them. Their `sequence` counts the messages of a device, so that a
            subscriber recognises what is missing (`dropped`), and what came twice (`repeated`).


            """
        for row in Self.rows { page += try section(row.schema, note: row.note) }
        page += try section("status", note: "")
        return page + """
            ## Home Assistant

            With `homeAssistant.enabled: true` the gateway publishes discovery messages: a sensor for each reading, also of a
            characteristic whose values are decoded, and for each device its signal strength, whether it is received and, if the gateway
            connects it, whether it has a link. Only devices with decoded readings or a configured link become devices of Home Assistant.

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

    private func section(_ name: String, note: String) throws -> String {
        let schema = try schema(name)
        var page = "## \(schema.title)\n\n\(schema.description) Schema: [\(name).json](schema/\(name).json)."
        page += (note.isEmpty ? "" : " \(note)") + "\n\n```json\n"
        let examples = try SchemaTests.examples(name)
        page += examples.map { $0 + "\n" }.joined() + "```\n\n"
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
        return page + rows(properties, schema.required, "") + "\n"
    }

    /// The rows of members, and of the members inside them.
    private func rows(_ properties: [String: Schema.Member], _ required: [String]?, _ prefix: String) -> String {
        properties.sorted { $0.key < $1.key }.map { member, value in
            let choices = value.choices.map { "One of \($0.map { "`\($0)`" }.joined(separator: ", "))." }
            let meaning = [value.description, choices].compactMap { $0 }.joined(separator: " ")
            XCTAssertFalse(meaning.isEmpty, "\(prefix)\(member) has no description")
            let type = value.type ?? value.constant ?? (choices == nil ? "any of several" : "string")
            let isRequired = required?.contains(member) ?? false
            let row = "| `\(prefix)\(member)` | \(type) | \(isRequired ? "yes" : "no") | \(meaning) |\n"
            let inner = value.items ?? value
            return row
                + rows(inner.properties ?? [:], inner.required, "\(prefix)\(member)\(value.items == nil ? "" : "[]").")
        }.joined()
    }
}
