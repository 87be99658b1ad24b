"""Runs Lua scripts as Argo CD does: Lua 5.1 with few libraries, objects in, JSON out.

Argo CD uses gopher-lua. The rules are those of its `util/lua/lua.go`: scripts have the base,
`package` and `table` libraries and the clock of `os`, so no `string` and no `math`. Nulls of the
input are omitted. An empty table of the output is an empty array, and becomes an object again if
the input had an object there.
"""

from typing import Any, NamedTuple

from lupa.lua51 import LuaError, LuaRuntime, lua_type

Document = dict[str, Any]

SANDBOX = """
local date, time = os.date, os.time
debug.setmetatable("", nil)
os = {date = date, time = time}
package.loaded.os = os
for _, name in ipairs({"string", "math", "io", "debug", "coroutine"}) do
  _G[name], package.loaded[name] = nil, nil
end
"""


class ScriptError(Exception):
    """The script has called Lua's `error`; the text is the message that Argo CD shows to the
    user.
    """


def run(script: str, obj: Document, parameters: dict[str, str] | None = None) -> Any:
    """Runs a Lua script for an object and returns the script's result as a JSON value.

    Args:
        script: the text of the script.
        obj: the Kubernetes object that the script reads as `obj`.
        parameters: the user's input, which the script reads as `actionParams`; None for no input.

    Raises:
        ScriptError: the script has called `error`.
    """
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.execute(SANDBOX)
    variables = lua.globals()
    variables.obj = _table(lua, obj)
    variables.actionParams = _table(lua, parameters or {})
    try:
        return _json(lua.execute(script))
    except LuaError as error:
        raise ScriptError(str(error).partition("\n")[0]) from None


class Version(NamedTuple):
    """A difference between versions of Argo CD, in `cleanReturnedObj` of `util/lua/lua.go`.

    Attributes:
        keeps_emptied: True if an object that a script empties keeps its old content.
    """

    keeps_emptied: bool


V3_1_0 = Version(keeps_emptied=True)
"""Argo CD 3.1.0, 3.0.12, and all earlier versions."""
V3_1_1 = Version(keeps_emptied=False)
"""Argo CD 3.1.1, 3.0.13, and all later versions, with argoproj/argo-cd#24137 or its backport
#24136.
"""


def acted(
    script: str, obj: Document, parameters: dict[str, str] | None = None, version: Version = V3_1_1
) -> Document:
    """Returns the object as it is after an action of Argo CD has run the script. Raises ScriptError
    like `run`.

    `version` is the version of Argo CD, and `parameters` is the user's input. Argo CD sends the
    merge patch from `obj` to this result: `CreateMergePatch` in
    `server/application/application.go`.
    """
    result = run(script, obj, parameters)
    assert isinstance(result, dict)
    cleaned: Document = _cleaned(result, obj, version)
    return cleaned


def _table(lua: LuaRuntime, value: Any) -> Any:
    if isinstance(value, dict):
        items = {key: _table(lua, item) for key, item in value.items() if item is not None}
        return lua.table_from(items)
    if isinstance(value, list):
        return lua.table_from([_table(lua, item) for item in value])
    return value


def _json(value: Any) -> Any:
    if lua_type(value) != "table":
        return value
    keys = list(value.keys())
    if all(isinstance(key, str) for key in keys) and keys:
        return {key: _json(item) for key, item in value.items()}
    assert keys == list(range(1, len(keys) + 1)), "Argo CD refuses mixed and sparse tables"
    return [_json(item) for item in value.values()]


def _cleaned(new: Any, old: Any, version: Version) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _cleaned(value, old.get(key), version) for key, value in new.items()}
    if new == [] and isinstance(old, dict):
        return old if version.keeps_emptied else {}
    if isinstance(new, list) and isinstance(old, list):
        pairs = [*zip(new, old, strict=False)]
        return [*(_cleaned(*pair, version) for pair in pairs), *new[len(pairs) :]]
    return new
