"""The CRD's validation rules in CEL; each message says how to correct the TApp.

A rule must never prevent changes of a TApp that already runs. There are two cases:

- A rule about a single field. The API server skips such a rule while the field does not change
  (validation ratcheting, Kubernetes 1.30 or newer).
- A rule about several fields. It compares the new spec with `oldSelf`, and refuses only a change
  that makes the spec worse. For example, a reference to a missing template may stay if the template
  was missing before.
"""

from typing import Any, Final

from tapp.kube.names import DNS_LABEL
from tapp.words.vocabulary import VALUE_KEY

Rule = dict[str, Any]

KEY: Final = "x-kubernetes-validations"


def _rule(expression: str, message: str, *, at: str = "", exact: str = "") -> Rule:
    """Returns an entry of `x-kubernetes-validations`.

    Args:
        expression: CEL that is true if the object is valid.
        message: a text that says how to correct the object.
        at: the path of the field that the API server's error names. If it is empty, the error names
            the field that has the rule.
        exact: CEL of a message that names the invalid part; empty if `message` is enough. The API
            server uses `message` if it cannot evaluate `exact`.
    """
    entry: Rule = {"rule": _one_line(expression), "message": message}
    if exact:
        entry["messageExpression"] = _one_line(exact)
    if at:
        entry["fieldPath"] = at
    if "oldSelf" in expression:
        # Without this the API server evaluates rules about `oldSelf` only on updates.
        entry["optionalOldSelf"] = True
    return entry


def _keyword(*rules: Rule) -> dict[str, Any]:
    """Returns the CRD's keyword `x-kubernetes-validations` with the given rules."""
    return {KEY: list(rules)}


def _one_line(expression: str) -> str:
    """Returns a CEL expression without line breaks."""
    return " ".join(expression.split())


_DNS_LABEL: Final = f"^{DNS_LABEL}$"


def _portion(least: int, share: str, example: str) -> dict[str, Any]:
    """Returns the validation rule for a field that is a number or a percentage.

    Args:
        least: the smallest valid number, and the smallest valid percentage.
        share: a regular expression for the valid percentages below 100.
        example: a valid percentage, for the message.
    """
    return _keyword(
        _rule(
            rf"""type(self) == string ? string(self).matches('^0*(100|{share})%$')
                                      : type(self) == int && int(self) >= {least}""",
            f"must be a whole number from {least}, or a percentage from {least}% to 100%, "
            f"such as {example}",
        )
    )


BUDGET: Final = _portion(1, "[1-9][0-9]?", "25%")
PORTION: Final = _portion(0, "[1-9]?[0-9]", "30%")

_NUMBER: Final = "^(0|[1-9][0-9]*)$"
_ID_HINT: Final = 'keys are instance numbers without leading zeros, such as "0" or "12"'

INSTANCE_IDS: Final = _keyword(
    _rule(
        f"""self.all(id, id.matches('{_NUMBER}')
                  || (oldSelf.hasValue() && id in oldSelf.value()))""",
        _ID_HINT,
        exact=f"""'"' + self.filter(id, !id.matches('{_NUMBER}'))[0] + '": {_ID_HINT}'""",
    )
)

WANTED_STATUS: Final = _keyword(
    _rule(
        "self == 'Killed'",
        'the only status to ask for is "Killed", which stops the instance; to start it again, '
        "remove the entry",
    )
)

_KEY_HINT: Final = "a key has at most 63 letters, digits, '-', '_' and '.'"

VALUE_KEYS: Final = _keyword(_rule(f"self.all(key, key.matches('^{VALUE_KEY}$'))", _KEY_HINT))

CLAIM_NAMES: Final = _keyword(
    _rule(
        f"""self.all(claim, has(claim.metadata) && has(claim.metadata.name)
                  && claim.metadata.name.size() <= 63
                  && claim.metadata.name.matches('{_DNS_LABEL}'))""",
        "each claim template needs a metadata.name that is a DNS label, because the volume in the "
        "pod gets the same name: at most 63 lower-case letters, digits and '-'",
    ),
    _rule(
        """self.all(claim, !has(claim.metadata) || !has(claim.metadata.name)
                  || self.exists_one(other, has(other.metadata) && has(other.metadata.name)
                                     && other.metadata.name == claim.metadata.name))""",
        "two claim templates have the same metadata.name; give each its own",
    ),
)

SERVICE_NAME: Final = _keyword(
    _rule(
        f"self == '' || (self.size() <= 63 && self.matches('{_DNS_LABEL}'))",
        "must be the name of a headless Service: at most 63 lower-case letters, digits and '-'",
    )
)

