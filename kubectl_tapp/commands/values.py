"""`kubectl tapp values`: shows the values of each instance, and where its template uses them."""

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Format
from kubectl_tapp.edit.edits import spec_of
from kubectl_tapp.show.columns import plain_table
from tapp.declared.lookup import Templates, resolve_templates
from tapp.declared.placeholders import VALUES
from tapp.declared.templates import Template
from tapp.words.groups import grouped
from tapp.words.ranges import id_list


def values(session: Session, name: str, output: Format | None) -> None:
    """Prints one row for each key and value, with all instances that have this value.

    `output` is the format of a document to print instead of the table; None prints the table.
    """
    tapp = session.cluster.observe(name).tapp
    meta = tapp["metadata"]
    rows = _rows(resolve_templates(spec_of(tapp), meta["name"], meta["namespace"]))
    if output is not None:
        session.say(formatted(rows, output))
    elif rows:
        _table(session, rows)
    else:
        session.say(f"{name} has no values, and its templates use none.")


def _rows(templates: Templates) -> list[Document]:
    spec, found = templates.spec, list[Document]()
    for id in range(spec.replicas):
        template = templates.named(spec.template_name(id))
        where = template.slots.where if isinstance(template, Template) else {}
        own = spec.values.get(str(id), {})
        read = [each.removeprefix(VALUES) for each in where if each.startswith(VALUES)]
        for key in sorted({*read, *own}):
            found.append(
                {
                    "instance": id,
                    "key": key,
                    "value": own.get(key, spec.default_values.get(key)),
                    "default": key not in own,
                    "usedAt": where.get(VALUES + key),
                }
            )
    return found


def _cells(row: Document) -> tuple[str, str, str]:
    value = "(missing)" if row["value"] is None else str(row["value"])
    value += " (default)" if row["default"] and row["value"] is not None else ""
    return row["key"], value, row["usedAt"] or "(no template uses it)"


def _table(session: Session, rows: list[Document]) -> None:
    folded = grouped((_cells(row), row["instance"]) for row in rows)
    ordered = sorted(folded.items(), key=lambda item: (item[0][0], item[1]))
    heads = dict.fromkeys(("INSTANCES", "KEY", "VALUE", "FIRST USED AT"), True)
    session.console.print(plain_table(heads, ((id_list(ids), *cells) for cells, ids in ordered)))
