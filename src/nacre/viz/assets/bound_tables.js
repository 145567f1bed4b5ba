// Causes, statements, chains, weights and decisions of a binding, as tables.

function signed(value) { return value > 0 ? `+${whole(value)}` : value < 0 ? `−${whole(-value)}` : '0'; }

function signedShare(value, total) {
  const share = percent(Math.abs(value), total);
  return share.startsWith('<') ? share : `${value < 0 ? '−' : '+'}${share}`;
}

/** From the program's cycles to the image's, cause by cause. */
function fillCauses(model) {
  const { causes, run_cycles: cycles, uarch } = model.raw;
  let before = cycles.program;
  const steps = causes.map((cause) => {
    const row = { name: cause.title[0].toUpperCase() + cause.title.slice(1), because: cause.because, class: `step-${cause.cause}`, added: cause.added, cycles: cause.cycles, before };
    before = cause.cycles;
    return row;
  });
  const rows = [
    { name: 'Program', because: 'on the timed machine of NEM', cycles: cycles.program, isTotal: true },
    ...steps,
    { name: 'Image', because: `on ${uarch}`, cycles: cycles.image, isTotal: true },
  ];
  const totals = rows.map((row) => row.cycles);
  const [low, high] = [totals.reduce((a, b) => Math.min(a, b)), largest(totals, 1)];
  // Small differences would not be seen beside all cycles.
  const floor = high - low < 0.2 * high ? Math.max(0, low - Math.max(1, (high - low) * 0.25)) : 0;
  const share = (value) => (100 * (value - floor)) / Math.max(1, high - floor);
  const bar = (row) => {
    const [from, to] = row.isTotal ? [floor, row.cycles] : [Math.min(row.before, row.cycles), Math.max(row.before, row.cycles)];
    const label = row.isTotal ? `${whole(row.cycles)} cycles` : `${signed(row.added)} cycles`;
    return el('span', { class: 'step-bar', role: 'img', 'aria-label': label, title: label }, el('span', {
      class: row.isTotal ? 'cause-busy' : row.class,
      style: { left: `${share(from)}%`, width: `${Math.max(row.added || row.isTotal ? 0.4 : 0, share(to) - share(from))}%` },
    }));
  };
  byId('causes-table').replaceChildren(new SortedTable({
    label: 'Cycles by cause',
    columns: [
      { title: 'Cause', value: null, cell: (row) => (row.isTotal ? el('strong', {}, row.name) : row.name) },
      { title: 'Cycles', numeric: true, cell: (row) => (row.isTotal ? el('strong', {}, whole(row.cycles)) : signed(row.added)) },
      { title: 'Of the program', numeric: true, cell: (row) => (row.isTotal ? '' : row.added ? signedShare(row.added, cycles.program) : '0') },
      { title: 'Together', numeric: true, cell: (row) => whole(row.cycles) },
      { title: '', class: 'bar-cell wide', cell: bar },
      { title: 'Comes from', class: 'words', cell: (row) => row.because },
    ],
    rows,
    sort: -1,
  }).element, ...causeBars(steps, cycles), el('p', { class: 'note' }, floor ? `Bars begin at ${whole(floor)} cycles.` : ''));
}

/** What is lost and what is saved, each as one bar. */
function causeBars(steps, cycles) {
  const parts = (isPart) => steps.filter(isPart).map((row) => ({ label: row.name, class: row.class, cycles: Math.abs(row.added) }));
  const [lost, saved] = [parts((row) => row.added > 0), parts((row) => row.added < 0)];
  const sum = (list) => list.reduce((total, part) => total + part.cycles, 0);
  const total = Math.max(1, sum(lost), sum(saved));
  const bars = [['Lost', lost], ['Saved', saved]].filter(([, list]) => list.length);
  if (!bars.length) return [el('p', {}, 'The image takes exactly the cycles of the program.')];
  const shown = [...lost, ...saved];
  return [el('div', { class: 'labelled-bars' }, bars.flatMap(([name, list]) => [
    el('span', {}, `${name} ${whole(sum(list))}`), stackedBar(list, total, list.map((part) => `${part.label} ${whole(part.cycles)}`).join(', '))])),
  legend(shown.map((part) => [part.class, `${part.label} ${percent(part.cycles, cycles.program)}`]))];
}

