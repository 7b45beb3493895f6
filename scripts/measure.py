"""Prints the size, complexity and typing of our code, measured as the aims in the style guide are stated. Standard library only."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_FUNCTION = 50
COMPLEX_FUNCTION = 10

Function = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case, ast.Assert)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One function of ours."""

    name: str
    lines: int
    complexity: int
    annotated: bool


def main() -> None:
    """Measure the package and print the table."""
    modules = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in modules.items()}
    functions = [measure(node, path) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, Function)]
    if not functions:
        raise SystemExit("no function found below src/")

    sizes = sorted(len(text.splitlines()) for text in modules.values())
    total = sum(sizes)
    largest = max(modules, key=lambda path: len(modules[path].splitlines()))
    long = [each for each in functions if each.lines > LONG_FUNCTION]
    longest = max(functions, key=lambda each: each.lines)
    intricate = [each for each in functions if each.complexity > COMPLEX_FUNCTION]
    worst = max(functions, key=lambda each: each.complexity)
    broad = sum(1 for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and is_broad(node))
    test_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py"))

    rows = [
        ("modules; lines", f"{len(modules)}; {total}"),
        ("module lines: median / p90 / max", f"{statistics.median(sizes):.0f} / {p90(sizes)} / {sizes[-1]} ({largest.name})"),
        ("functions; median lines", f"{len(functions)}; {statistics.median(each.lines for each in functions):.0f}"),
        (f"functions over {LONG_FUNCTION} lines", share(len(long), len(functions))),
        ("longest function", f"{longest.lines} ({longest.name})"),
        ("complexity: mean", f"{statistics.mean(each.complexity for each in functions):.2f}"),
        (f"complexity: over {COMPLEX_FUNCTION}", share(len(intricate), len(functions))),
        ("complexity: worst", f"{worst.complexity} ({worst.name})"),
        ("functions wholly annotated", share(sum(each.annotated for each in functions), len(functions))),
        ("broad excepts; per 1000 lines", f"{broad}; {1000 * broad / total:.2f}"),
        ("tests : code", f"{test_lines / total:.2f} : 1 ({test_lines} lines)"),
    ]
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:<{width}}  {value}")


def measure(function: Function, path: Path) -> Measured:
    """Lines of the body without the docstring; complexity as McCabe counts it, a nested function counted by itself."""
    body = function.body if ast.get_docstring(function, clean=False) is None else function.body[1:]
    return Measured(
        name=f"{path.relative_to(ROOT)}:{function.name}",
        lines=(function.end_lineno or 0) - body[0].lineno + 1 if body else 0,
        complexity=1 + sum(decisions(node) for node in own_nodes(function)),
        annotated=is_annotated(function),
    )


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """All nodes of a function but those of the functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def decisions(node: ast.AST) -> int:
    """How many more ways there are through a function for this node's sake."""
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, BRANCHES))


def is_annotated(function: Function) -> bool:
    """Whether the result and every argument but `self` and `cls` have a type."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *(each for each in (given.vararg, given.kwarg) if each)]
    return function.returns is not None and all(each.annotation or each.arg in ("self", "cls") for each in arguments)


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches everything."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(each is None or (isinstance(each, ast.Name) and each.id in ("Exception", "BaseException")) for each in caught)


def p90(ordered: list[int]) -> int:
    """The value that nine in ten do not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))]


def share(part: int, whole: int) -> str:
    """A count and its percentage."""
    return f"{part} ({100 * part / whole:.1f} %)"


if __name__ == "__main__":
    main()
