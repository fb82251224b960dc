import Foundation
import Yams

/// A key of the configuration, for the reference page.
public struct ConfigurationKey: Hashable, Sendable {
    /// The key with the keys that contain it, such as `radio.throttle.heartbeat` or `peripherals[].name`.
    public var path: String
    /// The kind of value, such as `duration`.
    public var type: String
    /// The value if the key is absent, or what then holds.
    public var defaultText: String
    /// The allowed values.
    public var range: String
    /// What the key means.
    public var meaning: String
}

/// What is collected while a file is read: its faults, and each key that exists.
final class ConfigurationLog {
    let file: String
    private(set) var problems: [GatewayConfigurationError.Problem] = []
    private(set) var keys: [ConfigurationKey] = []
    private var known: Set<String> = []

    init(file: String) { self.file = file }

    func report(_ mark: Mark?, _ path: String, _ reason: String) {
        report(line: mark?.line ?? 1, column: mark?.column ?? 1, path, reason)
    }

    func report(line: Int, column: Int, _ path: String, _ reason: String) {
        problems.append(.init(file: file, line: line, column: column, path: path, reason: reason))
    }

    func declare(_ key: ConfigurationKey) {
        if known.insert(key.path).inserted { keys.append(key) }
    }
}

/// A mapping of the configuration while it is read. Each call of a reading method declares one key: the calls are the
/// table of the keys, from which the reference page and the errors about unknown keys are made.
final class ConfigurationSection {
    private let log: ConfigurationLog
    /// The path for errors, and the path without indices for documents.
    private let path: String
    private let general: String
    private let mapping: Node.Mapping?
    private var declared: [String] = []
    /// Where the mapping begins.
    let mark: Mark?

    init(_ node: Node?, _ log: ConfigurationLog, path: String = "", general: String = "") {
        (self.log, self.path, self.general) = (log, path, general)
        mark = node?.mark
        mapping = node?.mapping
        guard let node, mapping == nil, !ConfigurationText.isNull(node) else { return }
        log.report(
            node.mark, path, "found \(ConfigurationText.found(node, isSensitive: true)); allowed: a mapping of keys."
        )
    }

    /// Whether the key is present and has a value.
    func has(_ name: String) -> Bool { node(name) != nil }

    /// Reports a fault of a key, or of the whole mapping.
    func report(_ name: String? = nil, _ reason: String) {
        let place = name.flatMap { node($0)?.mark } ?? mark
        log.report(place, name.map { join(path, $0) } ?? path, reason)
    }

    /// Reads a value, or returns the default if the key is absent or wrong.
    func value<Value>(
        _ name: String, _ type: ConfigurationType<Value>, default standard: Value, defaultText: String? = nil,
        _ meaning: String
    ) -> Value {
        read(name, type, defaultText ?? type.write(standard), meaning) ?? standard
    }

    /// Reads a value, or returns `nil` if the key is absent or wrong.
    func optional<Value>(
        _ name: String, _ type: ConfigurationType<Value>, defaultText: String = "none", _ meaning: String
    ) -> Value? {
        read(name, type, defaultText, meaning)
    }

    /// Reads a value whose key must be present; `nil` if it is absent or wrong, which has been reported then.
    func required<Value>(_ name: String, _ type: ConfigurationType<Value>, _ meaning: String) -> Value? {
        let value = read(name, type, "required", meaning)
        if mapping != nil, !has(name) { report(nil, "the key \"\(name)\" is missing; allowed: \(type.allowed).") }
        return value
    }

    /// Reads a mapping inside this one; its keys have their defaults if it is absent.
    func section<Result>(_ name: String, _ body: (ConfigurationSection) -> Result) -> Result {
        declared.append(name)
        let section = ConfigurationSection(node(name), log, path: join(path, name), general: join(general, name))
        let result = body(section)
        section.finish()
        return result
    }

