// The entry point of the page: shows the list of all TApps (TAppList) or a single TApp (TAppView), as the address says.
import {askQuickly, follow, pauseFor, showConnection, storeKey} from "/connection.js";
import {TAppView} from "/one.js";
import {make, passFocus, setText, show, updateElement} from "/show.js";

const $ = (id) => document.getElementById(id);

export const SIGNS = {
  ok: ["✓", "up to date"], old: ["…", "outdated, not updated yet"], moving: ["↻", "progressing"],
  bad: ["✕", "blocked"], held: ["‖", "on hold"], kept: ["⚑", "kept by the partition"],
  stopped: ["■", "stopped"], unknown: ["?", "unknown"],
};

// Returns an element that shows a time (epoch seconds, or Kubernetes' text) in the time zone of the user.
export function when(told, withDate = false) {
  if (!told || told < 0) return make("span", {}, "-");
  const at = new Date(typeof told === "number" ? told * 1000 : told);
  const text = withDate ? at.toLocaleString() : at.toLocaleTimeString();
  return make("time", {dateTime: at.toISOString(), title: at.toString()}, text);
}

class TAppList {
  // `from` is the address of the TApp that was shown before, or an empty string.
  constructor(signal, from) {
    Object.assign(this, {rows: new Map(), model: {}, from});
    for (const id of ["text", "namespace", "state"]) $(id).addEventListener("input", () => this.filter(), {signal});
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint(), {signal});
  }

  render(model, change) {
    this.model = model;
    if (!change.rows) return;
    const known = model.rows;
    for (const [id, each] of Object.entries(change.rows)) {
      if (!each) this.rows.delete(id);
      else if (this.rows.has(id)) updateElement(this.rows.get(id), this.row(each));
      else this.rows.set(id, this.row(each));
    }
    if (change.whole) for (const id of this.rows.keys()) if (!known[id]) this.rows.delete(id);
    const sorted = [...this.rows].sort((a, b) => fullName(known[a[0]]).localeCompare(fullName(known[b[0]])));
    show($("rows").tBodies[0], sorted.map(([, row]) => row));
    // The chosen namespace stays, also while it has no TApp: otherwise the filter would be lost.
    const chosen = $("namespace").value;
    const spaces = [...new Set([...Object.values(known).map((each) => each.namespace), ...(chosen ? [chosen] : [])])].sort();
    show($("namespace"), [make("option", {value: ""}, "all"), ...spaces.map((each) => make("option", {value: each, "data-key": each}, each))]);
    this.filter();
    this.paint();
    // A user who comes back from a TApp finds the focus on its row again.
    const back = this.from && $("rows").querySelector(`a[href="${CSS.escape(this.from)}"]`);
    if (!back) return;
    if (document.activeElement === document.body) back.focus();
    this.from = "";
  }

  paint() {
    for (const [id, row] of this.rows) drawStrip(row.querySelector("canvas"), this.model.rows[id].strip);
  }

  row(each) {
    const [sign] = SIGNS[each.kind];
    const counts = {};
    for (const [kind, many] of each.strip) counts[kind] = (counts[kind] ?? 0) + many;
    const text = Object.entries(counts).map(([kind, many]) => `${many} ${SIGNS[kind][1]}`).join(", ");
    const canvas = make("canvas", {width: 480, height: 36, role: "img", "aria-label": text, title: text});
    const roll = make("progress", {max: Math.max(each.run, 1), value: each.updated, "aria-label": "up to date"});
    return make("tr", {},
      make("th", {scope: "row"}, make("a", {href: `#/${each.namespace}/${each.name}`},
        make("small", {}, `${each.namespace}/`), each.name)),
      make("td", {}, make("span", {className: `badge ${each.kind}`}, `${sign} ${each.state}`)),
      make("td", {}, canvas),
      make("td", {}, each.ready),
      make("td", {}, roll, ` ${each.updated}/${each.run}`),
      make("td", {className: "waits", title: each.waits}, each.waits));
  }

  filter() {
    const text = $("text").value.toLowerCase();
    let shown = 0, instances = 0;
    for (const [id, row] of this.rows) {
      const each = this.model.rows[id], says = `${fullName(each)} ${each.state} ${each.waits}`.toLowerCase();
      row.hidden = !says.includes(text) || ($("namespace").value || each.namespace) !== each.namespace
        || ($("state").value || each.kind) !== each.kind;
      if (!row.hidden) { shown += 1; instances += each.replicas; }
    }
    const row = document.activeElement.closest("#rows tbody tr");
    if (row?.hidden) passFocus(row, (each) => !each.hidden);
    setText($("count"), this.rows.size ? `${shown} of ${this.rows.size} TApps, ${instances} instances`
      : "There is no TApp that you may see.");
  }
}

const fullName = (each) => `${each.namespace}/${each.name}`;
const HEIGHTS = {ok: 0.45, old: 0.6, kept: 0.6, moving: 0.8, bad: 1, held: 0.7, stopped: 0.15, unknown: 0.3};

// Draws all instances of a TApp as one strip: color and height show the state of each run of equal instances.
function drawStrip(canvas, strip) {
  const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const total = strip.reduce((sum, [, many]) => sum + many, 0) || 1;
  context.clearRect(0, 0, canvas.width, canvas.height);
  let left = 0;
  for (const [kind, many] of strip) {
    const wide = many / total * canvas.width, tall = HEIGHTS[kind] * canvas.height, single = canvas.width / total;
    context.fillStyle = style.getPropertyValue(`--${kind}`);
    if (single > 5) {
      for (let n = 0; n < many; n += 1) context.fillRect(left + n * single, canvas.height - tall, single - 2, tall);
    } else context.fillRect(left, canvas.height - tall, Math.max(wide, 1.5), tall);
    left += wide;
  }
}

let leave = new AbortController();
let shown = "";

function route(event) {
  leave.abort();
  $("dialog").close(); // It may belong to the TApp that is left.
  leave = new AbortController();
  const [, namespace, name] = decodeURIComponent(location.hash.slice(1)).split("/");
  $("one").hidden = $("as-table").hidden = !name;
  $("all").hidden = Boolean(name);
  $("path").textContent = name ? `${namespace}/${name}` : "";
  document.title = name ? `${namespace}/${name} · TApp` : "TApps";
  $("message").hidden = true;
  showConnection("waiting", "connecting");
  if (name) {
    const one = new TAppView(namespace, name, settings, leave.signal);
    follow("/api/tapp", {namespace, name}, leave.signal, (model, change) => one.render(model, change));
    if (event) $("name").focus(); // The element that had the focus is hidden now.
  } else {
    // Otherwise the browser would remove the focus from the hidden element later, after `render` has set it.
    if (event) document.activeElement?.blur();
    $("rows").tBodies[0].replaceChildren();
    const all = new TAppList(leave.signal, shown);
    follow("/api/tapps", {}, leave.signal, (model, change) => all.render(model, change));
  }
  shown = name ? `#/${namespace}/${name}` : "";
}

let settings = {readOnly: true};

function say(text) {
  setText($("message"), text);
  $("message").hidden = false;
}

async function begin() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("key")) {
    storeKey(given.get("key"));
    history.replaceState(null, "", `/#${given.get("to") ?? "/"}`);
  }
  for (;;) {
    try {
      settings = await askQuickly("/api/settings");
      break;
    } catch (error) {
      showConnection("lost", `not connected, trying again: ${error.message}`);
      if (error.status === 403) say(error.message);
      await pauseFor(1000);
    }
  }
  window.addEventListener("hashchange", route);
  return route();
}

begin().catch((error) => say(`the page cannot start: ${error.message}`));