/** Every statement in both runs. */
function fillStatements(model, { chooseStatements }) {
  const layer = words(model.raw.placed_blocks.layer);
  const hasLayers = layer.some(Boolean);
  const used = LOST.map((cause, index) => ({ cause, index })).filter(({ index }) => model.statements.some((s) => s.lost[index]));
  const most = largest(model.statements.map((s) => s.lost.reduce((a, b) => a + b, 0)), 1);
  const bar = (s) => {
    const parts = used.map(({ cause, index }) => ({ label: cause, class: `lost-${cause}`, cycles: s.lost[index] }));
    return stackedBar(parts, most, parts.map((part) => `${part.label} ${whole(part.cycles)}`).join(', '));
  };
  const columns = [
    { title: 'Statement', value: (s) => s.name },
    ...(hasLayers ? [{ title: 'Layer', value: (s) => layer[s.index], class: 'words node', cell: (s) => visible(layer[s.index]) }] : []),
    { title: 'Opcode', value: (s) => s.op },
    { title: 'Line', value: (s) => s.line, numeric: true, cell: (s) => String(s.line) },
    { title: 'Tasks', value: (s) => s.count, numeric: true },
    { title: 'Program', value: (s) => s.programBusy, numeric: true, cell: (s) => fittedNumber(s.programBusy) },
    { title: 'Image', value: (s) => s.busy, numeric: true, cell: (s) => fittedNumber(s.busy) },
    { title: 'Longer', value: (s) => s.busy - s.programBusy, numeric: true, cell: (s) => signed(s.busy - s.programBusy) },
    { title: 'Waited', value: (s) => s.waited, numeric: true, cell: (s) => fittedNumber(s.waited) },
    { title: 'Lost by cause', cell: bar, class: 'bar-cell' },
  ];
  byId('statements-table').replaceChildren(new SortedTable({
    label: 'Statements in both runs',
    columns,
    rows: model.statements,
    sort: columns.findIndex((column) => column.title === 'Longer'),
    most: 30,
    choose: (s) => chooseStatements([s.index]),
  }).element, legend(used.map(({ cause }) => [`lost-${cause}`, cause])));
}

function fillChains(model) {
  const { chains, chain_count: count, not_fused: refused } = model.raw;
  byId('chains-count').textContent = whole(count);
  const rows = chains.map((chain) => ({ ...chain, name: chain.tasks.join(' → '), saved: chain.cycles_alone - chain.cycles_chained }));
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0);
  const parts = rows.length ? [new SortedTable({
    label: 'Chains',
    columns: [
      { title: 'Tasks', value: (row) => row.name, class: 'node' },
      { title: 'Lines', value: (row) => row.lines[0], numeric: true, cell: (row) => [...new Set([row.lines[0], row.lines.at(-1)])].join(' – ') },
      { title: 'Times', value: (row) => row.times, numeric: true },
      { title: 'Bytes not written', value: (row) => row.bytes_not_written, numeric: true },
      { title: 'Cycles alone', value: (row) => row.cycles_alone, numeric: true },
      { title: 'Chained', value: (row) => row.cycles_chained, numeric: true },
      { title: 'Saved', value: (row) => row.saved, numeric: true },
    ],
    rows,
    sort: 6,
    most: 30,
  }).element, el('p', { class: 'note' }, `Together ${whole(total('bytes_not_written'))} bytes are not written, and units are held for ${whole(total('cycles_chained'))} cycles instead of ${whole(total('cycles_alone'))}. `
    + `What that does to the run stands under “Cycles by cause”.${count > rows.length ? ` ${whole(count - rows.length)} more chains are left out.` : ''}`)]
    : [el('p', {}, 'No tasks stream into each other.')];
  byId('chains-table').replaceChildren(...parts);
  byId('conversions').replaceChildren(...conversionTable(model.raw.conversions));
  byId('not-fused').replaceChildren(...(refused.length ? refused.map(refusalGroup) : [el('p', {}, 'No pair was refused.')]));
}

