// What only the page can tell about itself. A probe returns plain values, mostly lists of what is wrong; an empty list
// is a pass. check.py calls them.
globalThis.probe = (() => {
  const KNOWN = ["pairs", "metrics", "training", "ranks", "coverage", "local", "simulations", "predictive", "levels", "time"];
  const SHAPES = "path, line, polyline, polygon, rect, circle, ellipse, text, image, use";
  const LEAST_CONTRAST = 4.5; // WCAG 2 AA, text of any size

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const box = (element) => element.getBoundingClientRect();
  const shown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const middle = (element) => [box(element).x + box(element).width / 2, box(element).y + box(element).height / 2];

  function memo(f) {
    const known = new Map();
    return (key) => known.get(key) ?? known.set(key, f(key)).get(key);
  }

  function name(element) {
    const id = element.id ? `#${element.id}` : "";
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 30);
    const inside = element.closest("[id^=fig-]");
    const where = inside && inside !== element ? ` in #${inside.id}` : "";
    return `<${element.localName}${id}>${text ? ` "${text}"` : ""}${where}`;
  }

  const hasSize = (element) => box(element).width > 0 || box(element).height > 0;
  const drawn = (svg) => shown(svg) && hasSize(svg) && all(SHAPES, svg).some((shape) => shown(shape) && hasSize(shape));
  const outermost = () => all("svg").filter((svg) => !svg.ownerSVGElement);

  const named = () => (document.body.dataset.figures ?? "").split(/\s+/).filter(Boolean);

  function figures(expected) {
    const there = named(), wrong = [];
    const element = (figure) => document.getElementById(`fig-${figure}`);
    if (!there.length) wrong.push("<body data-figures> names no figure");
    for (const figure of expected)
      if (!there.includes(figure)) wrong.push(`<body data-figures> does not name ${figure}, which is expected`);
    for (const figure of KNOWN)
      if (!there.includes(figure) && element(figure)) wrong.push(`<body data-figures> does not name #fig-${figure}`);
    for (const figure of there) {
      if (!element(figure)) wrong.push(`there is no #fig-${figure}`);
      else if (!all("svg", element(figure)).some(drawn)) wrong.push(`#fig-${figure} shows no svg with anything in it`);
    }
    return wrong;
  }

  function structure() {
    const wrong = [], ids = all("[id]").map((element) => element.id);
    if (!document.documentElement.lang) wrong.push("<html> has no lang");
    if (!document.title.trim()) wrong.push("the page has no title");
    const twice = new Set(ids.filter((id, i) => ids.indexOf(id) !== i));
    for (const id of twice) wrong.push(`two elements have the id ${id}`);
    for (const svg of outermost()) {
      if (svg.getAttribute("role") !== "img") wrong.push(`${name(svg)} has no role="img"`);
      if (!svg.getAttribute("aria-label")?.trim()) wrong.push(`${name(svg)} has no aria-label`);
    }
    let level = 0;
    for (const heading of all("h1, h2, h3, h4, h5, h6")) {
      const next = Number(heading.localName[1]);
      if (next > level + 1) wrong.push(`${name(heading)} follows ${level ? `an h${level}` : "no h1"}`);
      level = next;
    }
    return wrong;
  }

  function scrolled(element) {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(up).overflowX)) return true;
    return false;
  }

  // What is inside an svg is cut at its edge, so there only text is asked for: a mark may be clipped on purpose.
  function overflow() {
    const wrong = [], wide = document.scrollingElement.scrollWidth;
    if (wide > innerWidth) wrong.push(`the page is ${wide} px wide`);
    const out = (element) => hasSize(element) && box(element).right > innerWidth + 0.5;
    for (const element of all("body *"))
      if (!element.ownerSVGElement && out(element) && shown(element) && !scrolled(element))
        wrong.push(`${name(element)} ends at ${Math.round(box(element).right)} px`);
    const cut = (text, svg) => box(text).left < box(svg).left - 2 || box(text).right > box(svg).right + 2;
    for (const svg of outermost())
      for (const text of all("text", svg))
        if (hasSize(text) && cut(text, svg) && shown(text))
          wrong.push(`${name(text)} is cut off at its svg's edge`);
    return wrong;
  }

  // Colours are read back from a canvas, which knows every notation that CSS has.
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = memo((colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = "transparent"; // stays if the next is no colour, such as a pattern
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  });
  function over(colour, opacity, below) {
    const [r, g, b, a] = rgba(colour);
    return [r, g, b].map((c, i) => below[i] + (c - below[i]) * a * opacity);
  }

  function backdrop(element) {
    const below = element.parentElement ? backdrop(element.parentElement) : [255, 255, 255];
    return over(getComputedStyle(element).backgroundColor, 1, below);
  }

  const opacity = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;

  // Behind a text of an svg lie, besides the page, those of its rectangles that were drawn before it.
  function behind(text, rects) {
    const [x, y] = middle(text);
    let colour = backdrop(text);
    for (const [rect, { left, right, top, bottom }] of rects) {
      if (x < left || x > right || y < top || y > bottom) continue;
      const before = rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      const { fill, fillOpacity } = getComputedStyle(rect);
      if (before && fill !== "none") colour = over(fill, fillOpacity * opacity(rect), colour);
    }
    return colour;
  }

  function luminance(colour) {
    const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrastOf(element, rects) {
    const style = getComputedStyle(element), svg = element.ownerSVGElement;
    const ground = svg ? behind(element, rects(svg)) : backdrop(element);
    const ink = over(svg ? style.fill : style.color, opacity(element), ground);
    const [dark, light] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  }

  // Every element with text of its own, and the body, from which text inherits.
  function contrast() {
    const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const own = (element) => [...element.childNodes].some(isText);
    const rects = memo((svg) => all("rect", svg).map((rect) => [rect, box(rect)]));
    const called = (element) => (element === document.body ? "<body>" : name(element));
    return [document.body, ...all("body *").filter((element) => own(element) && shown(element))]
      .map((element) => [contrastOf(element, rects), element])
      .filter(([ratio]) => ratio < LEAST_CONTRAST)
      .sort(([a], [b]) => a - b)
      .map(([ratio, element]) => `${called(element)} has a contrast of ${ratio.toFixed(2)}`);
  }

  // Where the pointer meets a mark: not always in the middle of its box (a curve), and not where another covers it.
  function meeting(mark) {
    const shapes = all(SHAPES, mark), points = [mark, ...shapes].map(middle);
    for (const shape of shapes.filter((shape) => shape.getPointAtLength))
      for (const part of [0.5, 0.1, 0.3, 0.7, 0.9]) {
        const point = shape.getPointAtLength(part * shape.getTotalLength()).matrixTransform(shape.getScreenCTM());
        points.push([point.x, point.y]);
      }
    const pixels = points.map((point) => point.map(Math.round)); // as a mouse moves: a thinner mark may lie between two
    return pixels.find(([x, y]) => document.elementFromPoint(x, y)?.closest("g.tip") === mark);
  }

  // The first mark of a figure that the pointer can meet, or the last one, scrolled into view.
  function mark(figure, last) {
    const marks = all(`#fig-${figure} svg g.tip`).filter(shown);
    if (last) marks.reverse();
    for (const mark of marks.slice(0, 100)) {
      mark.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const point = meeting(mark);
      if (point) return { marks: marks.length, point };
    }
    return { marks: marks.length, point: null };
  }

  function tip() {
    const element = document.getElementById("tip");
    if (!element || !shown(element) || !hasSize(element)) return null;
    const { left, right, top, bottom } = box(element);
    const inside = left >= -0.5 && top >= -0.5 && right <= innerWidth + 0.5 && bottom <= innerHeight + 0.5;
    return { inside, text: element.innerText.trim() };
  }

  const theme = () => document.documentElement.dataset.theme ?? "none";
  const background = () => backdrop(document.body).map(Math.round).join(" ");

  // After a change: lets the page draw, and takes every transition to its end.
  async function settle() {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    for (const animation of document.getAnimations())
      if (animation.effect.getComputedTiming().endTime !== Infinity) animation.finish();
    await frame();
  }

  // A reader may open what is folded: it is looked at too, and folded again.
  const unfolded = (look) => () => {
    const folded = all("details:not([open])");
    for (const details of folded) details.open = true;
    const found = look();
    for (const details of folded) details.open = false;
    return found;
  };

  return {
    named, figures, structure, mark, tip, theme, background, settle,
    overflow: unfolded(overflow),
    contrast: unfolded(contrast),
  };
})();
