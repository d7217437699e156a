/* The mathematics of the page, for a handful of scores: everything straight from its definition.
 *
 * F is the CDF of an even density f, x are scores, τ > 0 is the temperature. The sum
 *
 *     FSum(t) = Σ_i F((t - x_i)/τ)
 *
 * counts softly how many scores are below t, from 0 to n. All else follows from it:
 *
 *     top-k        p_i = F((x_i - b)/τ), with the threshold b that makes Σ p = k
 *     gradient     ∂p_i/∂x_j = d_i (δ_ij - d_j/Σd),  d_i = f((x_i - b)/τ)/τ
 *     rank         1/2 + FSum(x_i)
 *     permutation  P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ),  FSum(t_j) = j
 *
 * Conventions are those of the library: the largest scores are chosen, ranks and places rise from 1. */
(function (Playground) {
  "use strict";

  const sum = (values) => values.reduce((total, value) => total + value, 0);

  // --- densities: tail(a) = F(-a) for a >= 0, with full relative accuracy; pdf(a) = f(a) ---------

  const HEIGHT = 1 / Math.sqrt(2 * Math.PI);
  const normalPdf = (a) => HEIGHT * Math.exp((-a * a) / 2);

  /* Near the middle, 1/2 - f(a) (a + a³/3 + a⁵/(3·5) + ...), whose terms are all positive; further
   * out the continued fraction f(a)/(a + 1/(a + 2/(a + 3/(a + ...)))) of Laplace. */
  function normalTail(a) {
    if (a < 3) {
      let term = a;
      let series = a;
      for (let odd = 3; term > 1e-17 * series; odd += 2) {
        term *= (a * a) / odd;
        series += term;
      }
      return 0.5 - normalPdf(a) * series;
    }
    let fraction = a;
    for (let level = 60; level > 0; level--) fraction = a + level / fraction;
    return normalPdf(a) / fraction;
  }

  const DENSITIES = {
    laplace: {
      tail: (a) => Math.exp(-a) / 2,
      pdf: (a) => Math.exp(-a) / 2,
    },
    logistic: {
      tail: (a) => Math.exp(-a) / (1 + Math.exp(-a)),
      pdf: (a) => Math.exp(-a) / (1 + Math.exp(-a)) ** 2,
    },
    normal: { tail: normalTail, pdf: normalPdf },
    cauchy: {
      tail: (a) => Math.atan(1 / a) / Math.PI,
      pdf: (a) => 1 / (Math.PI * (1 + a * a)),
    },
    uniform: {
      tail: (a) => Math.max(0.5 - a, 0),
      pdf: (a) => (a < 0.5 ? 1 : 0),
    },
  };

  const cdf = (density, u) => (u < 0 ? density.tail(-u) : 1 - density.tail(u));

  /* FSum at any point. */
  function fsum(x, density, tau, t) {
    return sum(x.map((score) => cdf(density, (t - score) / tau)));
  }

  /* FSum(t) - level and its slope. Whole scores are counted and only tails are added, so that it is
   * right to the last digit where FSum is nearly flat between two scores. */
  function excess(x, density, tau, t, level) {
    let below = 0;
    let tails = 0;
    let slope = 0;
    for (const score of x) {
      const a = Math.abs(t - score) / tau;
      const tail = density.tail(a);
      below += score <= t ? 1 : 0;
      tails += score <= t ? -tail : tail;
      slope += density.pdf(a) / tau;
    }
    return { value: below - level + tails, slope };
  }

  /* The t with FSum(t) = level, by Newton steps inside a bracket. A step that leaves the bracket, or
   * that comes while the bracket does not halve within two steps, is replaced by its middle. Where
   * FSum is flat at the level, t is the middle between the two scores around it. */
  function pointAtLevel(x, density, tau, level) {
    if (level <= 0) return -Infinity;
    if (level >= x.length) return Infinity;
    let [low, high] = [Math.min(...x), Math.max(...x)];
    const grow = (t, sign) => {
      for (let step = tau; sign * excess(x, density, tau, t, level).value < 0; step *= 2) {
        t += sign * step;
      }
      return t;
    };
    [low, high] = [grow(low, -1), grow(high, 1)];
    let t = (low + high) / 2;
    let widths = [Infinity, Infinity];
    for (let step = 0; step < 200; step++) {
      const { value, slope } = excess(x, density, tau, t, level);
      if (value === 0) return slope > 0 ? t : middleOfGap(x, level);
      if (value > 0) high = t;
      else low = t;
      const newton = t - value / slope;
      const stalls = high - low > widths[0] / 2;
      const next = newton > low && newton < high && !stalls ? newton : (low + high) / 2;
      if (next === t || next === low || next === high) return next;
      widths = [widths[1], high - low];
      t = next;
    }
    return t;
  }

  function middleOfGap(x, level) {
    const sorted = [...x].sort((one, other) => one - other);
    return (sorted[level - 1] + sorted[level]) / 2;
  }

  // --- what the page shows -----------------------------------------------------------------------

  /* b: as many scores are above it as below it for -x, so that a small k keeps its digits. */
  function threshold(x, density, tau, k) {
    return -pointAtLevel(x.map((score) => -score), density, tau, k);
  }

  /* {p, threshold}: exactly 0 and 1 for k = 0 and k = n. */
  function softTopk(x, density, tau, k) {
    const b = threshold(x, density, tau, k);
    return { threshold: b, p: x.map((score) => cdf(density, (score - b) / tau)) };
  }

  /* ∂p_i/∂x_j for all j; 0 where nothing moves. */
  function gradient(x, density, tau, b, i) {
    const d = x.map((score) => density.pdf(Math.abs(score - b) / tau) / tau);
    const total = sum(d);
    return d.map((dj, j) => (total > 0 ? d[i] * ((i === j ? 1 : 0) - dj / total) : 0));
  }

  function softRank(x, density, tau) {
    return x.map((score) => 0.5 + fsum(x, density, tau, score));
  }

  /* Rows are places, the smallest score first; columns are scores. */
  function softPermutation(x, density, tau) {
    const below = [x.map(() => 0)];
    for (let place = 1; place <= x.length; place++) {
      const t = pointAtLevel(x, density, tau, place);
      below.push(x.map((score) => cdf(density, (t - score) / tau)));
    }
    return below.slice(1).map((row, j) => row.map((value, i) => value - below[j][i]));
  }

  /* The limits of τ → 0: scores that tie share what is left for them. */
  function hardTopk(x, k) {
    const edge = [...x].sort((one, other) => other - one)[Math.max(Math.ceil(k), 1) - 1];
    const above = x.filter((score) => score > edge).length;
    const ties = x.filter((score) => score === edge).length;
    const share = Math.min(Math.max((k - above) / ties, 0), 1);
    return x.map((score) => (score > edge ? 1 : score === edge ? share : 0));
  }

  function hardRank(x) {
    const count = (keep) => x.filter(keep).length;
    return x.map((score) => count((y) => y < score) + (count((y) => y === score) + 1) / 2);
  }

  /* The softness of so.calibrate_temperature, Σ h (h - p) / Σ h (h - k/n) with h the hard top-k: 0 is
   * hard, 1 is undecided (every p is k/n). null where nothing is to be decided. */
  function softness(x, p, k) {
    const h = hardTopk(x, k);
    const most = sum(h.map((share) => share * share)) - (k * k) / x.length;
    if (most <= 1e-9 * k) return null;
    return sum(h.map((share, i) => share * (share - p[i]))) / most;
  }

  /* All numbers of a state {scores, k, temperature, density, selected}. */
  function compute({ scores, k, temperature, density, selected }) {
    const law = DENSITIES[density];
    const { p, threshold } = softTopk(scores, law, temperature, k);
    return {
      p,
      threshold,
      gradient: gradient(scores, law, temperature, threshold, selected),
      ranks: softRank(scores, law, temperature),
      permutation: softPermutation(scores, law, temperature),
      softness: softness(scores, p, k),
    };
  }

  Playground.soft = { DENSITIES, cdf, fsum, hardRank, compute, sum };
})((window.Playground = window.Playground || {}));