NO_SELECTOR: Final = _keyword(
    _rule("!has(self.selector)", "leave out selector: each Service selects the pod of its instance")
)


def _quoted(text: str) -> str:
    """Returns a text with its apostrophes escaped, to be used in a string literal of CEL."""
    return text.replace("'", r"\'")


# The functions below return CEL about one version of the spec: the new one (`self`) or the old one
# (`OLD`). The CEL uses has() instead of optionals (`.?`), because the API server cannot bound the
# cost of `orValue`, and refuses such a rule.
OLD: Final = "oldSelf.value()"


def _in_pool(spec: str, name: str) -> str:
    """Returns CEL that is true if `templatePool` has a template with the given name.

    Args:
        spec: CEL for the spec.
        name: CEL for the name.
    """
    return f"(has({spec}.templatePool) && {name} in {spec}.templatePool)"


def _has_default(spec: str) -> str:
    """Returns CEL that is true if the spec has a template with containers called `default`.

    `spec` is CEL for the spec.
    """
    return f"""((has({spec}.template) && has({spec}.template.spec)
                 && has({spec}.template.spec.containers)) || {_in_pool(spec, "'default'")})"""


def _has_containers(template: str) -> str:
    """Returns CEL that is true if a template has containers. `template` is CEL for the template."""
    return f"""(has({template}.spec) && has({template}.spec.containers)
                && {template}.spec.containers.size() > 0)"""


CONTAINERS: Final = _keyword(
    _rule(
        # The API server removes nulls from a new object. A null in the stored object then looks
        # like a change, so the API server applies the rule although the author changed nothing.
        f"{_has_containers('self')} || (oldSelf.hasValue() && !{_has_containers(OLD)})",
        "no pod can be made of a template without spec.containers; look at the indentation, or "
        "remove the entry",
    )
)


def _resolves(spec: str, name: str) -> str:
    """Returns CEL that is true if a template name is empty or names a template of the spec.

    Args:
        spec: CEL for the spec.
        name: CEL for the template name.
    """
    return f"""({name} == '' || ({name} == 'default' ? {_has_default(spec)}
                                                     : {_in_pool(spec, name)}))"""


def _default_name(spec: str) -> str:
    """Returns CEL for the name of the default template; its value is empty if the spec has no name.

    `spec` is CEL for the spec.
    """
    return f"""(has({spec}.defaultTemplateName) && {spec}.defaultTemplateName != ''
                ? {spec}.defaultTemplateName
                : has({spec}.DefaultTemplateName) ? {spec}.DefaultTemplateName : '')"""


def _rolling_name(spec: str) -> str:
    """Returns CEL for `updateStrategy.template`; its value is empty if the spec does not set the
    field.

    `spec` is CEL for the spec.
    """
    return f"""(has({spec}.updateStrategy) && has({spec}.updateStrategy.template)
                ? {spec}.updateStrategy.template : '')"""


def _leads_to_pool(name: str, old_name: str) -> str:
    """Returns CEL that is true if a template name is valid, or was invalid before the change.

    A name is valid if `spec.templatePool` has it. An empty name and `default` always count as valid
    here, because the rule DEFAULT_EXISTS checks `default`. The CEL calls `all` on a list of one
    element, because CEL has no other way to give a value a name.

    Args:
        name: CEL for the name in the new spec.
        old_name: CEL for the name in the old spec.
    """
    return f"""[{name}].all(name, name in ['', 'default'] || {_in_pool("self", "name")}
                  || (oldSelf.hasValue() && name == {old_name} && !{_in_pool(OLD, "name")}))"""


def _lacks_default(spec: str) -> str:
    """Returns CEL that is true if an instance needs the default template and the template is
    missing.

    An instance needs the default template if `replicas` is larger than the number of entries in
    `templates`. `spec` is CEL for the spec.
    """
    return f"""({_default_name(spec)} in ['', 'default'] && !{_has_default(spec)}
                && (has({spec}.replicas) ? {spec}.replicas : 1)
                   > (has({spec}.templates) ? {spec}.templates.size() : 0))"""


_HINT: Final = (
    "look for a mistyped name, or a template that was removed while in use; names are the keys of "
    "spec.templatePool, and 'default' for spec.template"
)

TEMPLATES_RESOLVE: Final = _rule(
    f"""!has(self.templates) || self.templates.all(id,
            {_resolves("self", "self.templates[id]")}
            || (oldSelf.hasValue() && has({OLD}.templates) && id in {OLD}.templates
                && {OLD}.templates[id] == self.templates[id]
                && !{_resolves(OLD, "self.templates[id]")}))""",
    f"a value names no template: {_HINT}",
    at=".templates",
    exact=f"""'there is no template "' + self.templates[self.templates.filter(id,
                  !{_resolves("self", "self.templates[id]")})[0]] + '": {_quoted(_HINT)}'""",
)

