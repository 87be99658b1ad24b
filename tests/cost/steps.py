"""Counts the work of the service in steps, so that the result is equal on every machine.

A *step* is about the work of one function call, loop iteration or comparison in Python. `install`
makes Python load the packages `tapp` and `hooks` from rewritten source code, which counts these
steps.

A single operation may also run long in Python's C code. Examples are `+` of two texts, a slice,
`in` with a list, `sorted`, regular expressions and JSON. Such an operation counts as many steps as
the size of its operands and its result requires: one step for `BYTES_A_STEP` characters or
`ITEMS_A_STEP` items.

Python's own hooks (`sys.settrace`, `sys.setprofile`, `sys.monitoring`) cannot replace this. The
hooks do not report how much C code does in one instruction, so a loop with `in` on a list looks
linear.

The steps do not include work of C code that is not proportional to these sizes. Examples are the
hash of a long tuple, and a dictionary whose keys collide (Python's random hash seed prevents that).
For regular expressions, `tests/contract/test_regular_expressions.py` makes sure that the work is
proportional.
"""

import ast
import builtins
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import msgspec
from pydantic import BaseModel

PACKAGES: Final = ("tapp", "hooks")
BYTES_A_STEP: Final = 32
"""Number of characters that C code handles in the time of one step."""
ITEMS_A_STEP: Final = 4
"""Number of list items or dictionary entries that C code handles in the time of one step."""

_TEXTS: Final = {str, bytes, bytearray}
_HASHED: Final = {dict, set, frozenset, type({}.keys()), OrderedDict, Counter, defaultdict}
_ITEMS: Final = {*_HASHED, list, tuple, deque, type({}.values()), type({}.items())}
_CONSTANT: Final = {
    len, isinstance, issubclass, id, getattr, setattr, hasattr, iter, next, callable,
}  # fmt: skip
"""Functions whose work does not depend on the size of their arguments."""
_LAZY: Final = {type, bool, range, zip, map, filter, enumerate, reversed}
"""Classes that create an instance without reading its items."""
_CONSTANT_METHODS: Final = {
    "append", "get", "add", "setdefault", "popitem", "discard", "items", "keys", "values",
    "startswith", "endswith", "move_to_end", "appendleft", "popleft", "__contains__",
}  # fmt: skip
"""Methods of built-in types whose work depends neither on the size of their object nor on their
arguments.
"""


class TooManyStepsError(BaseException):
    """A call of the service took more than `Count.most` steps.

    This is a BaseException, so that no exception handler of the service catches it.
    """


class Count:
    """The number of steps that have been counted since the start of the process.

    Attributes:
        ticks: counts one step per call; an iterator written in C, because it is used most often.
        more: the steps for the sizes of texts, lists and other values.
        most: the value of `more` above which `TooManyStepsError` is raised.
    """

    ticks = count(1)
    more: float = 0
    most: float = float("inf")

    @classmethod
    def total(cls) -> float:
        """Returns the number of all steps so far."""
        return cls.more + next(cls.ticks)


_tick: Final = Count.ticks.__next__


def _add(steps: float) -> None:
    Count.more += steps
    if Count.more > Count.most:
        raise TooManyStepsError


def _size(value: Any) -> float:
    """Returns the number of steps that C code counts for reading or writing a value.

    This is the length of a text or a number of list items, divided by what C code handles in one
    step. The content of the items does not count (`_deep_size` counts it). Returns 0 for numbers
    and other objects.
    """
    kind = type(value)
    if kind in _TEXTS:
        return len(value) / BYTES_A_STEP
    if kind in _ITEMS:
        return len(value) / ITEMS_A_STEP
    return len(bytes(value)) / BYTES_A_STEP if kind is msgspec.Raw else 0


def _deep_size(value: Any) -> float:
    """Returns the number of steps that library code counts for reading a value with its nested
    content.
    """
    found, left = 0.0, [value]
    while left:
        one = left.pop()
        found += 1 + _size(one)
        if isinstance(one, dict):
            left.extend(one.keys())
            left.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            left.extend(one)
        elif isinstance(one, msgspec.Struct):
            left.extend(getattr(one, name) for name in one.__struct_fields__)
    return found


def _sized(value: Any) -> Any:
    """Counts the steps for a value that an operation has created, and returns the value."""
    _add(1 + _size(value))
    return value


def _grown(value: Any) -> None:
    """Counts the steps of `+=`: Python copies a text or tuple each time, but extends a list in
    place.

    `value` is the variable's value after the operation.
    """
    if type(value) in (str, bytes, tuple):
        _add(_size(value))


