// Memory over time and the roofline, as SVG.

const CHART_WIDTH = 760;

function fillMemory(model) {
  const box = byId('memory');
  if (!model.raw.memory.length) box.replaceChildren(el('p', {}, 'No task touched a buffer.'));
  else box.replaceChildren(...model.raw.memory.map((memory) => memorySection(model, memory)));
}

function memorySection(model, memory) {
  const { place, capacity, peak, buffers } = memory;
  const share = capacity ? `, ${percent(peak, capacity)} of ${byteText(capacity)}` : '';
  const rows = buffers.name.map((name, i) => ({
    name, size: buffers.size[i], first: buffers.first[i], last: buffers.last[i],
  }));
  const total = Math.max(1, model.cycles);
  const life = (row) => {
    const text = `alive from ${whole(row.first)} to ${whole(row.last)}`;
    return el('span', { class: 'life', role: 'img', 'aria-label': text, title: text }, el('span', {
      style: { left: `${(100 * row.first) / total}%`, width: `${Math.max(0.3, (100 * (row.last - row.first)) / total)}%` },
    }));
  };
  const table = new SortedTable({
    label: `Buffers in ${place}`,
    columns: [
      { title: 'Buffer', value: (row) => row.name },
      { title: 'Bytes', value: (row) => row.size, numeric: true },
      { title: 'From', value: (row) => row.first, numeric: true },
      { title: 'To', value: (row) => row.last, numeric: true },
      { title: 'Alive', cell: life, class: 'bar-cell wide' },
    ],
    rows,
    sort: 1,
    most: 40,
  });
  return el('section', { class: 'memory', 'aria-label': `Memory ${place}` },
    el('h3', {}, place, el('span', { class: 'count' }, ` peak ${byteText(peak)}${share}`)),
    memoryChart(model, memory), table.element);
}

/** A step curve; where the peak is far below the capacity, the axis is broken and says so. */
function memoryChart(model, memory) {
  const [width, height, left, top, bottom] = [CHART_WIDTH, 116, 76, 12, 20];
  const { capacity, peak, place } = memory;
  const isBroken = capacity !== null && peak < capacity / 4;
  const most = capacity === null || isBroken ? Math.max(1, peak) : Math.max(1, capacity, peak);
  const floor = height - bottom;
  const ceiling = isBroken ? top + 26 : top;
  const x = (time) => left + ((width - left - 12) * time) / Math.max(1, model.cycles);
  const y = (bytes) => floor - ((floor - ceiling) * bytes) / most;
  const [times, alive] = [unpack(memory.times), unpack(memory.alive)];
  let path = `M${x(0)} ${floor}`;
  let last = 0;
  times.forEach((time, i) => {
    path += `L${x(time).toFixed(1)} ${y(last).toFixed(1)}L${x(time).toFixed(1)} ${y(alive[i]).toFixed(1)}`;
    last = alive[i];
  });
  path += `L${x(model.cycles)} ${y(last)}L${x(model.cycles)} ${floor}Z`;
  const svg = el('svg', {
    viewBox: `0 0 ${width} ${height}`, class: 'chart memory-chart', role: 'img',
    'aria-label': `Bytes alive in ${place} over time, at most ${byteText(peak)}`,
  });
  svg.append(el('line', { x1: left, x2: width - 12, y1: y(peak), y2: y(peak), class: 'peak' }),
    el('path', { d: path, class: 'area' }), axisLine(left, floor, width - 12, floor));
  svg.append(label(left - 8, y(peak) + 4, byteText(peak), 'end'), label(left - 8, floor + 4, '0', 'end'));
  if (capacity !== null) {
    const at = isBroken ? top : y(capacity);
    svg.append(el('line', { x1: left, x2: width - 12, y1: at, y2: at, class: 'capacity' }));
    const isClear = isBroken || Math.abs(at - y(peak)) > 14;
    if (isClear) svg.append(label(left - 8, at + 4, byteText(capacity), 'end'));
    svg.append(label(width - 14, at + 13, isBroken ? 'capacity (axis broken)' : 'capacity', 'end'));
    if (isBroken) svg.append(el('path', { class: 'break', d: `M${left - 4} ${top + 14}l8 -4M${left - 4} ${top + 19}l8 -4` }));
  }
  const step = niceStep(model.cycles / 6);
  for (let tick = 0; tick <= model.cycles; tick += step) {
    const isLast = x(tick) > width - 50;
    svg.append(el('line', { x1: x(tick), x2: x(tick), y1: floor, y2: floor + 4, class: 'axis' }),
      label(x(tick), floor + 16, whole(tick), isLast ? 'end' : 'middle'));
  }
  return svg;
}