    /// Reads a sequence of mappings.
    func list<Element>(_ name: String, limit: Int, _ body: (ConfigurationSection) -> Element?) -> [Element] {
        declared.append(name)
        let (here, inside) = (join(path, name), join(general, name) + "[]")
        guard let node = node(name) else {
            // Reads an element that is absent, which declares its keys and reports nothing.
            _ = body(ConfigurationSection(nil, log, path: here, general: inside))
            return []
        }
        guard let elements = node.sequence, elements.count <= limit else {
            log.report(node.mark, here, "allowed: a list of at most \(limit) mappings.")
            return []
        }
        return elements.enumerated().compactMap { index, element in
            let section = ConfigurationSection(element, log, path: "\(here)[\(index + 1)]", general: inside)
            guard element.mapping != nil else {
                if ConfigurationText.isNull(element) {
                    section.report(nil, "found nothing; allowed: a mapping of keys.")
                }
                return nil
            }
            let result = body(section)
            section.finish()
            return result
        }
    }

    /// Reports the keys that no call has declared.
    func finish() {
        for key in mapping.map({ Array($0.keys) }) ?? [] {
            guard let name = key.scalar?.string else {
                log.report(key.mark, path, "a key must be a word.")
                continue
            }
            guard !declared.contains(name) else { continue }
            let isShown = log.problems.count < GatewayConfigurationError.limit
            let nearest = isShown ? EditedText.nearest(to: name, of: declared) : nil
            let question = nearest.map { " Did you mean \"\($0)\"?" } ?? ""
            log.report(
                key.mark, join(path, String(name.prefix(60))),
                "unknown key.\(question) Allowed here: \(declared.joined(separator: ", ")).")
        }
    }

    private func read<Value>(
        _ name: String, _ type: ConfigurationType<Value>, _ defaultText: String, _ meaning: String
    ) -> Value? {
        declared.append(name)
        log.declare(
            ConfigurationKey(
                path: join(general, name), type: type.name, defaultText: defaultText, range: type.allowed,
                meaning: meaning))
        guard let node = node(name) else { return nil }
        var refusals: [ConfigurationType<Value>.Refusal] = []
        let value = ConfigurationText.isNull(node) ? nil : type.read(node, &refusals)
        if value == nil, refusals.isEmpty { refusals.append(.init(node: node)) }
        for refusal in refusals {
            let found = ConfigurationText.found(refusal.node, isSensitive: type.isSensitive)
            log.report(
                refusal.node.mark, join(path, name),
                refusal.reason ?? "found \(found); allowed: \(type.allowed).")
        }
        return value
    }

    private func node(_ name: String) -> Node? {
        guard let mapping else { return nil }
        return mapping.first { $0.key.scalar?.string == name }?.value
    }

