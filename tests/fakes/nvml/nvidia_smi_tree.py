"""The output of `nvidia-smi -q` as a tree, without the meaning of its lines."""
import re
from dataclasses import dataclass, field

# What stands in place of a value that is not there, and the errors that nvidia-smi puts into words.
ABSENT = ("n/a", "[n/a]", "", "requested functionality has been deprecated", "not supported", "[not supported]")
ERRORS = {"unknown error": "unknown", "[unknown error]": "unknown", "insufficient permissions": "no_permission",
          "[insufficient permissions]": "no_permission", "gpu is lost": "gpu_is_lost", "[gpu is lost]": "gpu_is_lost",
          "gpu requires reset": "reset_required", "[gpu requires reset]": "reset_required"}


@dataclass
class Node:
    key: str
    value: str = ""
    indent: int = -1
    children: list["Node"] = field(default_factory=list)

    def all(self, key: str) -> list["Node"]:
        return [child for child in self.children if child.key.lower() == key.lower()]

    def at(self, *path: str) -> "Node":
        """The first node of this path, or an empty one."""
        node = self
        for key in path:
            node = next(iter(node.all(key)), Node(key))
        return node

    def deep(self, *keys: str) -> "Node":
        """The first descendant that has one of these keys and a value, the keys in order of preference."""
        for key in keys:
            for child in self.children:
                found = child if child.key.lower() == key.lower() else child.deep(key)
                if found.read() is not None:
                    return found
        return Node(keys[0])

    def read(self) -> str | dict[str, str] | None:
        """The value; an error's name where one is printed; None where there is none."""
        text = self.value.strip()
        if text.lower() in ERRORS:
            return {"error": ERRORS[text.lower()]}
        return None if text.lower() in ABSENT else text

    def word(self) -> str | dict[str, str] | None:
        """As the scenario's words: `Exclusive_Process` -> exclusive_process."""
        value = self.read()
        return value.lower().replace(" ", "_") if isinstance(value, str) else value


def parse(text: str) -> Node:
    root = Node("")
    stack = [root]
    for line in text.expandtabs(8).splitlines():
        matched = re.match(r"( *)(.*?)(?:\s*:(?:\s+(.*))?)?$", line)
        if not line.strip() or line.startswith(("#", "=")) or matched is None:
            continue
        indent, key, value = len(matched[1]), matched[2].strip(), (matched[3] or "").strip()
        if indent == 0 and re.match(r"GPU [0-9A-Fa-f]+:", line):
            key, value = "GPU", line[4:].strip()
        while stack[-1].indent >= indent:
            stack.pop()
        node = Node(key, value, indent)
        stack[-1].children.append(node)
        stack.append(node)
    return root


def section(capture: str, title: str) -> str | None:
    """The text below the heading that begins with TITLE; None where there is none."""
    lines = capture.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# " + title):
            body = next((j for j in range(i, len(lines)) if lines[j].startswith("####")), i) + 1
            end = next((j for j in range(body, len(lines)) if lines[j].startswith("####")), len(lines))
            return "\n".join(lines[body:end])
    return None
