// The view of one TApp: a grid or a table of its instances, notices, the budget, explanations, and a timeline.
import {ask, pauseFor} from "/connection.js";
import {SIGNS, when} from "/page.js";
import {changeButton, toolbar} from "/changes.js";
import {make, setText, show} from "/show.js";

const $ = (id) => document.getElementById(id);
const MANY = 60;
const SLOW_EXPLANATION = 1000, RETRY_PAUSE = 2000; // Milliseconds until the panel says that it waits, and until a retry

export function ranges(ids) {
  const runs = [];
  for (const id of [...ids].sort((a, b) => a - b)) {
    if (runs.length && runs.at(-1)[1] === id - 1) runs.at(-1)[1] = id;
    else runs.push([id, id]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : b === a + 1 ? `${a},${b}` : `${a}-${b}`)).join(",");
}

const inside = (text, id) => text.split(",").some((run) => {
  const [first, last] = run.split("-").map(Number);
  return run.trim() !== "" && first <= id && id <= (last ?? first);
});

// Returns a table element; each row of `rows` is an array of the row's key and its cells.
function rowsOf(caption, heads, rows) {
  const cells = ([key, first, ...rest]) => make("tr", {"data-key": key}, make("th", {scope: "row"}, first), ...rest.map((each) => make("td", {}, each)));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads.map((each) =>
    make("th", {scope: "col"}, each)))), make("tbody", {}, ...rows.map(cells)));
}

export class TAppView {
  constructor(namespace, name, settings, signal) {
    Object.assign(this, {namespace, name, settings, signal, model: {}, asked: null, selected: new Set()});
    Object.assign(this, {tiles: new Map(), letters: new Map(), entries: new Map(), announced: new Set()});
    for (const id of ["grid", "log", "runs", "budget", "moving", "bar", "history", "table"]) $(id).replaceChildren();
    $("why").hidden = $("stuck").hidden = $("next").hidden = true;
    for (const id of ["chosen", "headline", "alarm", "news"]) setText($(id), "");
    $("name").textContent = `${namespace}/${name}`;
    $("legend").replaceChildren(...Object.entries(SIGNS).slice(0, 7).map(([kind, [sign, text]]) =>
      make("span", {}, make("b", {className: `sign ${kind}`}, sign), ` ${text}  `)));
    this.bar = settings.readOnly ? null : toolbar(this);
    this.listen();
  }

  render(model, change) {
    const begun = performance.now();
    this.model = model;
    $("message").hidden = !model.gone;
    setText($("message"), model.gone ?? "");
    if (!model.tiles) return;
    const ids = change.whole ? [...new Set([...Object.keys(model.tiles), ...[...this.tiles.keys()].map(String)])]
      : Object.keys(change.tiles ?? {});
    const moved = ids.map(Number).filter((id) => this.tile(id, model.tiles[id])).length > 0;
    if (moved || change.whole || change.partition) this.arrange();
    if (change.head) this.head(model.head);
    if (change.vain) this.bar?.(model.vain);
    if (change.budget) this.budget(model.budget);
    if (change.moving) {
      show($("moving"), model.moving.map(([text, those]) =>
        make("li", {}, make("b", {className: "sign moving"}, "↻"), ` ${text}: ${those}`)));
    }
    if (ids.length || change.templates) this.runs();
    if (change.history) this.history();
    if (change.log) this.log(change.whole ? model.log : change.log);
    if (ids.length && !$("table").hidden) this.table();
    if (this.asked !== null && (ids.includes(String(this.asked)) || change.vain)) this.why(this.asked);
    document.body.offsetHeight; // Forces the layout, so that the measured time includes it.
    if (ids.length) document.body.dataset.redraw = `${ids.length} ${(performance.now() - begun).toFixed(1)}`;
  }

