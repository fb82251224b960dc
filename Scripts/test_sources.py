"""What the sources of the tests say about the test classes, for run-tests and explore."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A declaration at the beginning of a line: test classes are not nested.
DECLARATION = re.compile(
    r"^(?:@\w+ )*(?:(?:public|open|final|private|fileprivate|internal) )*(?:class|extension|struct|enum|actor|protocol) (\w+)",
    re.MULTILINE)
DRAWS = re.compile(r"^[^/\n]*\bTestRandom\(self\)", re.MULTILINE)


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
