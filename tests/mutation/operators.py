"""What can be broken in a file of Python, one small change at a time.

Left alone is what cannot matter: texts, documentation, logging, types and decorators.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

Change = tuple[ast.AST, ast.AST]
"""What is there, and what is put in its place."""

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OTHER = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TYPES = ("annotation", "returns", "decorator_list")
"""Fields of nodes in which nothing decides anything when the service runs."""
_LOGGERS = ("LOGGER", "logging")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Mutant:
    """One change of one file, in a function, class or module."""

    file: str
    function: str
    tree: ast.Module
    before: ast.AST
    after: ast.AST

    @property
    def line(self) -> int:
        """Where the change begins, for a reader."""
        return int(getattr(self.before, "lineno", 0))

    @property
    def change(self) -> str:
        """What tells it from others in the same function, wherever the lines move."""
        return f"{ast.unparse(self.before)} -> {ast.unparse(self.after)}"

    def applied(self) -> str:
        """The file's text with the change, without comments."""
        _Instead(self.before, self.after).visit(self.tree)
        text = ast.unparse(self.tree)
        _Instead(self.after, self.before).visit(self.tree)
        return text


class _Instead(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def mutants(file: str, text: str) -> list[Mutant]:
    """All changes of a file, in the order of their places."""
    tree, module = ast.parse(text), file.removesuffix(".py").replace("/", ".")
    found = {
        (id(old), ast.unparse(new)): Mutant(file, function, tree, old, new)
        for function, (old, new) in _places(tree, module)
    }
    return list(found.values())


def _places(node: ast.AST, function: str) -> Iterator[tuple[str, Change]]:
    """Every change below a node, with the name of what it stands in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}"
    for change in _changes(node):
        yield function, change
    for name, value in ast.iter_fields(node):
        if name not in _TYPES:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _cannot_matter(child):
                    yield from _places(child, function)


def _cannot_matter(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Expr(ast.Constant()):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            return name in _LOGGERS
        case ast.Subscript(slice=ast.Tuple()) | ast.keyword("strict"):
            return True  # dict[str, int]; zip(strict=True) speaks of lists that never differ
    return False


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield from ((test, ast.Constant(value)) for value in (True, False))
        case ast.comprehension(ifs=tests):
            yield from ((test, ast.Constant(True)) for test in tests)
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield node, ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign() | ast.Expr(ast.Call()):
            yield node, ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield node, ast.Pass()
        case ast.expr():
            yield from ((node, new) for new in _instead(node))


def _instead(node: ast.expr) -> Iterator[ast.expr]:
    """What can stand in an expression's place."""
    match node:
        case ast.Compare(left, operators, others):
            for at, operator in enumerate(operators):
                swapped = [*operators[:at], _SWAPPED[type(operator)](), *operators[at + 1 :]]
                yield ast.Compare(left, swapped, others)
        case ast.BoolOp(ast.And() | ast.Or() as word, values):
            yield ast.BoolOp(ast.Or() if isinstance(word, ast.And) else ast.And(), values)
            for rest in _each_left_out(values):
                yield ast.BoolOp(word, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, _, right) if not (_is_text(left) or _is_text(right)):
            yield from (left, right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as number):
            yield from (
                ast.Constant(new)
                for new in dict.fromkeys((number + 1, number - 1, 0))
                if new != number
            )
        case _:
            yield from _with_less(node)


def _with_less(node: ast.expr) -> Iterator[ast.expr]:
    """What holds several expressions, without one of them; `max` and `any` also as `min`, `all`."""
    match node:
        case ast.Call(ast.Name(name), arguments, keywords) if name in _OTHER:
            yield ast.Call(ast.Name(_OTHER[name]), arguments, keywords)
            for rest in _each_left_out(arguments) if len(arguments) > 1 else ():
                yield ast.Call(ast.Name(name), rest, keywords)
        case ast.List(items, ast.Load()) | ast.Tuple(items, ast.Load()) | ast.Set(items):
            # Items of several kinds are a record: without one of them nothing runs at all.
            for rest in _each_left_out(items) if len({type(item) for item in items}) == 1 else ():
                no_item = isinstance(node, ast.Set) and not rest
                yield ast.Call(ast.Name("set"), [], []) if no_item else type(node)(rest)
        case ast.Dict(keys, values):
            for entries in _each_left_out(list(zip(keys, values, strict=True))):
                yield ast.Dict([key for key, _ in entries], [value for _, value in entries])


def _each_left_out(items: list[Item]) -> Iterator[list[Item]]:
    """The list without its first, its second, ... item."""
    yield from (items[:at] + items[at + 1 :] for at in range(len(items)))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
