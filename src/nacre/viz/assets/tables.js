// Numbers in tables: waiting, units, bounds, the critical path, tasks.

const IDLE_TEXT = {
  'not reached': 'program not that far',
  window: 'window of a loop full',
  dependence: 'next task waits for dependences',
  token: 'no token free',
  unit: 'next task waits for another unit',
  'no more work': 'no more work',
  'never used': 'never used',
};

function legend(entries) {
  return el('ul', { class: 'legend' }, entries.map(([name, text]) => el('li', {}, el('span', { class: `swatch ${name}` }), text)));
}

/** Waiting cycles of all tasks, by cause, by statement or by opcode. */
function fillWaiting(model, { chooseStatements }) {
  const total = model.stallTotals.reduce((a, b) => a + b, 0);
  const parts = CAUSES.map((cause, index) => ({ label: cause, class: `cause-${cause}`, cycles: model.stallTotals[index] }));
  const box = byId('waiting-summary');
  if (!total) box.replaceChildren(el('p', {}, 'No task waited.'));
  else {
    const admitted = parts.slice(1);
    const rest = total - parts[0].cycles;
    box.replaceChildren(
      el('div', { class: 'labelled-bars' },
        el('span', {}, 'All causes'), stackedBar(parts, total, 'waiting cycles by cause'),
        ...(parts[0].cycles && rest ? [el('span', {}, 'Without window'), stackedBar(admitted, rest, 'waiting cycles by cause, without window')] : [])),
      el('dl', { class: 'figures small' }, parts.flatMap((part) => [
        el('dt', {}, el('span', { class: `swatch ${part.class}` }), part.label),
        el('dd', {}, whole(part.cycles), el('span', { class: 'count' }, ` ${percent(part.cycles, total)}`)),
      ])),
    );
  }
  const place = byId('waiting-table');
  const draw = (byOpcode) => place.replaceChildren(
    waitingTable(model, byOpcode ? grouped(model) : model.statements, byOpcode, chooseStatements),
  );
  for (const button of document.querySelectorAll('[data-group]')) {
    button.addEventListener('click', () => {
      for (const other of document.querySelectorAll('[data-group]')) other.setAttribute('aria-pressed', String(other === button));
      draw(button.dataset.group === 'opcode');
    });
  }
  draw(false);
}

/** What a statement belongs to: a node of the model, or what `@debug` calls it; nothing where neither is known. */
function whereColumns(model, indexOf) {
  const layers = layersByStatement(model);
  if (layers) {
    const nodes = (row) => layers.get(indexOf(row)) ?? { nodes: [] };
    return [{ title: 'Node', value: (row) => nodes(row).nodes[0] ?? '', class: 'words node', cell: (row) => nodeText(nodes(row)) }];
  }
  if (model.statements.every((s) => s.debug === null)) return [];
  return [{ title: 'Debug', value: (row) => visible(model.statements[indexOf(row)].debug ?? '–'), class: 'words' }];
}

/** Statements of one opcode added up. */
function grouped(model) {
  const found = new Map();
  for (const s of model.statements) {
    const sum = found.get(s.op) ?? { op: s.op, name: s.op, count: 0, busy: 0, waited: 0, stalls: [0, 0, 0, 0], members: [] };
    sum.count += s.count;
    sum.busy += s.busy;
    sum.waited += s.waited;
    s.stalls.forEach((cycles, cause) => { sum.stalls[cause] += cycles; });
    sum.members.push(s.index);
    found.set(s.op, sum);
  }
  return [...found.values()];
}

