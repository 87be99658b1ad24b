// Drawing: elements are made once and then changed where they differ, so that the keyboard's focus, selected
// text, scroll positions and opened parts survive every refresh.

const FOCUSABLE = "a[href], button:not([disabled]), input, select, textarea, summary, [tabindex]";

// Makes an element. Texts of tenants become text, never markup: nothing here writes HTML.
export function make(tag, more = {}, ...inside) {
  const found = document.createElement(tag);
  for (const [key, value] of Object.entries(more)) {
    if (key in found && key !== "list") found[key] = value;
    else found.setAttribute(key, value);
  }
  found.append(...inside.filter((each) => each));
  return found;
}

const keyOf = (node) => node.dataset?.key || null;

// Makes `nodes` (elements and texts) the children of `parent`. A child stays if it is one of the nodes itself, or has
// the data-key of one, or is the next without a key and with the same tag; then it takes over attributes and content.
export function show(parent, nodes) {
  const wanted = nodes.filter((each) => each).map((each) => (each.nodeType ? each : document.createTextNode(each)));
  const own = new Set(wanted), known = new Map();
  for (const child of parent.childNodes) {
    if (own.has(child)) continue;
    const name = keyOf(child) ?? child.nodeName;
    if (!known.has(name)) known.set(name, []);
    known.get(name).push(child);
  }
  for (const each of known.values()) each.reverse(); // so that pop() takes them in order
  const kept = wanted.map((each) => {
    if (each.parentNode === parent) return each;
    const old = known.get(keyOf(each) ?? each.nodeName)?.pop();
    if (old?.nodeName !== each.nodeName) return each;
    become(old, each);
    return old;
  });
  const staying = new Set(kept), going = [...parent.childNodes].filter((each) => !staying.has(each));
  const left = going.find((each) => each.contains(document.activeElement));
  if (left) passFocus(left, (each) => staying.has(each));
  for (const each of going) each.remove();
  let at = parent.firstChild;
  for (const each of kept) {
    // An element that is moved loses the focus, so the others move around it.
    if (each.contains(document.activeElement)) while (at !== each) { const next = at.nextSibling; parent.append(at); at = next; }
    if (each === at) at = at.nextSibling;
    else parent.insertBefore(each, at);
  }
}

// Gives an element the attributes and the content of another that was made new.
export function become(old, made) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  // The page's Content-Security-Policy forbids to write the attribute `style`.
  const plain = (element) => [...element.attributes].filter((each) => each.name !== "style");
  for (const {name} of plain(old)) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of plain(made)) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== made.style.cssText) old.style.cssText = made.style.cssText;
  old.onclick = made.onclick;
  show(old, [...made.childNodes]);
}

const usable = (element) => element.checkVisibility() && !element.disabled;

// Gives the focus to a neighbor of an element that goes: the next one that stays, else the one before, else whatever
// can have the focus and stands before them.
export function passFocus(gone, stays) {
  for (const step of ["nextElementSibling", "previousElementSibling"]) {
    for (let each = gone[step]; each; each = each[step]) {
      if (!stays(each)) continue;
      const heir = [each, ...each.querySelectorAll(FOCUSABLE)].find((it) => it.matches(FOCUSABLE) && usable(it));
      if (heir) { heir.focus(); return; }
    }
  }
  const before = [...document.querySelectorAll(FOCUSABLE)].filter((each) => each.tabIndex >= 0 && usable(each)
    && each.compareDocumentPosition(gone) === Node.DOCUMENT_POSITION_FOLLOWING);
  before.at(-1)?.focus();
}