  // Creates, changes or removes the tile of an instance. Returns true if the tile is new or removed.
  tile(id, item) {
    const before = this.tiles.get(id);
    if (!item) {
      this.tiles.delete(id); // arrange() then removes the element and moves the focus.
      this.selected.delete(id);
      return true;
    }
    const key = item.revision ? `${item.template} ${item.revision}` : "";
    if (key && !this.letters.has(key)) this.letters.set(key, String.fromCharCode(65 + this.letters.size % 26));
    const letter = this.letters.get(key) ?? "·", [sign, text] = SIGNS[item.kind];
    const tile = before ?? make("div", {id: `i${id}`, role: "option", tabIndex: -1},
      make("b"), make("i"), make("span"), make("small"), make("small"));
    tile.className = `tile ${item.kind}`;
    tile.dataset.id = id;
    tile.dataset.letter = key && letter.charCodeAt(0) % 6;
    const old = item.outdated ? " (old)" : "";
    const texts = [id, sign, letter, item.state, item.template + (item.revision ? ` ${item.revision.slice(3, 7)}` : "")];
    texts.forEach((each, n) => { if (tile.children[n].textContent !== `${each}`) tile.children[n].textContent = each; });
    tile.ariaSelected = this.selected.has(id);
    tile.ariaLabel = `instance ${id}: ${text}, ${item.state}, template ${item.template} ${item.revision ?? ""}${old}`;
    this.tiles.set(id, tile);
    return !before;
  }

  // Shows all tiles sorted by number, with a line where the instances that the partition keeps begin or end.
  arrange() {
    const ids = [...this.tiles.keys()].sort((a, b) => a - b);
    const {kept = [], size = 0} = this.model.partition ?? {};
    const those = new Set(kept);
    const edges = ids.filter((id, n) => n && those.has(id) !== those.has(ids[n - 1]));
    const inOrder = [];
    ids.forEach((id) => {
      if (edges.length < 5 && edges.includes(id)) {
        const side = those.has(id) ? "below" : "above";
        inOrder.push(make("div", {className: "line", "data-key": `line ${id}`, role: "presentation"}, `partition: ${size} ${side} this line are kept at their revision`));
      }
      inOrder.push(this.tiles.get(id));
    });
    show($("grid"), inOrder);
    $("grid").classList.toggle("many", ids.length > MANY);
    const at = $("grid").contains(document.activeElement) ? document.activeElement : $("grid").querySelector('[tabindex="0"]');
    if (ids.length) this.makeTabStop(at ?? this.tiles.get(ids[0]));
  }

  head(head) {
    show($("headline"), [head.headline, make("span", {className: "progress"}, head.stuck ? "" : head.line)]);
    const urgent = [...(head.paused ? ["Updates are paused."] : []), ...(head.going ? [head.going] : [])];
    const known = head.stuck ? [`The rollout is stuck: ${head.stuck}.`, ...head.words] : [], lines = [...urgent, ...head.notes];
    this.announce("alarm", [...known.slice(0, 1), ...urgent]);
    $("stuck").hidden = !(known.length || lines.length);
    $("stuck").className = head.stuck ? "stuck" : "stuck waits";
    show($("stuck"), [...known, ...lines].map((each) => make("p", {}, each)));
    this.next(head.next ?? {texts: [], buttons: []});
  }

  // Lets screen readers read the texts that they have not read before. A rollout that is stuck alternates between a few
  // texts, because the kubelet tries again and again.
  announce(region, texts) {
    const unread = texts.filter((each) => !this.announced.has(`${region} ${each}`));
    for (const each of unread) this.announced.add(`${region} ${each}`);
    if (unread.length) setText($(region), unread.join(" "));
    if (texts.length) return;
    for (const each of this.announced) if (each.startsWith(`${region} `)) this.announced.delete(each);
    setText($(region), "");
  }

  // Shows what the user can do next. The buttons open the dialogs of changes, with values filled in.
  next({texts, buttons}) {
    $("next").hidden = !texts.length;
    const offered = this.settings.readOnly ? [] : buttons;
    show($("next"), [make("h2", {}, "What you can do"), ...texts.map((each) => make("p", {}, each)),
      offered.length && make("div", {className: "buttons"}, ...offered.map((each) => changeButton(this, each)))]);
  }

