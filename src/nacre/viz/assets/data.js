// The run as columns: what `report_data.py` has packed, unpacked, and questions about it.

const CAUSES = ['window', 'dependence', 'token', 'unit'];

/** The inverse of `packed` in packing.py: a column of integers. */
function unpack(text) {
  const bytes = atob(text);
  let values = new Float64Array(1024);
  let count = 0;
  let at = 1;
  // Numbers may need more than 32 bits, so they are added up, not shifted.
  const next = () => {
    let value = 0;
    let weight = 1;
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      value += (byte & 127) * weight;
      if (byte < 128) return value;
      weight *= 128;
    }
  };
  const append = (value, times) => {
    while (count + times > values.length) {
      const larger = new Float64Array(2 * values.length);
      larger.set(values);
      values = larger;
    }
    values.fill(value, count, count + times);
    count += times;
  };
  while (at < bytes.length) {
    const value = next();
    if (value === 0) append(0, next());
    else append(value % 2 ? -(value + 1) / 2 : value / 2, 1);
  }
  values = values.slice(0, count);
  for (let order = bytes.charCodeAt(0); order > 0; order--) {
    for (let i = 1; i < count; i++) values[i] += values[i - 1];
  }
  return values;
}

/** The text of the program; a long one comes deflated. */
async function sourceText(raw) {
  if (typeof raw.source === 'string') return raw.source;
  const bytes = Uint8Array.from(atob(raw.source.deflated), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}

/** A loop's iterations: `begin[p]` is the first row inside row p of the grid around it. */
function readGrid(raw) {
  if (raw.parent < 0) return { parent: -1, rows: 1 };
  const counts = unpack(raw.counts);
  const begin = new Float64Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) begin[i + 1] = begin[i] + counts[i];
  const { parent, rows, variable } = raw;
  return { parent, rows, variable, first: unpack(raw.first), begin };
}