DEFAULT_RESOLVES: Final = _rule(
    _leads_to_pool(_default_name("self"), _default_name(OLD)),
    f"there is no such template: {_HINT}",
    at=".defaultTemplateName",
    exact=f"""'there is no template "' + {_default_name("self")} + '": {_quoted(_HINT)}'""",
)

ROLLING_RESOLVES: Final = _rule(
    _leads_to_pool(_rolling_name("self"), _rolling_name(OLD)),
    f"there is no such template: {_HINT}",
    at=".updateStrategy.template",
    exact=f"""'there is no template "' + {_rolling_name("self")} + '": {_quoted(_HINT)}'""",
)

DEFAULT_EXISTS: Final = _rule(
    f"!{_lacks_default('self')} || (oldSelf.hasValue() && {_lacks_default(OLD)})",
    "the default template is missing: set spec.template with at least one container, or set "
    "spec.defaultTemplateName to a key of spec.templatePool",
    at=".template",
)


def _never_rolls_back(spec: str) -> str:
    """Returns CEL that is true if a spec asks for rollbacks, and other fields prevent all of them.

    `spec` is CEL for the spec.
    """
    return f"""(has({spec}.updateStrategy) && has({spec}.updateStrategy.onDeadline)
                && {spec}.updateStrategy.onDeadline == 'Rollback'
                && ((has({spec}.progressDeadlineSeconds) && {spec}.progressDeadlineSeconds == 0)
                    || (has({spec}.revisionHistoryLimit) && {spec}.revisionHistoryLimit == 0)))"""


ROLLBACK_POSSIBLE: Final = _rule(
    f"!{_never_rolls_back('self')} || (oldSelf.hasValue() && {_never_rolls_back(OLD)})",
    "Rollback needs a deadline and a history: set progressDeadlineSeconds and revisionHistoryLimit "
    "above 0, or leave them out",
    at=".updateStrategy.onDeadline",
)

SPEC: Final = _keyword(
    TEMPLATES_RESOLVE, DEFAULT_RESOLVES, ROLLING_RESOLVES, DEFAULT_EXISTS, ROLLBACK_POSSIBLE
)


def _fits_label(root: str, unset: str) -> str:
    """Returns CEL that is true if a field is not set, or if all pod names are DNS labels.

    A pod name consists of the TApp's name, a hyphen, and the instance number.

    Args:
        root: CEL for the TApp: `self` or the old object.
        unset: CEL that is true if the field is not set. It contains `{root}` where the CEL for the
            TApp belongs.
    """
    replicas = f"(has({root}.spec.replicas) ? {root}.spec.replicas : 1)"
    digits = f"string({replicas} > 0 ? {replicas} - 1 : 0).size()"
    # The name of an object never changes, so `self` also has the name of the old object.
    return f"""({unset.format(root=root)}
                || (!self.metadata.name.contains('.')
                    && self.metadata.name.size() + 1 + {digits} <= 63))"""


_NO_SERVICE_NAME = "!has({root}.spec.serviceName) || {root}.spec.serviceName == ''"
_NO_SERVICES = "!has({root}.spec.serviceTemplate)"


def _label_or_old(unset: str) -> str:
    """Returns CEL that is true if the longest pod name is a valid host name, or need not be.

    The name need not be valid in two cases:

    - The field that needs valid host names is not set.
    - The name was invalid before the change already, so that an old TApp can be edited.

    `unset` is CEL that is true if the field is not set. It contains `{root}` where the CEL for the
    TApp belongs.
    """
    now, before = _fits_label("self", unset), _fits_label(OLD, unset)
    return f"{now} || (oldSelf.hasValue() && !{before})"


POD_HOSTNAMES: Final = _keyword(
    _rule(
        _label_or_old(_NO_SERVICE_NAME),
        "with spec.serviceName each pod's name (metadata.name-NUMBER) is its hostname, so "
        "metadata.name must not contain '.', and the longest pod name must fit 63 characters: "
        "use a shorter metadata.name or leave out spec.serviceName",
        at=".spec.serviceName",
    ),
    _rule(
        _label_or_old(_NO_SERVICES),
        "with spec.serviceTemplate each instance's Service has the name of its pod "
        "(metadata.name-NUMBER), so metadata.name must not contain '.', and the longest pod name "
        "must fit 63 characters: use a shorter metadata.name or leave out spec.serviceTemplate",
        at=".spec.serviceTemplate",
    ),
)
