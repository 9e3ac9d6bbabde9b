#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""graphql_oracle - random documents, read by lib/wire/graphql (through graphql_say) and by
graphql-core.

usage:  graphql_oracle.py SAY [COUNT [SEED]]

Valid documents of a generator, and the same with bytes changed, removed, repeated or exchanged with
other documents. What the library accepts must be accepted by graphql-core with the same
operations, root fields and values of arguments; what graphql-core accepts and the library does not
must have one of the reasons below. Debian's graphql-core is of an older edition: it has no block
strings, no null and no directives on variables. For it, block strings are replaced by strings with
the value that the specification gives them.
"""
import json
import random
import re
import subprocess
import sys

from graphql import parse
from graphql.language import ast

NAMES = ["a", "b", "query", "mutation", "on", "fragment", "input", "title", "_x9", "node", "true",
         "null", "subscription", "createPullRequest"]
TYPES = ["Int", "String", "ID", "on", "Q"]
rnd = random.Random()


def pick(options):
    return rnd.choice(options)


def blank():
    return pick([" ", " ", ",", "\n", "\t", " # c \" { }\n", ", ,", "\r\n"])


# ---- valid documents ----

def string():
    return '"' + "".join(pick(["a", "Z", " ", "{", "}", "#", ",", "\\n", "\\\"", "\\\\", "\\/",
                               "\\u00e9", "\\u0041", "é", "€", "\\t", "$v", "..."])
                         for _ in range(rnd.randrange(5))) + '"'


BLOCKS = []  # (text, value) of each block string of a document


def block():
    """A word that stands for a block string until the document is whole."""
    pieces = ["a", " ", "  ", "\t", "{", "\"x", "\"\"b", "\\", "\\n", "é", '\\"""', "#"]
    lines = ["".join(rnd.choices(pieces, k=rnd.randrange(7))) for _ in range(1 + rnd.randrange(4))]
    if lines[-1].endswith(("\"", "\\")):
        lines[-1] += "."
    blanks = [len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip(" \t")]
    cut = min(blanks, default=0)
    kept = [lines[0]] + [line[cut:] for line in lines[1:]]
    while kept and not kept[0].strip(" \t"):
        del kept[0]
    while kept and not kept[-1].strip(" \t"):
        del kept[-1]
    BLOCKS.append((pick(["\n", "\r\n", "\r"]).join(lines), "\n".join(kept).replace('\\"""', '"""')))
    return f'"BLOCK{len(BLOCKS) - 1}."'


def fill_blocks(text, form):
    for i, (raw, cooked) in enumerate(BLOCKS):
        text = text.replace(f'"BLOCK{i}."', f'"""{raw}"""' if form == "block" else
                            json.dumps(cooked, ensure_ascii=False))
    return text


def value(depth, names):
    kind = rnd.randrange(9 if depth < 3 else 6)
    if kind == 0 and names:
        return "$" + pick(names)
    if kind <= 1:
        return pick(["0", "-0", "7", "-12", "1.5", "2e3", "-1.0E+2", "0.1e-1"])
    if kind <= 3:
        return string() if rnd.randrange(4) else block()
    if kind == 4:
        return pick(["true", "false"])
    if kind == 5:
        return pick([n for n in NAMES if n not in ("true", "null")])
    if kind == 6:
        return "[" + "".join(value(depth + 1, names) + blank()
                             for _ in range(rnd.randrange(3))) + "]"
    return "{" + "".join(f"{n}:{blank()}{value(depth + 1, names)}{blank()}" for n in
                         rnd.sample(NAMES, rnd.randrange(3))) + "}"


def arguments(names):
    if rnd.randrange(2):
        return ""
    return "(" + blank().join(f"{n}{pick(['', ' '])}: {value(0, names)}" for n in
                              rnd.sample(NAMES, 1 + rnd.randrange(3))) + ")"