function waitingTable(model, rows, byOpcode, chooseStatements) {
  // A window holds iteration i back since its loop began: that would hide all the rest.
  const shown = (row) => row.busy + row.waited - row.stalls[0];
  const most = largest(rows.map(shown), 1);
  const bar = (row) => {
    const parts = CAUSES.map((cause, index) => ({ label: cause, class: `cause-${cause}`, cycles: row.stalls[index] })).slice(1);
    const text = parts.map((part) => `${part.label} ${whole(part.cycles)}`).join(', ');
    return stackedBar([{ label: 'busy', class: 'cause-busy', cycles: row.busy }, ...parts], most, `busy ${whole(row.busy)}, ${text}`);
  };
  const names = byOpcode ? [{ title: 'Opcode', value: (row) => row.op }]
    : [{ title: 'Statement', value: (row) => row.name }, ...whereColumns(model, (row) => row.index), { title: 'Opcode', value: (row) => row.op },
      { title: 'Line', value: (row) => row.line, numeric: true, cell: (row) => String(row.line) }];
  const cycles = (title, value) => ({ title, value, numeric: true, cell: (row) => fittedNumber(value(row)) });
  const columns = [...names,
    { title: 'Tasks', value: (row) => row.count, numeric: true },
    cycles('Busy', (row) => row.busy),
    ...CAUSES.map((cause, index) => cycles(cause[0].toUpperCase() + cause.slice(1), (row) => row.stalls[index])),
    cycles('Waited', (row) => row.waited),
    { title: 'Busy and waited', cell: bar, class: 'bar-cell' }];
  return new SortedTable({
    label: 'Waiting cycles by cause',
    columns,
    rows,
    sort: columns.findIndex((column) => column.title === 'Waited'),
    choose: (row) => chooseStatements(row.members ?? [row.index]),
  }).element;
}

function fillUnits(model) {
  const total = Math.max(1, model.cycles);
  const parts = (unit) => [{ label: 'busy', class: 'cause-busy', cycles: unit.busy },
    ...Object.entries(unit.idle).map(([cause, cycles]) => ({ label: IDLE_TEXT[cause] ?? cause, class: `idle-${cause.replace(/ /g, '-')}`, cycles }))];
  const why = (unit) => {
    const [cause, cycles] = Object.entries(unit.idle).sort((a, b) => b[1] - a[1])[0] ?? [];
    return cause ? `${IDLE_TEXT[cause] ?? cause}${cycles === total ? '' : ` ${percent(cycles, total)}`}` : '';
  };
  byId('units').replaceChildren(new SortedTable({
    label: 'Use of the units',
    columns: [
      { title: 'Unit', value: (unit) => unit.name },
      { title: 'Tasks', value: (unit) => unit.tasks, numeric: true },
      { title: 'Busy', value: (unit) => unit.busy, numeric: true },
      { title: 'Busy %', value: (unit) => unit.busy / total, numeric: true, cell: (unit) => percent(unit.busy, total) },
      { title: 'Idle', value: (unit) => model.cycles - unit.busy, numeric: true },
      { title: 'Mostly idle because', value: why, class: 'words' },
      { title: '', cell: (unit) => stackedBar(parts(unit), total, `busy ${percent(unit.busy, total)}`), class: 'bar-cell' },
    ],
    rows: model.units,
    sort: -1,
    most: 400,
  }).element, legend([
    ['cause-busy', 'busy'], ['idle-dependence', IDLE_TEXT.dependence], ['idle-window', IDLE_TEXT.window],
    ['idle-token', IDLE_TEXT.token], ['idle-unit', IDLE_TEXT.unit], ['idle-not-reached', IDLE_TEXT['not reached']],
    ['idle-no-more-work', 'no more work, or never used'],
  ]));
}

function fillBounds(model) {
  const names = {
    compute: 'Compute: the busiest of NMU, CSTL, VPU',
    dma: 'DMA: moving between L2 and L1',
    ddr: 'DDR: moving to and from the chip',
    chain: 'Chain: dependences and windows, unlimited units',
  };
  const { kinds, units } = model.raw.bounds;
  const rows = [...Object.entries(kinds).map(([kind, cycles]) => ({ name: names[kind] ?? kind, cycles, isKind: true })),
    ...Object.entries(units).map(([unit, cycles]) => ({ name: `Work of ${unit}`, cycles }))];
  byId('bounds').replaceChildren(new SortedTable({
    label: 'Lower bounds of the run',
    columns: [
      { title: 'Bound', value: (row) => row.name, class: 'words' },
      { title: 'Cycles', value: (row) => row.cycles, numeric: true },
      { title: 'Run is above by', value: (row) => (row.cycles ? model.cycles / row.cycles : Infinity), numeric: true,
        cell: (row) => (row.cycles ? percent(model.cycles - row.cycles, row.cycles) : '–') },
      { title: '', cell: (row) => stackedBar([{ label: row.name, class: 'cause-busy', cycles: row.cycles }], Math.max(1, model.cycles), `${percent(row.cycles, model.cycles)} of the run`), class: 'bar-cell' },
    ],
    rows,
    sort: 1,
  }).element);
}

