"""How a canary ends: its template becomes that of all, or its instances go back.

A copy that `set image --canary` made is noted in an annotation of the TApp, with the template that
it is a copy of: who ends the canary need not know either, and the copy leaves the pool with it. A
template that its author put into the pool stays there.
"""

import json
from dataclasses import dataclass

from kubectl_tapp.base.arguments import template_users
from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.edit.edits import body_of, drop, entries, place_of, put, spec_of
from tapp.spec.model import TAppSpec
from tapp.words.ranges import some
from tapp.words.vocabulary import CANARIES


@dataclass(frozen=True)
class Canary:
    """A template that some instances try.

    Attributes:
        name: its name.
        base: the template that it is tried instead of.
        ids: the instances that run it, ascending.
        copy: whether it was made for this alone.
    """

    name: str
    base: str
    ids: list[int]
    copy: bool


def with_note(tapp: Document, name: str, base: str) -> Document:
    """The TApp with the note that a template is a copy of another one, for a canary."""
    return _with_notes(tapp, notes_of(tapp) | {name: base})


def notes_of(tapp: Document) -> dict[str, str]:
    """Copies made for canaries: name -> the template that was copied; nonsense is none."""
    text = (tapp["metadata"].get("annotations") or {}).get(CANARIES)
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    items = found.items() if isinstance(found, dict) else ()
    pool = spec_of(tapp).template_pool
    return {name: base for name, base in items if isinstance(base, str) and name in pool}


def _with_notes(tapp: Document, notes: dict[str, str]) -> Document:
    path = ("metadata", "annotations", CANARIES)
    return put(tapp, path, json.dumps(notes, sort_keys=True)) if notes else drop(tapp, path)


def find(tapp: Document, template: str | None = None, base: str | None = None) -> Canary:
    """The canary that is meant.

    Args:
        tapp: the TApp.
        template: its name; None for the only one.
        base: the template that it is tried instead of; None for the one that it is a copy of, or
            else the one that all others run.

    Raises:
        CommandError: there is none, or several may be meant.
    """
    spec, notes = spec_of(tapp), notes_of(tapp)
    users = template_users(spec)
    name = template if template is not None else _only(tapp, spec, users, notes)
    body_of(spec, name)
    given = base if base is not None else notes.get(name)
    instead = given if given is not None else _others(spec, users, name)
    body_of(spec, instead)
    if instead == name:
        raise UsageError(f"template {name!r} is no canary: it is that of all others")
    if name == spec.default_name:
        raise UsageError(f"template {name!r} is no canary: it is the default one")
    return Canary(name, instead, users.get(name, []), name in notes)


def _only(
    tapp: Document, spec: TAppSpec, users: dict[str, list[int]], notes: dict[str, str]
) -> str:
    """The only canary: of copies one that is run, else any copy, else any other that is run."""
    usual = (spec.default_name, spec.rolling_name)
    others = [name for name in users if name not in usual and spec.find_template(name)]
    found = [name for name in notes if name in users] or [*notes] or others
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"{tapp['metadata']['name']} has no canary: nobody runs another template"
        raise UsageError(f"{message} than {spec.default_name!r}")
    those = ", ".join(f"{name!r} ({some(users.get(name, [])) or 'nobody'})" for name in found)
    raise UsageError(f"there are several: {those}; say which with --template")


def _others(spec: TAppSpec, users: dict[str, list[int]], name: str) -> str:
    """The template that all others run."""
    found = [each for each in users if each != name and spec.find_template(each)]
    if len(found) > 1:
        those = ", ".join(f"{each!r} ({some(users[each])})" for each in found)
        message = f"the other instances run {those}: say with --base which one {name!r} is for"
        raise UsageError(message)
    return found[0] if found else spec.default_name


def promoted(tapp: Document, canary: Canary) -> Document:
    """The base with the canary's content, which the canary's instances run already."""
    spec = spec_of(tapp)
    body = body_of(spec, canary.name)
    return aborted(put(tapp, place_of(spec, canary.base), body), canary)


def aborted(tapp: Document, canary: Canary) -> Document:
    """The canary's instances with the base; a copy that nobody can need any more goes."""
    spec = spec_of(tapp)
    entry = None if canary.base == spec.default_name else canary.base
    named: Document = (tapp.get("spec") or {}).get("templates") or {}
    mine = [key for key, template in named.items() if template == canary.name]
    tapp = entries(tapp, "templates", dict.fromkeys(mine, entry))
    if not canary.copy:
        return tapp
    if canary.name != spec.rolling_name:
        tapp = drop(tapp, ("spec", "templatePool", canary.name))
    rest = {name: base for name, base in notes_of(tapp).items() if name != canary.name}
    return _with_notes(tapp, rest)
