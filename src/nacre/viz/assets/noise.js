// The noise of every tensor: what goes in, what it adds, what it passes on, and what would help.

const MOST_DECIBELS = 80; // that a bar has room for

function decibels(value) { return value === null ? 'exact' : value.toFixed(1); }

function fillNoise(model) {
  const raw = model.raw.noise;
  if (!raw) return;
  byId('noise').hidden = false;
  byId('noise-link').hidden = false;
  byId('noise-count').textContent = whole(raw.tensors.length);
  byId('noise-figures').replaceChildren(...noiseFigures(raw));
  const rows = raw.tensors.map((tensor, index) => ({ ...tensor, index }));
  const show = (row) => {
    showTensor(row);
    byId('noise-detail').scrollIntoView({ block: 'nearest' });
    say(`${visible(row.node)}, ${decibels(row.after)} dB left`);
  };
  const ratio = (title, field) => ({
    title, numeric: true, value: (row) => row[field] ?? Infinity, cell: (row) => decibels(row[field]),
  });
  byId('noise-table').replaceChildren(...remedyTable(raw), new SortedTable({
    label: 'Noise of the tensors',
    columns: [
      { title: 'Node', value: (row) => row.node, class: 'words noise-node', cell: (row) => visible(row.node) },
      { title: 'Layer', value: (row) => row.layer, cell: (row) => row.layer || '–' },
      { title: 'Operation', value: (row) => row.opcode },
      { title: 'In', value: (row) => row.elem },
      ratio('Before', 'before'),
      ratio('Adds', 'added'),
      { title: 'Weights', numeric: true, value: (row) => row.weights ?? Infinity, cell: (row) => (row.weights === null ? '–' : decibels(row.weights)) },
      ratio('After', 'after'),
      { title: 'Held', numeric: true, value: (row) => row.saturated, cell: (row) => percent(row.saturated, 1) },
      { title: 'Scale', numeric: true, value: (row) => row.scale ?? 0, cell: (row) => (row.scale === null ? '–' : row.scale.toPrecision(4)) },
      { title: 'Left and lost', cell: (row) => noiseBar(row), class: 'bar-cell' },
    ],
    rows,
    sort: -1,
    most: 400,
    choose: show,
  }).element);
  const worst = rows.filter((row) => row.layer).sort((a, b) => (a.added ?? Infinity) - (b.added ?? Infinity))[0];
  if (worst) showTensor(worst);
}

function noiseFigures(raw) {
  const first = raw.first_divergence;
  return [
    ...raw.outputs.map((output) => [`Output ${visible(output.name)}`, `${output.measure} ${output.value === null ? 'exact' : output.value.toPrecision(4)}`]),
    [`First below ${raw.least_db} dB`, first === null ? 'none' : visible(first.node)],
  ].map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value)));
}

/** What is left of a tensor, and behind it what goes in. */
function noiseBar(row) {
  const held = (value) => Math.max(0, Math.min(value ?? MOST_DECIBELS, MOST_DECIBELS));
  const [after, before] = [held(row.after), held(row.before)];
  const lost = Math.max(0, before - after);
  return stackedBar([{ label: 'left', class: 'cause-busy', cycles: after }, { label: 'lost', class: 'noise-lost', cycles: lost }],
    MOST_DECIBELS, `${decibels(row.after)} dB left, ${decibels(row.before)} dB before`);
}

/** The elements of a tensor in bins, its ends, and what stages did to it. */
function showTensor(row) {
  const box = byId('noise-detail');
  const { low, high, counts } = row.histogram;
  const total = counts.reduce((a, b) => a + b, 0);
  const facts = [
    ['Layer', row.layer || '–'], ['Shape', row.shape.join(' × ')], ['In', row.elem],
    ['Before', decibels(row.before)], ['Adds', decibels(row.added)],
    ['Its storage alone', decibels(row.stored)], ['After', decibels(row.after)],
    ['Held at an end', percent(row.saturated, 1)], ['Zero point', row.zero ?? '–'],
  ];
  box.replaceChildren(
    el('h3', {}, visible(row.node)),
    el('dl', { class: 'figures small' }, facts.flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)])),
    ...present(total ? histogram(counts, low, high) : null,
      row.changes.length ? el('ul', { class: 'plain' }, row.changes.map((line) => el('li', {}, visible(line)))) : null),
  );
  box.hidden = false;
}

function histogram(counts, low, high) {
  const most = largest(counts, 1);
  const label = `elements between ${low.toPrecision(4)} and ${high.toPrecision(4)} in ${counts.length} bins, the fullest has ${whole(most)}`;
  const bars = el('div', { class: 'histogram', role: 'img', 'aria-label': label });
  for (const count of counts) {
    const bar = el('span', { title: whole(count) });
    bar.style.height = `${(100 * count) / most}%`;
    bars.append(bar);
  }
  return el('div', {}, bars, el('div', { class: 'histogram-ends' }, el('span', {}, low.toPrecision(4)), el('span', {}, high.toPrecision(4))));
}

/** What keeping layers in f16 costs and brings. */
function remedyTable(raw) {
  if (!raw.remedies.length) return [];
  const outputs = Object.keys(raw.remedies[0].gains);
  return [el('h3', {}, 'Kept in f16'), el('p', { class: 'about' }, `Beside a plan of ${whole(raw.cycles)} cycles, with scales from ${raw.ranges}.`),
    new SortedTable({
      label: 'Layers kept in f16',
      columns: [
        { title: 'Node', value: (row) => row.node, class: 'words node', cell: (row) => visible(row.node) },
        { title: 'Layer', value: (row) => row.layer },
        { title: 'Cycles', value: (row) => row.cycles, numeric: true, cell: (row) => `${row.cycles < 0 ? '' : '+'}${whole(row.cycles)}` },
        ...outputs.map((name) => ({
          title: `dB of ${visible(name)}`, numeric: true, value: (row) => row.gains[name] ?? 0,
          cell: (row) => (row.gains[name] === null ? '–' : `${row.gains[name] < 0 ? '' : '+'}${row.gains[name].toFixed(1)}`),
        })),
      ],
      rows: raw.remedies.map((row, index) => ({ ...row, index })),
      sort: -1,
    }).element];
}