  budget(budget) {
    const {gone, ids, may, must} = budget, kept = Math.min(must, budget.have);
    const parts = [["must", kept, `${must} of ${budget.of} must stay available`], ["may", may, `${may} may become unavailable`],
      ["gone", gone, gone === 1 ? `instance ${ids} is unavailable` : `${gone} are unavailable: ${ids}`]];
    const bar = make("div", {className: "shares", role: "img", "aria-label": `budget: ${parts.map((each) => each[2]).join(", ")}`});
    for (const [kind, many, text] of parts.filter((each) => each[1])) {
      const part = make("span", {className: kind, title: text}, text);
      part.style.flexGrow = many;
      bar.append(part);
    }
    show($("budget"), [bar, ...budget.sentences.map((each) => make("p", {}, each))]);
  }

  // Shows the revisions that run, with their instances. Tiles refer to a revision by its letter.
  runs() {
    const groups = new Map();
    for (const [id, item] of Object.entries(this.model.tiles)) {
      if (!item.revision) continue;
      const key = `${item.template} ${item.revision}`;
      if (!groups.has(key)) groups.set(key, {...item, ids: []});
      groups.get(key).ids.push(Number(id));
    }
    const templates = new Map((this.model.templates ?? []).map((each) => [each.name, each]));
    show($("runs"), [...groups].map(([key, each]) => {
      const letter = this.letters.get(key), own = templates.get(each.template);
      const role = own?.canary ? `canary of ${own.canary}` : each.outdated ? "old" : "";
      return make("div", {className: "run", "data-key": key, "data-letter": letter.charCodeAt(0) % 6},
        make("b", {className: "letter"}, letter), make("span", {}, make("strong", {}, each.template),
          ` ${each.revision.slice(0, 11)} `, role && make("em", {}, role), make("small", {}, each.image)),
        make("span", {className: "who"}, `${each.ids.length}: ${ranges(each.ids)}`));
    }));
  }

  history() {
    show($("history"), [rowsOf("Revisions, newest first; * is in the spec now",
      ["Revision", "Template", "Hash", "When", "Instances", "What changed", "Cause"], this.model.history.map((each) =>
        [`${each.template} ${each.hash}`, `${each.current ? "* " : ""}${each.number}`, each.template, each.hash, when(each.created, true),
          each.ids || "none", each.changed, each.cause]))]);
  }

  log(change) {
    for (const [key, each] of Object.entries(change)) {
      this.entries.delete(key);
      if (!each) continue;
      const line = make("li", {}, when(each.at), each.ids ? make("b", {}, ` ${each.ids}: `) : " ", each.text);
      line.dataset.at = each.at;
      this.entries.set(key, line);
    }
    show($("log"), [...this.entries.values()].sort((a, b) => b.dataset.at - a.dataset.at));
  }

  table() {
    const rows = [...this.tiles.keys()].sort((a, b) => a - b).map((id) => {
      const each = this.model.tiles[id], [sign, text] = SIGNS[each.kind];
      return [id, make("button", {type: "button", ariaLabel: `Why ${id}`, onclick: () => this.why(id)}, `${id}`),
        make("span", {className: `badge ${each.kind}`, title: text}, `${sign} ${each.state}`), each.template,
        (each.revision ?? "").slice(0, 11) + (each.outdated ? " (old)" : ""), each.ready ?? "", `${each.restarts ?? ""}`,
        each.node ?? "", each.since ? when(each.since, true) : ""];
    });
    const heads = ["Instance", "State", "Template", "Revision", "Ready", "Restarts", "Node", "Since"];
    show($("table"), [rowsOf(`Instances of ${this.namespace}/${this.name}`, heads, rows)]);
  }

  toggle() {
    const on = $("table").hidden, has = document.activeElement.closest(".tile, #table tr");
    $("table").hidden = !on;
    $("grid").hidden = on;
    $("as-table").ariaPressed = on;
    if (on) this.table();
    if (has) this.focus(Number(has.dataset.id ?? has.dataset.key));
  }