function label(x, y, text, anchor = 'start', name = 'label') {
  return el('text', { x, y, 'text-anchor': anchor, class: name }, text);
}

function axisLine(x1, y1, x2, y2) { return el('line', { x1, y1, x2, y2, class: 'axis' }); }

const MOST_POINTS = 40;

function fillRoofline(model, { chooseStatements }) {
  const raw = model.raw.roofline;
  if (!raw) {
    byId('roofline').replaceChildren(el('p', {}, 'Nothing in this program multiplies.'));
    return;
  }
  const points = raw.points.statement.map((statement, i) => ({
    statement,
    name: visible(model.statements[statement].name),
    macs: raw.points.macs[i],
    bytes: raw.points.bytes[i],
    running: raw.points.macs[i] / Math.max(1, raw.points.busy[i]),
    overall: raw.points.macs[i] / Math.max(1, model.cycles),
  })).sort((a, b) => b.macs - a.macs);
  const whole_ = { name: 'whole program', macs: raw.macs, bytes: raw.bytes, overall: raw.macs / Math.max(1, model.cycles), running: null, isProgram: true };
  const rows = points.length === 1 ? points : [whole_, ...points];
  const number = (value) => (value === null ? '–' : Number.isFinite(value) ? whole(value) : 'no bytes');
  byId('roofline').replaceChildren(
    rooflineChart(raw, rows.slice(0, MOST_POINTS)),
    new SortedTable({
      label: 'Products of the program',
      columns: [
        { title: 'Statement', value: (row) => row.name },
        { title: 'MACs', value: (row) => row.macs, numeric: true },
        { title: `${raw.border} bytes`, value: (row) => row.bytes, numeric: true },
        { title: 'MACs per byte', value: (row) => row.macs / row.bytes, numeric: true, cell: (row) => number(row.macs / row.bytes) },
        { title: 'MACs/cycle, run', value: (row) => row.overall, numeric: true, cell: (row) => number(row.overall) },
        { title: 'while running', value: (row) => row.running ?? 0, numeric: true, cell: (row) => number(row.running) },
      ],
      rows,
      sort: -1,
      most: MOST_POINTS,
      isChoice: (row) => !row.isProgram,
      choose: (row) => chooseStatements([row.statement]),
    }).element,
    el('p', { class: 'note' }, `Bytes are those that cross the border of ${raw.border}, at most ${whole(raw.bytes_per_cycle)} a cycle. `
      + 'Each copy is charged to the products that it feeds or stores. Filled: MACs over the whole run; ring: over the cycles in which the statement ran.'),
  );
}

