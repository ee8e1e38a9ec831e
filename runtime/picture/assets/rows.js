/* Rows: a template with what its names have alike, and below it, when it is opened, the names themselves. */

const LINE = 20;
const LINES = 10;

/** Draw a row; what it has in common with the row above it is drawn lightly. */
function rowElement(picture, side, place, above) {
  const row = picture[side][place];
  const facts = [spec(row), row.count > 1 ? `×${row.count.toLocaleString("en")}` : "", row.nbytes ? size(row.nbytes) : ""];
  const node = element(
    "div",
    { class: "row", tabindex: 0, role: "button", "aria-expanded": "false", "data-side": side, "data-row": place },
    element("div", { class: "name" }, template(row, above)),
    element("div", { class: "facts" }, facts.filter(Boolean).map((fact) => element("span", {}, fact))),
  );
  return node;
}

function template(row, above) {
  const own = steps(row);
  const before = above ? steps(above).map((step) => step.text) : [];
  let alike = true;
  return own.map((step, at) => {
    alike = alike && at < own.length - 1 && before[at] === step.text;
    const kind = [step.number ? "number" : "", alike ? "alike" : ""].filter(Boolean).join(" ");
    return kind ? element("span", { class: kind }, step.text) : step.text;
  }).flatMap((child) => [child, element("wbr")]);
}

/** A template cut behind each dot, so that it can be compared, and break, there. */
function steps(row) {
  return pieces(row).flatMap((piece) =>
    piece.number ? [piece] : (piece.text.match(/[^.]*\.|[^.]+$/g) ?? []).map((text) => ({ text })),
  );
}

/** Open or close the list of a row's names. */
function toggle(node, row) {
  const open = node.getAttribute("aria-expanded") === "true";
  node.setAttribute("aria-expanded", String(!open));
  if (open) node.nextElementSibling.remove();
  else node.after(nameList(row));
}

/** A list of which only the lines in sight are there: a row may stand for thousands of names. */
function nameList(row) {
  const lines = element("div", { class: "lines" });
  const list = element("div", { class: "names", tabindex: 0, "aria-label": counted(row.count, "name") }, lines);
  lines.style.height = `${row.count * LINE}px`;
  list.style.height = `${Math.min(row.count, LINES) * LINE + 2}px`;
  const fill = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / LINE) - LINES);
    const last = Math.min(row.count, first + 4 * LINES);
    lines.replaceChildren(...Array.from({ length: last - first }, (_, at) => line(nameAt(row, first + at), first + at)));
  };
  list.addEventListener("scroll", fill, { passive: true });
  fill();
  return list;
}

function line(name, place) {
  const node = element("div", { class: "line" }, name);
  node.style.top = `${place * LINE}px`;
  return node;
}
