/* The wiring: controls change the state, the state is shown everywhere.
 *
 * For scripts: Playground.restore("#x=...") takes a state from a link and shows it at once;
 * Playground.numbers() is what is shown, unrounded: {state, p, threshold, gradient, ranks,
 * permutation, softness}. */
(function (Playground) {
  "use strict";

  const { draw, soft } = Playground;
  const States = Playground.state;
  const find = (id) => document.getElementById(id);
  const { format } = draw;

  const STEP = { arrow: 0.05, page: 0.5 }; // of the keys
  const round = (score) => Math.round(100 * score) / 100; // of the mouse

  let state = States.fromPreset("bell");
  let numbers = null;
  let frame = null; // of the weights
  let rows = []; // of the handles

  // --- state → page ------------------------------------------------------------------------------

  /* After the last of many changes: a screen reader, and the history of a browser, want few. */
  function late(milliseconds) {
    let timer = 0;
    return (action) => {
      clearTimeout(timer);
      timer = setTimeout(action, milliseconds);
    };
  }
  const soon = { tell: late(300), link: late(250) };

  let scheduled = false;

  function change(next) {
    if (next.scores.length !== state.scores.length) rows = [];
    if (next !== state) soon.link(keepLink);
    state = next;
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      show();
    });
  }

  function show() {
    numbers = soft.compute(state);
    ({ frame, rows } = draw.weights(find("weights"), state, numbers, rows));
    draw.gradient(find("gradient"), state, numbers);
    draw.ranks(find("ranks"), state, numbers);
    draw.permutation(find("permutation"), state, numbers);
    showControls();
    showTable();
    find("python").textContent = States.toPython(state);
    soon.tell(tell);
  }

  function showControls() {
    const n = state.scores.length;
    const { k, temperature, density, selected } = state;
    find("total").innerHTML = `Σ <i>p</i> = <strong>${format(soft.sum(numbers.p), 2)}</strong> of ${n}`;
    find("k").max = find("k-number").max = n;
    put(find("k"), k);
    put(find("k-number"), k);
    find("k").setAttribute("aria-valuetext", `${format(k, 2)} of ${n}`);
    put(find("temperature"), Math.log10(temperature));
    put(find("temperature-number"), temperature);
    find("temperature").setAttribute("aria-valuetext", String(temperature));
    const open = numbers.softness !== null;
    find("softness").textContent = open ? `${format(100 * numbers.softness, 1)} %` : "–";
    find("softness").title = open ? "0 % is hard, 100 % is undecided" : "Nothing is to be decided";
    find("softness-meter").style.width = `${100 * (numbers.softness || 0)}%`;
    find("densities").querySelector(`[value=${density}]`).checked = true;
    find("add").disabled = n === States.LIMITS.scores;
    find("remove").disabled = n === 1;
    find("remove").textContent = `Remove score ${selected}`;
    fill(find("selected"), n, (i) => new Option(i, i));
    put(find("selected"), selected);
    find("gradient-of").textContent = `∂p${subscript(selected)}/∂x`;
  }

  /* Never under the fingers of who is typing. */
  function put(field, value) {
    if (field !== document.activeElement || field.type !== "number") field.value = value;
  }

  const subscript = (i) => String(i).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

  function fill(parent, count, make) {
    while (parent.childElementCount > count) parent.lastElementChild.remove();
    while (parent.childElementCount < count) parent.append(make(parent.childElementCount));
  }

  function showTable() {
    fill(find("table"), state.scores.length, newRow);
    [...find("table").rows].forEach((row, i) => {
      put(row.querySelector("input"), state.scores[i]);
      const shown = [numbers.p[i], numbers.gradient[i], numbers.ranks[i]].map((value) => format(value, 4));
      shown.push(draw.likeliestPlace(numbers, i));
      shown.forEach((value, column) => (row.cells[column + 2].textContent = value));
    });
  }

  function newRow(i) {
    const row = document.createElement("tr");
    const field = `<input type="number" step="any" aria-label="x of score ${i}">`;
    row.innerHTML = `<th scope="row">${i}</th><td>${field}</td>` + "<td></td>".repeat(4);
    const limits = [-States.LIMITS.line, States.LIMITS.line];
    typed(row.querySelector("input"), () => limits, (value) => States.withScore(state, i, value));
    return row;
  }

  function tell() {
    const i = state.selected;
    const { p, ranks, threshold, softness } = numbers;
    find("status").textContent =
      `Score ${i} at ${format(state.scores[i], 2)} has weight ${format(p[i], 3)} and soft rank ` +
      `${format(ranks[i], 2)}. The threshold is ${format(threshold, 2)}` +
      (softness === null ? "; nothing is to be decided." : `, the choice ${format(100 * softness, 1)} % soft.`);
  }

  // --- the link, and the page around -------------------------------------------------------------

  let outer = ""; // the address of the page that embeds this one

  function keepLink() {
    const hash = States.toHash(state);
    if (location.hash !== hash) history.replaceState(null, "", hash);
    tellOuter({ hash });
  }

  function link() {
    return (outer || location.href).replace(/#.*/, "") + States.toHash(state);
  }

  function restore(hash) {
    const found = States.fromHash(hash);
    find("problems").hidden = !found.problems.length;
    find("problems").textContent = [...found.problems, "The usual values are shown instead."].join("\n");
    rows = [];
    state = found.state;
    show();
  }

  function tellOuter(message) {
    if (window.parent !== window) window.parent.postMessage({ playground: message }, "*");
  }

  function embed() {
    if (window.parent === window) return;
    document.documentElement.dataset.embedded = "";
    const main = document.querySelector("main");
    const tellHeight = () => tellOuter({ height: Math.ceil(main.getBoundingClientRect().height) });
    addEventListener("message", ({ source, data }) => {
      if (source !== window.parent || !data || !data.playground) return;
      const { page, scheme, hash } = data.playground;
      if (page) outer = page;
      if (scheme) document.documentElement.dataset.scheme = scheme;
      if (hash) restore(hash);
      tellHeight();
    });
    new ResizeObserver(tellHeight).observe(main);
    tellOuter({ ready: true });
  }

  // --- controls → state --------------------------------------------------------------------------

  /* A field for a number: what is outside of its limits counts only, clamped, when it is left. */
  function typed(field, limits, next) {
    const value = () => (field.value.trim() === "" ? NaN : Number(field.value));
    field.addEventListener("input", () => {
      const [low, high] = limits();
      if (value() >= low && value() <= high) change(next(value()));
    });
    field.addEventListener("change", () => {
      if (!Number.isNaN(value())) change(next(value()));
    });
    field.addEventListener("blur", () => change(state));
  }

  function wireControls() {
    find("k").addEventListener("input", (event) => change(States.withK(state, Number(event.target.value))));
    typed(find("k-number"), () => [0, state.scores.length], (k) => States.withK(state, k));
    find("temperature").addEventListener("input", (event) => {
      const temperature = Number((10 ** event.target.value).toPrecision(3));
      change(States.withTemperature(state, temperature));
    });
    const among = () => States.LIMITS.temperature;
    typed(find("temperature-number"), among, (value) => States.withTemperature(state, value));
    find("selected").addEventListener("change", (event) => change({ ...state, selected: Number(event.target.value) }));
    find("add").addEventListener("click", () => change(States.withAdded(state, States.roomiestPlace(state))));
    find("remove").addEventListener("click", () => change(States.withRemoved(state, state.selected)));
    for (const density of States.DENSITIES) find("densities").append(densityChoice(density));
    for (const name of Object.keys(States.PRESETS)) find("presets").append(presetButton(name));
    find("permutation").addEventListener("pointermove", (event) => showCell(event));
    find("permutation").addEventListener("pointerleave", () => (find("cell").textContent = ""));
  }

  function densityChoice(density) {
    const label = document.createElement("label");
    label.innerHTML = `<input type="radio" name="density" value="${density}"><span>${density}</span>`;
    label.firstChild.addEventListener("change", () => change({ ...state, density }));
    return label;
  }

  function presetButton(name) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = States.PRESETS[name].label;
    button.addEventListener("click", () => {
      rows = [];
      find("problems").hidden = true;
      change(States.fromPreset(name, state.density));
    });
    return button;
  }

  function showCell(event) {
    const cell = draw.cellAt(find("permutation"), state.scores.length, event);
    if (cell === null) return;
    const [j, i] = cell;
    find("cell").textContent = `score ${i}, place ${j + 1}: ${format(numbers.permutation[j][i], 3)}`;
  }

  function wireCopying() {
    find("copy-python").addEventListener("click", () => copy(States.toPython(state), "The code"));
    find("copy-link").addEventListener("click", () => copy(link(), "The link"));
  }

  async function copy(text, what) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      done = copyBySelection(text);
    }
    find("copied").textContent = done ? `${what} is copied.` : `Copy it by hand: ${text}`;
  }

  /* Where the clipboard is closed to scripts, as on a page without encryption. */
  function copyBySelection(text) {
    const area = document.createElement("textarea");
    const focused = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused.focus();
    return done;
  }

  // --- handles: pointer and keys -------------------------------------------------------------------

  const scoreOf = (target) => {
    const handle = target.closest && target.closest(".handle");
    return handle ? Number(handle.dataset.score) : null;
  };

  const scoreAt = (event) => round(frame.score(event.clientX - find("weights").getBoundingClientRect().left));

  function wireHandles() {
    const svg = find("weights");
    let drag = null; // {i, offset}: where on its handle the score was taken
    let onLine = false; // whether the pointer went down beside all handles

    svg.addEventListener("pointerdown", (event) => {
      const i = scoreOf(event.target);
      onLine = i === null;
      if (i === null || event.button !== 0) return;
      drag = { i, offset: state.scores[i] - scoreAt(event) };
      event.target.setPointerCapture(event.pointerId);
      event.target.closest(".handle").focus({ preventScroll: true });
      change({ ...state, selected: i });
    });
    // A finger on a handle does not scroll. (touch-action would say so, but not on parts of an SVG.)
    const keepStill = (event) => scoreOf(event.target) !== null && event.preventDefault();
    svg.addEventListener("touchstart", keepStill, { passive: false });
    svg.addEventListener("pointermove", (event) => {
      if (drag) change(States.withScore(state, drag.i, round(scoreAt(event) + drag.offset)));
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (drag = null));

    svg.addEventListener("click", (event) => {
      if (onLine && event.target === svg) change(States.withAdded(state, scoreAt(event)));
    });
    svg.addEventListener("focusin", (event) => {
      const i = scoreOf(event.target);
      if (i !== null && i !== state.selected) change({ ...state, selected: i });
    });
    svg.addEventListener("keydown", pressKey);
  }

  function pressKey(event) {
    const i = scoreOf(event.target);
    if (i === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const x = state.scores[i];
    const moves = {
      ArrowLeft: x - STEP.arrow,
      ArrowDown: x - STEP.arrow,
      ArrowRight: x + STEP.arrow,
      ArrowUp: x + STEP.arrow,
      PageDown: x - STEP.page,
      PageUp: x + STEP.page,
      Home: -States.LIMITS.line,
      End: States.LIMITS.line,
    };
    if (event.key in moves) change(States.withScore(state, i, round(moves[event.key])));
    else if (event.key === "Delete" || event.key === "Backspace") removeFocused(i);
    else return;
    event.preventDefault();
  }

  function removeFocused(i) {
    change(States.withRemoved(state, i));
    find("weights").querySelector(".handles").children[state.selected].focus();
  }

  wireControls();
  wireCopying();
  wireHandles();
  embed();
  if (States.isHash(location.hash)) restore(location.hash);
  else show();
  addEventListener("hashchange", () => States.isHash(location.hash) && restore(location.hash));
  new ResizeObserver(() => {
    draw.forgetWidths();
    change(state);
  }).observe(document.querySelector("main"));

  Playground.restore = restore;
  Playground.numbers = () => ({ state, ...numbers });
})((window.Playground = window.Playground || {}));
