// The dialogs for changes: a form, then the plan of the change, then the question whether to carry it out.
import {STILL_WAITING_SECONDS, ask} from "/connection.js";
import {ranges} from "/one.js";
import {sections} from "/plan.js";
import {make, setText, show} from "/show.js";

const $ = (id) => document.getElementById(id);

const text = (name, label, more = {}) => ({name, label, ...more});
const ids = (more = {}) => ({name: "ids", label: "Instances (0-3,7 or all)", required: true, ids: true, ...more});
const template = (label, more = {}) => ({name: "template", label, choices: (one) => one.model.templates?.map((each) => [each.name, each.name]) ?? [], ...more});

// The groups of changes, each with its changes. A change has a title and the fields of its form. The server maps the names to verbs.
const GROUPS = {
  Rollout: {
    image: ["Image", template("Template", {required: true}), {name: "images", images: true},
      text("canary", "Update only a canary of this many instances (3 or 10%)"), text("partition", "Keep this many instances at their revision (3 or 30%)")],
    rollback: ["Rollback", {name: "to", label: "Back to", empty: "the one before", choices: (one) =>
      one.model.history?.map((each) => [`${each.number}`, `${each.number}: ${each.template} ${each.hash} (${each.changed})`]) ?? []}],
    retry: ["Retry"],
    pause: ["Pause"],
    resume: ["Resume"],
    partition: ["Partition", text("to", "Number of instances to keep at their revision (3 or 30%)", {required: true})],
    advance: ["Advance", text("to", "Number of instances still to keep (3 or 30%); empty: none")],
    promote: ["Promote", template("Canary", {empty: "the only one"})],
    abort: ["Abort", template("Canary", {empty: "the only one"})],
    budget: ["Budget", text("to", "Number of instances that may be unavailable at a time (3 or 30%)", {required: true}),
      {name: "others", label: "Of the instances that do not run the rolling template", check: true}],
  },
  Instances: {
    restart: ["Restart", ids({required: false, label: "Instances; empty: all, within the budget"}), {name: "in_place", label: "Restart the containers in place, keep the pods", check: true}],
    kill: ["Kill", ids()],
    start: ["Start", ids()],
    template: ["Template", template("Template", {required: true}), ids()],
    hold: ["Hold", ids(), text("reason", "Reason, which status and why show", {required: true})],
    release: ["Release", ids()],
    adopt: ["Adopt", ids({required: false, label: "Instances whose pods and claims have no owner; empty: all"})],
  },
  Size: {
    replicas: ["Replicas", text("replicas", "Number of instances", {required: true, inputMode: "numeric"})],
  },
};
const CHANGES = Object.assign({}, ...Object.values(GROUPS));

// Returns a button that opens the dialog of a change, with `values` filled in. If `vain` says why the change has no effect now,
// the button stays focusable, is marked as disabled, and `say` gets a sentence with the reason instead.
export function changeButton(one, {change, label, values, vain = "", advised = false}, say) {
  const onclick = () => (vain ? say(`${label} has no effect now: ${vain}.`) : openChange(one, change, values));
  const button = make("button", {type: "button", "data-key": change, title: vain, className: advised ? "advised" : "", onclick}, label);
  if (vain) button.setAttribute("aria-disabled", "true");
  return button;
}

// Shows the buttons of all changes in their groups. Returns a function that takes the changes without an effect now, with the
// reason of each: their buttons stay focusable, are marked as disabled, and say the reason instead of opening a dialog.
export function toolbar(one) {
  const buttons = [];
  const groups = Object.entries(GROUPS).map(([title, changes]) => {
    const own = Object.entries(changes).map(([name, [text]]) =>
      make("button", {type: "button", tabIndex: -1, "data-change": name, onclick: () => {
        const {vain = {}} = one.model;
        if (vain[name]) $("chosen").textContent = `${text} has no effect now: ${vain[name]}.`;
        else openChange(one, name);
      }}, text));
    buttons.push(...own);
    const label = make("span", {className: "group", id: `group-${title}`}, title);
    return make("div", {role: "group", "aria-labelledby": label.id}, label, ...own);
  });
  buttons[0].tabIndex = 0;
  $("bar").replaceChildren(...groups);
  $("bar").onkeydown = (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key], at = buttons.indexOf(document.activeElement);
    if (!step || at < 0) return;
    buttons[at].tabIndex = -1;
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.tabIndex = 0;
    next.focus();
  };
  return (vain) => {
    for (const each of buttons) {
      const why = vain[each.dataset.change];
      if (why) each.setAttribute("aria-disabled", "true");
      else each.removeAttribute("aria-disabled");
      each.title = why ?? ""; // Screen readers read it as the description of the button.
    }
  };
}

function input(one, field) {
  if (field.choices) {
    const options = field.choices(one).map(([value, label]) => make("option", {value}, label));
    return make("select", {name: field.name}, ...(field.empty ? [make("option", {value: ""}, field.empty)] : []), ...options);
  }
  if (field.check) return make("input", {type: "checkbox", name: field.name});
  const found = make("input", {name: field.name, required: Boolean(field.required), autocomplete: "off", spellcheck: false});
  if (field.ids) found.value = ranges(one.selected);
  if (field.name === "replicas") found.value = one.model.head?.replicas ?? "";
  return found;
}

// Returns an input for the image of each container of the selected template.
function images(one, form) {
  const box = make("div", {className: "images"});
  const fill = () => {
    const own = one.model.templates?.find((each) => each.name === form.elements.template.value);
    box.replaceChildren(...Object.entries(own?.images ?? {}).map(([name, image]) =>
      make("label", {}, `Image of ${name}`, make("input", {name: `image ${name}`, value: image, "data-before": image, autocomplete: "off", spellcheck: false}))));
  };
  form.elements.template.addEventListener("change", fill);
  fill();
  return box;
}

