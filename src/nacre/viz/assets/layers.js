// The layers of a compiled model: what each costs, what it cannot do without, what limits it.

/** Which layer each statement belongs to; null where the page is about no model. */
function layersByStatement(model) {
  if (!model.raw.layers) return null;
  const found = new Map();
  model.raw.layers.rows.forEach((layer) => layer.statements.forEach((index) => found.set(index, layer)));
  return found;
}

function fillLayers(model, { chooseLayer }) {
  const raw = model.raw.layers;
  if (!raw) return;
  byId('layers').hidden = false;
  byId('layers-link').hidden = false;
  byId('layers-count').textContent = whole(raw.rows.length);
  const total = Math.max(1, model.cycles);
  const rows = raw.rows.map((layer, index) => ({ ...layer, index, over: layer.bound ? layer.cycles / layer.bound : Infinity }));
  byId('layers-figures').replaceChildren(...layerFigures(model, raw));
  byId('layers-table').replaceChildren(new SortedTable({
    label: 'Layers of the model',
    columns: [
      { title: 'Layer', value: (row) => row.name },
      { title: 'Node', value: (row) => row.nodes[0] ?? '', class: 'words node', cell: (row) => nodeText(row) },
      { title: 'Operations', value: (row) => row.operations.join(' + '), class: 'words', cell: (row) => operationsText(row) },
      { title: 'MACs', value: (row) => row.macs, numeric: true, cell: (row) => fittedNumber(row.macs) },
      { title: 'DDR bytes', value: (row) => row.bytes, numeric: true, cell: (row) => fittedNumber(row.bytes) },
      { title: 'Cycles', value: (row) => row.cycles, numeric: true },
      ...bandColumn(raw, rows),
      { title: 'Of the run', value: (row) => row.cycles, numeric: true, cell: (row) => percent(row.cycles, model.cycles) },
      { title: 'Bound', value: (row) => row.bound, numeric: true, cell: (row) => boundText(row) },
      { title: 'Over', value: (row) => row.over, numeric: true, cell: (row) => (row.bound ? `${row.over.toFixed(2)}×` : '–') },
      { title: 'Limited by', value: (row) => row.bottleneck, class: 'words', cell: (row) => limitText(row) },
      { title: 'When', value: (row) => row.start, cell: (row) => spanBar(row, total), class: 'bar-cell wide' },
    ],
    rows,
    sort: -1,
    most: 400,
    choose: (row) => chooseLayer(row),
  }).element, ...operationTable(raw, model), ...layerNotes(raw));
}

/** The layers of each operation together. */
function operationTable(raw, model) {
  return [el('h3', {}, 'By operation'), new SortedTable({
    label: 'Operations of the model',
    columns: [
      { title: 'Operation', value: (row) => row.operation, class: 'words', cell: (row) => visible(row.operation) },
      { title: 'Layers', value: (row) => row.layers, numeric: true },
      { title: 'MACs', value: (row) => row.macs, numeric: true },
      { title: 'Cycles', value: (row) => row.cycles, numeric: true },
      { title: 'Of the run', value: (row) => row.cycles, numeric: true, cell: (row) => percent(row.cycles, model.cycles) },
    ],
    rows: raw.operations.map((row, index) => ({ ...row, index })),
    sort: -1,
    most: 400,
  }).element];
}

const MOST_OPERATIONS = 4; // in a cell: a group of layers has dozens

/** What a layer does; its group and the model's own names for it show when the pointer rests on it. */
function operationsText(row) {
  const group = row.members.length ? [`Depth first, tile by tile in L1: ${row.members.map(visible).join(', ')}`] : [];
  const all = row.operations;
  const some = all.length > MOST_OPERATIONS + 1 ? [...all.slice(0, MOST_OPERATIONS), `${all.length - MOST_OPERATIONS} more`] : all;
  const whole = some === all ? [] : [all.map(visible).join(' + ')];
  const title = [...group, ...whole, ...row.nodes.map(visible)].join('\n');
  return el('span', { title: title || null }, visible(some.join(' + ')));
}

