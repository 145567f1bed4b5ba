// Elements, numbers as text, and a list that draws only what is in sight.

const WHOLE = new Intl.NumberFormat('en-US');

/** An element. Text always goes in as text: names come from strangers. */
function el(tag, attributes = {}, ...children) {
  const isSvg = SVG_TAGS.has(tag);
  const made = isSvg
    ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(made.style, value);
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  made.append(...present(...children.flat()));
  return made;
}

const SVG_TAGS = new Set(['svg', 'g', 'path', 'line', 'rect', 'text', 'circle', 'tspan']);

/** Children without the absent ones. */
function present(...children) { return children.filter((child) => child !== null && child !== undefined); }

function byId(id) { return document.getElementById(id); }

/** The largest of many values; as arguments of a call they might be too many. */
function largest(values, least = 0) {
  let most = least;
  for (const value of values) if (value > most) most = value;
  return most;
}

function whole(value) { return WHOLE.format(Math.round(value)); }

/** 14,120 as `14.1k`: at most five characters. */
function short(value) {
  if (value < 10000) return String(Math.round(value));
  const [size, letter] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']].find(([s]) => value >= s);
  const scaled = value / size;
  return scaled.toFixed(scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2) + letter;
}

/** A number for a wide table: whole where there is room, else short, and whole when the pointer rests on it. */
function fittedNumber(value) {
  if (value < 10000) return whole(value);
  return el('span', { title: whole(value) },
    el('span', { class: 'if-wide' }, whole(value)), el('span', { class: 'if-narrow' }, short(value)));
}

function percent(part, total) {
  if (!total) return '–';
  const share = (100 * part) / total;
  if (share > 0 && share < 0.1) return '<0.1%';
  return `${share < 9.95 ? share.toFixed(1) : Math.round(share)}%`;
}

function byteText(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let index = 0;
  while (size >= 1024 && index < units.length - 1) {
    size /= 1024;
    index += 1;
  }
  return `${size % 1 ? size.toFixed(size < 10 ? 2 : 1) : size} ${units[index]}`;
}

/** Text in which characters that change the direction or hide are seen. */
function visible(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
}

/** A list of many rows, all of the same height; arrows move in it, Enter chooses. */
class LongList {
  constructor(container, { rowHeight, count, fill, choose, label }) {
    Object.assign(this, { container, rowHeight, count, fill, choose });
    this.active = -1;
    this.space = el('div', { class: 'long-list-space' });
    container.replaceChildren(this.space);
    container.tabIndex = 0;
    container.setAttribute('role', 'listbox');
    container.setAttribute('aria-label', label);
    container.addEventListener('scroll', () => this.draw());
    container.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(container);
    this.space.style.height = `${count * rowHeight}px`;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.container;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - 4);
    const last = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + 4);
    const rows = [];
    for (let index = first; index < last; index++) {
      const row = el('div', {
        class: 'long-list-row',
        role: 'option',
        id: `${this.container.id}-${index}`,
        'aria-posinset': index + 1,
        'aria-setsize': this.count,
        'aria-selected': index === this.active ? 'true' : 'false',
        style: { top: `${index * this.rowHeight}px`, height: `${this.rowHeight}px` },
        onclick: () => {
          this.active = index;
          this.choose(index);
          this.draw();
        },
      });
      this.fill(index, row);
      rows.push(row);
    }
    this.space.replaceChildren(...rows);
    if (this.active >= first && this.active < last) {
      this.container.setAttribute('aria-activedescendant', `${this.container.id}-${this.active}`);
    } else this.container.removeAttribute('aria-activedescendant');
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.container.clientHeight / this.rowHeight) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      const target = Math.max(0, Math.min(this.count - 1, this.active + moves[event.key]));
      this.moveTo(target);
    } else if (event.key === 'Enter' && this.active >= 0) {
      this.choose(this.active);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Make a row the active one and bring it into sight. */
  moveTo(index) {
    this.active = index;
    const top = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.container;
    if (top < scrollTop) this.container.scrollTop = top - 2 * this.rowHeight;
    else if (top + this.rowHeight > scrollTop + clientHeight) {
      this.container.scrollTop = top - clientHeight / 2;
    }
    this.draw();
  }
}

