/* Elements: all text goes in as text, never as markup, for names come from files of others. */

const SVG = "http://www.w3.org/2000/svg";
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Show what a reader could not see, or what would turn the text around, as an escape; lines stay lines. */
function visible(text) {
  return String(text).replace(CONTROL, escaped);
}

/** Do the same for a name, which is one line. */
function inLine(text) {
  return visible(text).replaceAll("\n", escaped);
}

function escaped(sign) {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function filled(node, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function drawn(tag, properties = {}) {
  return filled(document.createElementNS(SVG, tag), properties, []);
}

function byId(id) {
  return document.getElementById(id);
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Show bytes as the command line does: decimal units, three digits. */
function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : Math.max(0, 3 - String(Math.floor(bytes)).length);
  return `${bytes.toFixed(digits)} ${units[unit]}`;
}

function spec(row) {
  return row.shape === null ? "" : `${row.dtype ?? "any dtype"} [${row.shape.join(", ")}]`;
}
