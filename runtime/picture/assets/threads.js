/* Threads: a band for each, with its rows on both sides and, between them, curves that meet in a knot. */

const BOTH = ["left", "right"];
// Of what has one end alone, more rows than these are shown when they are asked for.
const FEW = 12;

function band(picture, place, last) {
  const thread = picture.threads[place];
  const sides = Object.fromEntries(BOTH.map((side) => [side, sideElement(picture, thread, side, last)]));
  const middle = element("div", { class: "middle" }, drawn("svg", { "aria-hidden": "true" }), knot(thread));
  const node = element("div", { class: `band kind-${thread.kind}`, "data-thread": place }, sides.left, middle, sides.right);
  return node;
}

function sideElement(picture, thread, side, last) {
  const node = element("div", { class: `side ${side}` });
  const places = thread[side];
  const add = (some) => {
    for (const place of some) {
      node.append(rowElement(picture, side, place, last[side]));
      last[side] = picture[side][place];
    }
  };
  const cut = places.length > FEW + 3 ? FEW : places.length;
  add(places.slice(0, cut));
  if (cut < places.length) {
    const more = element("button", { class: "more", type: "button" }, `${places.length - cut} more rows`);
    more.addEventListener("click", () => {
      more.remove();
      add(places.slice(cut));
    });
    node.append(more);
  }
  return node;
}

function knot(thread) {
  if (thread.kind === "same" || thread.kind === "renamed") return null;
  const ops = thread.ops.map((op) => op.replace(/\(.*$/s, ""));
  const text = ops.length ? ops.join(" · ") : thread.kind;
  return element("span", { class: "knot" }, text);
}

/** Draw the curves of a band, from the middle of each row to the knot. */
function drawThreads(node) {
  const svg = node.querySelector("svg");
  const box = svg.getBoundingClientRect();
  if (!box.width) return;
  const ends = Object.fromEntries(BOTH.map((side) => [side, heights(node, side, box)]));
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  svg.replaceChildren(...curves(ends, box.width, box.height).map((d) => drawn("path", { d })));
}

function heights(node, side, box) {
  return [...node.querySelectorAll(`.side.${side} > .row:not([hidden])`)].map((row) => {
    const at = row.getBoundingClientRect();
    return at.top + at.height / 2 - box.top;
  });
}

function curves({ left, right }, width, height) {
  const middle = height / 2;
  if (!left.length) return right.map((y) => `M${width * 0.72} ${y}H${width}`);
  if (!right.length) return left.map((y) => `M0 ${y}H${width * 0.28}`);
  if (left.length === 1 && right.length === 1) return [curve(0, left[0], width, right[0])];
  const x = width / 2;
  return [...left.map((y) => curve(0, y, x, middle)), ...right.map((y) => curve(x, middle, width, y))];
}

function curve(fromX, fromY, toX, toY) {
  const bend = (toX - fromX) / 2;
  return `M${fromX} ${fromY}C${fromX + bend} ${fromY} ${toX - bend} ${toY} ${toX} ${toY}`;
}
