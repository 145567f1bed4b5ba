// The timeline: units above one another, time from left to right, on a canvas.

const GUTTER = 132;
const AXIS = 26;
const LANE = 26;
const HEADING = 26;
const MOST_HEIGHT = 520;
const MAP_HEIGHT = 30;
const LEAST_SPAN = 8; // cycles
const MOST_ARROWS = 120;

/** Colours of the page as the canvas needs them. */
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ['panel', 'text', 'muted', 'line', 'faint', 'accent', 'dense', 'task', 'task-text', 'critical',
    'window', 'dependence', 'token', 'unit', 'tags', 'queue', 'arbitration'];
  const theme = Object.fromEntries(names.map((name) => [name, get(name)]));
  theme.palette = [0, 1, 2, 3, 4, 5, 6, 7].map((number) => get(`iteration-${number}`));
  theme.font = get('font');
  return theme;
}

class Timeline {
  constructor(model, { onSelect, mostHeight = MOST_HEIGHT }) {
    this.model = model;
    this.mostHeight = mostHeight;
    this.onSelect = onSelect;
    this.canvas = byId('timeline-canvas');
    this.map = byId('timeline-map');
    this.scroller = byId('timeline-scroll');
    this.tip = byId('timeline-tip');
    this.tracks = model.tracks();
    this.marked = null;
    this.markedIds = null;
    this.critical = null;
    this.selected = -1;
    this.showsIdle = false;
    this.span = Math.max(LEAST_SPAN, model.cycles);
    this.from = 0;
    this.to = this.span;
    this.layOut();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    this.retheme();
  }

  // Lanes

