// The connection with the server: requests with a time limit (`ask`), and models that stay up to date (`follow`).
// A browser opens at most six connections to a server, for all of its tabs together. So no request stays open: each
// tab polls for the changes since its last response, and a hidden tab polls rarely. A request that calls kubectl gets a
// key if kubectl is slow, and the page asks for the result with that key.

const $ = (id) => document.getElementById(id);
const STORED = `tapp-key-${location.port}`;
const QUICK_SECONDS = 10, KUBECTL_SECONDS = 40; // Seconds for a result without and with calls of kubectl
export const STILL_WAITING_SECONDS = 10; // Seconds after which the page tells the user that it is still waiting
const FIRST_PAUSE = 300, MAX_PAUSE = 1000, MAX_RETRY_PAUSE = 2000, HIDDEN_PAUSE = 15000, RESULT_PAUSE = 500; // Milliseconds between two requests

export const storeKey = (key) => localStorage.setItem(STORED, key);

// Sends a request and returns the response's JSON. Throws an Error with a sentence for the user: its `status` is the
// HTTP status of the response, its `timedOut` is true if there was no response in time.
export async function ask(path, {body, seconds = KUBECTL_SECONDS, signal} = {}) {
  const headers = {"X-TApp-Key": localStorage.getItem(STORED) ?? ""};
  const options = {headers: {...headers, Prefer: "respond-async"}};
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const stop = new AbortController(), leave = () => stop.abort();
  options.signal = stop.signal;
  signal?.addEventListener("abort", leave);
  let timedOut = false;
  const timer = setTimeout(() => { timedOut = true; leave(); }, seconds * 1000);
  try {
    let found = await load(path, options);
    while (found.waiting) {
      await pauseFor(RESULT_PAUSE, stop.signal);
      found = await load(`/api/result?key=${encodeURIComponent(found.waiting)}`, {headers, signal: stop.signal});
    }
    return found;
  } catch (error) {
    if (timedOut) throw Object.assign(new Error(`the request timed out: kubectl tapp web has not answered for ${seconds} seconds`), {timedOut});
    if (error.status) throw error;
    throw new Error(`kubectl tapp web does not answer (${error.message})`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

async function load(path, options) {
  const answer = await fetch(path, options);
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), {status: answer.status});
  return found;
}

export const askQuickly = (path, signal) => ask(path, {seconds: QUICK_SECONDS, signal});

// Shows the state of the connection in the page's header: "live", "waiting" or "lost".
export function showConnection(state, text) {
  $("link").dataset.link = state;
  if ($("link").textContent !== text) $("link").textContent = text;
}

// Merges a change into the model. A change replaces whole parts, and single items of the parts tiles, rows and log. A
// server that was restarted sends a whole model without instances until it has read them, so the known ones stay.
function merge(model, change) {
  if (change.whole && (change.tiles || change.rows)) {
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

// Waits this long, or until the tab is shown again, the machine is online again, or the signal is aborted.
export function pauseFor(milliseconds, signal) {
  return new Promise((done) => {
    const over = new AbortController();
    const end = () => { clearTimeout(timer); over.abort(); done(); };
    const timer = setTimeout(end, milliseconds);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, {signal: over.signal});
    for (const each of ["pageshow", "online"]) window.addEventListener(each, end, {signal: over.signal});
    signal?.addEventListener("abort", end, {signal: over.signal});
  });
}

// Keeps a model up to date and renders each change until the signal is aborted. Survives lost connections and
// restarts of the server.
export async function follow(path, query, signal, render) {
  const model = {};
  for (let version = "", pause = FIRST_PAUSE; !signal.aborted;) {
    let longest = MAX_PAUSE;
    try {
      const asked = new URLSearchParams({...query, since: version, hidden: document.hidden});
      const found = await askQuickly(`${path}?${asked}`, signal);
      if (signal.aborted) return;
      version = found.version;
      if (found.changes.length) pause = FIRST_PAUSE;
      for (const change of found.changes) {
        merge(model, change);
        render(model, change);
      }
      if (model.lost) showConnection("lost", `cluster lost: ${model.lost}`);
      else if (found.late) showConnection("waiting", `${found.late}: this page may be out of date`);
      else showConnection("live", "live");
    } catch (error) {
      if (signal.aborted) return;
      longest = MAX_RETRY_PAUSE;
      showConnection("lost", `${error.status === 403 ? "access refused" : "connection lost"}, trying again: ${error.message}`);
    }
    await pauseFor(document.hidden ? HIDDEN_PAUSE : pause, signal);
    pause = Math.min(pause * 1.5, longest);
  }
}
