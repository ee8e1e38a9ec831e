/* Inspector: what a thread is, in words: its kind and ops, shapes before and after, and the rules with their places. */

function inspect(picture, place, rowPlace) {
  const thread = picture.threads[place];
  const rows = rowPlace && rowPlace.side === "left" ? [rowPlace.place] : thread.left;
  const numbers = [...new Set(rows.flatMap((at) => picture.left[at].steps))];
  byId("inspector").classList.add("filled");
  byId("inspector").replaceChildren(
    element("section", {}, element("h3", {}, swatch(thread.kind), " ", thread.kind), ...facts(picture, thread)),
    element("section", {}, element("h3", {}, "Shapes"), shapes(picture, thread, rowPlace)),
    element("section", { class: "rules" }, element("h3", {}, "Rules"), ruleList(picture, numbers)),
  );
}

function facts(picture, thread) {
  const bytes = (side) => thread[side].reduce((sum, at) => sum + picture[side][at].nbytes, 0);
  const flow = thread.left.length && thread.right.length ? `${size(bytes("left"))} → ${size(bytes("right"))}` : "";
  const one = size(bytes(thread.left.length ? "left" : "right"));
  const groups = thread.left.length && thread.right.length ? counted(thread.groups, "group") : counted(thread.groups, "name");
  return [
    element("p", { class: "meaning" }, picture.kinds[thread.kind] ?? ""),
    element("p", {}, `${groups}, ${flow || one}`),
    thread.note ? element("p", { class: "note" }, thread.note) : null,
    thread.ops.length ? element("ol", { class: "ops" }, thread.ops.map((op) => element("li", {}, op))) : null,
  ];
}

function shapes(picture, thread, rowPlace) {
  const several = (row) => {
    const each = row.count / Math.max(1, thread.groups);
    return Number.isInteger(each) && each > 1 && thread.left.length && thread.right.length ? `${each} × ` : "";
  };
  const cells = (side) => thread[side].slice(0, 6).map((at) => {
    const row = picture[side][at];
    const here = rowPlace && rowPlace.side === side && rowPlace.place === at;
    return element("div", { class: here ? "here" : "" }, `${several(row)}${spec(row) || "not known"}`);
  });
  const rest = (side) => thread[side].length > 6 ? element("div", {}, `and ${thread[side].length - 6} more`) : null;
  const column = (side) => element("div", {}, cells(side), rest(side));
  const both = thread.left.length && thread.right.length;
  return element("div", { class: "shapes" }, column("left"), both ? element("div", {}, "→") : null, column("right"));
}

function ruleList(picture, numbers) {
  if (!numbers.length) return element("p", { class: "meaning" }, "No rule acts on it.");
  return element("ul", {}, numbers.map((number) => {
    const rule = picture.rules[number];
    const place = rule.file ? `${rule.file}${rule.line ? `:${rule.line}` : ""}` : "";
    return element("li", { "data-file": rule.file, "data-line": rule.line },
      element("code", {}, rule.text),
      element("span", { class: "place" }, [rule.kind, place].filter(Boolean).join(" · ")),
      rule.why ? element("span", { class: "why" }, rule.why) : null,
    );
  }));
}

function swatch(kind) {
  return element("i", { class: `swatch kind-${kind}` });
}

function inspectNothing(picture) {
  const text = picture.threads.length
    ? "Point at a row or a thread to see its rule. Enter opens a row's names, the arrow keys go from row to row, / searches."
    : "There is nothing to see: no tensor and no parameter.";
  byId("inspector").classList.remove("filled");
  byId("inspector").replaceChildren(element("p", { class: "meaning" }, text));
}