  // Shows why an instance stands as it does, and keeps the panel up to date. There is one request at a time: changes that
  // arrive while kubectl answers lead to one more request afterwards.
  async why(id) {
    const opened = this.asked !== id;
    if (opened) this.leaveWhy();
    this.asked = id;
    if (this.explaining) {
      this.again = true;
      return;
    }
    let isNew = opened;
    const own = this.explaining = new AbortController(), query = new URLSearchParams({namespace: this.namespace, name: this.name, id});
    const isLeft = () => this.explaining !== own || this.signal.aborted;
    const wait = setTimeout(() => { if (opened && !isLeft()) this.explain(id, {message: "Waiting for the answer of kubectl."}, isNew); }, SLOW_EXPLANATION);
    do {
      this.again = false;
      try {
        const found = await ask(`/api/why?${query}`, {signal: own.signal});
        if (!isLeft()) this.explain(id, found, isNew);
        isNew = false;
      } catch (error) {
        if (isLeft()) break;
        if (error.status || isNew) this.explain(id, {message: error.message}, isNew);
        if (!error.status) { // No answer: what the panel shows stays, until there is one.
          this.again = true;
          await pauseFor(RETRY_PAUSE, own.signal);
        }
      } finally {
        clearTimeout(wait);
      }
    } while (this.again && !isLeft());
    if (this.explaining === own) this.explaining = null;
  }

  leaveWhy() {
    this.explaining?.abort();
    this.asked = this.explaining = null;
    this.announce("news", []);
  }

  explain(id, found, isNew) {
    const line = (key, text, more = {}) => text && make("p", {"data-key": key, ...more}, text);
    const list = (title, lines = []) => (lines.length ? [make("h3", {"data-key": title}, title), make("ul", {"data-key": `${title} list`}, ...lines)] : []);
    const items = (lines = []) => lines.map((each) => make("li", {}, each));
    const mine = Object.entries(this.model.log ?? {}).filter(([, each]) => inside(each.ids, id)).sort(([, a], [, b]) => b.at - a.at);
    const close = make("button", {type: "button", className: "close", ariaLabel: "Close", onclick: () => {
      this.leaveWhy();
      $("why").hidden = true;
      this.focus(id);
    }}, "×");
    show($("why"), [close, make("h2", {}, `Why ${this.name}-${id}`), line("cause", found.cause && `${found.cause}.`, {className: "cause"}),
      line("message", found.message), line("hold", found.hold), ...this.steps(id, found.next),
      line("facts", [found.state && `state ${found.state}`, found.node && `on ${found.node}`, found.ready && `${found.ready} ready`,
        found.template && `template ${found.template}`, found.revision].filter(Boolean).join(", "), {className: "facts"}),
      ...list("Containers", items(found.containers)), ...list("Events", items(found.events)),
      ...list("History", mine.slice(0, 20).map(([key, each]) => make("li", {"data-key": key}, make("span", {}, when(each.at), ` ${each.text}`))))]);
    $("why").hidden = false;
    this.announce("news", [`Why ${this.name}-${id}: ${found.cause ? `${found.cause}. ` : ""}${found.message}`]);
    // On a narrow screen the panel is below the tiles. On a wide one the panel makes the grid narrower, so that tiles move.
    const shown = matchMedia("(max-width: 999px)").matches ? $("why") : this.tiles.get(id);
    if (isNew) shown?.scrollIntoView({block: "nearest"});
  }

  // Returns what the user can do for one instance: advice, and the buttons of its changes. `next` is missing after an error.
  steps(id, next) {
    if (!next) return [];
    // The reason of a button without an effect stays while it is true.
    const {told = {}} = this, isTrue = told.id === id && next.buttons.some((each) => each.change === told.change && each.vain === told.vain);
    const said = make("p", {"data-key": "said", role: "status", className: "chosen"}, isTrue && told.text);
    const buttons = this.settings.readOnly ? [] : next.buttons.map((each) => changeButton(this, each, (text) => {
      this.told = {id, text, change: each.change, vain: each.vain};
      $("why").querySelector(".chosen").textContent = text;
    }));
    return [(next.texts.length || buttons.length) && make("h3", {}, "What you can do"), ...next.texts.map((each) => make("p", {}, each)),
      buttons.length && make("div", {className: "buttons", role: "group", ariaLabel: "Changes of this instance"}, ...buttons), said];
  }

