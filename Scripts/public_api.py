"""The public API of a module as lines of text, and the changes of it that can break a caller.

A line is a public symbol or a conformance, written as Swift:

    extension CentralLink.State { case connected }
    extension CentralLink.State : Equatable {}
    protocol PeripheralBehavior { func rssi(of: VirtualPeripheral, at: TimeInterval) -> Int? }

What callers do not depend on is left out or written in one way: names of parameters inside a function, values of default
arguments, whether a property without a setter is stored. Types of other modules of the package have the module's name.
"""

import collections
import difflib
import re

# What the compiler adds to types by itself, and not each version of it.
IMPLIED = re.compile(r"Swift\.(Copyable|Escapable|SendableMetatype|BitwiseCopyable)")
DEFAULT = " = …"


def module_of(identifier: str, own: str) -> str:
    """The prefix that a type's name needs: "Module." for a type of another module than `own` and Swift's."""
    match = re.match(r"s:(\d+)(\w+)", identifier)
    name = match[2][: int(match[1])] if match else own
    return "" if name == own or name.startswith(("Foundation", "Dispatch")) else f"{name}."


def with_defaults_hidden(text: str) -> str:
    """The declaration with " = …" for each default argument."""
    result, place = "", 0
    while (start := text.find(" = ", place)) != -1:
        result += text[place:start] + DEFAULT
        place, depth, quoted = start + 3, 0, False
        while place < len(text):
            character = text[place]
            if quoted:
                place += character == "\\"
                quoted = character != '"'
            elif character == '"':
                quoted = True
            elif character in "([{":
                depth += 1
            elif character in ")]}" and depth > 0:
                depth -= 1
            elif character in ",)" and depth == 0:
                break
            place += 1
    return result + text[place:]


def declaration(symbol: dict, own: str) -> str:
    """The declaration in one line, without what a caller does not depend on."""
    text = ""
    for fragment in symbol["declarationFragments"]:
        if fragment["kind"] == "internalParam":
            text = text.removesuffix(" ")
        elif fragment["kind"] == "typeIdentifier" and not text.endswith("."):
            text += module_of(fragment.get("preciseIdentifier", ""), own) + fragment["spelling"]
        else:
            text += fragment["spelling"]
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\b(convenience|override) ", "", text)
    kind = symbol["kind"]["identifier"]
    if kind.endswith(("property", ".var")):
        text = re.sub(r"^((?:.* )?)let (.*)$", r"\1var \2 { get }", text).replace(" { get set }", "")
    elif kind != "swift.typealias":
        text = with_defaults_hidden(text)
    if symbol["accessLevel"] == "open":
        text = f"open {text}"
    return text


def conditions(constraints: list[dict]) -> str:
    signs = {"conformance": ":", "superclass": ":", "sameType": "=="}
    texts = sorted(
        f"{each['lhs']} {signs[each['kind']]} {each['rhs']}"
        for each in constraints
        if not IMPLIED.fullmatch(f"Swift.{each['rhs']}"))
    return f" where {', '.join(texts)}" if texts else ""


class API:
    """The lines of a module."""

    def __init__(self, module: str, graphs: list[dict]):
        self.lines: set[str] = set()
        # Of `lines`, the requirements that have a default implementation.
        self.with_default: set[str] = set()
        symbols = {each["identifier"]["precise"]: each for graph in graphs for each in graph["symbols"]}
        names = {identifier: ".".join(each["pathComponents"]) for identifier, each in symbols.items()}
        required, implemented = set(), set()
        for relationship in (each for graph in graphs for each in graph["relationships"]):
            source, target = relationship["source"], relationship["target"]
            match relationship["kind"]:
                case "requirementOf" | "optionalRequirementOf":
                    required.add(source)
                case "defaultImplementationOf":
                    # An implementation under conditions is none for the other types.
                    if not symbols.get(source, {}).get("swiftExtension", {}).get("constraints"):
                        implemented.add(target)
                case "conformsTo" | "inheritsFrom":
                    name = relationship.get("targetFallback") or names[target]
                    if source in names and not IMPLIED.fullmatch(name):
                        name = name.removeprefix("Swift.")
                        where = conditions(relationship.get("swiftConstraints", []))
                        self.lines.add(f"extension {names[source]} : {name}{where} {{}}")
        for identifier, symbol in symbols.items():
            if symbol["kind"]["identifier"] == "swift.extension" or "::SYNTHESIZED::" in identifier:
                continue
            line = declaration(symbol, module)
            owner = ".".join(symbol["pathComponents"][:-1])
            if identifier in required:
                line = f"protocol {owner} {{ {line} }}"
            elif owner:
                where = conditions(symbol.get("swiftExtension", {}).get("constraints", []))
                line = f"extension {owner}{where} {{ {line} }}"
            self.lines.add(line)
            if identifier in implemented:
                self.with_default.add(line)


def allows(new: str, old: str) -> bool:
    """Whether a caller of the old line can use the new one: it has default arguments or a setter besides."""
    if new.replace(DEFAULT, "").replace(" { get }", "") != old.replace(DEFAULT, "").replace(" { get }", ""):
        return False
    if " { get }" in new and " { get }" not in old:
        return False

    def places(line: str) -> set[int]:
        parts = line.replace(" { get }", "").split(DEFAULT)
        return {sum(map(len, parts[:count])) for count in range(1, len(parts))}

    return places(old) <= places(new)


def subject(line: str) -> str:
    """What a line declares, without its form: two lines of one subject are one symbol that was changed."""
    match = re.search(r"\b(?:func|var|case|struct|class|enum|protocol|typealias|associatedtype|actor|macro) [^\s(<:]+", line)
    owner = re.match(r"(?:extension|protocol) [^\s{]+ ", line)
    return f"{owner[0] if owner else ''}{match[0] if match else re.sub(r'[^a-z(:,]', '', line)}"


def breakages(old: set[str], new: API) -> list[str]:
    """The changes that can break a caller."""
    added = new.lines - old
    gone = sorted(line for line in old - new.lines if not any(allows(other, line) for other in added))
    known = set(map(subject, old))
    rest = collections.defaultdict(list)
    for line in sorted(added):
        rest[subject(line)].append(line)
    found = []
    for line in gone:
        # Of several overloads, the most similar one.
        others = difflib.get_close_matches(line, rest[subject(line)], n=1, cutoff=0)
        if others:
            rest[subject(line)].remove(others[0])
            found.append(f"{line} has changed to {others[0]}")
        else:
            found.append(f"{line} has been removed")
    for line in sorted(line for lines in rest.values() for line in lines):
        member = re.match(r"(?:protocol|extension) (?:([^\s{]+)\.)?([^\s{.]+) \{ (?:indirect )?(case )?", line)
        if not member:
            continue
        outer, name, is_case = member.groups()
        kind = "enum" if is_case else "protocol"
        # No caller has a type that is new itself.
        if f"{f'extension {outer} ' if outer else ''}{kind} {name}" not in known:
            continue
        if is_case:
            found.append(f"{line} is a new case")
        elif line.startswith("protocol") and line not in new.with_default:
            found.append(f"{line} is a new requirement without a default implementation")
    return found
