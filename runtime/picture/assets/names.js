/* Names: a row's template as text, its single names by number, and whether a row has a name that is looked for. */

function length(run) {
  return Math.floor((run[1] - run[0]) / run[2]) + 1;
}

function amount(runs) {
  return runs.reduce((sum, run) => sum + length(run), 0);
}

function inRuns(runs, number) {
  return runs.some(([first, last, step]) => number >= first && number <= last && (number - first) % step === 0);
}

function runText([first, last, step]) {
  if (first === last) return String(first);
  return step === 1 ? `${first}–${last}` : `${first}, ${first + step} … ${last}`;
}

/** Say which numbers stand at one place of a row's template, whatever stands at the others. */
function numbersAt(row, place) {
  const texts = new Set(row.boxes.flatMap((box) => box[place].map(runText)));
  const all = [...texts];
  return all.length > 4 ? `${all.slice(0, 3).join(", ")}, … ${all[all.length - 1]}` : all.join(", ");
}

/** The pieces of a template: text, and the numbers between. */
function pieces(row) {
  return row.parts.flatMap((text, place) =>
    place === 0 ? [{ text: inLine(text) }] : [{ text: numbersAt(row, place - 1), number: true }, { text: inLine(text) }],
  );
}

function templateText(row) {
  return pieces(row).map((piece) => piece.text).join("");
}

/** The name with this place among all names of a row; no list of them is ever made. */
function nameAt(row, place) {
  for (const box of row.boxes) {
    const amounts = box.map(amount);
    const total = amounts.reduce((product, each) => product * each, 1);
    if (place < total) return named(row, box, amounts, place);
    place -= total;
  }
  return "";
}

function named(row, box, amounts, place) {
  const numbers = [];
  for (let axis = box.length - 1; axis >= 0; axis -= 1) {
    numbers[axis] = numberAt(box[axis], place % amounts[axis]);
    place = Math.floor(place / amounts[axis]);
  }
  return inLine(row.parts.map((text, at) => (at === 0 ? text : numbers[at - 1] + text)).join(""));
}

function numberAt(runs, place) {
  for (const run of runs) {
    if (place < length(run)) return run[0] + place * run[2];
    place -= length(run);
  }
  return NaN;
}

/** Say whether a part of some name of a row is this text (in small letters); numbers may be any that the row has. */
function hasName(row, wanted) {
  const text = row.parts.join("\u0000").toLowerCase();
  const shape = [...text.matchAll(/\u0000|\d+|[^\u0000\d]+/g)].map((found) => found[0]);
  const asked = [...wanted.matchAll(/\d+|\D+/g)].map((found) => found[0]);
  return shape.some((_, start) => row.boxes.some((box) => fitsAt(shape, start, asked, box)));
}

function fitsAt(shape, start, asked, box) {
  const hole = shape.slice(0, start).filter((piece) => piece === "\u0000").length;
  let axis = hole;
  return asked.every((piece, at) => {
    const there = shape[start + at];
    if (there === undefined) return false;
    const last = at === asked.length - 1;
    if (there === "\u0000") return isNumber(piece) && numberFits(box[axis++], Number(piece), last);
    if (at === 0 && last) return there.includes(piece);
    if (at === 0) return there.endsWith(piece);
    return last ? there.startsWith(piece) : there === piece;
  });
}

function isNumber(piece) {
  return /^\d+$/.test(piece);
}

function numberFits(runs, number, begins) {
  if (inRuns(runs, number)) return true;
  if (!begins) return false;
  const digits = String(number);
  return runs.some((run) => {
    for (let at = 0; at < Math.min(length(run), 1000); at += 1) {
      if (String(run[0] + at * run[2]).startsWith(digits)) return true;
    }
    return false;
  });
}