/** The layer as the model calls it; all of its nodes show when the pointer rests on it. */
function nodeText(row) {
  const more = row.nodes.length > 1 ? ` +${row.nodes.length - 1}` : '';
  const text = row.nodes.length ? `${visible(row.nodes[0])}${more}` : '–';
  return el('span', { title: row.nodes.map(visible).join('\n') || null }, ...breakable(text));
}

/** A path that may go on in the next line behind each of its slashes. */
function breakable(text) {
  return text.split(/(?<=\/)(?=[^/])/).flatMap((part, index) => (index ? [el('wbr'), part] : [part]));
}

/** A time of milliseconds, or of microseconds where that is easier to read. */
function milliseconds(value) {
  if (value === null) return '–';
  return value < 0.1 ? `${Number((1000 * value).toPrecision(4))} µs` : `${Number(value.toPrecision(4))} ms`;
}

/** From when to when a run may take, and what says so. */
function bandText(raw) {
  const ends = [raw.band.low, raw.band.high].map((share) => milliseconds(share * raw.milliseconds));
  return `${ends.join(' to ')}, ${raw.band.basis}`;
}

/** The same for each layer, where the page knows it: all of them against the one that takes longest. */
function bandColumn(raw, rows) {
  if (!raw.band) return [];
  const most = Math.max(...rows.map((row) => row.high_cycles));
  const cell = (row) => rangeBar({ low: row.low_cycles, value: row.cycles, high: row.high_cycles }, most);
  return [{ title: raw.band.calibrated ? '80 % band' : 'Spread', value: (row) => row.high_cycles, cell, class: 'range-cell' }];
}

/** The words of the band above its drawing. */
function bandFigure(raw, cycles) {
  const { low_cycles: low, high_cycles: high } = raw.band;
  return el('span', {}, bandText(raw), rangeBar({ low, value: cycles, high }, 1.1 * high));
}

function layerFigures(model, raw) {
  const times = (bound) => (bound ? `${(model.cycles / bound).toFixed(2)}×` : '–');
  const clock = `at ${whole(raw.clock_mhz)} MHz`;
  return [
    ['Precision', raw.precision],
    [`Time ${clock}`, milliseconds(raw.milliseconds ?? model.cycles / (1000 * raw.clock_mhz))],
    ...(raw.band ? [[raw.band.calibrated ? '80 % band' : 'Not calibrated', bandFigure(raw, model.cycles)]] : []),
    ...(raw.derated_cycles === null ? [] : [['Derated', `${whole(raw.derated_cycles)} cycles, ${milliseconds(raw.derated_milliseconds)}`]]),
    ...raw.derated_added.map(([factor, cycles]) => [`Derated: ${factor}`, `${cycles < 0 ? '' : '+'}${whole(cycles)} cycles`]),
    ['Over the layer bound', times(raw.layer_bound)],
    ['Over the whole bound', times(raw.whole_bound)],
    ['Over the floor', times(raw.floor)],
    ['MAC utilisation', raw.mac_utilisation === null ? '–' : percent(raw.mac_utilisation, 1)],
    ['DDR traffic', byteText(raw.ddr_bytes)],
  ].map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value)));
}

/** The bound and what it comes from, which stands below it where there is little room. */
function boundText(row) {
  if (!row.bound) return '–';
  return el('span', {}, fittedNumber(row.bound), ` ${row.bound_by}`);
}

/** The unit that has most to do, and for what share of the layer's own cycles. */
function limitText(row) {
  const [unit, busy] = Object.entries(row.busy).sort((a, b) => b[1] - a[1])[0] ?? [];
  if (!unit || !row.cycles) return row.bottleneck;
  const share = `${unit} ${percent(Math.min(busy, row.cycles), row.cycles)}`;
  return unit === row.bottleneck ? share : `${row.bottleneck} (${share})`;
}

function layerNotes(raw) {
  const escaped = raw.escaped.map(([op, why]) => el('li', {}, `${visible(op)}: ${visible(why)}`));
  return [
    ...(escaped.length ? [el('h3', {}, 'On the VPU, for want of another form'), el('ul', { class: 'plain' }, escaped)] : []),
    el('h3', {}, 'Assumptions'),
    el('ul', { class: 'plain' }, raw.assumptions.map((line) => el('li', {}, visible(line)))),
  ];
}
