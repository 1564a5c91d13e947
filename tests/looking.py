"""What tests look for in a page that Chromium shows: faint texts, cut words, controls without a name, shadows."""

import base64
import json

from chromium import Page

# Texts whose contrast with what lies behind them is below 4.5 (WCAG 2.2, 1.4.3), disabled controls aside.
FAINT = """(() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2]);
  const found = {}, texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, style = getComputedStyle(element), parents = [];
    for (let one = element; one; one = one.parentElement) parents.unshift(one);
    const isShown = element.checkVisibility({ visibilityProperty: true }) && style.clipPath === "none";
    const isOther = element.closest("script, style, noscript, option, title, :disabled, #bar");
    if (!isShown || isOther || !texts.currentNode.textContent.trim()) continue;
    const square = element.closest(".board")?.querySelector(".square-dark");
    const backgrounds = parents.map((one) => getComputedStyle(one).backgroundColor);
    const layers = square ? [getComputedStyle(square).fill] : backgrounds;
    const background = layers.reduce((below, layer) => over(rgba(layer), below), [255, 255, 255]);
    const color = rgba(element instanceof SVGElement ? style.fill : style.color);
    color[3] *= parents.reduce((product, one) => product * getComputedStyle(one).opacity, 1);
    const [high, low] = [luminance(over(color, background)), luminance(background)].sort((a, b) => b - a);
    if ((high + 0.05) / (low + 0.05) < 4.5) found[texts.currentNode.textContent.trim()] = (high + 0.05) / (low + 0.05);
  }
  return found;
})()"""
# Words that go on in another line, where no space, hyphen or <wbr> stands.
CUT = """(() => {
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, svg, select, .fen")) continue;
    for (const word of node.textContent.matchAll(/[^\\s-]+/g)) {
      const range = new Range();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (range.getClientRects().length > 1) found.push(word[0]);
    }
  }
  return found;
})()"""
ROLES = {"button", "columnheader", "combobox", "grid", "gridcell", "image", "link", "progressbar", "radio", "region"}
ROLES |= {"rowheader", "slider", "textbox"}


def unnamed(page: Page) -> list[str]:
    """Roles that a screen reader would read without a name."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found = [(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]]
    assert len(found) > 10
    return [role for role, name in found if role in ROLES and not name]


def brightness(page: Page, selector: str) -> list[float]:
    """Mean brightness of the left and the right 4 pixels of an element, at a place where it holds no text."""
    found = f"document.querySelector({selector!r}).getBoundingClientRect()"
    box = page.do(f"(({{ x, y, width, height }}) => [x, y, width, height])({found})")
    x, y, width, height = map(round, box)
    picture = json.dumps("data:image/png;base64," + base64.b64encode(page.picture()).decode())
    return page.do(f"""(async () => {{
      const image = new Image(), context = document.createElement("canvas").getContext("2d");
      image.src = {picture};
      await image.decode();
      [context.canvas.width, context.canvas.height] = [image.width, image.height];
      context.drawImage(image, 0, 0);
      return [{x + 1}, {x + width - 5}].map((left) => {{
        const values = context.getImageData(left, {y + height - 5}, 4, 3).data.filter((_, i) => i % 4 < 3);
        return values.reduce((a, b) => a + b) / values.length;
      }});
    }})()""")
