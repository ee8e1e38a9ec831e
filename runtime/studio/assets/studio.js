/* Studio: what is typed is planned, one request at a time; the last picture stays, greyed, while the text is wrong. */

const PAUSE = 150;
const studio = { file: "", path: null, saved: "", timer: 0, asking: false, again: false };

async function ask(what, asked) {
  const answer = await fetch(what, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked), cache: "no-store",
  });
  if (!answer.ok) throw new Error(`the studio answers ${answer.status}`);
  return answer.json();
}

function changed() {
  byId("file").classList.toggle("dirty", textField().value !== studio.saved);
  clearTimeout(studio.timer);
  studio.timer = setTimeout(plan, PAUSE);
}

async function plan() {
  if (studio.asking) {
    studio.again = true;
    return;
  }
  studio.asking = true;
  say("planning …");
  const start = performance.now();
  const text = textField().value;
  try {
    const found = await ask("plan", { text });
    // What has been changed since is planned by itself.
    if (textField().value === text) showPlanned(found, performance.now() - start);
  } catch (error) {
    say(`no answer: ${error.message}; does the command still run?`, true);
  } finally {
    studio.asking = false;
    if (studio.again) {
      studio.again = false;
      plan();
    }
  }
}

function say(text, wrong = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("wrong", wrong);
}

function showPlanned(found, took) {
  const marks = [
    ...found.faults.map((fault) => ({ ...fault, kind: "fault" })),
    ...found.misfits.map((fault) => ({ ...fault, kind: "misfit" })),
    ...found.warnings.map((fault) => ({ ...fault, kind: "warning" })),
  ];
  const own = (mark) => mark.file === studio.file;
  editor.marks = marks.filter((mark) => own(mark) && mark.kind !== "warning");
  drawEditor();
  byId("faults").replaceChildren(...marks.map((mark) => faultItem(mark, own(mark))));
  byId("picture").classList.toggle("stale", found.picture === null);
  if (found.picture === null) {
    say(`${counted(found.faults.length, "fault")}; the picture is of the last text that could be planned`, true);
    return;
  }
  const { scrollTop } = byId("picture");
  showPicture(found.picture);
  byId("picture").scrollTop = scrollTop;
  onCaret();
  say(took === undefined ? "" : `planned in ${(took / 1000).toFixed(2)} s`);
}

function faultItem(fault, own) {
  const place = fault.line ? `${own ? "" : `${fault.file}:`}${fault.line}:${fault.column}` : "";
  const more = [fault.expected && `expected: ${fault.expected}`, fault.hint && `to do: ${fault.hint}`].filter(Boolean);
  const node = element("li", { class: fault.kind, "data-line": fault.line, tabindex: fault.line && own ? 0 : undefined },
    place ? element("b", {}, place) : null, fault.code ? `${fault.code} ` : null, fault.seen,
    more.map((text) => element("span", { class: "more" }, text)));
  if (fault.line && own) {
    node.addEventListener("click", () => goTo(fault.line, fault.column));
    node.addEventListener("keydown", (event) => event.key === "Enter" && goTo(fault.line, fault.column));
  }
  return node;
}

async function save() {
  const place = byId("place");
  const path = byId("path").value.trim();
  if (studio.path === null && !path) {
    place.hidden = false;
    byId("path").focus();
    say("where to?");
    return;
  }
  const text = textField().value;
  try {
    const found = await ask("save", { text, path: path || studio.path });
    if (!found.saved) return notice(found.error.message, found.path !== null && found.path === (path || found.path));
    place.hidden = true;
    byId("path").value = "";
    keep(found, text);
    say("saved");
    plan();
  } catch (error) {
    notice(`not saved: ${error.message}`, false);
  }
}

/** Remember what is on disk now. */
function keep(found, text) {
  studio.file = found.file;
  studio.path = found.path;
  studio.saved = text;
  byId("notice").hidden = true;
  byId("file").textContent = visible(found.file);
  byId("file").classList.toggle("dirty", textField().value !== text);
}

function notice(text, canTake) {
  const take = element("button", { type: "button" }, "Take the file's text");
  take.addEventListener("click", takeText);
  byId("notice").replaceChildren(visible(text), ...(canTake ? [take] : []));
  byId("notice").hidden = false;
}

async function takeText() {
  const found = await ask("take", {});
  if (found.error) return notice(found.error.message, false);
  textField().value = found.text;
  keep(found, found.text);
  showPlanned(found);
}

/** Mark the line of the rule that acts on what is pointed at. */
function onPointed({ detail: thread }) {
  const rules = thread.left.flatMap((at) => shownPicture.left[at].steps).map((at) => shownPicture.rules[at]);
  const own = rules.find((rule) => rule.file === studio.file && rule.line);
  editor.here = own ? own.line : null;
  drawEditor();
}

/** Mark the threads on which the rule acts that the caret is in. */
function onCaret() {
  const line = document.activeElement === textField() ? caretRule() : null;
  const own = (at) => shownPicture.rules[at].file === studio.file && shownPicture.rules[at].line === line;
  for (const node of document.querySelectorAll(".band")) {
    const thread = shownPicture.threads[Number(node.dataset.thread)];
    node.classList.toggle("ruled", line !== null && thread.left.some((at) => shownPicture.left[at].steps.some(own)));
  }
}

function startStudio(state) {
  startEditor(state.text, changed);
  keep(state, state.text);
  byId("save").addEventListener("click", save);
  byId("place").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  document.addEventListener("pointed", onPointed);
  document.addEventListener("selectionchange", onCaret);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      save();
    }
  });
  window.addEventListener("beforeunload", (event) => {
    if (textField().value !== studio.saved) event.preventDefault();
  });
  startLoom();
  showPlanned(state);
}

startStudio(JSON.parse(byId("data").textContent));
