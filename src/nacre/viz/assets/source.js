// The program beside the timeline, with the cycles of every line.

class SourceView {
  constructor(model, text, { chooseLine }) {
    this.model = model;
    this.lines = text.split(/\r\n|\n/);
    this.most = largest([...model.lines.values()].map((line) => line.busy), 1);
    this.range = [0, 0];
    this.list = new LongList(byId('source'), {
      rowHeight: 19,
      count: this.lines.length,
      label: 'Source of the program; Enter marks the tasks of a line',
      fill: (index, row) => this.fill(index + 1, row),
      choose: (index) => chooseLine(index + 1),
    });
    const first = model.statements[0]?.line ?? 1; // statements come in the order of the text
    this.list.container.scrollTop = (first - 4) * this.list.rowHeight;
  }

  fill(number, row) {
    const text = visible(this.lines[number - 1]);
    const line = this.model.lines.get(number);
    if (number >= this.range[0] && number <= this.range[1]) row.classList.add('in-range');
    if (line) row.classList.add('has-tasks');
    const busy = el('span', { class: 'source-busy' });
    const waited = el('span', { class: 'source-waited' });
    if (line) {
      busy.append(el('span', { class: 'heat', style: { width: `${(100 * line.busy) / this.most}%` } }), el('span', {}, short(line.busy)));
      waited.append(short(line.waited));
      row.title = `line ${number}: ${whole(line.busy)} cycles busy, ${whole(line.waited)} waited, all tasks added`;
    }
    const gutter = el('span', { class: 'source-gutter' }, el('span', { class: 'source-number' }, String(number)), busy, waited);
    row.append(gutter, code(text));
  }

  /** Emphasise lines and bring the first into sight. */
  show(first, last) {
    this.range = [first, last];
    if (first > 0) this.list.moveTo(first - 1);
    else this.list.draw();
  }
}

/** A line with its comment set apart; a `#` in a string is none. */
function code(text) {
  let isString = false;
  let at = 0;
  while (at < text.length && (isString || text[at] !== '#')) {
    if (text[at] === '"') isString = !isString;
    at += 1;
  }
  const made = el('span', { class: 'source-code' }, text.slice(0, at));
  if (at < text.length) made.append(el('span', { class: 'comment' }, text.slice(at)));
  return made;
}
