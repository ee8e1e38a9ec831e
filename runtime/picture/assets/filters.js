/* Filters: words that are searched, and kinds that are wanted; none wanted means all. */

const wanted = { words: "", kinds: new Set() };

function showFilters(picture) {
  const counts = new Map();
  for (const thread of picture.threads) counts.set(thread.kind, (counts.get(thread.kind) ?? 0) + endCount(picture, thread));
  wanted.kinds = new Set([...wanted.kinds].filter((kind) => counts.has(kind)));
  const there = Object.keys(picture.kinds).filter((kind) => counts.has(kind));
  const field = element("input", {
    type: "search", id: "search", placeholder: "Search names and rules  ( / )", "aria-label": "Search names and rules",
    spellcheck: "false", autocomplete: "off",
  });
  field.value = wanted.words;
  field.addEventListener("input", () => {
    wanted.words = field.value;
    applyFilters(picture);
  });
  byId("filters").replaceChildren(
    field,
    element("div", { class: "legend", role: "group", "aria-label": "Kinds of thread" },
      there.map((kind) => chip(picture, kind, counts.get(kind)))),
    element("span", { id: "shown", class: "less", "aria-live": "polite" }),
  );
  applyFilters(picture);
}

function endCount(picture, thread) {
  const side = thread.left.length ? "left" : "right";
  return thread[side].reduce((sum, at) => sum + picture[side][at].count, 0);
}

function chip(picture, kind, count) {
  const node = element("button", {
    type: "button", class: "chip", title: picture.kinds[kind], "data-kind": kind, "aria-pressed": String(wanted.kinds.has(kind)),
  }, swatch(kind), ` ${kind} `, element("span", { class: "less" }, count.toLocaleString("en")));
  node.addEventListener("click", () => {
    if (!wanted.kinds.delete(kind)) wanted.kinds.add(kind);
    node.setAttribute("aria-pressed", String(wanted.kinds.has(kind)));
    applyFilters(picture);
  });
  return node;
}

/** Hide the bands that are not wanted, and the rows of those that have only some of the words. */
function applyFilters(picture) {
  const words = wanted.words.trim().toLowerCase();
  let shown = 0;
  for (const node of document.querySelectorAll(".band")) {
    const thread = picture.threads[Number(node.dataset.thread)];
    const kind = !wanted.kinds.size || wanted.kinds.has(thread.kind);
    const found = kind && (!words || matches(picture, thread, words));
    node.hidden = !found;
    shown += found ? 1 : 0;
    if (found && !(thread.left.length && thread.right.length)) applyToRows(picture, node, thread, words);
  }
  const all = picture.threads.length;
  byId("shown").textContent = shown === all ? "" : `${shown} of ${counted(all, "thread")}`;
  byId("loom").classList.toggle("empty", shown === 0);
  drawAll();
}

/** Of what has one end alone, show the rows that have the words, or all where the rule has them. */
function applyToRows(picture, node, thread, words) {
  if (words) node.querySelector(".more")?.click();
  const all = !words || says(picture, thread, words);
  for (const row of node.querySelectorAll(".row")) {
    row.hidden = !all && !hasName(picture[row.dataset.side][Number(row.dataset.row)], words);
  }
}

function matches(picture, thread, words) {
  return says(picture, thread, words)
    || BOTH.some((side) => thread[side].some((at) => hasName(picture[side][at], words)));
}

/** Say whether what is told of a thread has the words. */
function says(picture, thread, words) {
  const rules = [...new Set(thread.left.flatMap((at) => picture.left[at].steps))].map((at) => picture.rules[at]);
  const texts = [thread.kind, thread.note, ...thread.ops, ...rules.flatMap((rule) => [rule.text, `${rule.file}:${rule.line}`])];
  return texts.some((text) => text.toLowerCase().includes(words));
}
