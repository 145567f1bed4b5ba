// A program and its image: the same tasks in two runs, those of the image behind the program's.

const LOST = ['tags', 'queue', 'token', 'arbitration', 'unit', 'bank', 'burst', 'chain'];
const BEFORE_START = 5; // of them a task waits for; the others make it run longer
const LOST_TEXT = {
  tags: 'for what has to happen before',
  queue: 'behind others in a queue',
  token: 'for a token of the engine',
  arbitration: 'while another was preferred',
  unit: 'for a free unit',
  bank: 'longer, because of banks',
  burst: 'longer, because of requests',
  chain: 'longer, to end with its producer',
};

class BoundModel extends Model {
  readTasks(raw) {
    this.tasks = this.count;
    this.mergedInto = unpack(this.raw.placed_blocks.merged_into);
    this.isMerged = raw === null;
    if (this.isMerged) {
      this.count = 0;
      [this.start, this.end, this.unit, this.secondUnit, this.thirdUnit, this.blocker] = [0, 0, 0, 0, 0, 0].map(() => new Float64Array(0));
      this.stalls = CAUSES.map(() => new Float64Array(0));
      this.lost = LOST.map(() => new Float64Array(0));
      this.statement = new Int32Array(0);
      return;
    }
    super.readTasks(raw);
    const image = this.raw.image_tasks;
    const start = unpack(image.start);
    const end = unpack(image.duration).map((cycles, id) => start[id] + cycles);
    const none = new Float64Array(this.tasks).fill(-1);
    this.start = joined(this.start, start);
    this.end = joined(this.end, end);
    this.unit = joined(this.unit, unpack(image.unit));
    this.secondUnit = joined(this.secondUnit, unpack(image.second_unit));
    this.thirdUnit = joined(none, unpack(image.third_unit));
    this.blocker = joined(this.blocker, none);
    this.lost = LOST.map((cause) => unpack(image[`lost_${cause}`]));
    this.count = 2 * this.tasks;
  }

  /** Sums come with the page: they are there too where tasks are merged. */
  sumUp() {
    const { sums } = this.raw;
    const [program, image] = [unpack(sums.program_busy), unpack(sums.image_busy)];
    const lost = LOST.map((cause) => unpack(sums[`lost_${cause}`]));
    this.lines = new Map();
    for (const s of this.statements) {
      s.programBusy = program[s.index];
      s.busy = image[s.index];
      s.lost = lost.map((column) => column[s.index]);
      s.waited = s.lost.slice(0, BEFORE_START).reduce((a, b) => a + b, 0);
      const line = this.lines.get(s.line) ?? { busy: 0, waited: 0, statements: [] };
      line.busy += s.busy;
      line.waited += s.waited;
      line.statements.push(s.index);
      this.lines.set(s.line, line);
    }
  }

  isImage(id) { return id >= this.tasks; }

  /** The task of the program. */
  task(id) { return this.isImage(id) ? id - this.tasks : id; }

  /** A task of the program in the run that another one is of. */
  inRunOf(id, task) { return this.isImage(id) ? task + this.tasks : task; }

  /** Of a task of the program the block that does it, which may be that of its store. */
  counterpart(id) {
    if (id < 0) return -1;
    if (this.isImage(id)) return id - this.tasks;
    const store = this.mergedInto[this.statement[id]];
    return this.tasks + (store < 0 ? id : this.statements[store].first + this.row(id));
  }

  /** The block of a task of the program; the task itself where it has none of its own. */
  blockOf(task) { return this.mergedInto[this.statement[task]] < 0 ? task + this.tasks : task; }

  statementOf(id) { return super.statementOf(this.task(id)); }

  row(id) { return this.task(id) - this.statementOf(id).first; }

  colour(id, colours) { return super.colour(this.task(id), colours); }

  deps(id) { return super.deps(id).map((dep) => this.inRunOf(id, dep)); }

  users(id) { return super.users(id).map((range) => range.map((user) => this.inRunOf(id, user))); }

  unitsOf(id) {
    return [this.unit[id], this.secondUnit[id], this.thirdUnit[id]].filter((unit) => unit >= 0);
  }

  /** A statement stands for its blocks; both runs are marked. */
  idsOf(statement) { return this.isMerged ? [] : super.idsOf(statement).map((id) => this.blockOf(id)); }

  marksOf(ids) { return ids.flatMap((id) => [id, this.counterpart(id)]); }

  search(text) {
    if (this.isMerged) return [];
    const found = super.search(text).map((id) => this.blockOf(id));
    return found.sort((a, b) => this.start[a] - this.start[b]);
  }

  waits(id) {
    if (!this.isImage(id)) return super.waits(id);
    return this.lostBy(id).slice(0, BEFORE_START);
  }

  /** Cycles that a block lost, by cause. */
  lostBy(id) { return LOST.map((cause, index) => ({ cause, cycles: this.lost[index][this.task(id)] })); }

  waited(id) { return this.waits(id).reduce((sum, { cycles }) => sum + cycles, 0); }

  headingOf(unit) {
    const where = unit.engine === null ? 'Device' : `Engine ${unit.engine}`;
    return `${where}, ${unit.side}`;
  }

  unitText(id) { return `${super.unitText(id)}, ${this.isImage(id) ? 'image' : 'program'}`; }

  tracks() { return this.isMerged ? this.units.map((unit) => new ShareTrack(unit.shares, this.cycles)) : super.tracks(); }
}

function joined(first, second) {
  const both = new Float64Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** A unit whose tasks are too many: how busy it is, step by step. */
class ShareTrack {
  constructor(shares, cycles) {
    const busy = unpack(shares);
    this.step = cycles / busy.length;
    this.before = new Float64Array(busy.length + 1);
    busy.forEach((share, index) => { this.before[index + 1] = this.before[index] + share; });
    this.ids = [];
    this.count = 0;
  }

  busyBefore(time) {
    const at = Math.max(0, Math.min(this.before.length - 1, time / this.step));
    const low = Math.min(this.before.length - 2, Math.floor(at));
    return this.before[low] + (at - low) * (this.before[low + 1] - this.before[low]);
  }

  busyIn(from, to) { return this.busyBefore(to) - this.busyBefore(from); }

  visit(from, to, column, onTask, onColumn) {
    for (let number = 0; from + number * column < to; number++) {
      const share = this.busyIn(from + number * column, from + (number + 1) * column) / column;
      if (share > 0) onColumn(number, Math.min(1, share), 0, 2);
    }
  }

  near() { return -1; }
}

/** Texts that came with `pack_words`. */
function words(raw) {
  const at = unpack(raw.at);
  return Array.from(at, (index) => raw.words[index]);
}
