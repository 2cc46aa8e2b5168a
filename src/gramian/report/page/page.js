"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const meta = read("data-meta");
  const cache = {};
  const data = (name) => (cache[name] ??= read("data-" + name));
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  // Plotly reads a little HTML in its texts: names are shown as they are written.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "path", "g"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const score = (value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return value.toFixed(size >= 10 || value === 0 ? 1 : 2);
  };
  const percent = (value) => (value === null ? "–" : (value > 0 ? "+" : "") + (100 * value).toFixed(1) + " %");
  const shown = new Set(meta.shown);
  const overlay = { bands: true, seeds: false, paper: true, dopamine: true };
  let game = 0;

  // ---- light and dark -------------------------------------------------------------------------------------------
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { $("theme").textContent = dark() ? "Light" : "Dark"; };
  if (remembered()) root.dataset.theme = remembered();
  $("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a page from disk may not remember */ }
    label();
    redraw();
  });
  system.addEventListener("change", () => { label(); redraw(); });
  label();

  // ---- what plotly needs ----------------------------------------------------------------------------------------
  const color = (at) => (dark() ? meta.arms[at].dark : meta.arms[at].color);
  const faint = (hex) => `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",")},0.18)`;
  const ink = () => (dark() ? "#e6e8eb" : "#1b1f24");
  const rule = () => (dark() ? "#3a424c" : "#d5d9de");
  const narrow = () => innerWidth < 600;
  const config = { responsive: true, displaylogo: false, scrollZoom: false, displayModeBar: matchMedia("(pointer: coarse)").matches ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"] };
  const axis = (title, more = {}) => ({ title: { text: title, standoff: 8 }, gridcolor: rule(), zerolinecolor: rule(),
    linecolor: rule(), automargin: true, ...more });
  const layout = (more) => ({ paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink(), family: "system-ui, sans-serif", size: 13 }, margin: { l: 10, r: 20, t: 30, b: 10 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: dark() ? "#a4adb8" : "#59616b", activecolor: ink() },
    showlegend: false, hovermode: "x unified", dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hoverlabel: { bgcolor: dark() ? "#1d2228" : "#ffffff", font: { color: ink() } }, ...more });
  const draw = (id, traces, more) => Plotly.react($(id), traces, layout(more), config);

  const grid = (end, points) => Array.from({ length: points }, (_, k) => (end * (k + 1)) / points);
  const shade = (look) => (dark() ? look.dark : look.color);
  // The mean of a line and its band, in a panel as panels.py describes it.
  const lines = (look, panel, series, axes = {}) => {
    const places = series.x ?? grid(panel.end, series.m.length), x = panel.across === "category" ? places.map(String) : places;
    const traces = [], shape = panel.steps ? "hv" : "linear", hue = shade(look), name = plain(look.name);
    if (overlay.bands && series.l) {
      const edge = { x, mode: "lines", line: { width: 0, shape }, hoverinfo: "skip", connectgaps: false, ...axes };
      traces.push({ ...edge, y: series.l }, { ...edge, y: series.h, fill: "tonexty", fillcolor: faint(hue) });
    }
    const more = series.m.map((_, k) => (series.l ? ` [${score(series.l[k])}, ${score(series.h[k])}]` : "") +
      (look.norm?.[k] ? `, feature norm ${score(look.norm[k])}` : ""));
    traces.push({ x, y: series.m, name, mode: "lines+markers", customdata: more, hovertemplate: "%{y}%{customdata}<extra>" + name + "</extra>",
      line: { color: hue, dash: look.dash, width: 2, shape },
      marker: { symbol: look.marker + (look.open ? "-open" : ""), size: 7, color: hue, maxdisplayed: 9 }, ...axes });
    return traces;
  };
  // A grid of such panels with the lines that are switched on.
  const drawGrid = (id, panels, { looks = meta.arms, on = (key) => shown.has(key), height = 210, label = "", alike = false, hovermode = "x" } = {}) => {
    const columns = narrow() ? 1 : Math.min(3, panels.length), rows = Math.ceil(panels.length / columns);
    const traces = [], more = { height: 20 + height * rows, hovermode, annotations: [], shapes: [], margin: { l: 10 + 35 * (columns === 1 || label !== ""), r: 10, t: 10, b: 10 } };
    panels.forEach((panel, k) => {
      const column = k % columns, row = Math.floor(k / columns), tag = k ? String(k + 1) : "", axes = { xaxis: "x" + tag, yaxis: "y" + tag };
      const title = panel.x === "frames" ? "" : panel.x, small = { tickfont: { size: 10 }, nticks: 5, automargin: false };
      const left = (column + (columns > 1 ? 0.13 : 0.02)) / columns, right = (column + 0.98) / columns;
      const top = 1 - (row + 0.14) / rows, bottom = 1 - (row + (title ? 0.8 : 0.86)) / rows;
      const range = panel.end ? [0, panel.end * 1.02] : undefined;
      const scale = panel.across === "log" ? { type: "log", dtick: 1, exponentformat: "none" } : { type: panel.across, range };
      more["xaxis" + tag] = { ...axis("", { domain: [left, right], anchor: "y" + tag, ...small, ...scale }), title: { text: title, standoff: 4, font: { size: 11 } } };
      more["yaxis" + tag] = axis(column ? "" : label, { domain: [bottom, top], anchor: "x" + tag, ...small, exponentformat: "power", type: panel.up,
        range: panel.top ? [0, panel.top * 1.03] : undefined, matches: alike && k ? "y" : undefined });
      more.annotations.push({ text: plain(panel.title), x: left, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12 } });
      if (panel.level) {
        const [level, low, high] = panel.level, spread = { xref: `x${tag} domain`, yref: "y" + tag, x0: 0, x1: 1 };
        more.shapes.push({ type: "line", ...spread, y0: level, y1: level, line: { color: ink(), width: 1 } });
        if (low !== null) more.shapes.push({ type: "rect", ...spread, y0: low, y1: high, fillcolor: ink(), opacity: 0.1, line: { width: 0 } });
        more.annotations.push({ text: plain(meta.baseline), x: right, xref: "paper", y: level, yref: "y" + tag, xanchor: "right", yanchor: "bottom", showarrow: false });
      }
      for (const [key, series] of Object.entries(panel.lines)) {
        const look = looks[key], at = panel.rings[key];
        if (!on(Number(key))) continue;
        traces.push(...lines(look, panel, series, axes));
        if (at !== undefined) traces.push({ x: [series.x[at]], y: [series.m[at]], mode: "markers", hoverinfo: "skip",
          marker: { symbol: "circle-open", size: 17, color: shade(look), line: { width: 2 } }, ...axes });
      }
    });
    draw(id, traces, more);
  };

  // ---- one game -------------------------------------------------------------------------------------------------
  const drawGame = () => {
    const own = data("curves")[game];
    const traces = [];
    if (overlay.dopamine && own.dopamine) {
      const { x: frames, m, l, h } = own.dopamine;
      const edge = { x: frames, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
      if (overlay.bands) traces.push({ ...edge, y: l }, { ...edge, y: h, fill: "tonexty", fillcolor: faint(ink()) });
      traces.push({ x: frames, y: m, name: "Dopamine DQN", mode: "lines", line: { color: ink(), width: 1 }, opacity: 0.7,
        hovertemplate: "%{y}<extra>Dopamine DQN (Adam, MSE)</extra>" });
    }
    for (const [key, series] of Object.entries(own.arms)) {
      const at = Number(key);
      if (!shown.has(at)) continue;
      if (overlay.seeds) {
        for (const [seed, values] of series.seeds) {
          traces.push({ x: grid(own.horizon, values.length), y: values, mode: "lines", opacity: 0.55,
            line: { color: color(at), width: 1, dash: meta.arms[at].dash },
            hovertemplate: `%{y}<extra>${plain(meta.arms[at].name)}, seed ${seed}</extra>` });
        }
      }
      traces.push(...lines(meta.arms[at], { end: own.horizon }, series));
    }
    if (overlay.paper && own.paper) {
      for (const [key, value] of Object.entries(own.paper)) {
        const at = Number(key);
        if (!shown.has(at)) continue;
        traces.push({ x: [own.horizon * 1.02], y: [value], mode: "markers", cliponaxis: false,
          marker: { symbol: meta.arms[at].marker + "-open", size: 11, color: color(at), line: { width: 2 } },
          hovertemplate: `%{y}<extra>the paper's ${meta.arms[at].paper}, final</extra>` });
      }
    }
    draw("game-figure", traces, { xaxis: axis("frames", { range: [0, own.horizon * 1.04] }),
      yaxis: axis(narrow() ? "return" : meta.axis), height: 420,
      title: { text: plain(meta.games[game]), x: 0, xref: "paper", font: { size: 15 } } });
    $("game-figure").setAttribute("aria-label", "Learning curves of " + meta.games[game] + "; final scores in the table below");
    const body = $("game-rows");
    body.replaceChildren();
    for (const [key, series] of Object.entries(own.arms)) {
      const cells = [...series.cells];
      if (meta.published) cells.push(own.paper?.[key] === undefined ? "" : score(own.paper[key]));
      body.append(make("tr", {}, make("th", { scope: "row" }, meta.arms[Number(key)].name),
        ...cells.map((cell) => make("td", {}, String(cell)))));
    }
  };
  const choose = (at) => {
    game = (at + meta.games.length) % meta.games.length;
    document.querySelectorAll("[data-game]").forEach((select) => { select.value = String(game); });
    document.querySelectorAll(".panel").forEach((panel, k) => panel.setAttribute("aria-pressed", String(k === game)));
    drawGame();
    for (const [id, own] of Object.entries({ features: drawFeatures, "growth-figure": drawGrowth, representation: drawRepresentation })) {
      if (drawn.has(id)) own();
    }
  };
  document.querySelectorAll("[data-game]").forEach((select) => select.addEventListener("change", (event) => choose(Number(event.target.value))));
  $("previous").addEventListener("click", () => choose(game - 1));
  $("next").addEventListener("click", () => choose(game + 1));

  // ---- all games ------------------------------------------------------------------------------------------------
  const DASHES = { solid: "", dash: "6 3", dot: "1.5 2.5", dashdot: "6 3 1.5 3", longdash: "10 4", longdashdot: "10 4 2 4" };
  const SHAPES = { circle: "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z", square: "M-3-3H3V3H-3Z", "triangle-up": "M0-3.5L3.5 3H-3.5Z",
    diamond: "M0-4L4 0L0 4L-4 0Z", x: "M-3-3L3 3M3-3L-3 3", cross: "M0-3.5V3.5M-3.5 0H3.5",
    "triangle-down": "M0 3.5L3.5-3H-3.5Z", star: "M0-4L1 -1H4L1.6 .9L2.5 4L0 2L-2.5 4L-1.6 .9L-4-1H-1Z" };
  const swatch = (look, hue, open = false) => {
    const svg = make("svg", { width: 34, height: 14, viewBox: "-17 -7 34 14", "aria-hidden": "true" });
    svg.append(make("path", { d: "M-16 0H16", "stroke-width": 2, "stroke-dasharray": DASHES[look.dash], style: `stroke:${hue}` }));
    svg.append(make("path", { d: SHAPES[look.marker], "stroke-width": 1.2, style: `stroke:${hue};fill:${open ? "var(--ground)" : hue}` }));
    return svg;
  };
  const drawPanels = () => {
    const host = $("panels");
    host.replaceChildren();
    data("curves").forEach((own, number) => {
      const visible = Object.entries(own.arms).filter(([at]) => shown.has(Number(at)));
      const numbers = visible.flatMap(([at, series]) => [...(overlay.bands && series.l ? [...series.l, ...series.h] : series.m),
        overlay.paper && own.paper?.[at] !== undefined ? own.paper[at] : null]);
      if (overlay.dopamine && own.dopamine) numbers.push(...own.dopamine.m);
      const finite = numbers.filter((value) => value !== null);
      const low = finite.length ? Math.min(...finite) : 0, high = finite.length ? Math.max(...finite) : 1;
      const Y = (value) => (80 - (78 * (value - low)) / (high - low || 1)).toFixed(1);
      const trail = (xs, ys) => {
        let path = "", pen = "M";
        ys.forEach((value, k) => { if (value === null) { pen = "M"; return; } path += `${pen}${xs[k].toFixed(1)} ${Y(value)}`; pen = "L"; });
        return path;
      };
      const svg = make("svg", { viewBox: "0 0 146 84", preserveAspectRatio: "none", "aria-hidden": "true" });
      if (overlay.dopamine && own.dopamine) {
        svg.append(make("path", { class: "dopamine", d: trail(own.dopamine.x.map((frame) => (140 * frame) / own.horizon), own.dopamine.m) }));
      }
      for (const [at, series] of visible) {
        const every = series.m.map((_, k) => k).filter((k) => k % 4 === 3);
        const xs = every.map((k) => (140 * (k + 1)) / series.m.length), pick = (values) => every.map((k) => values[k]);
        if (overlay.bands && series.l) {
          const there = every.filter((k) => series.l[k] !== null);
          if (there.length) {
            const X = (k) => ((140 * (k + 1)) / series.m.length).toFixed(1);
            const up = there.map((k) => `${X(k)} ${Y(series.h[k])}`), down = there.map((k) => `${X(k)} ${Y(series.l[k])}`).reverse();
            svg.append(make("path", { class: "band", style: `fill:var(--arm${at})`, d: "M" + [...up, ...down].join("L") + "Z" }));
          }
        }
        svg.append(make("path", { d: trail(xs, pick(series.m)), style: `stroke:var(--arm${at})`, "stroke-dasharray": DASHES[meta.arms[at].dash] }));
        if (overlay.paper && own.paper?.[at] !== undefined) {
          svg.append(make("path", { class: "paper", d: SHAPES[meta.arms[at].marker], style: `stroke:var(--arm${at})`,
            transform: `translate(143 ${Y(own.paper[at])}) scale(.8)` }));
        }
      }
      const panel = make("button", { type: "button", class: "panel", "aria-pressed": String(number === game),
        "aria-label": `${meta.games[number]}: show its learning curves` },
        make("span", { class: "name" }, meta.games[number]), svg,
        make("span", { class: "range" }, make("span", {}, finite.length ? `${score(low)} to ${score(high)}` : "no episode yet")));
      panel.addEventListener("click", () => { choose(number); $("curves").scrollIntoView({ block: "start" }); $("game").focus({ preventScroll: true }); });
      host.append(panel);
    });
  };

  // ---- all games in one number ----------------------------------------------------------------------------------
  const drawAggregate = () => drawGrid("aggregate-figure", [data("aggregate")[$("aggregate").value]], { label: "human-normalised", height: 360 });
  const drawProfile = () => drawGrid("profile-figure", [data("aggregate").profile], { label: "share of runs above τ", height: 360 });
  const drawGain = () => {
    const own = data("gain"), key = $("gain-arm").value, series = own[key];
    $("gain-count").textContent = series.text;
    const order = series.e.map((_, k) => k).filter((k) => series.e[k] !== null).sort((a, b) => series.e[a] - series.e[b]);
    const at = Number(key), x = order.map((k) => 100 * series.e[k]), limit = series.limit;
    const known = order.map((k) => series.l[k] !== null);
    draw("gain-figure", [{ type: "bar", orientation: "h", x, y: order.map((k) => plain(meta.games[k])),
      marker: { color: color(at), line: { color: color(at), width: 1 },
        pattern: { shape: x.map((value) => (value < 0 ? "/" : "")), fgcolor: color(at), bgcolor: dark() ? "#14171b" : "#ffffff", size: 6, solidity: 0.4 } },
      error_x: { type: "data", symmetric: false, color: ink(), thickness: 1, width: 2,
        array: order.map((k, i) => (known[i] ? 100 * (series.h[k] - series.e[k]) : 0)), arrayminus: order.map((k, i) => (known[i] ? 100 * (series.e[k] - series.l[k]) : 0)) },
      customdata: order.map((k, i) => percent(series.e[k]) + (known[i] ? ` [${percent(series.l[k])}, ${percent(series.h[k])}]` : ", no interval: fewer than two seeds")),
      hovertemplate: "%{y}: %{customdata}<extra></extra>" }],
    { height: Math.max(200, 90 + 20 * order.length), hovermode: "closest", bargap: 0.25, margin: { l: 10, r: narrow() ? 10 : 70, t: 10, b: 10 },
      xaxis: axis("AUC gain (%)", { range: [-limit, limit], zeroline: true, zerolinecolor: ink() }), yaxis: axis("", { gridcolor: "rgba(0,0,0,0)", tickfont: { size: 11 } }),
      annotations: narrow() ? [] : order.map((k, i) => ({ x: 1, xref: "paper", xanchor: "left", y: i, yref: "y", showarrow: false, font: { size: 11 },
        text: percent(series.e[k]) + (Math.abs(x[i]) > limit ? " ›" : "") })) });
  };

  // ---- the choice of κ ------------------------------------------------------------------------------------------
  const silent = new Set(); // penalties that are switched off
  const drawKappa = () => {
    const own = data("kappa");
    drawGrid("kappa-figure", own[$("kappa-score").value], { looks: own.penalties, on: (key) => !silent.has(own.penalties[key].name),
      height: 380, alike: true, hovermode: "closest", label: narrow() ? "score" : "score: 0 worst arm, 1 best arm" });
  };

  // ---- the features ---------------------------------------------------------------------------------------------
  const drawFeatures = () => {
    const own = data("features")[game];
    $("features-none").hidden = own.length > 0;
    $("features-figure").hidden = !own.length;
    if (own.length) drawGrid("features-figure", own);
  };
  const drawGrowth = () => {
    const own = data("growth")[game], arms = Object.keys(own).map(Number).filter((at) => shown.has(at)), ground = dark() ? "#14171b" : "#ffffff", upright = narrow() && arms.length > 1;
    const traces = arms.map((at) => ({ type: "bar", name: plain(meta.arms[at].name), x: [narrow() ? "log ‖g‖" : "log ‖gradient of the head‖", "log ‖φ‖", "log |δ|"], y: own[at].m,
      marker: { color: color(at), line: { color: color(at), width: 1 }, pattern: { shape: meta.arms[at].pattern, bgcolor: color(at), fgcolor: ground, size: 7, solidity: 0.3 } },
      error_y: { type: "data", symmetric: false, array: own[at].h.map((end, k) => (end ?? own[at].m[k]) - own[at].m[k]), arrayminus: own[at].l.map((end, k) => own[at].m[k] - (end ?? own[at].m[k])), color: ink(), thickness: 1, width: 3 },
      hovertemplate: "%{y:.3f}<extra>" + plain(meta.arms[at].name) + "</extra>" }));
    // The bars of a group are 0.8 wide together; a share stands at the foot of its bar.
    const annotations = arms.flatMap((at, k) => own[at].s.map((share, part) => ({ share, x: part + 1 + ((k - (arms.length - 1) / 2) * 0.8) / arms.length }))
      .filter(({ share }) => share !== null).map(({ share, x }) => ({ text: `${Math.round(100 * share)} %`, x, y: 0, yshift: upright ? 20 : 10, textangle: upright ? -90 : 0, showarrow: false, bgcolor: ground, borderpad: 1, font: { size: 11 } })));
    draw("growth-figure", traces, { height: 320, hovermode: "closest", barmode: "group", annotations, xaxis: axis(""), yaxis: axis("growth (1 is a factor of e)", { zeroline: true, zerolinecolor: ink() }) });
  };

  // ---- the trained features -------------------------------------------------------------------------------------
  const decode = (text) => Int8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const drawRepresentation = () => {
    const own = data("representation")[game];
    $("representation-none").hidden = own !== null;
    $("representation-body").hidden = own === null;
    if (own === null) return;
    drawGrid("representation-figure", own.panels, { height: 250 });
    const heats = Object.entries(own.heat).filter(([key]) => shown.has(Number(key)));
    const columns = narrow() ? 1 : Math.min(3, heats.length || 1), rows = Math.ceil(heats.length / columns);
    const scale = [[0, dark() ? "#8cc4ff" : "#08306b"], [0.5, dark() ? "#14171b" : "#ffffff"], [1, dark() ? "#ff9a3c" : "#c75f00"]];
    const traces = [], more = { height: 40 + 300 * rows, hovermode: "closest", annotations: [], margin: { l: 10, r: 10, t: 30, b: 10 } };
    heats.forEach(([key, heat], k) => {
      const tag = k ? String(k + 1) : "", column = k % columns, row = Math.floor(k / columns);
      const left = (column + 0.02) / columns, right = (column + 0.94) / columns, top = 1 - (row + 0.1) / rows, bottom = 1 - (row + 0.98) / rows;
      const bytes = decode(heat.cells), z = Array.from({ length: heat.side }, (_, i) => Array.from(bytes.subarray(i * heat.side, (i + 1) * heat.side), (v) => v / 100));
      traces.push({ type: "heatmap", z, zmin: -1, zmax: 1, colorscale: scale, xaxis: "x" + tag, yaxis: "y" + tag, showscale: k === heats.length - 1,
        colorbar: { thickness: 12, len: 0.8 / rows, y: (top + bottom) / 2, outlinewidth: 0 }, hovertemplate: "%{z}<extra>" + plain(meta.arms[Number(key)].name) + "</extra>" });
      const bare = { showticklabels: false, ticks: "", showgrid: false, zeroline: false, automargin: false };
      more["xaxis" + tag] = { ...bare, domain: [left, right], anchor: "y" + tag, constrain: "domain" };
      more["yaxis" + tag] = { ...bare, domain: [bottom, top], anchor: "x" + tag, autorange: "reversed", scaleanchor: "x" + tag, constrain: "domain" };
      const still = heat.features - heat.varying, note = still ? `, ${still} of ${heat.features} do not vary` : "";
      more.annotations.push({ text: plain(`${meta.arms[Number(key)].name}, seed ${heat.seed}${note}`), x: left, y: top, xref: "paper", yref: "paper",
        xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12 } });
    });
    draw("correlation-figure", traces, more);
    const names = own.arms.map((at) => meta.arms[at].name);
    $("measure-heads").replaceChildren(...["measure", ...names].map((name) => make("th", { scope: "col" }, name)));
    $("measure-rows").replaceChildren(...own.measures.map(([name, texts]) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, name)), ...texts.map((text) => make("td", {}, text)))));
  };

  // ---- controls -------------------------------------------------------------------------------------------------
  const figures = { panels: drawPanels, "game-figure": drawGame, "aggregate-figure": drawAggregate, "profile-figure": drawProfile,
    "gain-figure": drawGain, "kappa-figure": drawKappa, features: drawFeatures, "growth-figure": drawGrowth, representation: drawRepresentation };
  const drawn = new Set();
  const redraw = () => { for (const id of drawn) figures[id](); };
  meta.arms.forEach((arm, at) => {
    const box = make("input", { type: "checkbox", "data-arm": at });
    box.checked = shown.has(at);
    box.addEventListener("change", () => { if (box.checked) shown.add(at); else shown.delete(at); redraw(); });
    $("arms").append(make("label", {}, box, swatch(arm, `var(--arm${at})`), make("span", {}, arm.name)));
  });
  const all = (on) => {
    document.querySelectorAll("[data-arm]").forEach((box) => { box.checked = on; if (on) shown.add(Number(box.dataset.arm)); });
    if (!on) shown.clear();
    redraw();
  };
  $("all").addEventListener("click", () => all(true));
  $("none").addEventListener("click", () => all(false));
  document.querySelectorAll("[data-overlay]").forEach((box) => {
    box.checked = overlay[box.dataset.overlay];
    box.addEventListener("change", () => { overlay[box.dataset.overlay] = box.checked; redraw(); });
  });
  $("aggregate")?.addEventListener("change", drawAggregate);
  $("gain-arm")?.addEventListener("change", drawGain);
  $("kappa-score")?.addEventListener("change", drawKappa);
  if ($("penalties")) {
    for (const penalty of data("kappa").penalties) {
      const box = make("input", { type: "checkbox", "data-penalty": penalty.name });
      box.checked = true;
      box.addEventListener("change", () => { if (box.checked) silent.delete(penalty.name); else silent.add(penalty.name); drawKappa(); });
      const hue = `light-dark(${penalty.color}, ${penalty.dark})`;
      $("penalties").append(make("label", {}, box, swatch(penalty, hue, penalty.open), make("span", {}, penalty.name)));
    }
  }

  document.querySelectorAll("th button[data-sort]").forEach((button) => button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), column = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort"));
    table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const missing = (text) => text === "" || text === "nan";
    const body = table.tBodies[0], sign = up ? 1 : -1;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return sign * (column === 0 ? x.localeCompare(y) : Number(x) - Number(y));
    };
    body.append(...[...body.rows].sort(compare));
  }));

  // Figures are drawn when they come near the window: the page opens at once however many there are.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      drawn.add(entry.target.id);
      figures[entry.target.id]();
    }
  }, { rootMargin: "300px" });
  for (const id of Object.keys(figures)) if ($(id)) near.observe($(id));
  // Paper shows all of them.
  addEventListener("beforeprint", () => {
    for (const id of Object.keys(figures)) {
      if (!$(id) || drawn.has(id)) continue;
      near.unobserve($(id));
      drawn.add(id);
      figures[id]();
    }
  });
  root.dataset.ready = "true";
})();