/** Stores that do a conversion on their way. */
function conversionTable(conversions) {
  if (!conversions.length) return [];
  return [el('h3', {}, 'Stores that convert'), new SortedTable({
    label: 'Stores that convert',
    columns: [
      { title: 'Store', value: (row) => row.store },
      { title: 'Line', value: (row) => row.line, numeric: true, cell: (row) => String(row.line) },
      { title: 'Does', value: (row) => row.task },
      { title: 'Format', value: (row) => row.format, class: 'code' },
      { title: 'Because', class: 'words', cell: (row) => el('span', {}, ...marked(row.because)) },
    ],
    rows: conversions,
    sort: 1,
    descending: false,
    most: 60,
  }).element];
}

/** A reason, how often it held, and where. */
function refusalGroup(group) {
  const rest = group.count - group.places.length;
  return el('details', { class: 'reason' },
    el('summary', {}, el('strong', {}, whole(group.count)), ` pair${group.count === 1 ? '' : 's'}: `, ...marked(group.because)),
    el('ul', { class: 'plain' }, group.places.map(([writer, reader, line, detail]) => el('li', {},
      visible(`${writer} → ${reader}`), el('span', { class: 'count' }, ` line ${line}`), ...(detail ? [': ', ...marked(detail)] : [])))),
    ...(rest ? [el('p', { class: 'note' }, `and ${whole(rest)} more`)] : []));
}

/** A text whose parts in backticks are code. */
function marked(text) {
  return visible(text).split('`').map((part, index) => (index % 2 ? el('code', {}, part) : part));
}

function fillWeights(model) {
  const { compressed, weights } = model.raw;
  const before = compressed.reduce((sum, row) => sum + row.bytes, 0);
  const after = compressed.reduce((sum, row) => sum + row.compressed_bytes, 0);
  const notes = weights?.absent ? [el('p', { class: 'note' }, `Weights are moved as they are: ${visible(weights.absent)}.`)] : [];
  if (!compressed.length) {
    byId('weights-table').replaceChildren(el('p', {}, 'No transfer is compressed.'), ...notes, ...plainTransfers(weights));
    return;
  }
  byId('weights-table').replaceChildren(new SortedTable({
    label: 'Compressed transfers',
    columns: [
      { title: 'Transfer', value: (row) => row.task, class: 'node' },
      { title: 'From', value: (row) => row.buffer, class: 'node' },
      { title: 'Mode', value: (row) => `${row.mode} of ${row.elem}`, class: 'words' },
      { title: 'Times', value: (row) => row.times, numeric: true },
      { title: 'Bytes before', value: (row) => row.bytes, numeric: true },
      { title: 'After', value: (row) => row.compressed_bytes, numeric: true },
      { title: 'Saved', value: (row) => row.bytes - row.compressed_bytes, numeric: true, cell: (row) => `${whole(row.bytes - row.compressed_bytes)} (${percent(row.bytes - row.compressed_bytes, row.bytes)})` },
    ],
    rows: compressed,
    sort: 6,
    most: 30,
  }).element, el('p', { class: 'note' }, `In all ${whole(before)} bytes are moved as ${whole(after)}: ${whole(before - after)} saved, ${percent(before - after, before)}.`), ...notes, ...plainTransfers(weights));
}

/** Transfers of weights that stay as they are, under their reasons. */
function plainTransfers(weights) {
  const groups = new Map();
  for (const one of weights?.plain ?? []) {
    const found = groups.get(one.because) ?? { because: one.because, places: [] };
    found.places.push(one);
    groups.set(one.because, found);
  }
  return [...groups.values()].sort((a, b) => b.places.length - a.places.length).map((group) => el('details', { class: 'reason' },
    el('summary', {}, el('strong', {}, whole(group.places.length)), ` transfer${group.places.length === 1 ? '' : 's'} as they are: `, ...marked(group.because)),
    el('ul', { class: 'plain' }, group.places.slice(0, 200).map((one) => el('li', {}, visible(one.task), el('span', { class: 'count' }, ` line ${one.line}`),
      ...(one.detail ? [': ', ...marked(one.detail)] : []))))));
}

