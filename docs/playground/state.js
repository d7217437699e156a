/* What the page is about: a state, its limits, its presets, its link and its Python.
 *
 * A state is {scores, k, temperature, density, selected}; in a link it reads
 * #x=1.2,-0.4&k=1.5&t=0.25&f=laplace&i=0. Numbers are written so that they are read back exactly. */
(function (Playground) {
  "use strict";

  const LIMITS = {
    scores: 30, // at most, and at least one
    line: 4, // scores are between -line and line
    temperature: [0.01, 10],
  };
  const DENSITIES = Object.keys(Playground.soft.DENSITIES);

  const PRESETS = {
    bell: {
      label: "Bell",
      scores: [0.3, -1.4, 1.1, -0.2, 2.4, -0.8, 0.7, -2.2, 1.6],
      k: 3,
      temperature: 0.3,
      selected: 2,
    },
    ties: {
      label: "Ties",
      scores: [1, -1, 1, -2.5, 1, -1, 2.5, -1],
      k: 3,
      temperature: 0.2,
      selected: 0,
    },
    outlier: {
      label: "Outlier",
      scores: [0.5, -0.9, 3.7, 0.1, -0.4, 0.9, -1.3],
      k: 2,
      temperature: 0.25,
      selected: 5,
    },
    clusters: {
      label: "Two clusters",
      scores: [2, -1.7, 1.3, -2.1, 2.6, -1.3, 1.7, -2.6, 2.3, -1],
      k: 5,
      temperature: 0.4,
      selected: 2,
    },
  };

  function fromPreset(name, density = DENSITIES[0]) {
    const { scores, k, temperature, selected } = PRESETS[name];
    return { scores: [...scores], k, temperature, density, selected };
  }

  // --- the link ----------------------------------------------------------------------------------

  function toHash({ scores, k, temperature, density, selected }) {
    return `#x=${scores.join(",")}&k=${k}&t=${temperature}&f=${density}&i=${selected}`;
  }

  const isHash = (text) => /^#x=/.test(text);

  const number = (text) => (text.trim() === "" ? NaN : Number(text));
  const between = (low, high) => (value) => value >= low && value <= high;

  /* {state, problems}: what a link says wrongly is told, and replaced by what is usual. */
  function fromHash(hash) {
    const fields = new URLSearchParams(hash.replace(/^#/, ""));
    const state = fromPreset("bell");
    const problems = [];

    function take(key, name, read, valid, allowed, usual) {
      const text = fields.get(key);
      const value = text === null ? undefined : read(text);
      if (value !== undefined && valid(value)) return value;
      if (text !== null) problems.push(`${name} must be ${allowed}, but the link has “${shorten(text)}”.`);
      return usual;
    }

    const onLine = between(-LIMITS.line, LIMITS.line);
    state.scores = take(
      "x",
      "x",
      (text) => text.split(",").map(number),
      (scores) => scores.length <= LIMITS.scores && scores.every(onLine),
      `1 to ${LIMITS.scores} numbers between ${-LIMITS.line} and ${LIMITS.line}`,
      state.scores,
    );
    const n = state.scores.length;
    const [coldest, hottest] = LIMITS.temperature;
    state.k = take("k", "k", number, between(0, n), `a number between 0 and ${n}`, Math.min(state.k, n));
    state.temperature = take(
      "t",
      "The temperature t",
      number,
      between(coldest, hottest),
      `a number between ${coldest} and ${hottest}`,
      state.temperature,
    );
    const known = (name) => DENSITIES.includes(name);
    state.density = take("f", "The density f", String, known, `one of ${DENSITIES.join(", ")}`, state.density);
    const isScore = (i) => Number.isInteger(i) && between(0, n - 1)(i);
    state.selected = take("i", "The selected score i", number, isScore, `a whole number below ${n}`, 0);
    return { state, problems };
  }

  const shorten = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

  // --- changes: each returns a new state within the limits -----------------------------------------

  const clamp = (value, [low, high]) => Math.min(Math.max(value, low), high);

  const withK = (state, k) => ({ ...state, k: clamp(k, [0, state.scores.length]) });

  function withTemperature(state, temperature) {
    return { ...state, temperature: clamp(temperature, LIMITS.temperature) };
  }

  function withScore(state, i, value) {
    const scores = [...state.scores];
    scores[i] = clamp(value, [-LIMITS.line, LIMITS.line]);
    return { ...state, scores, selected: i };
  }

  function withAdded(state, value) {
    if (state.scores.length === LIMITS.scores) return state;
    return withScore({ ...state, scores: [...state.scores, 0] }, state.scores.length, value);
  }

  function withRemoved(state, i) {
    if (state.scores.length === 1) return state;
    const scores = state.scores.filter((_, j) => j !== i);
    return withK({ ...state, scores, selected: Math.min(i, scores.length - 1) }, state.k);
  }

  /* The middle of the widest gap between neighbours on the line. */
  function roomiestPlace({ scores }) {
    const stops = [-LIMITS.line, ...scores, LIMITS.line].sort((one, other) => one - other);
    let best = 1;
    for (let i = 2; i < stops.length; i++) {
      if (stops[i] - stops[i - 1] > stops[best] - stops[best - 1]) best = i;
    }
    return Math.round(50 * (stops[best] + stops[best - 1])) / 100;
  }

  // --- the same in Python --------------------------------------------------------------------------

  function toPython({ scores, k, temperature, density }) {
    const options = `method="${density}", temperature=${temperature}`;
    return [
      "import torch, softorder as so",
      `scores = torch.tensor([${scores.join(", ")}], dtype=torch.float64)`,
      `p = so.soft_topk(scores, ${k}, ${options})`,
      `ranks = so.soft_rank(scores, ${options})`,
      `P = so.soft_permutation(scores, ${options})`,
    ].join("\n");
  }

  Playground.state = {
    LIMITS,
    DENSITIES,
    PRESETS,
    fromPreset,
    toHash,
    isHash,
    fromHash,
    withK,
    withTemperature,
    withScore,
    withAdded,
    withRemoved,
    roomiestPlace,
    toPython,
  };
})((window.Playground = window.Playground || {}));
