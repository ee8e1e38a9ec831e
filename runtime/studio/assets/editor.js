/* Editor: a plain text field with line numbers beside it, and marks of lines behind it. */

const LINE_HEIGHT = 20;
const TOP = 10;
const LEFT = 4;

const editor = { marks: [], here: null, width: 0 };

function textField() {
  return byId("text");
}

function lineCount() {
  return textField().value.split("\n").length;
}

/** Draw numbers and marks for the text as it is. */
function drawEditor() {
  const kinds = new Map();
  for (const mark of editor.marks) if (mark.line && !kinds.has(mark.line)) kinds.set(mark.line, mark.kind);
  byId("gutter").replaceChildren(...Array.from({ length: lineCount() }, (_, at) =>
    element("div", { class: kinds.get(at + 1) }, at + 1)));
  const strips = [...kinds].map(([line, kind]) => strip(line, kind));
  if (editor.here && !kinds.has(editor.here)) strips.push(strip(editor.here, "here"));
  byId("marks").replaceChildren(...strips);
  followScrolling();
}

function strip(line, kind) {
  const node = element("div", { class: kind, "data-line": line });
  node.style.top = `${TOP + (line - 1) * LINE_HEIGHT}px`;
  const columns = editor.marks.filter((mark) => mark.line === line && mark.column).map((mark) => mark.column);
  for (const column of new Set(columns)) node.append(underline(line, column));
  return node;
}

/** Underline the word at a column. */
function underline(line, column) {
  const text = textField().value.split("\n")[line - 1] ?? "";
  const word = /^[\w.\\^$*()[\]|+?-]+|^./.exec(text.slice(column - 1));
  const node = element("i");
  node.style.left = `${LEFT + (column - 1) * editor.width}px`;
  node.style.width = `${(word ? word[0].length : 1) * editor.width}px`;
  return node;
}

function followScrolling() {
  const { scrollTop, scrollLeft } = textField();
  byId("marks").style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  byId("gutter").scrollTop = scrollTop;
}

/** The line on which the rule begins that the caret is in: the nearest above that begins an item. */
function caretRule() {
  const lines = textField().value.slice(0, textField().selectionStart).split("\n");
  const rest = textField().value.split("\n");
  for (let line = lines.length; line > 0; line -= 1) if (/^\s*- /.test(rest[line - 1])) return line;
  return null;
}

function goTo(line, column) {
  const field = textField();
  const before = field.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(before + Math.max(0, column - 1), before + Math.max(0, column - 1));
  field.scrollTop = Math.max(0, (line - 6) * LINE_HEIGHT);
}

/** Measure a character: all have one width. */
function measure() {
  const probe = element("span", {}, "0".repeat(100));
  probe.style.position = "absolute";
  byId("marks").append(probe);
  editor.width = probe.getBoundingClientRect().width / 100;
  probe.remove();
}

function startEditor(text, onChange) {
  const field = textField();
  field.value = text;
  field.addEventListener("input", () => {
    drawEditor();
    onChange();
  });
  field.addEventListener("scroll", followScrolling, { passive: true });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      // The only way that leaves undoing as it is.
      document.execCommand("insertText", false, "  ");
    } else if (event.key === "Escape") {
      field.blur();
    }
  });
  measure();
  drawEditor();
}
