"""What the sources of the tests say about the test classes, for run-tests and explore."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A declaration at the beginning of a line: test classes are not nested.
DECLARATION = re.compile(
    r"^(?:@\w+ )*(?:(?:public|open|final|private|fileprivate|internal) )*(?:class|extension|struct|enum|actor|protocol) (\w+)",
    re.MULTILINE)
CLASS = re.compile(r"^(?:\w+ )*class (\w+)\s*:\s*([^{]*)\{", re.MULTILINE)
DRAWS = re.compile(r"^[^/\n]*\bTestRandom\(self\)", re.MULTILINE)


def classes_that_start_programs() -> set[str]:
    """The classes, "Module.Class", whose tests start programs: those of WireTests, and those that are declared so."""
    bases = {}
    for module, text in sources():
        for name, inherited in CLASS.findall(text):
            bases[module, name] = [base.split(".")[-1] for base in re.findall(r"[\w.]+", inherited)]

    def starts(module: str, name: str) -> bool:
        if module == "WireTests" or name == "StartsPrograms":
            return True
        # A base class is in the same module, or in one that supports tests.
        for place in (module, "TestSupport"):
            if (place, name) in bases:
                return any(starts(place, base) for base in bases[place, name] if base != name)
        return False

    return {f"{module}.{name}" for module, name in bases if starts(module, name)}


def random_classes() -> set[str]:
    """The classes, "Module.Class", in which a test obtains random numbers."""
    found = set()
    for module, text in sources():
        declarations = list(DECLARATION.finditer(text))
        for draw in DRAWS.finditer(text):
            name = [declaration[1] for declaration in declarations if declaration.start() < draw.start()][-1]
            found.add(f"{module}.{name}")
    return found


def sources():
    """Each Swift source below Tests, with its module."""
    for path in sorted((ROOT / "Tests").rglob("*.swift")):
        yield path.relative_to(ROOT / "Tests").parts[0], path.read_text()