function read(form, fields) {
  const values = {};
  for (const field of fields) {
    const known = form.elements[field.name];
    if (field.images) {
      values.images = [...form.elements].filter((each) => each.name.startsWith("image ") && each.value !== each.dataset.before)
        .map((each) => `${each.name.slice(6)}=${each.value.trim()}`);
    } else if (field.check) values[field.name] = known.checked;
    else if (known.value.trim()) values[field.name] = field.ids ? known.value.trim().split(/\s+/) : known.value.trim();
  }
  return values;
}

// Opens the dialog of a change. If values are given and no required field is empty, it shows the plan at once.
export function openChange(one, name, given) {
  const [title, ...fields] = CHANGES[name], dialog = $("dialog"), opener = document.activeElement;
  const form = make("form", {});
  for (const field of fields) {
    if (field.images) form.append(images(one, form));
    else {
      const known = input(one, field);
      form.append(make("label", field.check ? {className: "check"} : {}, field.label, known));
    }
  }
  for (const [key, value] of Object.entries(given ?? {})) {
    const known = form.elements[key];
    if (known.type === "checkbox") known.checked = value;
    else known.value = value;
    known.dispatchEvent(new Event("change")); // The inputs of the images follow the template.
  }
  const left = new AbortController(), close = () => dialog.close();
  const said = make("p", {className: "error", role: "alert"});
  form.append(said, make("div", {className: "buttons"}, make("button", {type: "submit", className: "go"}, "Show the plan"),
    make("button", {type: "button", onclick: close}, "Cancel")));
  const heading = make("h2", {id: "dialog-title", tabIndex: -1}, `${title}: ${one.namespace}/${one.name}`);
  const shape = () => show(dialog, [heading, form]);

  // Names the fields of the form instead of the options of the command line.
  const inFieldNames = (text) => fields.reduce((known, {name: field, label = ""}) =>
    known.replaceAll(`--${field.replaceAll("_", "-")}`, `"${label.split(/ \(|;|,/)[0]}"`), text);

  // Sends the request, and shows in `result` that it is waiting until the response arrives.
  async function asked(path, body, result, signal) {
    const wait = (text) => Object.assign(result, {textContent: text, className: "waits"});
    wait("Waiting for the answer.");
    const late = setTimeout(() => wait(`kubectl tapp web has not answered for ${STILL_WAITING_SECONDS} seconds. Still waiting.`), STILL_WAITING_SECONDS * 1000);
    try {
      const found = await ask(path, {body, signal});
      wait("");
      return found;
    } catch (error) {
      error.message = inFieldNames(error.message);
      Object.assign(result, {textContent: error.message, className: "error"});
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  async function plan(result) {
    if (form.classList.contains("busy")) return;
    form.classList.add("busy");
    try {
      const {namespace} = one;
      const found = await asked("/api/plan", {namespace, name: one.name, change: name, values: read(form, fields)}, result, left.signal);
      if (!left.signal.aborted) planned(found);
    } catch (error) {
      // Another dialog may be open now.
      if (left.signal.aborted) return;
      const text = error.timedOut ? `${error.message}. Nothing was written.` : error.message;
      Object.assign(said, {textContent: text, className: "error"});
      shape();
    }
    form.classList.remove("busy");
  }

  function planned(found) {
    const result = make("p", {role: "alert", className: "error"});
    const go = make("button", {type: "button", className: "go", onclick: () => carryOut(found.key, go, result)}, "Do it");
    const back = make("button", {type: "button", onclick: () => { shape(); form.querySelector("input,select,button").focus(); }}, "Back");
    const cancel = make("button", {type: "button", onclick: close}, found.key ? "Cancel" : "Close");
    dialog.replaceChildren(heading, make("div", {className: "plan", role: "region", tabIndex: 0, ariaLabel: "Plan"}, ...sections(found)), result,
      make("div", {className: "buttons"}, ...(found.key ? [go] : []), back, cancel));
    heading.focus();
  }

  async function carryOut(key, go, result) {
    go.ariaDisabled = true;
    // A plan can be carried out once. The button stays enabled, because a disabled one would lose the focus.
    go.onclick = null;
    try {
      const found = await asked("/api/do", {key}, result);
      const last = found.text.trimEnd().split("\n").at(-1);
      setText($("chosen"), found.going ? `${title}: in progress; the timeline will show the result` : last);
      if (!left.signal.aborted) close();
    } catch (error) {
      if (error.timedOut) result.textContent += ". The change may still have been made: see the timeline.";
      if (left.signal.aborted) { // The dialog is closed.
        setText($("chosen"), `${title}: ${result.textContent}`);
        return;
      }
      const again = make("button", {type: "button", className: "go", onclick: () => plan(result)}, "Plan again"), held = go === document.activeElement;
      go.replaceWith(again);
      if (held) again.focus();
    }
  }

  form.onsubmit = (event) => { event.preventDefault(); plan(said); };
  dialog.onclose = () => {
    left.abort();
    (opener?.isConnected ? opener : $("name")).focus();
  };
  dialog.replaceChildren();
  shape();
  dialog.showModal();
  (form.querySelector("input,select") ?? form.querySelector("button")).focus();
  const complete = given && form.checkValidity() && !fields.some((each) => each.images);
  if (!fields.length || complete) plan(said);
}
