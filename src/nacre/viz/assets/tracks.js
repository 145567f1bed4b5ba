// Tasks in the order of time, drawn at any distance in time proportional to the pixels.

/** Tasks that follow one another on a unit. */
class Track {
  constructor(ids, model) {
    this.ids = ids;
    this.count = ids.length;
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.busy = new Float64Array(this.count + 1); // before each task
    ids.forEach((id, index) => {
      this.start[index] = model.start[id];
      this.end[index] = model.end[id];
      this.busy[index + 1] = this.busy[index] + model.end[id] - model.start[id];
    });
  }

  /** The first task that starts at a time or later, looked for from an index on. */
  startingFrom(time, low = 0) {
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first task that has not ended by a time. */
  endingAfter(time) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Busy cycles in [from, to). */
  busyIn(from, to) {
    const first = this.endingAfter(from);
    const last = this.startingFrom(to, first);
    if (first >= last) return 0;
    const early = Math.max(0, from - this.start[first]);
    const late = Math.max(0, this.end[last - 1] - to);
    return this.busy[last] - this.busy[first] - early - late;
  }

  /**
   * Visit what lies in [from, to). A task of at least two columns comes by itself; what is
   * shorter comes by column: its number, how full it is, and the tasks [first, end) that start
   * in it. There are never more calls than columns.
   */
  visit(from, to, column, onTask, onColumn) {
    let i = this.endingAfter(from);
    while (i < this.count && this.start[i] < to) {
      if (this.end[i] - this.start[i] >= 2 * column) {
        onTask(i);
        i += 1;
        continue;
      }
      const number = Math.floor((Math.max(this.start[i], from) - from) / column);
      let next = this.startingFrom(from + (number + 1) * column, i + 1);
      const isLastLong = this.end[next - 1] - this.start[next - 1] >= 2 * column;
      if (isLastLong && next - 1 > i) next -= 1;
      onColumn(number, Math.min(1, (this.busy[next] - this.busy[i]) / column), i, next);
      i = next;
    }
  }

  /** The task under a time; else the nearest one that is at most so far away; -1 for none. */
  near(time, distance) {
    const at = this.endingAfter(time);
    let best = -1;
    let least = distance;
    for (const i of [at - 1, at]) {
      if (i < 0 || i >= this.count) continue;
      const away = Math.max(0, this.start[i] - time, time - this.end[i]);
      if (away <= least) {
        best = i;
        least = away;
      }
    }
    return best < 0 ? -1 : this.ids[best];
  }
}

/** Tracks by unit of the tasks that have a mark. */
function tracksOf(model, isMarked = null) {
  const byUnit = model.units.map(() => []);
  for (const id of model.byStart) {
    if (isMarked && !isMarked[id]) continue;
    for (const unit of model.unitsOf(id)) byUnit[unit].push(id);
  }
  return byUnit.map((ids) => new Track(ids, model));
}

/** Every task that started, in the order of time. */
function orderedByStart(model) {
  const ids = [];
  for (let id = 0; id < model.count; id++) if (model.hasStarted(id)) ids.push(id);
  const { start, end } = model;
  return Int32Array.from(ids).sort((a, b) => start[a] - start[b] || end[a] - end[b] || a - b);
}