def directives(names):
    return "".join(f" @{pick(['skip', 'include', 'skip', 'x'])}{arguments(names)}"
                   for _ in range(rnd.randrange(12) // 10))


def selection(depth, names, fragments):
    kind = rnd.randrange(6)
    if kind == 0 and fragments:
        return "..." + pick(["", " "]) + pick(fragments) + directives(names)
    if kind == 1 and depth < 4:
        on = pick(["", f" on {pick(TYPES)}"])
        return f"...{on}{directives(names)} {selections(depth + 1, names, fragments)}"
    alias = f"{pick(NAMES)} : " if rnd.randrange(4) == 0 else ""
    below = selections(depth + 1, names, fragments) if depth < 4 and rnd.randrange(3) == 0 else ""
    return f"{alias}{pick(NAMES)}{arguments(names)}{directives(names)}{below}"


def selections(depth, names, fragments):
    return "{" + pick(["", " "]) + "".join(selection(depth, names, fragments) + blank()
                                           for _ in range(1 + rnd.randrange(3))) + "}"


def kind_of():
    return pick(TYPES) if rnd.randrange(3) else f"[{pick(TYPES)}{pick(['', '!'])}]{pick(['', '!'])}"


def operation(name, fragments):
    names = rnd.sample(NAMES, rnd.randrange(4))
    defaults = [f"${n}: {kind_of()}" + (f" = {value(1, [])}" if rnd.randrange(3) == 0 else "")
                for n in names]
    defined = "(" + blank().join(defaults) + ")" if names else ""
    if not name and rnd.randrange(2):
        return selections(0, [], fragments)
    return (f"{pick(['query', 'query', 'mutation', 'subscription'])} {name}{defined}"
            f"{directives(names)}{blank()}{selections(0, names, fragments)}")


def document():
    fragments = [n for n in rnd.sample(NAMES, rnd.randrange(4)) if n != "on"]
    parts = [operation("", fragments)] if rnd.randrange(2) else [
        operation(n, fragments) for n in rnd.sample(NAMES, 1 + rnd.randrange(3))]
    for i, name in enumerate(fragments):
        # a fragment spreads later ones; rarely any, which may be a cycle
        below = fragments if rnd.randrange(8) == 0 else fragments[i + 1:]
        parts.append(f"fragment {name} on {pick(TYPES)}{directives([])} "
                     f"{selections(0, NAMES[:4], below)}")
    rnd.shuffle(parts)
    return blank().join(parts)


# ---- and what may go wrong ----

def mutate(text, other):
    data = bytearray(text.encode())
    for _ in range(1 + rnd.randrange(3)):
        i = rnd.randrange(len(data) + 1)
        j = min(len(data), i + 1 + rnd.randrange(6))
        change = rnd.randrange(6)
        if change == 0:
            del data[i:j]
        elif change == 1:
            data[i:i] = bytes([rnd.choice(b"{}()[]:$!@.,\"\\#=-0 1aeu\n\r\0\x0b\x7f\xff&|'")])
        elif change == 2:
            data[i:j] = data[i:j] + data[i:j]
        elif change == 3:
            piece = other.encode()
            k = rnd.randrange(len(piece))
            data[i:j] = piece[k:k + rnd.randrange(20)]
        elif change == 4 and data:
            data[i % len(data)] = rnd.randrange(256)
        else:
            k = rnd.randrange(len(data) + 1)
            data[i:j], data[k:k] = b"", data[i:j]
    return bytes(data)


# ---- graphql-core ----

class Unreadable(Exception):
    pass


def scalar(node, variables, op):
    """As graphql_say prints it: "-", "?" or "=" and the hex of the text."""
    if isinstance(node, ast.Variable):
        name = node.name.value
        defined = [d for d in op.variable_definitions or [] if d.variable.name.value == name]
        if not defined:
            return "?"
        if name in variables:
            got = variables[name]
            if got is None:
                return "-"
            if isinstance(got, (dict, list)):
                return "?"
            text = got if isinstance(got, str) else json.dumps(got)
            return "=" + text.encode().hex()
        default = defined[0].default_value
        return "-" if default is None else scalar(default, variables, op)
    if isinstance(node, (ast.ListValue, ast.ObjectValue)):
        return "?"
    if isinstance(node, ast.BooleanValue):
        return "=" + ("true" if node.value else "false").encode().hex()
    try:
        return "=" + node.value.encode().hex()
    except UnicodeEncodeError:
        return "?"


def is_harmless(node):
    return all(d.name.value in ("skip", "include") for d in node.directives or [])


def collect(selection_set, op, fragments, variables, seen, out):
    """As the specification collects fields, with all that @skip may leave out."""
    for node in selection_set.selections:
        if not is_harmless(node):
            raise Unreadable
        if isinstance(node, ast.Field):
            args = "".join(f" {a.name.value}{scalar(a.value, variables, op)}"
                           for a in node.arguments or [])
            alias = node.alias.value if node.alias else ""
            out.append(f"({alias}:{node.name.value}{args})")
        elif isinstance(node, ast.InlineFragment):
            collect(node.selection_set, op, fragments, variables, seen, out)
        else:
            fragment = fragments.get(node.name.value)
            if fragment is None or fragment.directives:
                raise Unreadable
            if node.name.value not in seen:
                seen.add(node.name.value)
                collect(fragment.selection_set, op, fragments, variables, seen, out)


def spreads(node, out):
    for child in node.selections:
        if isinstance(child, ast.FragmentSpread):
            out.add(child.name.value)
        elif child.selection_set:
            spreads(child.selection_set, out)
    return out


def has_cycle(fragments):
    below = {name: spreads(f.selection_set, set()) for name, f in fragments.items()}
    for name in fragments:
        reached, todo = set(), [name]
        while todo:
            for n in below.get(todo.pop(), ()):
                if n == name:
                    return True
                if n not in reached:
                    reached.add(n)
                    todo.append(n)
    return False


def expected(text, variables):
    """What graphql_say should print; None if graphql-core rejects the document."""
    try:
        tree = parse(text)
    except Exception:  # also its own bugs
        return None
    ops = [d for d in tree.definitions if isinstance(d, ast.OperationDefinition)]
    fragments = {d.name.value: d for d in tree.definitions
                 if isinstance(d, ast.FragmentDefinition)}
    said = ""
    for op in ops:
        roots, name = [], op.name.value if op.name else ""
        try:
            if op.directives or has_cycle(fragments):
                raise Unreadable
            collect(op.selection_set, op, fragments, variables, set(), roots)
            if len(roots) > 64:
                raise Unreadable
            said += f"{op.operation} {name}" + "".join(" " + r for r in roots) + ";"
        except Unreadable:
            said += f"{op.operation} {name} unknown;"
    return said


def why_stricter(text):
    """Why the library may refuse what graphql-core accepts; None if there is no reason."""
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffd]", text):
        return "characters"
    tree = parse(text)
    names = [d.name.value if d.name else "" for d in tree.definitions
             if isinstance(d, ast.OperationDefinition)]
    if not names or len(set(names)) < len(names) or ("" in names and len(names) > 1):
        return "operations"
    fragments = [d.name.value for d in tree.definitions if isinstance(d, ast.FragmentDefinition)]
    if len(set(fragments)) < len(fragments) or len(names) + len(fragments) < len(tree.definitions):
        return "definitions"
    if has_twice(tree):
        return "names twice"
    if re.search(r"[0-9][A-Za-z_.]", text):
        return "a number before a name"
    return None


def why_newer(text):
    """What is newer than graphql-core in a document; None if it should have been refused."""
    if '"""' in text:
        return "block string"
    if re.search(r"[:\[=(\s,]null\b", text):
        try:
            parse(re.sub(r"([:\[=(\s,])null\b", r"\1nil", text))
            return "null"
        except Exception:
            pass
    return "directive of a variable" if re.search(r"\$.*@", text, re.DOTALL) else None


def has_twice(tree):
    found = False

    def look(node):
        nonlocal found
        for slot in getattr(node, "__slots__", ()):
            if slot in ("loc", "_fields"):
                continue
            inner = getattr(node, slot)
            for child in inner if isinstance(inner, list) else [inner]:
                if isinstance(child, ast.Node):
                    look(child)
            if isinstance(inner, list) and slot in ("arguments", "fields", "variable_definitions"):
                names = [(c.variable if slot == "variable_definitions" else c).name.value
                         for c in inner]
                found = found or len(set(names)) < len(names)

    look(tree)
    return found


def main():
    say, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    rnd.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    inputs, before = [], "{a}"
    for _ in range(count):
        BLOCKS.clear()
        text = document()
        variables = {n: pick([1, "x", "é\n", None, True, [1], {"a": 2}, -1.5])
                     for n in rnd.sample(NAMES, 3)}
        inputs.append((fill_blocks(text, "block").encode(), variables,
                       fill_blocks(text, "string")))
        mutated = [mutate(text, before) for _ in range(3)]
        inputs += [(m, variables, m.decode(errors="replace")) for m in mutated]
        before = text
    asked = "".join(f"{data.hex()} {json.dumps(v).encode().hex()}\n" for data, v, _ in inputs)
    said = subprocess.run([say], input=asked.encode(), check=True,
                          capture_output=True).stdout.decode().split("\n")
    sums = {"accepted by both": 0, "refused by both": 0}
    for (data, variables, text), line in zip(inputs, said):
        if "\ufffd" in text:
            assert line == "no", (data, line)
            sums["refused by both"] += 1
            continue
        right = expected(text, variables)
        if line == "no" and right is None:
            sums["refused by both"] += 1
        elif line == "no":
            reason = why_stricter(text)
            assert reason, ("refused only here", text)
            sums["refused here: " + reason] = sums.get("refused here: " + reason, 0) + 1
        elif right is None:
            reason = why_newer(text)
            assert reason, ("accepted only here", text, line)
            sums["newer: " + reason] = sums.get("newer: " + reason, 0) + 1
        else:
            assert line == right, ("differ", text, variables, line, right)
            sums["accepted by both"] += 1
    assert sums["accepted by both"] >= count, sums
    print(len(inputs), "documents:", ", ".join(f"{n} {k}" for k, n in sorted(sums.items())))


main()
