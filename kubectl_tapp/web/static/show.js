// Updates the page's elements. `show` changes only the parts of existing elements that differ, so that the keyboard's
// focus, selected text, scroll positions and opened details survive every refresh.

const FOCUSABLE = "a[href], button:not([disabled]), input, select, textarea, summary, [tabindex]";

// Creates an element. Strings become text nodes and never HTML, because they may come from other users.
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

// Makes `nodes` (elements and strings) the children of `parent`. An existing child is kept if it is one of `nodes`, has
// the same data-key, or is the next child without a key and with the same tag. A kept child takes over the attributes
// and the content of the new node.
export function show(parent, nodes) {
  const wanted = nodes.filter((each) => each).map((each) => (each.nodeType ? each : document.createTextNode(each)));
  const own = new Set(wanted), known = new Map();
  for (const child of parent.childNodes) {
    if (own.has(child)) continue;
    const name = keyOf(child) ?? child.nodeName;
    if (!known.has(name)) known.set(name, []);
    known.get(name).push(child);
  }
  for (const each of known.values()) each.reverse(); // so that pop() returns the first one
  const kept = wanted.map((each) => {
    if (each.parentNode === parent) return each;
    const old = known.get(keyOf(each) ?? each.nodeName)?.pop();
    if (old?.nodeName !== each.nodeName) return each;
    updateElement(old, each);
    return old;
  });
  const staying = new Set(kept), going = [...parent.childNodes].filter((each) => !staying.has(each));
  const left = going.find((each) => each.contains(document.activeElement));
  if (left) passFocus(left, (each) => staying.has(each));
  for (const each of going) each.remove();
  let at = parent.firstChild;
  for (const each of kept) {
    // A moved element would lose the focus, so the elements before it are moved behind it instead.
    if (each.contains(document.activeElement)) while (at !== each) { const next = at.nextSibling; parent.append(at); at = next; }
    if (each === at) at = at.nextSibling;
    else parent.insertBefore(each, at);
  }
}

// Replaces the part of a text node that differs, so that a selection of other parts survives.
function replaceText(node, text) {
  const before = node.data, shorter = Math.min(before.length, text.length);
  if (before === text) return;
  let same = 0, end = 0;
  while (same < shorter && before[same] === text[same]) same += 1;
  while (end < shorter - same && before.at(-1 - end) === text.at(-1 - end)) end += 1;
  node.replaceData(same, before.length - same - end, text.slice(same, text.length - end));
}

// Gives an element a text. Screen readers read a live region again after each write, so an equal text is not written.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Gives an existing element the attributes and the content of a newly created one.
export function updateElement(old, made) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    replaceText(old, made.data);
    return;
  }
  // The Content-Security-Policy forbids setAttribute("style"), so style.cssText is copied below.
  const plain = (element) => [...element.attributes].filter((each) => each.name !== "style");
  for (const {name} of plain(old)) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of plain(made)) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== made.style.cssText) old.style.cssText = made.style.cssText;
  old.onclick = made.onclick;
  show(old, [...made.childNodes]);
}

const isFocusable = (element) => element.checkVisibility() && !element.disabled;

// Moves the focus from an element that is removed to its next sibling that stays, else to the previous one, else to
// the last focusable element before it.
export function passFocus(gone, stays) {
  for (const step of ["nextElementSibling", "previousElementSibling"]) {
    for (let each = gone[step]; each; each = each[step]) {
      if (!stays(each)) continue;
      const heir = [each, ...each.querySelectorAll(FOCUSABLE)].find((it) => it.matches(FOCUSABLE) && isFocusable(it));
      if (heir) { heir.focus(); return; }
    }
  }
  const before = [...document.querySelectorAll(FOCUSABLE)].filter((each) => each.tabIndex >= 0 && isFocusable(each)
    && each.compareDocumentPosition(gone) === Node.DOCUMENT_POSITION_FOLLOWING);
  before.at(-1)?.focus();
}
