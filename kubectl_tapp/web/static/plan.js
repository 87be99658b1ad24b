// The plan of a change in its dialog: its effects, a timeline of the instances, the budget, and notes.
import {make} from "/show.js";

// Returns an element that scrolls sideways and shows a picture. The server has drawn it as SVG, with all texts escaped.
function picture({label, svg}) {
  const drawn = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  return make("div", {className: "picture", tabIndex: 0, role: "group", ariaLabel: label}, document.importNode(drawn, true));
}

const section = (title, ...inside) => (inside.length ? [make("section", {}, make("h3", {}, title), ...inside)] : []);
const list = (title, lines, kind = "") => section(title, ...lines.map((each) => make("p", {className: kind}, each)));

function changed({sign, text, effect}) {
  return make("p", {className: `change ${sign}`}, make("code", {}, text), effect && make("small", {}, ` ${effect}`));
}

function outcome({sign, kind, ids, outcome, reason}) {
  return make("li", {className: kind}, make("b", {}, `${sign} ${outcome}: `), ids, reason && make("small", {}, ` ${reason}`));
}

// Returns the sections of a plan. A change that is no edit of the TApp, such as a hold, has only a text.
export function sections({plan, text}) {
  const lines = text.trim() ? text.trim().split("\n").filter((each) => each.trim()) : [];
  if (!plan) return lines.map((each) => make("p", {}, each));
  const legend = make("ul", {className: "legend"}, ...plan.legend.map(([state, text]) =>
    make("li", {}, make("i", {className: `s-${state}`}), text)));
  const {instances, pictures} = plan;
  return [
    make("p", {className: "headline"}, plan.headline),
    ...list("The edit is refused", plan.refused, "error"),
    ...list("The rollout gets stuck", plan.stuck, "error"),
    ...section("Changes", ...plan.changes.map(changed)),
    ...section("Instances", ...(instances.length ? [make("ul", {className: "outcomes"}, ...instances.map(outcome))] : [])),
    ...pictures.flatMap((each, at) => section(each.title, ...(at ? [] : [legend]), picture(each))),
    ...list("Budget", plan.budget),
    ...list("Waits for resumed updates", plan.paused),
    ...list("Conditions", plan.conditions),
    ...list("Notes", [...plan.remarks, ...lines]),
    ...list("Sources of the times, and assumptions", plan.notes, "facts"),
  ];
}
