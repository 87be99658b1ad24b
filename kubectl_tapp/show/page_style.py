"""The style sheet of the page of `kubectl tapp plan --html`, for light, dark and print.

`PICTURES` has the rules for the pictures and their legend. The page of `kubectl tapp web` uses
these rules, too.
"""

PICTURES = """
:root {
  --soft: #5d6675; --ink: #1d2430; --line: #dfe1e6; --shade: #f1f0ec; --limit: #ad1f36;
  --available: #2e8b6f; --updating: #e0a100; --starting: #4c8fd6; --stopping: #b3592f;
  --missing: #8a63c4; --broken: #c62f45; --ended: #7d8695;
}
@media (prefers-color-scheme: dark) {
  :root {
    --soft: #a2abba; --ink: #e8eaef; --line: #333a46; --shade: #232934; --limit: #ff8d9c;
    --available: #4fb492; --updating: #e9b949; --starting: #6fabea; --stopping: #d98659;
    --missing: #b08fe3; --broken: #f0697c; --ended: #8f99aa;
  }
}
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: .7rem 1rem .2rem; margin: 0;
  font-size: .88rem; color: var(--soft); list-style: none; }
.legend i { display: inline-block; width: .9rem; height: .9rem; border-radius: .2rem;
  margin-right: .4rem; vertical-align: -.12rem; }
svg { display: block; width: 100%; height: auto; min-width: 40rem; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg text.row { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .stripe { fill: var(--shade); }
svg .limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .area { fill: var(--updating); fill-opacity: .35; stroke: var(--updating); stroke-width: 1.5; }
.s-available { fill: var(--available); background: var(--available); }
.s-updating { fill: var(--updating); background: var(--updating); }
.s-starting { fill: var(--starting); background: var(--starting); }
.s-stopping { fill: var(--stopping); background: var(--stopping); }
.s-missing { fill: var(--missing); background: var(--missing); }
.s-broken { fill: var(--broken); background: var(--broken); }
.s-ended { fill: var(--ended); background: var(--ended); }
"""

STYLE = (
    f"{PICTURES}\n"
    + """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff;
  --good: #1d6b53; --bad: #ad1f36; --warn: #8a5a00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171d; --card: #1c2028;
    --good: #6fd0ae; --bad: #ff8d9c; --warn: #f0c766;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
header p { margin: 0; color: var(--soft); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .1rem 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
.headline { font-size: 1.15rem; color: var(--ink); }
.numbers { display: grid; gap: .75rem; margin-top: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.number { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1rem; }
.number b { display: block; font-size: 1.6rem; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.number span { color: var(--soft); font-size: .9rem; }
.number.bad b { color: var(--bad); } .number.good b { color: var(--good); }
.told { border-left: .3rem solid var(--bad); background: var(--card); margin: 0 0 .5rem;
  padding: .6rem 1rem; border-radius: 0 .5rem .5rem 0; overflow-wrap: anywhere; }
.told.warn { border-color: var(--warn); } .told.note { border-color: var(--line); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .5rem .9rem; vertical-align: top;
  border-bottom: 1px solid var(--line); }
tr:last-child > * { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
td.right, th.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .88em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
del { color: var(--bad); } ins { color: var(--good); text-decoration: none; }
.fate { display: inline-block; border-radius: 1rem; padding: .05rem .6rem; font-size: .85rem;
  border: 1px solid currentColor; white-space: nowrap; }
.recreated, .deleted { color: var(--bad); } .in-place, .labels-only { color: var(--warn); }
.created { color: var(--good); } .waiting { color: var(--missing); }
.unchanged { color: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; }
@media print { body { background: #fff; } .scroll { overflow: visible; } }
"""
)
