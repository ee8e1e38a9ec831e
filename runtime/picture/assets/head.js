/* Head: whether it would load, how much there is, and what does not fit. */

function showHead(picture) {
  const { totals } = picture;
  const tiles = [
    ["On disk", counted(totals.tensors, "tensor"), size(totals.tensor_bytes)],
    ["In the model", counted(totals.parameters, "parameter"), size(totals.parameter_bytes)],
    ["Loading takes", size(totals.peak), "at most"],
    ["Written back", picture.invertible ? "byte for byte" : "not exactly", picture.invertible ? "" : "see below"],
  ];
  byId("head").replaceChildren(
    element("div", { class: "title" },
      element("h1", {}, "weightloom"),
      element("span", { class: "path", title: picture.title }, picture.title),
      element("span", { class: `verdict ${picture.loads ? "fine" : "wrong"}`, id: "verdict" },
        picture.loads ? "✓ would load" : "✗ would not load"),
    ),
    element("dl", { class: "tiles" }, tiles.map(([label, value, more]) =>
      element("div", {}, element("dt", {}, label), element("dd", {}, value), element("dd", { class: "less" }, more)))),
  );
  document.title = `${picture.title} — weightloom`;
}

const HARMLESS = ["lossy", "absent", "set aside", "repaired", "notes"];

function showProblems(picture) {
  const wrong = picture.problems.filter((problem) => !HARMLESS.includes(problem.kind));
  const rest = picture.problems.filter((problem) => HARMLESS.includes(problem.kind));
  byId("problems").replaceChildren(
    ...(picture.error && !wrong.length ? [obstacle(picture.error)] : []),
    ...(wrong.length ? [element("div", { class: "cards" }, wrong.map((problem) => card(picture, problem)))] : []),
    ...picture.hints.map((text) => element("p", { class: "hint" }, element("b", {}, "To do "), text)),
    element("div", { class: "remarks" }, decided(picture), rest.map((problem) => remark(problem))),
  );
}

function obstacle(error) {
  return element("div", { class: "cards" }, element("article", { class: "card" }, element("pre", {}, error.seen),
    error.expected ? element("p", {}, `expected: ${error.expected}`) : null,
    error.hint ? element("p", {}, `to do: ${error.hint}`) : null));
}

function card(picture, problem) {
  const ends = problem.threads.flatMap((place) => BOTH.flatMap((side) =>
    picture.threads[place][side].map((row) => ({ side, row, place }))));
  const listed = problem.lines.length
    ? problem.lines.map((text) => element("li", {}, text))
    : ends.map((end) => element("li", {}, link(picture, end)));
  const few = listed.slice(0, 8);
  const more = listed.length > few.length ? [element("li", { class: "less" }, `and ${listed.length - few.length} more kinds of name, below`)] : [];
  return element("article", { class: "card", "data-problem": problem.kind },
    element("h2", {}, element("b", {}, problem.count.toLocaleString("en")), ` ${problem.kind}`),
    element("ul", {}, few, more));
}

function link(picture, { side, row, place }) {
  const found = picture[side][row];
  const count = found.count > 1 ? ` ×${found.count.toLocaleString("en")}` : "";
  return element("button", { type: "button", class: "link", onclick: () => jump(place, side, row) },
    element("code", {}, templateText(found)), element("span", { class: "less" }, ` ${spec(found)}${count}`));
}

function decided(picture) {
  const facts = Object.entries(picture.facts).map(([label, text]) => [element("dt", {}, label), element("dd", {}, text)]);
  return element("details", { class: "decided" }, element("summary", {}, "How this was decided"), element("dl", {}, facts));
}

function remark(problem) {
  return element("details", { class: "remark", "data-problem": problem.kind },
    element("summary", {}, `${problem.kind}: ${problem.count.toLocaleString("en")}`),
    element("ul", {}, problem.lines.map((text) => element("li", {}, text))));
}
