/* The pictures: numbers in, SVG out. All but the handles are drawn anew each time; the handles stay,
 * because one of them may have the focus or be dragged. */
(function (Playground) {
  "use strict";

  const { soft } = Playground;
  const LINE = Playground.state.LIMITS.line;

  function element(tag, attributes = {}, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  const line = (x1, y1, x2, y2, kind) => element("line", { x1, y1, x2, y2, class: kind });
  const text = (x, y, content, kind) => element("text", { x, y, class: kind }, content);

  const dot = (cx, cy, kind) => element("circle", { cx, cy, r: kind === "hard" ? 5.5 : 4.5, class: kind });

  function path(points, kind) {
    const steps = points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(2)}`);
    return element("path", { d: steps.join(""), class: kind });
  }

  /* A bar from y0 to y, with round corners at its end. */
  function bar(x, y0, y, kind) {
    const width = 7;
    const height = Math.abs(y - y0);
    const shape = { x: x - width / 2, y: Math.min(y, y0), width, height, rx: Math.min(2, height / 2) };
    return element("rect", { ...shape, class: kind });
  }

  /* The width that a figure has; it is kept, because asking makes the browser lay out the page. */
  const widths = new Map();

  function widthOf(svg) {
    if (!widths.has(svg)) {
      const style = getComputedStyle(svg.parentNode);
      const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
      widths.set(svg, svg.parentNode.clientWidth - padding);
    }
    return widths.get(svg);
  }

  const forgetWidths = () => widths.clear();

  /* A figure as wide as its place: the SVG's own units are pixels, so that letters keep their size. */
  function figure(svg, height, { left, right }) {
    const width = widthOf(svg);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const span = width - left - right;
    return {
      width,
      left,
      right: width - right,
      x: (score) => left + ((score + LINE) / (2 * LINE)) * span,
      score: (x) => ((x - left) / span) * 2 * LINE - LINE,
    };
  }

  const MARGINS = { left: 34, right: 16 };

  /* Whole numbers along the line, and a light band behind the selected score. */
  function lineBackground(frame, top, bottom, selected) {
    const band = { x: frame.x(selected) - 11, y: top, width: 22, height: bottom - top, rx: 11 };
    const nodes = [element("rect", { ...band, class: "band" })];
    for (let score = -LINE; score <= LINE; score++) {
      nodes.push(line(frame.x(score), top, frame.x(score), bottom, "grid"));
      nodes.push(text(frame.x(score), bottom + 16, String(score).replace("-", "−"), "tick middle"));
    }
    return nodes;
  }

  /* Points of a function of the score, one for every second pixel. */
  function curve(frame, height, value, kind) {
    const points = [];
    for (let x = frame.left; x <= frame.right; x += 1.5) points.push([x, height(value(frame.score(x)))]);
    return path(points, kind);
  }

  // --- weights, and the handles of the scores -----------------------------------------------------

  const DISC = 11; // the radius of a handle
  const WEIGHTS = { top: 30, zero: 210, handles: 236, row: 2 * DISC + 5 };

  /* Draws all of it, and returns {frame, rows}: rows[i] is the row of handles that score i is in. */
  function weights(svg, state, numbers, rowsBefore) {
    const { top, zero } = WEIGHTS;
    const count = state.scores.length > 12 ? 5 : 3;
    const bottom = WEIGHTS.handles + count * WEIGHTS.row - DISC;
    const frame = figure(svg, bottom + 24, MARGINS);
    const rows = handleRows(state, rowsBefore, count, frame);
    const height = (p) => zero - p * (zero - top);
    const law = soft.DENSITIES[state.density];
    const { threshold: b, p } = numbers;
    const nodes = lineBackground(frame, top, bottom, state.scores[state.selected]);
    for (const [p, label] of [[0, "0"], [0.5, "½"], [1, "1"]]) {
      nodes.push(line(frame.left, height(p), frame.right, height(p), p ? "grid" : "axis"));
      nodes.push(text(frame.left - 8, height(p) + 4, label, "tick end"));
    }
    const rise = (score) => soft.cdf(law, (score - b) / state.temperature);
    nodes.push(curve(frame, height, rise, "curve"));
    nodes.push(...thresholdMark(frame, b));
    state.scores.forEach((score, i) => {
      const x = frame.x(score);
      nodes.push(line(x, zero, x, WEIGHTS.handles + rows[i] * WEIGHTS.row, "stem"));
      nodes.push(bar(x, zero, height(p[i]), "bar up"));
      nodes.push(dot(x, height(p[i]), "dot"));
    });
    svg.querySelector(".drawing").replaceChildren(...nodes);
    moveHandles(svg.querySelector(".handles"), state, numbers, frame, rows);
    return { frame, rows };
  }

  function thresholdMark(frame, b) {
    const { top, zero } = WEIGHTS;
    const inside = Math.abs(b) <= LINE;
    const x = frame.x(Math.min(Math.max(b, -LINE), LINE));
    const arrow = inside ? "" : b > 0 ? " →" : "← ";
    const label = `threshold b = ${format(b, 2)}`;
    const side = x < frame.left + 60 ? "start" : x > frame.right - 60 ? "end" : "middle";
    const words = text(x, top - 12, b > 0 ? label + arrow : arrow + label, `label ${side}`);
    return inside ? [line(x, top - 6, x, zero, "threshold"), words] : [words];
  }

  /* One handle per score: a disc with its number, and a ring that fills with its weight. */
  function moveHandles(layer, state, numbers, frame, rows) {
    while (layer.childElementCount > state.scores.length) layer.lastElementChild.remove();
    while (layer.childElementCount < state.scores.length) layer.append(newHandle(layer.childElementCount));
    state.scores.forEach((score, i) => {
      const handle = layer.children[i];
      const y = WEIGHTS.handles + rows[i] * WEIGHTS.row;
      handle.setAttribute("transform", `translate(${frame.x(score).toFixed(2)} ${y})`);
      handle.querySelector(".ring").setAttribute("stroke-dasharray", `${numbers.p[i].toFixed(4)} 2`);
      handle.classList.toggle("selected", i === state.selected);
      handle.setAttribute("aria-valuenow", score);
      handle.setAttribute(
        "aria-valuetext",
        `${format(score, 2)}, weight ${format(numbers.p[i], 3)}, rank ${format(numbers.ranks[i], 2)}`,
      );
    });
  }

  function newHandle(i) {
    const ring = { r: DISC, pathLength: 1, transform: "rotate(-90)", class: "ring" };
    const limits = { "aria-valuemin": -LINE, "aria-valuemax": LINE };
    const role = { role: "slider", tabindex: 0, "aria-label": `Score ${i}`, ...limits };
    return element(
      "g",
      { class: "handle", "data-score": i, ...role },
      element("circle", { r: DISC + 4, class: "target" }),
      element("circle", { r: DISC, class: "disc" }),
      element("circle", ring),
      text(0, 4, String(i), "number"),
    );
  }

  /* The first of so many rows in which score i covers no other one, or else the one with most room. */
  function freeRow(scores, rows, i, count, frame) {
    const room = new Array(count).fill(Infinity);
    rows.forEach((row, j) => {
      if (j !== i) room[row] = Math.min(room[row], Math.abs(frame.x(scores[j]) - frame.x(scores[i])));
    });
    const free = room.findIndex((distance) => distance > WEIGHTS.row);
    return free >= 0 ? free : room.indexOf(Math.max(...room));
  }

  /* Handles stay in the rows in which they were; only that of the selected score makes way. */
  function handleRows({ scores, selected }, before, count, frame) {
    const rows = [];
    scores.forEach((_, i) => rows.push(before[i] ?? freeRow(scores, rows, i, count, frame)));
    rows[selected] = freeRow(scores, rows, selected, count, frame);
    return rows;
  }

  const PLOT = [14, 256]; // top and bottom of the smaller figures

  // --- gradient -----------------------------------------------------------------------------------

  function gradient(svg, state, numbers) {
    const [top, bottom] = PLOT;
    const frame = figure(svg, bottom + 24, { left: 44, right: 8 });
    const zero = (top + bottom) / 2;
    const most = niceCeiling(Math.max(...numbers.gradient.map(Math.abs)));
    const height = (value) => zero - (value / most) * (zero - top - 6);
    const nodes = lineBackground(frame, top, bottom, state.scores[state.selected]);
    for (const value of [-most, 0, most]) {
      nodes.push(line(frame.left, height(value), frame.right, height(value), value ? "grid" : "axis"));
      nodes.push(text(frame.left - 8, height(value) + 4, (value > 0 ? "+" : "") + short(value), "tick end"));
    }
    state.scores.forEach((score, j) => {
      const value = numbers.gradient[j];
      const side = value < 0 ? "down" : "up";
      nodes.push(bar(frame.x(score), zero, height(value), `bar ${side}`));
      nodes.push(dot(frame.x(score), height(value), `dot ${side}`));
    });
    svg.replaceChildren(...nodes);
  }

  /* The next of 1, 2, 5, 10, ...: a scale that moves seldom. */
  function niceCeiling(value) {
    if (!(value > 1e-6)) return 1;
    const unit = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value * (1 - 1e-12));
  }

  // --- ranks --------------------------------------------------------------------------------------

  function ranks(svg, state, numbers) {
    const [top, bottom] = PLOT;
    const frame = figure(svg, bottom + 24, { left: 44, right: 8 });
    const n = state.scores.length;
    const height = (rank) => bottom - ((rank - 0.5) / n) * (bottom - top);
    const nodes = lineBackground(frame, top, bottom, state.scores[state.selected]);
    for (const rank of new Set([1, Math.ceil(n / 2), n])) {
      nodes.push(line(frame.left, height(rank), frame.right, height(rank), "grid"));
      nodes.push(text(frame.left - 8, height(rank) + 4, String(rank), "tick end"));
    }
    const law = soft.DENSITIES[state.density];
    const count = (score) => 0.5 + soft.fsum(state.scores, law, state.temperature, score);
    nodes.push(curve(frame, height, count, "curve"));
    soft.hardRank(state.scores).forEach((rank, i) => {
      nodes.push(dot(frame.x(state.scores[i]), height(rank), "hard"));
    });
    state.scores.forEach((score, i) => {
      nodes.push(dot(frame.x(score), height(numbers.ranks[i]), "dot"));
    });
    svg.replaceChildren(...nodes);
  }

  // --- permutation --------------------------------------------------------------------------------

  const CELLS = { left: 30, top: 22 };
  const SHADES = 50;

  function permutation(svg, state, numbers) {
    const n = state.scores.length;
    const cell = Math.min(44, (Math.min(widthOf(svg), 360) - CELLS.left) / n);
    const side = cell * n;
    const width = CELLS.left + side + 1;
    svg.setAttribute("viewBox", `0 0 ${width} ${CELLS.top + side + 1}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", CELLS.top + side + 1);
    const at = (i) => i * cell;
    const nodes = [element("rect", { x: CELLS.left, y: CELLS.top, width: side, height: side, class: "board" })];
    nodes.push(...cells(numbers.permutation, cell));
    const every = cell < 14 ? 5 : 1;
    for (let i = 0; i < n; i++) {
      const middle = at(i) + cell / 2;
      if (i % every === 0) nodes.push(text(CELLS.left + middle, CELLS.top - 7, String(i), "tick middle"));
      if (i % every === 0) nodes.push(text(CELLS.left - 7, CELLS.top + middle + 4, `${i + 1}.`, "tick end"));
    }
    const column = { x: CELLS.left + at(state.selected), y: CELLS.top, width: cell, height: side, rx: 3 };
    nodes.push(element("rect", { ...column, class: "column" }));
    svg.replaceChildren(...nodes);
    const places = state.scores.map((_, i) => `score ${i}: place ${likeliestPlace(numbers, i)}`);
    svg.setAttribute("aria-label", `Soft permutation matrix. Likeliest places: ${places.join(", ")}.`);
  }

  /* One path for all cells of about the same share: some dozens instead of up to 900 elements. */
  function cells(shares, cell) {
    const shades = new Map();
    const side = (cell - 1).toFixed(2);
    shares.forEach((row, j) =>
      row.forEach((share, i) => {
        const shade = Math.round(SHADES * Math.max(share, 0) ** 0.7); // small shares are visible, too
        const [x, y] = [CELLS.left + i * cell + 0.5, CELLS.top + j * cell + 0.5];
        const square = `M${x.toFixed(2)} ${y.toFixed(2)}h${side}v${side}h-${side}z`;
        shades.set(shade, (shades.get(shade) || "") + square);
      }),
    );
    shades.delete(0);
    return [...shades].map(([shade, d]) => element("path", { d, "fill-opacity": shade / SHADES, class: "cell" }));
  }

  /* [place, score] of the cell under a point of the drawing, or null. */
  function cellAt(svg, n, event) {
    const box = svg.getBoundingClientRect();
    const cell = (box.width - CELLS.left - 1) / n;
    const i = Math.floor((event.clientX - box.left - CELLS.left) / cell);
    const j = Math.floor((event.clientY - box.top - CELLS.top) / cell);
    return i >= 0 && i < n && j >= 0 && j < n ? [j, i] : null;
  }

  function likeliestPlace(numbers, i) {
    const shares = numbers.permutation.map((row) => row[i]);
    return shares.indexOf(Math.max(...shares)) + 1;
  }

  // --- numbers as text ----------------------------------------------------------------------------

  /* With a true minus sign, never "-0.00". */
  function format(value, digits) {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const rounded = value.toFixed(digits);
    return Number(rounded) === 0 ? rounded.replace("-", "") : rounded.replace("-", "−");
  }

  const short = (value) => String(Number(value.toPrecision(2))).replace("-", "−");

  Playground.draw = { forgetWidths, weights, gradient, ranks, permutation, cellAt, likeliestPlace, format };
})((window.Playground = window.Playground || {}));