/** The index of the last entry that is not above a value; entries rise. */
function lastAtMost(entries, value, low = 0, high = entries.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The page's tasks, statements, units and loops. */
class Model {
  constructor(raw) {
    this.raw = raw;
    this.cycles = raw.cycles;
    this.units = raw.units;
    this.grids = raw.grids.map(readGrid);
    this.readStatements(raw.statements);
    this.readTasks(raw.tasks);
    this.sumUp();
  }

  readStatements(raw) {
    const [op, line, lines, grid, depCount, dep] = ['op', 'line', 'lines', 'grid', 'dep_count', 'dep'].map((key) => unpack(raw[key]));
    const debug = raw.debug ? unpack(raw.debug) : null;
    let at = 0;
    this.statements = raw.name.map((name, index) => {
      // Dependences are counted backwards from the statement.
      const deps = Array.from(dep.subarray(at, at + depCount[index]), (back) => index - back);
      at += depCount[index];
      return {
        index,
        name,
        deps,
        debug: debug && debug[index] >= 0 ? raw.debug_names[debug[index]] : null,
        op: raw.ops[op[index]],
        line: line[index],
        endLine: line[index] + lines[index],
        grid: grid[index],
        users: [],
        first: 0,
        count: this.grids[grid[index]].rows,
        busy: 0,
        stalls: [0, 0, 0, 0],
      };
    });
    let first = 0;
    for (const statement of this.statements) {
      statement.first = first;
      first += statement.count;
      for (const dep of statement.deps) this.statements[dep].users.push(statement.index);
    }
    this.count = first;
  }

  readTasks(raw) {
    this.start = unpack(raw.start);
    this.end = unpack(raw.duration);
    for (let id = 0; id < this.count; id++) this.end[id] += this.start[id];
    this.unit = unpack(raw.unit);
    this.secondUnit = unpack(raw.second_unit);
    this.stalls = [raw.window, raw.dependence, raw.token, raw.unit_wait].map(unpack);
    this.blocker = unpack(raw.blocker);
    this.statement = new Int32Array(this.count);
    for (const s of this.statements) this.statement.fill(s.index, s.first, s.first + s.count);
  }

  /** Busy and waiting cycles by statement, by line and in all. */
  sumUp() {
    this.stallTotals = [0, 0, 0, 0];
    this.busyTotal = 0;
    this.lines = new Map();
    for (const s of this.statements) {
      for (let id = s.first; id < s.first + s.count; id++) {
        s.busy += this.end[id] - this.start[id];
        for (let cause = 0; cause < 4; cause++) s.stalls[cause] += this.stalls[cause][id];
      }
      s.waited = s.stalls.reduce((a, b) => a + b, 0);
      this.busyTotal += s.busy;
      s.stalls.forEach((cycles, cause) => { this.stallTotals[cause] += cycles; });
      const line = this.lines.get(s.line) ?? { busy: 0, waited: 0, statements: [] };
      line.busy += s.busy;
      line.waited += s.waited;
      line.statements.push(s.index);
      this.lines.set(s.line, line);
    }
  }

  statementOf(id) { return this.statements[this.statement[id]]; }

  row(id) { return id - this.statementOf(id).first; }

  hasStarted(id) { return this.start[id] >= 0; }

  /** The tasks of a statement. */
  idsOf(statement) { return Array.from({ length: statement.count }, (_, row) => statement.first + row); }

  /** What is marked in the timeline where some tasks are. */
  marksOf(ids) { return ids; }

  /** What a task waited for until its start, in this order. */
  waits(id) { return CAUSES.map((cause, index) => ({ cause, cycles: this.stalls[index][id] })); }

  /** The same task in another run; -1 for none. */
  counterpart() { return -1; }

  headingOf(unit) { return unit.engine === null ? 'Device' : `Engine ${unit.engine}`; }

  /** Tasks by unit, in the order of time. */
  tracks() { return tracksOf(this); }

  waited(id) { return this.stalls.reduce((sum, column) => sum + column[id], 0); }

  /** The loop variables around a task with their values, outermost first. */
  iteration(id) {
    const found = [];
    let row = this.row(id);
    let grid = this.grids[this.statementOf(id).grid];
    while (grid.parent >= 0) {
      const outer = lastAtMost(grid.begin, row);
      found.unshift({ variable: grid.variable, value: grid.first[outer] + row - grid.begin[outer] });
      row = outer;
      grid = this.grids[grid.parent];
    }
    return found;
  }

  /** `tX[3]`, as the command line names it. */
  name(id) {
    const values = this.iteration(id).map((part) => part.value);
    return this.statementOf(id).name + (values.length ? `[${values.join(',')}]` : '');
  }

  /** The task that each named dependence means. */
  deps(id) {
    const statement = this.statementOf(id);
    return statement.deps.map((dep) => {
      const target = this.statements[dep];
      let row = this.row(id);
      for (let g = statement.grid; g !== target.grid && this.grids[g].parent >= 0;) {
        row = lastAtMost(this.grids[g].begin, row);
        g = this.grids[g].parent;
      }
      return target.first + row;
    });
  }

  /** The tasks that name this one, as ranges [first, end) of a statement's tasks. */
  users(id) {
    const statement = this.statementOf(id);
    return statement.users.map((user) => {
      const target = this.statements[user];
      const way = [];
      for (let g = target.grid; g !== statement.grid && g >= 0; g = this.grids[g].parent) way.push(g);
      let low = this.row(id);
      let high = low + 1;
      for (const g of way.reverse()) {
        low = this.grids[g].begin[low];
        high = this.grids[g].begin[high];
      }
      return [target.first + low, target.first + high];
    });
  }

  unitsOf(id) {
    return [this.unit[id], this.secondUnit[id]].filter((unit) => unit >= 0);
  }

  unitText(id) {
    return this.unitsOf(id).map((unit) => this.units[unit].name).join(' + ') || 'none';
  }

  isCopy(id) {
    const { op } = this.statementOf(id);
    return op === 'transfer' || op === 'store';
  }

  /** Which colour of the palette: that of the iteration; -1 outside loops. */
  colour(id, colours) {
    const statement = this.statementOf(id);
    return statement.grid === 0 ? -1 : (id - statement.first) % colours;
  }

  /** The tasks that a text means: `tX[3]` one, `tX` or `gemm` all of those, `X` what contains it. */
  search(text) {
    const [, name, rest] = /^([^[]*)(\[.*)?$/s.exec(text.trim().toLowerCase()) ?? [];
    const ids = [];
    if (!name && !rest) return ids;
    for (const s of this.statements) {
      const own = s.name.toLowerCase();
      const isMatch = rest ? own === name : own.includes(name) || s.op.toLowerCase().includes(name);
      if (!isMatch) continue;
      for (let id = s.first; id < s.first + s.count; id++) {
        if (!rest || this.name(id).toLowerCase().startsWith(own + rest)) ids.push(id);
      }
    }
    return ids.filter((id) => this.hasStarted(id)).sort((a, b) => this.start[a] - this.start[b]);
  }
}