  select(ids) {
    for (const id of new Set([...this.selected, ...ids])) {
      const on = ids.has(id);
      if (this.tiles.get(id)) this.tiles.get(id).ariaSelected = on;
    }
    this.selected = new Set(ids);
    $("chosen").textContent = ids.size ? `${ids.size} chosen: ${ranges(ids)}` : "";
  }

  between(a, b) {
    return new Set([...this.tiles.keys()].filter((id) => id >= Math.min(a, b) && id <= Math.max(a, b)));
  }

  listen() {
    const on = (where, type, does) => where.addEventListener(type, does, {signal: this.signal});
    const grid = $("grid"), of = (event) => {
      const tile = document.elementFromPoint(event.clientX, event.clientY)?.closest(".tile");
      return tile ? Number(tile.dataset.id) : null;
    };
    let from = null, dragged = false;
    on(grid, "pointerdown", (event) => {
      [from, dragged] = [event.button ? null : of(event), false];
    });
    on(grid, "pointermove", (event) => {
      const to = from === null || !(event.buttons & 1) ? null : of(event);
      if (to === null || (to === from && !dragged)) return;
      dragged = true;
      this.select(this.between(from, to));
    });
    on(grid, "click", (event) => {
      const id = of(event) ?? Number(event.target.closest?.(".tile")?.dataset.id ?? NaN);
      if (dragged || Number.isNaN(id)) return;
      if (event.shiftKey && this.anchor !== undefined) this.select(this.between(this.anchor, id));
      else if (event.ctrlKey || event.metaKey) this.toggleSelected(id);
      else {
        this.select(new Set([id]));
        this.why(id);
      }
      if (!event.shiftKey) this.anchor = id;
      this.focus(id);
    });
    on(grid, "keydown", (event) => this.key(event));
    on(grid, "pointerover", ({target}) => {
      const tile = target.closest(".tile"), {image = "", node = ""} = this.model.tiles?.[tile?.dataset.id] ?? {};
      if (tile) tile.title = `${tile.ariaLabel}, ${image} ${node && `on ${node}`}`;
    });
    on($("as-table"), "click", () => this.toggle());
    on(document, "keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || $("dialog").open;
      if (event.key === "t" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) this.toggle();
    });
  }

  toggleSelected(id) {
    const ids = new Set(this.selected);
    if (!ids.delete(id)) ids.add(id);
    this.select(ids);
  }

  // Makes this tile the only one in the order of the Tab key.
  makeTabStop(tile) {
    for (const each of $("grid").querySelectorAll('[tabindex="0"]')) if (each !== tile) each.tabIndex = -1;
    tile.tabIndex = 0;
  }

  // Moves the focus to the instance's tile or row, or to the nearest instance if it does not exist any more.
  focus(id) {
    const nearest = [...this.tiles.keys()].sort((a, b) => Math.abs(a - id) - Math.abs(b - id) || b - a)[0];
    if (nearest === undefined) $("name").focus();
    else if ($("grid").hidden) $("table").querySelector(`[data-key="${nearest}"] button`)?.focus();
    else {
      const tile = this.tiles.get(nearest);
      this.makeTabStop(tile);
      tile.focus();
    }
  }

  key(event) {
    const ids = [...this.tiles.keys()].sort((a, b) => a - b), at = ids.indexOf(Number(event.target.dataset.id));
    const top = event.target.offsetTop, row = ids.filter((id) => this.tiles.get(id).offsetTop === top).length;
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -at, End: ids.length - 1 - at};
    if (event.key in steps) {
      const to = ids[Math.max(0, Math.min(ids.length - 1, at + steps[event.key]))];
      if (!event.shiftKey) this.anchor = to;
      else this.select(this.between(this.anchor ?? ids[at], to));
      this.anchor ??= ids[at];
      this.focus(to);
    } else if (event.key === " ") this.toggleSelected(ids[at]);
    else if (event.key === "Enter") this.why(ids[at]);
    else if (event.key === "Escape") this.select(new Set());
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.select(new Set(ids));
    else return;
    event.preventDefault();
  }
}