/** A table whose columns sort it; `columns` have title, value, and optionally cell and numeric. */
class SortedTable {
  constructor({ label, columns, rows, sort, descending = true, most = 100, choose, isChoice = () => Boolean(choose) }) {
    Object.assign(this, { columns, rows, sort, descending, most, choose, isChoice });
    this.head = el('tr');
    this.body = el('tbody');
    this.note = el('p', { class: 'note' });
    const table = el('table', { 'aria-label': label }, el('thead', {}, this.head), this.body);
    this.element = el('div', { class: 'table' }, table, this.note);
    this.draw();
  }

  draw() {
    this.head.replaceChildren(...this.columns.map((column, index) => this.headCell(column, index)));
    const { value } = this.columns[this.sort] ?? {};
    const rows = [...this.rows];
    if (value) {
      const sign = this.descending ? -1 : 1;
      rows.sort((a, b) => sign * compare(value(a), value(b)));
    }
    this.body.replaceChildren(...rows.slice(0, this.most).map((row) => this.row(row)));
    this.note.textContent = rows.length > this.most
      ? `${whole(this.most)} of ${whole(rows.length)} rows; sort to see others first` : '';
  }

  headCell(column, index) {
    const isSorted = index === this.sort;
    const cell = el('th', { scope: 'col', class: column.numeric ? 'number' : null });
    if (!column.value) {
      cell.append(column.title);
      return cell;
    }
    const order = isSorted ? (this.descending ? 'descending' : 'ascending') : 'none';
    cell.setAttribute('aria-sort', order);
    const button = el('button', {
      type: 'button',
      class: 'sort',
      onclick: () => {
        this.descending = isSorted ? !this.descending : Boolean(column.numeric);
        this.sort = index;
        this.draw();
        this.head.children[index].querySelector('button')?.focus();
      },
    }, column.title);
    cell.append(button);
    return cell;
  }

  row(row) {
    const isChoice = this.isChoice(row);
    const made = el('tr', { class: isChoice ? 'choice' : null });
    this.columns.forEach((column, index) => {
      const content = column.cell ? column.cell(row) : column.numeric
        ? whole(column.value(row)) : visible(String(column.value(row)));
      const isLink = index === 0 && isChoice;
      made.append(el('td', { class: column.numeric ? 'number' : column.class },
        isLink ? el('button', { type: 'button', class: 'link' }, content) : content));
    });
    if (isChoice) made.addEventListener('click', () => this.choose(row));
    return made;
  }
}

function compare(a, b) {
  if (typeof a === 'string') return a.localeCompare(b, 'en', { numeric: true });
  return a - b;
}

/** A bar of parts side by side; each has cycles, a colour class and a label. */
function stackedBar(parts, total, label) {
  const bar = el('span', { class: 'bar', role: 'img', 'aria-label': label });
  for (const part of parts) {
    if (!part.cycles) continue;
    bar.append(el('span', {
      class: `part ${part.class}`,
      title: `${part.label}: ${whole(part.cycles)} cycles, ${percent(part.cycles, total)}`,
      style: { width: `${(100 * part.cycles) / total}%` },
    }));
  }
  return bar;
}

/** From when to when something was, in a bar that is the whole run. */
function spanBar(row, total) {
  const text = `${whole(row.start)} to ${whole(row.end)}`;
  return el('span', { class: 'life', role: 'img', 'aria-label': text, title: text }, el('span', {
    style: { left: `${(100 * row.start) / total}%`, width: `${Math.max(0.3, (100 * (row.end - row.start)) / total)}%` },
  }));
}

/** From least to most with a mark between them, in a bar that goes from none to `total`. */
function rangeBar({ low, value, high }, total) {
  const text = `${whole(low)} to ${whole(high)}`;
  const place = (amount) => `${Math.min(100, (100 * amount) / Math.max(1, total))}%`;
  return el('span', { class: 'range', role: 'img', 'aria-label': text, title: text },
    el('span', { class: 'span', style: { left: place(low), width: place(high - low) } }),
    el('span', { class: 'mark', style: { left: place(value) } }));
}