const DECISION_KINDS = { units: 'Units', address: 'Addresses', format: 'Formats', tags: 'Tags', tag: 'Tags', order: 'Order' };

/** Every decision, filtered by its kind and by words. */
class DecisionTable {
  constructor(model, { chooseStatements }) {
    const raw = model.raw.decisions;
    const [kind, subject, decided, because] = ['kind', 'subject', 'decided', 'because'].map((key) => words(raw[key]));
    const [line, statement] = [unpack(raw.line), unpack(raw.statement)];
    this.rows = kind.map((each, index) => ({
      kind: DECISION_KINDS[each] ?? each, subject: subject[index], decided: decided[index], because: because[index], line: line[index], statement: statement[index],
    }));
    this.left = raw.count - this.rows.length;
    this.chooseStatements = chooseStatements;
    this.kind = null;
    const kinds = [null, ...new Set(this.rows.map((row) => row.kind))];
    byId('decision-kinds').replaceChildren(...kinds.map((each) => el('button', {
      type: 'button', 'aria-pressed': each === null ? 'true' : 'false', 'data-kind': each ?? '', onclick: () => this.choose(each),
    }, each ?? 'All')));
    byId('decision-filter').addEventListener('input', () => this.draw());
    this.draw();
  }

  choose(kind) {
    this.kind = kind;
    for (const button of byId('decision-kinds').children) button.setAttribute('aria-pressed', String(button.dataset.kind === (kind ?? '')));
    this.draw();
  }

  draw() {
    const wanted = byId('decision-filter').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.rows.filter((row) => (this.kind === null || row.kind === this.kind)
      && wanted.every((word) => `${row.subject} ${row.decided} ${row.because} ${row.kind} ${row.line}`.toLowerCase().includes(word)));
    byId('decisions-count').textContent = rows.length === this.rows.length ? whole(rows.length) : `${whole(rows.length)} of ${whole(this.rows.length)}`;
    byId('decisions-table').replaceChildren(new SortedTable({
      label: 'Decisions',
      columns: [
        { title: 'About', value: (row) => row.subject, class: 'node' },
        { title: 'Kind', value: (row) => row.kind, class: 'words' },
        { title: 'Line', value: (row) => row.line, numeric: true, cell: (row) => (row.line ? String(row.line) : '–') },
        { title: 'Decided', value: (row) => row.decided, class: 'code' },
        { title: 'Because', value: (row) => row.because, class: 'words', cell: (row) => el('span', {}, ...marked(row.because)) },
      ],
      rows,
      sort: -1,
      most: 40,
      isChoice: (row) => row.statement >= 0,
      choose: (row) => this.chooseStatements([row.statement]),
    }).element, ...(this.left ? [el('p', { class: 'note' }, `${whole(this.left)} more decisions are left out.`)] : []));
  }
}

/** Every block in the order of time, or those that are marked, beside the task of the program. */
class BlockList {
  constructor(model, { select }) {
    Object.assign(this, { model, select });
    this.all = Array.from(model.byStart).filter((id) => model.isImage(id));
    this.show(null);
  }

  show(ids) {
    const { model } = this;
    const shown = ids ?? this.all;
    byId('tasks-count').textContent = ids ? `${whole(shown.length)} marked of ${whole(model.tasks)}` : whole(model.tasks);
    const old = byId('task-list');
    const fresh = old.cloneNode(false);
    old.replaceWith(fresh);
    this.list = new LongList(fresh, {
      rowHeight: 26,
      count: shown.length,
      label: 'Blocks in the order of time; Enter selects one',
      fill: (index, row) => {
        const id = shown[index];
        const task = model.task(id);
        row.append(
          el('span', { class: 'name' }, visible(model.name(id))),
          el('span', { class: 'words' }, model.statementOf(id).op),
          el('span', { class: 'words' }, model.unitsOf(id).map((unit) => model.units[unit].name).join(' + ')),
          ...[model.start[task], model.start[id], model.end[task] - model.start[task], model.end[id] - model.start[id], model.waited(id)]
            .map((value) => el('span', { class: 'number' }, whole(value))),
        );
      },
      choose: (index) => this.select(shown[index]),
    });
  }
}
