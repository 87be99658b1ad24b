// The connection with the server: requests that end in time, and models that are followed.
// A browser has six connections with a server, for all of its tabs together. So no request stays open: each tab asks
// for the changes since its last answer, a hidden tab rarely.

const $ = (id) => document.getElementById(id);
const STORED = `tapp-key-${location.port}`;
const SOON = 10, LONG = 40; // Seconds for an answer from memory, and for one that kubectl is asked for (30 s at most)
export const LATE = 10; // Seconds after which the page says that it still waits
const AGAIN = 300, REST = 1000, RETRY = 2000, HIDDEN = 15000; // Milliseconds between two requests

export const keep = (key) => localStorage.setItem(STORED, key);

// Asks the server. Throws an Error with a sentence for the user; its `status` is that of the answer, its
// `timedOut` is true if there was none in time.
export async function ask(path, {body, seconds = LONG, signal} = {}) {
  const options = {headers: {"X-TApp-Key": localStorage.getItem(STORED) ?? ""}};
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
    const answer = await fetch(path, options);
    const found = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(found.error), {status: answer.status});
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

export const askNow = (path, signal) => ask(path, {seconds: SOON, signal});

// Says in the page's head how the connection is: "live", "waiting" or "lost".
export function linked(state, text) {
  $("link").dataset.link = state;
  if ($("link").textContent !== text) $("link").textContent = text;
}

// Puts a change into a model, which the server says once: parts, and of some parts single items.
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

// Waits, but no longer than until the tab is shown again, the machine is back in its network, or nobody follows.
export function rest(milliseconds, signal) {
  return new Promise((done) => {
    const over = new AbortController();
    const end = () => { clearTimeout(timer); over.abort(); done(); };
    const timer = setTimeout(end, milliseconds);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, {signal: over.signal});
    for (const each of ["pageshow", "online"]) window.addEventListener(each, end, {signal: over.signal});
    signal?.addEventListener("abort", end, {signal: over.signal});
  });
}

// Follows a model until the signal is aborted, through lost connections and restarts of the server.
export async function follow(path, query, signal, render) {
  const model = {};
  for (let version = "", pause = AGAIN; !signal.aborted;) {
    let longest = REST;
    try {
      const asked = new URLSearchParams({...query, since: version, hidden: document.hidden});
      const found = await askNow(`${path}?${asked}`, signal);
      if (signal.aborted) return;
      version = found.version;
      if (found.changes.length) pause = AGAIN;
      for (const change of found.changes) {
        merge(model, change);
        render(model, change);
      }
      linked(model.lost ? "lost" : "live", model.lost ? `cluster lost: ${model.lost}` : "live");
    } catch (error) {
      if (signal.aborted) return;
      longest = RETRY;
      linked("lost", `connection lost, trying again: ${error.message}`);
    }
    await rest(document.hidden ? HIDDEN : pause, signal);
    pause = Math.min(pause * 1.5, longest);
  }
}