    private func join(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

/// Reads the text of a file into nodes, with limits that hold before and after the parser.
enum ConfigurationParser {
    /// The largest size of a file.
    static let sizeLimit = 256 * 1_024
    /// The deepest nesting.
    static let depthLimit = 16

    /// Returns the root, or `nil` if a fault was reported or the file is empty.
    static func root(of yaml: String, _ log: ConfigurationLog) -> Node? {
        guard yaml.utf8.count <= sizeLimit else {
            log.report(nil, "", "the file has \(yaml.utf8.count) bytes; at most \(sizeLimit) are allowed.")
            return nil
        }
        if let fault = lexicalFault(of: yaml) {
            log.report(line: fault.line, column: fault.column, "", fault.reason)
            return nil
        }
        do {
            let parser = try Parser(yaml: yaml, resolver: .basic, encoding: .utf8)
            // Nodes refer to their anchors weakly: the parser has them.
            return try withExtendedLifetime(parser) {
                guard let root = try parser.singleRoot(), check(root, log) else { return nil }
                return root
            }
        } catch let error as YamlError {
            report(error, log)
        } catch {
            log.report(nil, "", "the file cannot be read as YAML.")
        }
        return nil
    }

    // Yams' own descriptions contain lines of the file, which may have a secret.
    private static func report(_ error: YamlError, _ log: ConfigurationLog) {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let isSecond = problem.contains("another document")
            let reason = isSecond ? "the file has several documents; one is allowed" : problem
            let place = isSecond || context == nil ? "" : " (\(context?.text ?? ""))"
            log.report(mark, "", "no valid YAML: \(reason)\(place).")
        case .duplicatedKeysInMapping(let duplicates, let context):
            let names = duplicates.map { EditedText.quoted($0) }.joined(separator: ", ")
            log.report(context.mark, "", "the same key occurs twice in one mapping: \(names). Remove one.")
        case .reader(let problem, _, _, _): log.report(nil, "", "no valid YAML: \(problem).")
        default: log.report(nil, "", "no valid YAML.")
        }
    }

    private static let anchorReason = """
        anchors (&name) and aliases (*name) are not allowed. Put a text that begins with & or * in quotation marks.
        """

    /// Reports tags and anchors. It does not follow a node that has an anchor, which may occur in many places.
    private static func check(_ node: Node, _ log: ConfigurationLog) -> Bool {
        guard node.anchor == nil else {
            log.report(node.mark, "", anchorReason)
            return false
        }
        let (tag, children): (Tag, [Node]) =
            switch node {
            case .scalar(let scalar): (scalar.tag, [])
            case .sequence(let sequence): (sequence.tag, Array(sequence))
            case .mapping(let mapping): (mapping.tag, mapping.flatMap { [$0.key, $0.value] })
            case .alias(let alias): (alias.tag, [])
            }
        // The parser has resolved the tags of keys.
        guard ["", Tag.Name.str.rawValue, Tag.Name.map.rawValue, Tag.Name.seq.rawValue].contains(tag.rawValue) else {
            log.report(
                node.mark, "", "tags such as !name are not allowed. Put a text that begins with ! in quotation marks.")
            return false
        }
        return children.reduce(true) { check($1, log) && $0 }
    }

    /// Returns the first anchor, alias, text over several lines, or place that is nested too deeply.
    ///
    /// This is found before the parser runs: the parser expands aliases, so that a short file could become a huge tree, and it
    /// calls itself for each level.
    private static func lexicalFault(of yaml: String) -> (line: Int, column: Int, reason: String)? {
        enum State { case start, plain, single, singleEnd, double, escaped, comment }
        let deep = "the file is nested too deeply; at most \(depthLimit) levels are allowed."
        var (line, column, depth, dashes, indentation) = (1, 0, 0, 0, 0)
        var state = State.start
        var (isLineStart, isAfterSpace) = (true, true)
        for scalar in yaml.unicodeScalars {
            column += 1
            if scalar == "\n" {
                switch state {
                case .single, .double, .escaped:
                    return (line, column, "a text in quotation marks must end in the line in which it begins.")
                default: state = .start
                }
                (line, column, dashes, indentation) = (line + 1, 0, 0, 0)
                (isLineStart, isAfterSpace) = (true, true)
                continue
            }
            if isLineStart, scalar == " " { indentation += 1 }
            if indentation > depthLimit * 8 { return (line, column, deep) }
            if state == .singleEnd { state = scalar == "'" ? .start : .plain }
            switch (state, scalar) {
            case (.comment, _): break
            case (.escaped, _): state = .double
            case (.double, "\\"): state = .escaped
            case (.double, "\""): state = .plain
            case (.single, "'"): state = .singleEnd
            case (.double, _), (.single, _): break
            case (_, "#") where isAfterSpace: state = .comment
            case (.start, "\""): state = .double
            case (.start, "'"): state = .single
            case (.start, "&"), (.start, "*"): return (line, column, anchorReason)
            case (.start, "|"), (.start, ">"):
                return (line, column, "texts over several lines (| and >) are not allowed.")
            case (.start, "["), (.start, "{"):
                depth += 1
                if depth > depthLimit { return (line, column, deep) }
            case (_, "]") where depth > 0, (_, "}") where depth > 0: (depth, state) = (depth - 1, .plain)
            case (_, ",") where depth > 0: state = .start
            case (.start, "-"), (.start, "?"):
                dashes += 1
                if dashes > depthLimit { return (line, column, deep) }
            case (.start, " "), (.start, "\t"), (.start, "\r"), (.start, ":"), (.start, "!"): break
            case (_, ":"): state = .start
            default: state = .plain
            }
            isAfterSpace = scalar == " " || scalar == "\t"
            if !isAfterSpace { isLineStart = false }
        }
        return nil
    }
}
