// The page: the connection, the list of all TApps, and which of both is shown.
import {One} from "/one.js";

const $ = (id) => document.getElementById(id);
const STORED = `tapp-key-${location.port}`;

// Texts of tenants become text, never markup: nothing here writes HTML.
export function make(tag, more = {}, ...inside) {
  const found = document.createElement(tag);
  for (const [key, value] of Object.entries(more)) {
    if (key in found && key !== "list") found[key] = value;
    else found.setAttribute(key, value);
  }
  found.append(...inside.filter((each) => each));
  return found;
}

export const SIGNS = {
  ok: ["✓", "runs as asked for"], old: ["…", "waits for its turn"], moving: ["↻", "moves"],
  bad: ["✕", "in trouble"], held: ["‖", "on hold"], kept: ["⚑", "kept by the partition"],
  stopped: ["■", "stopped"], unknown: ["?", "unknown"],
};

// A time, in seconds or as Kubernetes writes it, in the zone of who reads it.
export function when(told, withDate = false) {
  if (!told || told < 0) return make("span", {}, "-");
  const at = new Date(typeof told === "number" ? told * 1000 : told);
  const text = withDate ? at.toLocaleString() : at.toLocaleTimeString();
  return make("time", {dateTime: at.toISOString(), title: at.toString()}, text);
}

export async function ask(path, body) {
  const options = {headers: {"X-TApp-Key": localStorage.getItem(STORED) ?? ""}};
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), {status: answer.status});
  return found;
}

function linked(state, text) {
  $("link").dataset.link = state;
  $("link").textContent = text;
}

// A change of a model, which the server says once: parts, and of some parts single items.
function merge(model, change) {
  if (change.whole) {
    for (const key of Object.keys(model)) delete model[key];
    return Object.assign(model, change);
  }
  for (const [key, value] of Object.entries(change)) {
    if (!["tiles", "rows", "log"].includes(key) || !model[key]) model[key] = value;
    else {
      for (const [id, item] of Object.entries(value)) {
        if (item === null) delete model[key][id];
        else model[key][id] = item;
      }
    }
  }
  return model;
}

// Follows a model until it is aborted, whatever becomes of the server meanwhile.
async function follow(path, signal, render) {
  const model = {};
  for (let pause = 300; !signal.aborted; pause = Math.min(pause * 1.5, 2000)) {
    const stop = new AbortController();
    const leave = () => stop.abort();
    signal.addEventListener("abort", leave);
    let watchdog = setTimeout(leave, 8000);
    try {
      const headers = {"X-TApp-Key": localStorage.getItem(STORED) ?? ""};
      const answer = await fetch(path, {headers, signal: stop.signal});
      if (!answer.ok) throw new Error((await answer.json()).error);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const {value, done} = await reader.read();
        if (done) break;
        clearTimeout(watchdog);
        watchdog = setTimeout(leave, 8000);
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const change = JSON.parse(line);
          merge(model, change);
          if (Object.keys(change).length) render(model, change);
        }
        pause = 300;
        linked(model.lost ? "lost" : "live", model.lost ? `cluster lost: ${model.lost}` : "live");
      }
      throw new Error("the server ended");
    } catch (error) {
      if (!signal.aborted) linked("lost", `connection lost, trying again: ${error.message}`);
    }
    clearTimeout(watchdog);
    signal.removeEventListener("abort", leave);
    await new Promise((done) => { setTimeout(done, pause); });
  }
}

class All {
  constructor(signal) {
    Object.assign(this, {rows: new Map(), model: {}});
    for (const id of ["text", "namespace", "state"]) $(id).addEventListener("input", () => this.filter(), {signal});
  }

  render(model, change) {
    this.model = model;
    const known = model.rows ?? {};
    for (const id of Object.keys(change.rows ?? {})) {
      this.rows.get(id)?.remove();
      this.rows.delete(id);
      if (known[id]) this.rows.set(id, this.row(known[id]));
    }
    if (change.whole) {
      for (const [id, row] of this.rows) if (!known[id]) { row.remove(); this.rows.delete(id); }
    }
    const sorted = [...this.rows].sort((a, b) => place(known[a[0]]).localeCompare(place(known[b[0]])));
    $("rows").tBodies[0].append(...sorted.map(([, row]) => row));
    const spaces = [...new Set(Object.values(known).map((each) => each.namespace))].sort();
    const chosen = $("namespace").value;
    $("namespace").replaceChildren(make("option", {value: ""}, "all"),
      ...spaces.map((each) => make("option", {value: each, selected: each === chosen}, each)));
    this.filter();
    for (const [id, row] of this.rows) paint(row.querySelector("canvas"), known[id].strip);
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
      const each = this.model.rows[id], says = `${place(each)} ${each.state} ${each.waits}`.toLowerCase();
      row.hidden = !says.includes(text) || ($("namespace").value || each.namespace) !== each.namespace
        || ($("state").value || each.kind) !== each.kind;
      if (!row.hidden) { shown += 1; instances += each.replicas; }
    }
    $("count").textContent = this.rows.size ? `${shown} of ${this.rows.size} TApps, ${instances} instances`
      : "There is no TApp that you may see.";
  }
}

const place = (each) => `${each.namespace}/${each.name}`;
const HEIGHTS = {ok: 0.45, old: 0.6, kept: 0.6, moving: 0.8, bad: 1, held: 0.7, stopped: 0.15, unknown: 0.3};

// Thousands of instances in one strip: colour and height say how each run of them stands.
function paint(canvas, strip) {
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

function route() {
  leave.abort();
  leave = new AbortController();
  const [, namespace, name] = decodeURIComponent(location.hash.slice(1)).split("/");
  $("one").hidden = $("as-table").hidden = !name;
  $("all").hidden = Boolean(name);
  $("path").textContent = name ? `${namespace}/${name}` : "";
  document.title = name ? `${namespace}/${name} · TApp` : "TApps";
  $("message").hidden = true;
  linked("waiting", "connecting");
  if (name) {
    const one = new One(namespace, name, settings, leave.signal);
    const query = new URLSearchParams({namespace, name});
    follow(`/api/tapp?${query}`, leave.signal, (model, change) => one.render(model, change));
  } else {
    $("rows").tBodies[0].replaceChildren();
    const all = new All(leave.signal);
    follow("/api/tapps", leave.signal, (model, change) => all.render(model, change));
  }
}

let settings = {readOnly: true};

async function begin() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("key")) {
    localStorage.setItem(STORED, given.get("key"));
    history.replaceState(null, "", `/#${given.get("to") ?? "/"}`);
  }
  for (;;) {
    try {
      settings = await ask("/api/settings");
      break;
    } catch (error) {
      linked("lost", error.message);
      if (error.status === 403) {
        Object.assign($("message"), {textContent: error.message, hidden: false});
        return;
      }
      await new Promise((done) => { setTimeout(done, 1000); });
    }
  }
  window.addEventListener("hashchange", route);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", route);
  route();
}

begin();
