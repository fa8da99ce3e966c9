# SPDX-License-Identifier: Apache-2.0
"""Rules about types, read from the text of C++ sources: braces, namespaces and definitions."""
import re

TOKEN = re.compile(r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<namespace>\bnamespace\s+(?P<space>[\w:]+)?\s*\{)
  | (?P<type>\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*(?P<name>\w+(?:::\w+)*)
        (?P<special><[^;{}()]*>)?\s*(?:final\s*)?(?::(?!:)[^;{}()=]*(?:\([^)]*\)[^;{}()=]*)*)?\{)
  | (?P<open>\{) | (?P<close>\})""", re.VERBOSE | re.DOTALL | re.MULTILINE)


def definitions(text):
    """Yields (qualified name, whether it lies in an anonymous namespace) of every type that is defined outside functions."""
    scopes = []  # a name, "" for an anonymous namespace, None for anything else
    for token in TOKEN.finditer(text):
        if token["skip"]:
            continue
        if token["close"]:
            if scopes:
                scopes.pop()
        elif token["namespace"]:
            scopes.append(token["space"] or "")
        elif token["type"]:
            if None not in scopes and not token["special"]:
                yield "::".join(filter(None, scopes + [token["name"]])), "" in scopes
            scopes.append(token["name"])
        else:
            scopes.append(None)


def duplicate_types(files):
    """Two types of one qualified name in one program are undefined behaviour that the linker does not report. `files`: pairs of a
    name and a text. Anonymous namespaces keep the types of a source apart, not those of a header."""
    seen = {}
    for name, text in files:
        for qualified, anonymous in definitions(text):
            if anonymous and not name.endswith((".hpp", ".cuh")):
                continue
            if qualified in seen and seen[qualified] != name:
                yield f"{name}: defines {qualified}, which {seen[qualified]} defines too"
            seen.setdefault(qualified, name)


def switches_with_default(text):
    """Yields the line of every switch over an enumeration (its labels are qualified) that has a default: a new enumerator would
    fall into it silently."""
    code = re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', "", text)
    for switch in re.finditer(r"\bswitch\s*\(", code):
        begin = code.find("{", switch.end())
        depth, end = 0, begin
        while end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
            if depth == 0:
                break
        body = code[begin:end]
        if re.search(r"\bcase\s+[A-Za-z]\w*(::\w+)+\s*:", body) and re.search(r"\bdefault\s*:", body):
            yield code.count("\n", 0, switch.start()) + 1


def foreign_members(headers, sources):
    """Yields (source, class) where a source defines members of a class of another file's header. `headers`, `sources`: pairs of a
    name and a text."""
    homes = {}
    for name, text in headers:
        for qualified, _ in definitions(text):
            homes.setdefault(qualified.split("::")[-1], set()).add(name.rsplit(".", 1)[0])
    for name, text in sources:
        own = {qualified.split("::")[-1] for qualified, _ in definitions(text)}
        for match in re.finditer(r"^(?=\S)(?:[\w:<>,&* ]+[ &*])?(\w+)::~?\w+\([^;]*?\)[^;{]*\{", text, re.MULTILINE):
            cls = match[1]
            if cls in homes and cls not in own and name.rsplit(".", 1)[0] not in homes[cls]:
                yield name, cls
                break
