// The WCAG contrast of every visible text, and of lines, bars and borders, with what is behind it.
(() => {
  const parts = colour => colour.match(/[\d.]+/g).map(Number);
  const clear = colour => colour === 'transparent' || parts(colour)[3] === 0;
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const over = (top, below, alpha) => top.slice(0, 3).map((c, i) => alpha * c + (1 - alpha) * below[i]);
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  function behind(e) {
    if (e.matches('.number')) return parts(getComputedStyle(e.parentNode.querySelector('.disc')).fill);
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!clear(colour)) return parts(colour);
    }
  }
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const style = getComputedStyle(e);
    const own = [...e.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !e.getClientRects().length || e.disabled || e.matches('option, script')) continue;
    const colour = parts(e.ownerSVGElement ? style.fill : style.color);
    found.push({what: e.textContent.trim(), least: 4.5, ratio: contrast(colour, behind(e))});
  }
  const drawn = (selector, property) => document.querySelectorAll(selector).forEach(e => {
    const style = getComputedStyle(e);
    const below = behind(e);
    const alpha = property === 'fill' ? Number(style.fillOpacity) : 1;
    const ratio = contrast(over(parts(style[property]), below, alpha), below);
    found.push({what: selector, least: 3, ratio});
  });
  drawn('.bar', 'fill');
  drawn('.dot', 'fill');
  drawn('.ring', 'stroke');
  drawn('.curve, .threshold, .axis, .hard', 'stroke');
  drawn('.column', 'stroke');
  drawn('button:not(:disabled), input[type=number], select', 'borderTopColor');
  return found;
})()
