"""The parts of the help that differ from command to command: the examples, and when `--wait`
returns.

`register` and `register_verb` add these texts to the commands. Keys are the names of the functions.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Example(NamedTuple):
    """One example at the end of a command's help."""

    comment: str  # the purpose of the command line, as the comment lines in kubectl's examples
    command: str  # the command line without `kubectl tapp`


EXAMPLES: Mapping[str, Sequence[Example]] = {
    "status": [
        Example("Show the instances of TApp web", "status web"),
        Example("Show them, and watch for changes", "status web --watch"),
        Example("Print a line for each of many instances", "status web --unfold"),
    ],
    "why": [
        Example("Explain all instances of TApp web", "why web"),
        Example("Explain instances 3 and 7", "why web 3,7"),
        Example("Print the explanation as JSON", "why web 3 -o json"),
    ],
    "list_tapps": [
        Example("List the TApps in namespace shop", "list -n shop"),
        Example("List the TApps of all namespaces, with their images", "list -A -o wide"),
    ],
    "kill": [
        Example("Stop instance 3", "kill web 3"),
        Example("Stop instances 0, 1, 2 and 7, and wait", "kill web 0-2,7 --wait"),
    ],
    "start": [
        Example("Start instance 3", "start web 3"),
        Example("Start all stopped instances without a question", "start web all -y"),
    ],
    "use": [
        Example("Let instances 0 and 1 run template v2", "use web v2 0,1"),
        Example("Let a tenth of the instances run template v2", "use web v2 --canary 10%"),
        Example("Let them run the default template again", "use web default 0,1"),
    ],
    "restart": [
        Example("Replace the pods of all instances within the budget", "restart web"),
        Example("Replace the pods of instances 2 and 5, one after the other", "restart web 2,5"),
        Example("Restart container app in all pods", "restart web --in-place -c app"),
    ],
    "pause": [
        Example("Pause updates of TApp web", "pause web"),
        Example("Pause updates, and wait until the TApp service has seen that", "pause web --wait"),
    ],
    "resume": [
        Example("Resume updates of TApp web", "resume web"),
        Example("Resume updates, and wait for at most an hour", "resume web --wait --timeout 1h"),
    ],
    "retry": [
        Example("Roll the revision of TApp web out once more", "retry web"),
        Example("Roll it out once more, and wait", "retry web --wait"),
    ],
    "hold": [
        Example("Let instance 2 alone during a match", 'hold web 2 --reason "match 42"'),
        Example("Prevent only updates of instance 2", "hold web 2 --for update --reason debugging"),
    ],
    "release": [
        Example("Remove the hold from instance 2", "release web 2"),
        Example("Remove all holds, and wait for pending updates", "release web all --wait"),
    ],
    "scale": [
        Example("Scale TApp web to 7 instances", "scale web --replicas 7"),
        Example("Show what scaling would do", "scale web --replicas 3 --dry-run server"),
    ],
    "rollback": [
        Example("Roll back the template that changed last", "rollback web"),
        Example("Roll back to revision 3 of the history", "rollback web --to 3"),
        Example("Roll back template v2, and its values", "rollback web -t v2 --with-values"),
    ],
    "advance": [
        Example("Update all instances that the partition keeps", "advance web"),
        Example(
            "Keep half of the instances, and wait for the others", "advance web --to 50% --wait"
        ),
    ],
    "promote": [
        Example("Give all instances the template of the only canary", "promote web"),
        Example("Promote canary v2 of several canaries, and wait", "promote web -t v2 --wait"),
    ],
    "abort": [
        Example("End the only canary", "abort web"),
        Example("End canary v2, which replaced template blue", "abort web -t v2 --base blue"),
    ],
    "adopt": [
        Example("Show which pods and claims could be adopted", "adopt web --dry-run server"),
        Example("Adopt the pod and the claims of instance 3", "adopt web 3"),
    ],
    "history": [
        Example("Show the revisions of all templates", "history web"),
        Example("Show revision 3 in full", "history web --revision 3"),
    ],
    "values": [
        Example("Show the values of each instance", "values web"),
        Example("Print them as YAML", "values web -o yaml"),
    ],
    "wait": [
        Example("Wait until TApp web is as its spec asks", "wait web"),
        Example("Wait for instances 0 to 3, for at most an hour", "wait web 0-3 --timeout 1h"),
        Example("Wait for the condition Ready", "wait web --for ready"),
    ],
    "image": [
        Example("Set the image of container app", "set image web app=shop:2"),
        Example(
            "Try an image on a tenth of the instances", "set image web app=shop:2 --canary 10%"
        ),
        Example("Update half of the instances", "set image web app=shop:2 --partition 50%"),
    ],
    "value": [
        Example("Set value region of instances 0 to 3", "set value web 0-3 region=eu"),
        Example("Set the value of all other instances", "set value web --default region=us"),
        Example("Remove value region of instance 0", "set value web 0 region-"),
    ],
    "plan": [
        Example("Forecast a new image", "plan web --image app=shop:2"),
        Example("Forecast an edited manifest", "plan -f web.yaml"),
        Example(
            "Fail in a pipeline if more than two instances would be unavailable",
            "plan -f web.yaml --fail-if 'unavailable>2'",
        ),
    ],
    "rehearse": [
        Example(
            "Play a new image 200 times, with a fault in each", "rehearse web --image app=shop:2"
        ),
        Example("Lose a node in each run", "rehearse -f web.yaml --fault node-loss"),
        Example(
            "Fail in a pipeline if a run gets stuck, without a cluster",
            "rehearse --from old.yaml -f new.yaml --fail-if stuck",
        ),
    ],
    "migrate": [
        Example("Show what the migration of TApp web would write", "migrate web --dry-run"),
        Example("Migrate all TApps of namespace shop", "migrate -n shop"),
    ],
    "web": [
        Example("Open the page in a browser", "web"),
        Example("Serve TApp web on port 8080, without changes", "web web --port 8080 --read-only"),
    ],
}

WAIT_UNTIL: Mapping[str, str] = {
    "kill": "the pods of the instances are deleted",
    "start": "the instances are available",
    "use": "the instances run the template and are available",
    "restart": "the restarted instances are available again",
    "pause": "the TApp service has seen the pause",
    "resume": "all instances are updated and available",
    "retry": "all instances are updated and available",
    "hold": "the TApp service has seen the hold",
    "release": "the TApp service has done what the hold prevented",
    "scale": "added instances are available and pods of removed instances are deleted",
    "rollback": "the updated instances are available",
    "advance": "the updated instances are available",
    "promote": "the other instances run the template of the canary and are available",
    "abort": "the instances of the canary run the other template and are available",
    "adopt": "the adopted instances are as the spec asks",
    "image": "the updated instances are available",
    "value": "the updated instances are available",
}


def epilog_of(function: str) -> str:
    r"""Returns the examples of a command as the end of its help, in the form of kubectl's help.

    `function` is the name of the command's function. click does not wrap a paragraph that begins
    with a line `\b`.
    """
    texts = [f"  # {each.comment}\n  kubectl tapp {each.command}" for each in EXAMPLES[function]]
    return "\b\nExamples:\n" + "\n\n\b\n".join(texts)


def wait_help(function: str) -> str:
    """Returns the help of the option `--wait` for the verb whose function has this name."""
    until = WAIT_UNTIL[function]
    return f"Wait until {until}. Exit with code 4 if the TApp is stuck or --timeout has passed."