function rooflineChart(raw, rows) {
  const [width, height, left, top, bottom] = [CHART_WIDTH, 340, 76, 20, 44];
  const peak = Math.max(1, ...raw.roofs.map((roof) => roof.macs_per_cycle));
  const bandwidth = Math.max(1e-9, raw.bytes_per_cycle);
  const drawn = rows.filter((row) => row.bytes > 0);
  const ridge = peak / bandwidth;
  const intensities = [ridge, ...drawn.map((row) => row.macs / row.bytes)];
  const rates = [peak, ...drawn.map((row) => row.overall)];
  const [x0, x1] = [floorTen(Math.min(...intensities) / 2), ceilTen(Math.max(...intensities) * 2)];
  const [y0, y1] = [floorTen(Math.min(...rates, x0 * bandwidth * 4) / 1.5), ceilTen(peak * 1.2)];
  const x = (v) => left + ((width - left - 24) * Math.log(v / x0)) / Math.log(x1 / x0);
  const y = (v) => height - bottom - ((height - bottom - top) * Math.log(v / y0)) / Math.log(y1 / y0);
  const svg = el('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': 'Roofline, both axes logarithmic; the numbers stand in the table below' });
  for (let v = x0; v <= x1 * 1.01; v *= 10) svg.append(el('line', { x1: x(v), x2: x(v), y1: top, y2: height - bottom, class: 'grid' }), label(x(v), height - bottom + 17, powerText(v), 'middle'));
  for (let v = y0; v <= y1 * 1.01; v *= 10) svg.append(el('line', { x1: left, x2: width - 24, y1: y(v), y2: y(v), class: 'grid' }), label(left - 8, y(v) + 4, powerText(v), 'end'));
  svg.append(label((left + width - 24) / 2, height - 6, `MACs per ${raw.border} byte`, 'middle'),
    el('text', { class: 'label', 'text-anchor': 'middle', transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)` }, 'MACs per cycle'));
  const low = Math.max(x0, y0 / bandwidth);
  const roofs = raw.roofs.length ? raw.roofs : [{ types: '', macs_per_cycle: peak }];
  for (const roof of roofs) {
    const rate = roof.macs_per_cycle;
    const text = `${roof.types} ${whole(rate)} MACs/cycle`;
    svg.append(el('path', { class: 'roof', d: `M${x(rate / bandwidth)} ${y(rate)}L${x(x1)} ${y(rate)}` }), label(x(x1) - 6, y(rate) - 7, text, 'end', 'label roof-label'));
  }
  svg.append(el('path', { class: 'roof', d: `M${x(low)} ${y(low * bandwidth)}L${x(ridge)} ${y(peak)}` }));
  const middle = Math.sqrt(low * ridge);
  const slope = Math.atan2(y(ridge * bandwidth) - y(low * bandwidth), x(ridge) - x(low));
  svg.append(el('text', { class: 'label roof-label', 'text-anchor': 'middle', transform: `translate(${x(middle)} ${y(middle * bandwidth) - 8}) rotate(${(slope * 180) / Math.PI})` },
    `${raw.border} ${whole(bandwidth)} bytes/cycle`));
  svg.append(...together(drawn, x, y).map((row) => pointOf(row, x, y, width)));
  return svg;
}

/** Points that fall on one another become one with all their names. */
function together(rows, x, y) {
  const found = new Map();
  for (const row of rows) {
    const key = `${Math.round(x(row.macs / row.bytes) / 8)} ${Math.round(y(row.overall) / 10)}`;
    const first = found.get(key);
    if (first) first.names.push(row.name);
    else found.set(key, { ...row, names: [row.name] });
  }
  return [...found.values()];
}

function pointOf(row, x, y, width) {
  const at = x(row.macs / row.bytes);
  const rest = row.names.length - 3;
  const text = row.names.slice(0, 3).map((name) => name.slice(0, 24)).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
  const group = el('g', { class: row.isProgram ? 'point program' : 'point' });
  if (row.running !== null) {
    group.append(el('line', { x1: at, x2: at, y1: y(row.running), y2: y(row.overall), class: 'gap' }),
      el('circle', { cx: at, cy: y(row.running), r: 4, class: 'ring' }));
  }
  const isRight = at > width - 180;
  group.append(el('circle', { cx: at, cy: y(row.overall), r: 4.5, class: 'dot' }),
    label(at + (isRight ? -10 : 10), y(row.overall) + 4, text, isRight ? 'end' : 'start'));
  return group;
}

function floorTen(value) { return 10 ** Math.floor(Math.log10(value)); }

function ceilTen(value) { return 10 ** Math.ceil(Math.log10(value)); }

function powerText(value) { return value >= 1 ? (value < 1e6 ? whole(value) : short(value)) : String(Number(value.toPrecision(1))); }
