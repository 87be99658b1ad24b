"""Takes pictures of the web page: `python -m tests.web.pictures [DIRECTORY]`.

The command writes docs/img/kubectl-tapp-web.png, which README.md shows, docs/img/plan.png with the
page of a plan, and looks.json. A test compares the mean colors in a coarse grid, because these
hardly depend on the fonts.
"""

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from demo.web import template
from kubectl_tapp.show.page import page as written
from tests.plugin.fake_kubectl import StandIn
from tests.plugin.pages import eventful
from tests.web.conftest import CHROMIUM
from tests.web.page_server import Document, cluster, on_port, tapp

ROOT = Path(__file__).parents[2]
README = ROOT / "docs" / "img" / "kubectl-tapp-web.png"
PLAN = README.with_name("plan.png")
LOOKS = Path(__file__).with_name("looks.json")
COLUMNS, ROWS = 16, 12
POOL = {"templatePool": {"canary": template("shop", "shop:2.0")}, "templates": {"5": "canary"}}
LIGHT = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"}
DARK = LIGHT | {"color_scheme": "dark"}
NARROW = LIGHT | {"viewport": {"width": 360, "height": 780}}
SCENES: dict[str, dict[str, Any]] = {
    "six-light": LIGHT, "six-dark": DARK, "six-narrow": NARROW, "thousand-light": LIGHT,
    "stuck-light": LIGHT | {"viewport": {"width": 1040, "height": 1150}}, "stuck-dark": DARK,
    "all-light": LIGHT,
}  # fmt: skip
_GRID = """async ([png, columns, rows]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d", {willReadFrequently: true}), found = [];
    context.drawImage(image, 0, 0);
    const wide = Math.floor(image.width / columns), tall = Math.floor(image.height / rows);
    for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
            const {data} = context.getImageData(column * wide, row * tall, wide, tall);
            const sum = [0, 0, 0];
            for (let at = 0; at < data.length; at += 4) {
                for (let part = 0; part < 3; part += 1) sum[part] += data[at + part];
            }
            found.push(sum.map((each) => Math.round(each * 4 / data.length)));
        }
    }
    return found;
}"""


@contextmanager
def scene(name: str) -> Iterator[tuple[StandIn, str]]:
    """Yields the cluster of a picture after it has settled, and the path of the page to show.

    `name` is a key of `SCENES`; its first word says what the cluster has.
    """
    what = name.partition("-")[0]
    if what == "thousand":
        gone: Document = {"statuses": {str(id): "Killed" for id in range(200, 212)}}
        yield cluster(tapp(replicas=1000, **gone)), "/default/shop"
        return
    standin = cluster(tapp(**POOL, statuses={"2": "Killed"}))
    if what == "stuck":
        broken = template("shop", "shop:broken")
        standin.world.patch("TApp", "shop", {"spec": {"template": broken}})
        standin.world.settle()
    if what == "all":
        standin.world.apply(tapp("ranks", replicas=600))
        standin.world.apply(tapp("rooms", replicas=24, statuses={"7": "Killed"}))
        standin.world.settle()
    yield standin, "/" if what == "all" else "/default/shop"


def taken(browser: Browser, name: str) -> bytes:
    """Returns the picture of a scene, a key of `SCENES`, as PNG."""
    with scene(name) as (standin, first), on_port(standin, first=first) as served:
        context = browser.new_context(**SCENES[name], reduced_motion="reduce", timezone_id="UTC")
        page = context.new_page()
        page.goto(served.door.address)
        page.locator("#rows tbody tr" if first == "/" else "#i5").first.wait_for(timeout=120_000)
        page.locator('#link[data-link="live"]').wait_for()
        if name.startswith("stuck"):
            page.locator("#stuck").get_by_text("The rollout is stuck").wait_for(timeout=120_000)
            page.locator("#i0").click()
            page.locator("#why h2").wait_for()
        found = settled(page)
        context.close()
    return found


def plan_page(browser: Browser) -> bytes:
    """Returns a picture of the upper part of the page of `kubectl tapp plan --html`, as PNG."""
    context = browser.new_context(viewport={"width": 1180, "height": 1760}, color_scheme="light")
    page = context.new_page()
    page.set_content(written(eventful()))
    found: bytes = page.screenshot()
    context.close()
    return found


def settled(page: Page) -> bytes:
    """Returns a screenshot of the page as soon as two successive ones are the same."""
    before: bytes = page.screenshot()
    for _ in range(240):
        page.wait_for_timeout(250)
        found: bytes = page.screenshot()
        if found == before:
            return found
        before = found
    raise AssertionError("the page goes on changing")


def looks(browser: Browser, png: bytes) -> list[list[int]]:
    """Returns the mean color of each cell in a picture's grid, row by row: red, green and blue."""
    page = browser.new_page()
    found: list[list[int]] = page.evaluate(_GRID, [base64.b64encode(png).decode(), COLUMNS, ROWS])
    page.close()
    return found


def main(directory: Path | None) -> None:
    """Takes all pictures and writes their mean colors to looks.json.

    If `directory` is not None, each picture is also written to it.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        noted = {}
        PLAN.write_bytes(plan_page(browser))
        for name in SCENES:
            png = taken(browser, name)
            noted[name] = looks(browser, png)
            if name == "stuck-light":
                README.write_bytes(png)
            if directory is not None:
                (directory / f"{name}.png").write_bytes(png)
        browser.close()
    lines = [f' "{name}": {json.dumps(each)}' for name, each in noted.items()]
    LOOKS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