const WHY = { s: 'at the start', d: 'dependence', u: 'unit was busy', t: 'no token free' };

function fillCritical(model, path, { select }) {
  const causes = model.raw.critical.cause;
  byId('critical-count').textContent = path.length ? `${whole(path.length)} tasks` : '';
  if (!path.length) {
    byId('critical').replaceChildren(el('p', {}, 'There is no path: nothing ran to the end.'));
    return null;
  }
  const columns = [
    { title: 'Statement', value: (row) => row.name },
    ...whereColumns(model, (row) => row.index),
    { title: 'Tasks', value: (row) => row.tasks, numeric: true },
    { title: 'Cycles', value: (row) => row.cycles, numeric: true },
    { title: 'Of the run', value: (row) => row.cycles, numeric: true, cell: (row) => percent(row.cycles, model.cycles) },
    { title: '', cell: (row) => stackedBar([{ label: row.name, class: 'cause-busy', cycles: row.cycles }], Math.max(1, model.cycles), percent(row.cycles, model.cycles)), class: 'bar-cell wide' },
  ];
  byId('critical-shares').replaceChildren(new SortedTable({
    label: 'The critical path by statement',
    columns,
    rows: sharesOf(model, path),
    sort: columns.findIndex((column) => column.title === 'Cycles'),
    most: 12,
  }).element);
  return new LongList(byId('critical-list'), {
    rowHeight: 26,
    count: path.length,
    label: 'Critical path, first task first; Enter selects a task',
    fill: (index, row) => {
      const id = path[index];
      row.append(
        el('span', { class: 'step' }, String(index + 1)),
        el('span', { class: 'name' }, visible(model.name(id))),
        el('span', { class: 'words' }, model.statementOf(id).op),
        el('span', { class: 'words' }, model.unitText(id)),
        el('span', { class: 'number' }, whole(model.start[id])),
        el('span', { class: 'number' }, whole(model.end[id] - model.start[id])),
        el('span', { class: 'words' }, WHY[causes[index]] ?? ''),
      );
    },
    choose: (index) => select(path[index]),
  });
}

function sharesOf(model, path) {
  const found = new Map();
  for (const id of path) {
    const s = model.statementOf(id);
    const sum = found.get(s.index) ?? { index: s.index, name: s.name, tasks: 0, cycles: 0 };
    sum.tasks += 1;
    sum.cycles += model.end[id] - model.start[id];
    found.set(s.index, sum);
  }
  return [...found.values()];
}

/** Every task in the order of time, or those that are marked. */
class TaskList {
  constructor(model, { select }) {
    Object.assign(this, { model, select });
    this.show(null);
  }

  show(ids) {
    const { model } = this;
    const shown = ids ?? model.byStart;
    byId('tasks-count').textContent = ids ? `${whole(shown.length)} marked of ${whole(model.count)}` : whole(shown.length);
    const old = byId('task-list');
    const fresh = old.cloneNode(false);
    old.replaceWith(fresh);
    this.list = new LongList(fresh, {
      rowHeight: 26,
      count: shown.length,
      label: 'Tasks in the order of time; Enter selects one',
      fill: (index, row) => {
        const id = shown[index];
        row.append(
          el('span', { class: 'name' }, visible(model.name(id))),
          el('span', { class: 'words' }, model.statementOf(id).op),
          el('span', { class: 'words' }, model.unitText(id)),
          ...[model.start[id], model.end[id], model.end[id] - model.start[id], ...model.stalls.map((column) => column[id])]
            .map((value) => el('span', { class: 'number' }, whole(value))),
        );
      },
      choose: (index) => this.select(shown[index]),
    });
  }
}

function fillFigures(model) {
  byId('figures-table').replaceChildren(new SortedTable({
    label: 'Timing figures of this run',
    columns: [
      { title: 'Figure', value: (row) => row[0] },
      { title: 'Value', value: (row) => row[1], numeric: true },
      { title: 'From', value: (row) => row[2], class: 'words' },
    ],
    rows: model.raw.profile,
    sort: -1,
  }).element);
}
