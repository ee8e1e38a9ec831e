/* Loom: the bands under each other, and what pointing and keys do. */

let shownPicture = null;
let pinned = null;

function showPicture(picture) {
  shownPicture = picture;
  pinned = null;
  showHead(picture);
  showProblems(picture);
  const last = { left: null, right: null };
  byId("loom").replaceChildren(
    element("div", { class: "columns", "aria-hidden": "true" },
      element("span", {}, "On disk"), element("span", {}), element("span", {}, "In the model")),
    ...picture.threads.map((_, place) => band(picture, place, last)),
    element("p", { class: "none" }, "Nothing here has these words, or is of these kinds."),
  );
  showFilters(picture);
  inspectNothing(picture);
}

function drawAll() {
  for (const node of document.querySelectorAll(".band:not([hidden])")) drawThreads(node);
}

/** Show what is known of a row or a band, and mark it. */
function point(target) {
  const node = target instanceof Element ? target.closest(".band") : null;
  if (!node) return;
  const row = target.closest(".row");
  const place = Number(node.dataset.thread);
  for (const other of document.querySelectorAll(".band.lit")) other.classList.remove("lit");
  node.classList.add("lit");
  inspect(shownPicture, place, row && { side: row.dataset.side, place: Number(row.dataset.row) });
  document.dispatchEvent(new CustomEvent("pointed", { detail: shownPicture.threads[place] }));
}

/** Hold on to a band, so that what is said of it stays; the same once more, or nothing, lets go of it. */
function pin(node) {
  pinned?.classList.remove("pinned");
  pinned = node === pinned ? null : node;
  pinned?.classList.add("pinned");
  if (pinned) point(pinned);
}

function jump(place, side, row) {
  if (wanted.words || wanted.kinds.size) {
    wanted.words = "";
    wanted.kinds.clear();
    showFilters(shownPicture);
  }
  const node = document.querySelector(`.band[data-thread="${place}"]`);
  node.querySelector(".more")?.click();
  const found = node.querySelector(`.row[data-side="${side}"][data-row="${row}"]`) ?? node.querySelector(".row");
  found.scrollIntoView({ block: "center" });
  found.focus({ preventScroll: true });
}

function onKey(event) {
  const typing = event.target instanceof Element && event.target.matches("input, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    byId("search").focus();
  } else if (event.key === "Escape") {
    pin(null);
    event.target.blur?.();
  } else if (event.target instanceof Element && event.target.matches(".row")) {
    onRowKey(event);
  }
}

function onRowKey(event) {
  const rows = [...document.querySelectorAll(".band:not([hidden]) .row:not([hidden])")].filter((row) => row.dataset.side === event.target.dataset.side);
  const at = rows.indexOf(event.target);
  const moves = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows[rows.length - 1] };
  if (event.key in moves) {
    event.preventDefault();
    moves[event.key]?.focus();
  } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    event.preventDefault();
    const side = event.key === "ArrowRight" ? "right" : "left";
    event.target.closest(".band").querySelector(`.side.${side} .row`)?.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open(event.target);
  }
}

function open(node) {
  toggle(node, shownPicture[node.dataset.side][Number(node.dataset.row)]);
  drawThreads(node.closest(".band"));
}

function startLoom() {
  const loom = byId("loom");
  loom.addEventListener("pointerover", (event) => pinned ?? point(event.target));
  loom.addEventListener("focusin", (event) => point(event.target));
  loom.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) open(row);
    else if (event.target.closest(".more")) drawAll();
    else pin(event.target.closest(".middle")?.parentElement ?? null);
  });
  document.addEventListener("keydown", onKey);
  new ResizeObserver(drawAll).observe(loom);
}