def _called(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Calls a function and returns its result. Counts the work of a function that is not rewritten.

    A rewritten function counts its own steps.
    """
    result = function(*arguments, **named)
    kind = type(function)
    if kind is FunctionType or kind is MethodType:
        if "_tapp_tick" not in getattr(function, "__globals__", ()):
            _add(sum(map(_deep_size, (*arguments, *named.values()))) + _size(result))
        return result
    _add(1 + _work(function, (*arguments, *named.values()), result))
    return result


def _work(function: Any, arguments: Sequence[Any], result: Any) -> float:
    """Returns the number of steps for the call of a function or class that is written in C or
    belongs to a library.
    """
    if isinstance(function, type):
        if function in _LAZY:
            return 0
        if function.__module__ == "builtins":
            return sum(map(_size, arguments)) + _size(result)
        return sum(map(_deep_size, arguments)) if issubclass(function, BaseModel) else 0
    owner = getattr(function, "__self__", None)
    if owner is builtins:
        return 0 if function in _CONSTANT else sum(map(_size, arguments)) + _size(result)
    kind = type(owner)
    if kind in _TEXTS or kind in _ITEMS:
        name = function.__name__
        is_end = name == "pop" and not (kind is list and arguments)
        if name in _CONSTANT_METHODS or is_end:
            return 0
        own = _size(owner) if kind not in _HASHED else 0
        return own + sum(map(_size, arguments)) + _size(result)
    if isinstance(owner, re.Pattern):
        return sum(map(_size, arguments)) + _size(result)
    return sum(map(_deep_size, arguments)) + _size(result)


def _equal(one: Any, other: Any) -> bool:
    """Returns True if two values are equal; counts steps for the parts that C code compares.

    C code compares up to the first difference.
    """
    _add(1 + _looked_at(one, other)[0])
    return bool(one == other)


def _looked_at(one: Any, other: Any) -> tuple[float, bool]:
    """Returns the number of steps that C code needs to compare two values, and True if they are
    equal.

    C code compares only up to the first difference. Two values of other types than text, lists,
    mappings and structs count as equal.
    """
    if one is other:
        return 0, True
    if type(one) is not type(other):
        return 0, False
    if isinstance(one, str | bytes):
        same = one == other
        return (len(one) / BYTES_A_STEP if same else 0), same
    if isinstance(one, list | tuple | dict) and len(one) != len(other):
        return 0, False
    if isinstance(one, dict):
        pairs = [(value, other.get(key)) for key, value in one.items()]
    elif isinstance(one, list | tuple):
        pairs = list(zip(one, other, strict=True))
    elif isinstance(one, msgspec.Struct):
        pairs = [(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__]
    else:
        return 0, True
    steps = 0.0
    for left, right in pairs:
        more, same = _looked_at(left, right)
        steps += more + 1 / ITEMS_A_STEP
        if not same:
            return steps, False
    return steps, True


def _contains(item: Any, holder: Any) -> bool:
    """Returns True if `item` is in `holder`; counts steps for the items that C code compares."""
    found = item in holder
    if found and type(holder) in (list, tuple):
        _add(1 + (holder.index(item) + 1) / ITEMS_A_STEP)
    else:
        _add(1 if type(holder) in _HASHED else 1 + _size(holder))
    return found


_HELPERS: Final[dict[str, Any]] = {
    "_tapp_tick": _tick,
    "_tapp_sized": _sized,
    "_tapp_grown": _grown,
    "_tapp_called": _called,
    "_tapp_equal": _equal,
    "_tapp_contains": _contains,
}
"""Name in the rewritten code -> the function that counts an operation."""
_LEFT_ALONE: Final = {"super", "locals", "globals", "vars", "dir"}
"""Functions that read the frame of their caller, so their calls are not rewritten."""


def _helper(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f"_tapp_{name}", ast.Load()), list(arguments), [])


class _Rewriting(ast.NodeTransformer):
    """Rewrites a module's syntax tree: replaces each operation that takes steps by a call of its
    helper.

    Type annotations and patterns of `match` stay unchanged.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        node.body.insert(0, ast.Expr(_helper("tick")))
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_TypeAlias(self, node: ast.AST) -> ast.AST:
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        pattern, node.pattern = node.pattern, ast.MatchAs()
        self.generic_visit(node)
        node.pattern = pattern
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_helper("tick")))
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_helper("tick")))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, _helper("tick"))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _LEFT_ALONE:
            return node
        node.args.insert(0, node.func)
        node.func = ast.Name("_tapp_called", ast.Load())
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        left, operator, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(operator, ast.Eq | ast.NotEq):
            found: ast.expr = _helper("equal", left, right)
        elif isinstance(operator, ast.In | ast.NotIn):
            found = _helper("contains", left, right)
        else:
            return node
        is_not = isinstance(operator, ast.NotEq | ast.NotIn)
        return ast.UnaryOp(ast.Not(), found) if is_not else found

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _helper("sized", node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = _helper("sized", self.visit(node.value))
        if isinstance(node.target, ast.Name):
            grown = _helper("grown", ast.Name(node.target.id, ast.Load()))
            return [node, ast.Expr(grown)]  # type: ignore[return-value]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return _helper("sized", node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        is_read_slice = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        return _helper("sized", node) if is_read_slice else node

    def visit_List(self, node: ast.List | ast.Tuple | ast.Set) -> ast.AST:
        return self._display(node, any(isinstance(each, ast.Starred) for each in node.elts))

    visit_Tuple = visit_Set = visit_List  # noqa: N815 - as `ast` has it

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        return self._display(node, None in node.keys)

    def _display(self, node: ast.expr, copies: bool) -> ast.AST:
        self.generic_visit(node)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        return _helper("sized", node) if copies and is_read else node


def rewritten(source: str, name: str = "<rewritten>") -> CodeType:
    """Returns the compiled code of a module whose operations count their steps.

    `source` is the text of the module, and `name` appears in tracebacks.
    """
    tree = ast.parse(source, name)
    return compile(ast.fix_missing_locations(_Rewriting().visit(tree)), name, "exec")


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return rewritten(Path(self.path).read_text(encoding="utf-8"), self.path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_HELPERS)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Makes Python rewrite the packages `tapp` and `hooks` when they are imported.

    Raises RuntimeError if a module of these packages has been imported already.
    """
    if any(name.partition(".")[0] in PACKAGES for name in sys.modules):
        raise RuntimeError("the packages that are counted have been imported already")
    sys.meta_path.insert(0, _Finder())
