// Memories of the chip: which parts are touched when, buffers at their addresses, banks.

function fillMemories(model) {
  const { memories } = model.raw;
  byId('memory-maps').replaceChildren(...(memories.length
    ? memories.map((memory, index) => memorySectionOf(model, memory, index < 2))
    : [el('p', {}, 'No buffer lies on the chip.')]));
}

function memorySectionOf(model, memory, isOpen) {
  const hasBanks = memory.banks.length > 0;
  const about = hasBanks
    ? ` ${whole(memory.end)} of ${whole(memory.capacity)} bytes, ${whole(hasBanks ? memory.banks.at(-1)[1] + 1 : 0)} ${bankWord(memory)}s of ${whole(memory.width)} bytes a cycle, `
      + `${whole(memory.interleave)} bytes in turn; ${whole(memory.lost)} cycles lost`
    : ` ${whole(memory.end)} of ${whole(memory.capacity)} bytes; accesses never meet`;
  return el('details', { class: 'memory', open: isOpen },
    el('summary', {}, el('h3', {}, memory.memory), el('span', { class: 'count' }, about)),
    ...(memory.choice ? [el('p', { class: 'note' }, choiceText(memory))] : []),
    touchMap(model, memory), bufferTable(model, memory), ...(hasBanks ? [bankTable(memory)] : []));
}

function bankWord(memory) { return memory.memory === 'L2' ? 'slice' : 'bank'; }

/** What the binder made of the places of buffers, and why. */
function choiceText(memory) {
  const { conflicts, packed_conflicts: packed, because } = memory.choice;
  const places = `Places of buffers: ${visible(because)}.`;
  if (!conflicts && !packed) return places;
  const before = packed === conflicts ? '' : `, ${whole(packed)} if buffers were packed`;
  const times = `${whole(conflicts)} time${conflicts === 1 ? '' : 's'}`;
  return `${places} Tiles of two buffers that are used at once share a ${bankWord(memory)} ${times}${before}.`;
}

function hex(value) { return `0x${value.toString(16)}`; }

/** How many operands touch each part of a memory, over time. */
function touchMap(model, memory) {
  const counts = unpack(memory.touches);
  const [rows, columns] = memory.shape;
  const most = largest(counts, 1);
  const text = `Addresses of ${memory.memory} from 0, at the top, to ${hex(memory.end)}, that operands touch, over ${whole(model.raw.run_cycles.image)} cycles; at most ${whole(most)} at once`;
  const canvas = el('canvas', { class: 'touch-map', role: 'img', 'aria-label': text, width: columns, height: rows });
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const context = canvas.getContext('2d');
    context.clearRect(0, 0, columns, rows);
    context.fillStyle = style.getPropertyValue('--busy').trim();
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const count = counts[row * columns + column];
        if (!count) continue;
        context.globalAlpha = 0.25 + 0.75 * Math.sqrt(count / most);
        context.fillRect(column, row, 1, 1);
      }
    }
    context.globalAlpha = 1;
  };
  draw();
  document.addEventListener('retheme', draw);
  return el('figure', { class: 'touches' },
    el('div', { class: 'touch-axis', 'aria-hidden': 'true' }, el('span', {}, '0x0'), el('span', {}, hex(memory.end))),
    canvas,
    el('figcaption', { class: 'note' }, `Addresses touched over time, cycle 0 to ${whole(model.raw.run_cycles.image)} of the image; stronger: by more operands, at most ${whole(most)}.`));
}

function bufferTable(model, memory) {
  const rows = memory.buffers.map(([name, address, bytes, first, last, low, high, banks]) => ({ name, address, bytes, first, last, low, high, banks }));
  const total = Math.max(1, model.raw.run_cycles.image);
  const life = (row) => (row.first === null ? 'not used' : spanBar({ start: row.first, end: row.last }, total));
  const count = memory.banks.length ? memory.banks.at(-1)[1] + 1 : 0;
  const where = (row) => {
    if (!row.banks) return '–';
    if (row.banks === count) return `all ${whole(count)}`;
    return row.banks === 1 ? String(row.low) : `${row.low} – ${row.high}`;
  };
  const left = memory.buffer_count - rows.length;
  return el('div', { class: 'buffers' }, new SortedTable({
    label: `Buffers in ${memory.memory}`,
    columns: [
      { title: 'Buffer', value: (row) => row.name, class: 'node' },
      { title: 'From', value: (row) => row.address, numeric: true, cell: (row) => hex(row.address) },
      { title: 'To', value: (row) => row.address + row.bytes, numeric: true, cell: (row) => hex(row.address + row.bytes) },
      { title: 'Bytes', value: (row) => row.bytes, numeric: true },
      ...(memory.banks.length ? [{ title: `${bankWord(memory) === 'slice' ? 'Slices' : 'Banks'}`, value: (row) => row.banks, numeric: true, cell: where }] : []),
      { title: 'In use', value: (row) => row.first ?? Infinity, cell: life, class: 'bar-cell wide' },
    ],
    rows,
    sort: 1,
    descending: false,
    most: 40,
  }).element, ...(left ? [el('p', { class: 'note' }, `${whole(left)} smaller buffers are left out.`)] : []));
}

function bankTable(memory) {
  const rows = memory.banks.map(([first, last, bytes, buffers, uses, busy, conflicts, lost]) => ({ first, last, bytes, buffers, uses, busy, conflicts, lost }));
  const most = largest(rows.map((row) => row.conflicts), 1);
  const name = bankWord(memory);
  return el('div', { class: 'banks' }, new SortedTable({
    label: `${name === 'slice' ? 'Slices' : 'Banks'} of ${memory.memory}`,
    columns: [
      { title: name === 'slice' ? 'Slice' : 'Bank', value: (row) => row.first, cell: (row) => (row.last > row.first ? `${row.first} – ${row.last}` : String(row.first)) },
      { title: 'Buffers', value: (row) => row.buffers, numeric: true },
      { title: 'Bytes', value: (row) => row.bytes, numeric: true },
      { title: 'Uses', value: (row) => row.uses, numeric: true },
      { title: 'Port cycles', value: (row) => row.busy, numeric: true },
      { title: 'Conflicts', value: (row) => row.conflicts, numeric: true },
      { title: 'Cycles lost', value: (row) => row.lost, numeric: true },
      { title: '', class: 'bar-cell', cell: (row) => stackedBar([{ label: 'conflicts', class: 'lost-bank', cycles: row.conflicts }], most, `${whole(row.conflicts)} conflicts`) },
    ],
    rows,
    sort: 0,
    descending: false,
    most: 64,
  }).element);
}