  layOut() {
    this.lanes = [];
    let y = AXIS;
    this.headings = [];
    this.model.units.forEach((unit, index) => {
      if (!unit.tasks && !this.showsIdle) return;
      const text = this.model.headingOf(unit);
      if (text !== this.headings.at(-1)?.text) {
        this.headings.push({ y, text });
        y += HEADING;
      }
      this.lanes.push({ unit: index, y });
      y += LANE;
    });
    this.height = y + 8;
    this.laneOf = new Map(this.lanes.map((lane) => [lane.unit, lane]));
    this.hidden = this.model.units.filter((unit) => !unit.tasks).length;
    byId('timeline-space').style.height = `${this.height}px`;
    this.scroller.style.height = `${Math.min(this.height, this.mostHeight)}px`;
    this.resize();
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.seen = Math.min(this.height, this.scroller.clientHeight || this.height);
    for (const [canvas, height] of [[this.canvas, this.seen], [this.map, MAP_HEIGHT]]) {
      canvas.width = Math.max(1, Math.round(this.width * scale));
      canvas.height = Math.max(1, Math.round(height * scale));
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${height}px`;
    }
    this.mapColumns = null;
    this.mapMarks = null;
    this.redraw();
  }

  retheme() {
    this.theme = readTheme();
    this.hatch = null;
    this.redraw();
  }

  // Time and pixels

  get plotWidth() { return Math.max(1, this.width - GUTTER - 12); }

  get cyclesPerPixel() { return (this.to - this.from) / this.plotWidth; }

  x(time) { return GUTTER + (time - this.from) / this.cyclesPerPixel; }

  time(x) { return this.from + (x - GUTTER) * this.cyclesPerPixel; }

  show(from, to) {
    const length = Math.min(this.span, Math.max(LEAST_SPAN, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.span - length, middle - length / 2));
    this.to = this.from + length;
    this.redraw();
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const length = Math.min(this.span, Math.max(LEAST_SPAN, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    const from = around - share * length;
    this.show(from, from + length);
  }

  pan(cycles) { this.show(this.from + cycles, this.to + cycles); }

  fit() { this.show(0, this.span); }

  /** Bring a task into sight without changing more than needed. */
  reveal(id) {
    const { start, end } = this.model;
    const length = this.to - this.from;
    const tooSmall = end[id] - start[id] < 3 * this.cyclesPerPixel;
    if (tooSmall) {
      const wanted = Math.max(LEAST_SPAN, 24 * (end[id] - start[id]));
      const middle = (start[id] + end[id]) / 2;
      this.show(middle - wanted / 2, middle + wanted / 2);
    } else if (start[id] < this.from || end[id] > this.to) {
      const middle = (start[id] + end[id]) / 2;
      const wanted = Math.max(length, 1.4 * (end[id] - start[id]));
      this.show(middle - wanted / 2, middle + wanted / 2);
    }
    this.revealLanes(id);
  }

  /** Scroll to the lane of a task, and to that of its counterpart where both can be seen. */
  revealLanes(id) {
    const other = this.model.counterpart(id);
    const lanes = present(...[id, other].map((each) => this.laneOf.get(this.model.unit[each])));
    if (!lanes.length) return;
    const height = Math.max(...lanes.map((lane) => lane.y)) + LANE - Math.min(...lanes.map((lane) => lane.y));
    if (height > this.seen - AXIS - HEADING) lanes.length = 1;
    const first = Math.min(...lanes.map((lane) => lane.y)) - AXIS - HEADING;
    const last = Math.max(...lanes.map((lane) => lane.y)) + LANE;
    if (first < this.scroller.scrollTop) this.scroller.scrollTop = first;
    else if (last > this.scroller.scrollTop + this.seen) this.scroller.scrollTop = last - this.seen;
  }

  // What is shown

  select(id) {
    this.selected = id;
    this.redraw();
  }

  /** Emphasise some tasks and dim the others; null: none. */
  mark(ids) {
    this.markedIds = ids;
    this.mapMarks = null;
    this.marked = ids ? tracksOf(this.model, maskOf(this.model, ids)) : null;
    this.redraw();
  }

  showCritical(ids) {
    this.critical = ids ? tracksOf(this.model, maskOf(this.model, ids)) : null;
    this.redraw();
  }

  // Drawing

  redraw() {
    if (this.frame || !this.theme) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const began = performance.now();
    const context = this.canvas.getContext('2d');
    const scale = window.devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.seen);
    this.top = this.scroller.scrollTop;
    context.save();
    context.beginPath();
    context.rect(0, AXIS, this.width, this.seen - AXIS);
    context.clip();
    this.drawLanes(context);
    this.drawGrid(context);
    context.beginPath();
    context.rect(GUTTER, AXIS, this.width - GUTTER, this.seen - AXIS);
    context.clip();
    this.drawTasks(context);
    this.drawSelected(context);
    context.restore();
    this.drawAxis(context);
    this.drawMap();
    this.frameTime = performance.now() - began;
    const range = byId('timeline-range');
    range.textContent = `cycles ${whole(this.from)} – ${whole(this.to)}`;
    range.dataset.from = this.from;
    range.dataset.to = this.to;
  }

  isInSight(lane) { return lane.y + LANE > this.top && lane.y < this.top + this.seen; }

  drawLanes(context) {
    const { theme } = this;
    context.textBaseline = 'middle';
    for (const heading of this.headings) {
      context.font = `600 12px ${theme.font}`;
      context.fillStyle = theme.text;
      context.fillText(heading.text, 0, heading.y - this.top + HEADING / 2 + 2);
    }
    for (const lane of this.lanes) {
      if (!this.isInSight(lane)) continue;
      const y = lane.y - this.top;
      const unit = this.model.units[lane.unit];
      context.font = `12px ${theme.font}`;
      context.fillStyle = theme.text;
      context.textAlign = 'left';
      context.fillText(unit.name.replace(/@.*/, ''), 12, y + LANE / 2);
      context.fillStyle = theme.muted;
      context.textAlign = 'right';
      const cycles = unit.cycles ?? this.model.cycles; // of its run
      context.fillText(percent(unit.busy, cycles), GUTTER - 14, y + LANE / 2);
      context.textAlign = 'left';
      context.fillStyle = theme.faint;
      context.fillRect(GUTTER, y + 3, this.x(cycles) - GUTTER, LANE - 6);
    }
  }

  drawTasks(context) {
    for (const lane of this.lanes) {
      if (!this.isInSight(lane)) continue;
      context.globalAlpha = this.marked ? 0.22 : 1;
      this.drawTrack(context, this.tracks[lane.unit], lane);
      context.globalAlpha = 1;
      if (this.marked) this.drawTrack(context, this.marked[lane.unit], lane, this.theme.accent);
      if (this.critical) this.drawCritical(context, this.critical[lane.unit], lane);
    }
  }

  drawTrack(context, track, lane, dense = this.theme.dense) {
    const y = lane.y - this.top + 3;
    const height = LANE - 6;
    const labels = [];
    const columns = [];
    track.visit(this.from, this.to, this.cyclesPerPixel, (i) => {
      const label = this.drawTask(context, track.ids[i], y, height);
      if (label) labels.push(label);
    }, (number, share, first, end) => {
      const high = Math.max(1, share * height);
      const x = Math.floor(GUTTER + number);
      if (end - first > 1) columns.push(x, high);
      else {
        context.fillStyle = this.colour(track.ids[first]);
        context.fillRect(x, y, 1, height);
      }
    });
    context.fillStyle = dense;
    context.beginPath();
    for (let i = 0; i < columns.length; i += 2) {
      context.rect(columns[i], y + height - columns[i + 1], 1, columns[i + 1]);
    }
    context.fill();
    this.drawLabels(context, labels, y + height / 2 + 0.5);
  }

  colour(id) {
    const number = this.model.colour(id, this.theme.palette.length);
    return number < 0 ? this.theme.task : this.theme.palette[number];
  }

  drawTask(context, id, y, height) {
    const left = Math.max(this.x(this.model.start[id]), GUTTER - 4);
    const right = Math.min(this.x(this.model.end[id]), this.width + 4);
    const width = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
    context.fillStyle = this.colour(id);
    if (width < 6) {
      context.fillRect(left, y, width, height);
      return null;
    }
    context.beginPath();
    context.roundRect(left, y, width, height, 2);
    context.fill();
    if (this.model.isCopy(id)) {
      context.fillStyle = this.hatching(context);
      context.fill();
    }
    return width > 22 ? { id, left: Math.max(left, GUTTER), right: left + width } : null;
  }

  /** Thin slanted lines: what copies, as opposed to what computes. */
  hatching(context) {
    if (this.hatch) return this.hatch;
    const tile = document.createElement('canvas');
    tile.width = 6;
    tile.height = 6;
    const pen = tile.getContext('2d');
    pen.strokeStyle = this.theme.panel;
    pen.globalAlpha = 0.34;
    pen.lineWidth = 1.3;
    pen.beginPath();
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift - 1, 7);
      pen.lineTo(shift + 7, -1);
    }
    pen.stroke();
    this.hatch = context.createPattern(tile, 'repeat');
    return this.hatch;
  }

  drawLabels(context, labels, y) {
    context.font = `11px ${this.theme.font}`;
    context.fillStyle = this.theme['task-text'];
    for (const { id, left, right } of labels) {
      const room = right - left - 10;
      const name = visible(this.model.name(id));
      // A letter is at least four pixels wide: measuring is dear, most labels fit or do not.
      if (name.length * 4 > room) continue;
      if (context.measureText(name).width > room) continue;
      const { op } = this.model.statementOf(id);
      const full = `${name}  ${op}`;
      context.fillText(context.measureText(full).width <= room ? full : name, left + 5, y);
    }
  }

  drawCritical(context, track, lane) {
    const y = lane.y - this.top + LANE - 3;
    context.fillStyle = this.theme.critical;
    track.visit(this.from, this.to, this.cyclesPerPixel, (i) => {
      const left = Math.max(this.x(track.start[i]), GUTTER - 4);
      const right = Math.min(this.x(track.end[i]), this.width + 4);
      context.fillRect(left, y, Math.max(1, right - left - 1), 2.5);
    }, (number) => context.fillRect(Math.floor(GUTTER + number), y, 1, 2.5));
  }

  drawSelected(context) {
    const id = this.selected;
    if (id < 0 || !this.model.hasStarted(id)) return;
    const { theme, model } = this;
    for (const unit of model.unitsOf(id)) {
      const lane = this.laneOf.get(unit);
      if (!lane) continue;
      const y = lane.y - this.top + 2;
      this.drawWaiting(context, id, y - 2);
      const left = this.x(model.start[id]);
      const width = Math.max(3, this.x(model.end[id]) - left - 1);
      context.strokeStyle = theme.text;
      context.lineWidth = 2;
      context.strokeRect(left - 1, y, width + 2, LANE - 4);
    }
    this.drawArrows(context, id);
    this.drawCounterpart(context, model.counterpart(id));
  }

  /** The same task in the other run. */
  drawCounterpart(context, id) {
    if (id < 0 || !this.model.hasStarted(id)) return;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 2;
    context.setLineDash([4, 2]);
    for (const unit of this.model.unitsOf(id)) {
      const lane = this.laneOf.get(unit);
      if (!lane) continue;
      const left = this.x(this.model.start[id]);
      context.strokeRect(left - 1, lane.y - this.top + 2, Math.max(5, this.x(this.model.end[id]) - left + 1), LANE - 4);
    }
    context.setLineDash([]);
  }

  /** What the task waited for, as a thin line up to its start. */
  drawWaiting(context, id, y) {
    let at = this.model.start[id] - this.model.waited(id);
    this.model.waits(id).forEach(({ cause, cycles }) => {
      const until = at + cycles;
      const left = Math.max(GUTTER, this.x(at));
      const width = this.x(until) - left;
      if (until > at && width > 0) {
        context.fillStyle = this.theme[cause];
        context.fillRect(left, y, width, 3);
      }
      at = until;
    });
  }

  drawArrows(context, id) {
    const { model, theme } = this;
    const deps = model.deps(id).slice(0, MOST_ARROWS);
    const blocker = model.blocker[id];
    for (const dep of deps) this.drawArrow(context, dep, id, theme.accent, dep === blocker);
    if (blocker >= 0 && !deps.includes(blocker)) this.drawArrow(context, blocker, id, theme.accent, true, [4, 3]);
    let left = MOST_ARROWS;
    for (const [first, end] of model.users(id)) {
      for (let user = first; user < end && left > 0; user++, left--) {
        if (model.hasStarted(user)) this.drawArrow(context, id, user, theme.muted, false);
      }
    }
  }

  drawArrow(context, source, target, colour, isStrong, dash = []) {
    const [from, to] = [this.laneOf.get(this.model.unit[source]), this.laneOf.get(this.model.unit[target])];
    if (!from || !to) return;
    const x0 = this.x(this.model.end[source]);
    const x1 = this.x(this.model.start[target]);
    if (Math.max(x0, x1) < GUTTER - 200 || Math.min(x0, x1) > this.width + 200) return;
    const y0 = from.y - this.top + LANE / 2;
    const y1 = to.y - this.top + LANE / 2;
    const bend = Math.min(90, Math.max(10, Math.abs(x1 - x0) / 2, Math.abs(y1 - y0) / 6));
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = isStrong ? 2 : 1.2;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x0, y0);
    // Within a lane an arrow passes above the tasks between.
    const lift = from === to ? LANE * 0.8 : 0;
    context.bezierCurveTo(x0 + bend, y0 - lift, x1 - bend, y1 - lift, x1 - 5, y1);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7, y1 - 3.5);
    context.lineTo(x1 - 7, y1 + 3.5);
    context.fill();
    context.beginPath();
    context.arc(x0, y0, 2.5, 0, 2 * Math.PI);
    context.fill();
  }

  ticks() {
    const step = niceStep((this.to - this.from) / Math.max(2, this.plotWidth / 110));
    const found = [];
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) found.push(tick);
    return found;
  }

  drawGrid(context) {
    context.fillStyle = this.theme.line;
    for (const tick of this.ticks()) context.fillRect(Math.round(this.x(tick)), AXIS - 6, 1, this.seen);
  }

  drawAxis(context) {
    const { theme } = this;
    context.font = `11px ${theme.font}`;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.fillStyle = theme.muted;
    context.fillText('cycles', 0, 11);
    context.textAlign = 'center';
    for (const tick of this.ticks()) {
      const text = whole(tick);
      const half = context.measureText(text).width / 2;
      const x = this.x(tick);
      context.fillText(text, Math.max(GUTTER - 8 + half, Math.min(this.width - half, x)), 11);
    }
    context.textAlign = 'left';
  }

  // The map of the whole run above the timeline

  drawMap() {
    const context = this.map.getContext('2d');
    const scale = window.devicePixelRatio || 1;
    const { theme } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, MAP_HEIGHT);
    this.mapColumns ??= this.activity();
    context.fillStyle = theme.faint;
    context.fillRect(GUTTER, 0, this.plotWidth, MAP_HEIGHT);
    context.fillStyle = theme.dense;
    this.mapColumns.forEach((share, column) => {
      context.fillRect(GUTTER + column, MAP_HEIGHT - share * (MAP_HEIGHT - 4), 1, share * (MAP_HEIGHT - 4));
    });
    this.drawMarksOnMap(context);
    const perPixel = this.span / this.plotWidth;
    const left = GUTTER + this.from / perPixel;
    const width = Math.max(3, (this.to - this.from) / perPixel);
    context.fillStyle = theme.panel;
    context.globalAlpha = 0.62;
    context.fillRect(GUTTER, 0, left - GUTTER, MAP_HEIGHT);
    context.fillRect(left + width, 0, this.plotWidth + GUTTER - left - width, MAP_HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, width - 1.5, MAP_HEIGHT - 1.5);
    context.font = `11px ${theme.font}`;
    context.textBaseline = 'middle';
    context.fillStyle = theme.muted;
    context.fillText('whole run', 0, MAP_HEIGHT / 2);
  }

  /** How busy the units are together, column by column; the busiest column has 1. */
  activity() {
    const columns = Math.floor(this.plotWidth);
    const step = this.span / columns;
    const shares = new Float64Array(columns);
    for (const { unit } of this.lanes) {
      const track = this.tracks[unit];
      for (let i = 0; i < columns; i++) shares[i] += track.busyIn(i * step, (i + 1) * step);
    }
    const most = largest(shares, 1e-9);
    return shares.map((cycles) => cycles / most);
  }

  drawMarksOnMap(context) {
    if (!this.markedIds) return;
    const perPixel = this.span / this.plotWidth;
    this.mapMarks ??= new Set(Array.from(this.markedIds, (id) => Math.floor(this.model.start[id] / perPixel)));
    context.fillStyle = this.theme.accent;
    for (const column of this.mapMarks) context.fillRect(GUTTER + column, 0, 1.5, 4);
  }

  // Pointer

  /** The task at a place of the canvas; -1 for none. */
  taskAt(x, y) {
    const lane = this.lanes.find((l) => y + this.top >= l.y && y + this.top < l.y + LANE);
    if (!lane || x < GUTTER || y < AXIS) return -1;
    return this.tracks[lane.unit].near(this.time(x), 3 * this.cyclesPerPixel);
  }

  /** Where a task is drawn: its middle, relative to the canvas. */
  placeOf(id) {
    const lane = this.laneOf.get(this.model.unit[id]);
    if (!lane) return null;
    const x = (this.x(this.model.start[id]) + this.x(this.model.end[id])) / 2;
    return { x, y: lane.y - this.scroller.scrollTop + LANE / 2 };
  }

  listen() {
    this.scroller.addEventListener('scroll', () => this.redraw());
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('dblclick', () => this.zoom(0.5));
    this.map.addEventListener('pointerdown', (event) => this.pressMap(event));
  }

  wheel(event) {
    // Where there is nothing left to zoom out of, the page scrolls.
    const isWhole = this.to - this.from >= this.span;
    if (isWhole && event.deltaY > 0 && !event.deltaX) return;
    event.preventDefault();
    this.tip.hidden = true;
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (isSideways) this.pan((event.deltaX || event.deltaY) * this.cyclesPerPixel);
    else this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.003), this.time(event.offsetX));
  }

  press(event) {
    if (event.button !== 0) return;
    const { clientX, clientY } = event;
    const at = { from: this.from, to: this.to, top: this.scroller.scrollTop };
    let hasMoved = false;
    const move = (e) => {
      const [dx, dy] = [e.clientX - clientX, e.clientY - clientY];
      hasMoved ||= Math.hypot(dx, dy) > 4;
      if (!hasMoved) return;
      this.tip.hidden = true;
      this.canvas.style.cursor = 'grabbing';
      const shift = -dx * ((at.to - at.from) / this.plotWidth);
      this.show(at.from + shift, at.to + shift);
      this.scroller.scrollTop = at.top - dy;
    };
    const release = () => {
      window.removeEventListener('pointermove', move);
      this.canvas.style.cursor = '';
      if (!hasMoved) this.onSelect(this.taskAt(event.offsetX, event.offsetY));
    };
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', release, { once: true });
  }

  pressMap(event) {
    const box = this.map.getBoundingClientRect();
    const centre = (clientX) => {
      const time = ((clientX - box.left - GUTTER) / this.plotWidth) * this.span;
      const half = (this.to - this.from) / 2;
      this.show(time - half, time + half);
    };
    const move = (e) => centre(e.clientX);
    centre(event.clientX);
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', () => window.removeEventListener('pointermove', move), { once: true });
  }

  hover(event) {
    if (event.buttons) return;
    const id = this.taskAt(event.offsetX, event.offsetY);
    this.canvas.style.cursor = id < 0 ? '' : 'pointer';
    this.tip.hidden = id < 0;
    if (id < 0) return;
    const { model } = this;
    const cycles = model.end[id] - model.start[id];
    this.tip.replaceChildren(
      el('strong', {}, visible(model.name(id))), ` ${model.statementOf(id).op}`, el('br'),
      `${model.unitText(id)}`, el('br'),
      `${whole(model.start[id])} – ${whole(model.end[id])}, ${whole(cycles)} cycles`, el('br'),
      `waited ${whole(model.waited(id))}`,
    );
    const box = this.tip.parentElement.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const { offsetWidth, offsetHeight } = this.tip;
    const isHigh = y + 18 + offsetHeight > box.height;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - offsetWidth - 4))}px`;
    this.tip.style.top = `${isHigh ? y - offsetHeight - 12 : y + 18}px`;
  }
}

function maskOf(model, ids) {
  const mask = new Uint8Array(model.count);
  for (const id of ids) mask[id] = 1;
  return mask;
}

/** 1, 2 or 5 times a power of ten, and not below a value. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const factor = [1, 2, 5, 10].find((f) => f * power >= least);
  return Math.max(1, factor * power);
}
