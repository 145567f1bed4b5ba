// What is selected and what is marked, of a page that has a model, a timeline, details and a list
// of tasks; and the keys.

const state = { selected: -1, found: [], at: -1, showsCritical: true };
let source = null; // until its text is there

/** Select a task; -1 for none. */
function select(id, { reveal = true } = {}) {
  state.selected = id;
  timeline.select(id);
  details.show(id);
  if (id < 0) return;
  const statement = model.statementOf(id);
  if (reveal && model.hasStarted(id)) timeline.reveal(id);
  source?.show(statement.line, statement.endLine);
  say(`${model.name(id)}, ${statement.op} on ${model.unitText(id)}, ${whole(model.start[id])} to ${whole(model.end[id])}`);
}

function say(text) { byId('said').textContent = text; }

/** The task that held the unit until this one took it. */
function previousOnUnit(id) {
  for (const unit of model.unitsOf(id)) {
    const track = timeline.tracks[unit];
    const before = track.startingFrom(model.start[id]) - 1;
    if (before >= 0 && track.end[before] === model.start[id]) return track.ids[before];
  }
  return -1;
}

// Marks: what a search, a line or a statement means

function mark(ids, text) {
  timeline.mark(ids && model.marksOf(ids));
  tasks.show(ids);
  byId('marked').hidden = !ids;
  byId('marked-text').textContent = ids ? text : '';
}

function chooseStatements(statements, label = null) {
  const ids = [];
  for (const index of statements) {
    const s = model.statements[index];
    for (const id of model.idsOf(s)) if (model.hasStarted(id)) ids.push(id);
  }
  ids.sort((a, b) => model.start[a] - model.start[b]);
  const first = model.statements[statements[0]];
  const name = label ?? (statements.length === 1 ? visible(first.name) : first.op);
  mark(ids, `${name}: ${whole(ids.length)} task${ids.length === 1 ? '' : 's'}`);
  source?.show(first.line, first.endLine);
  state.found = ids;
  state.at = -1;
}

function chooseLine(number) {
  const line = model.lines.get(number);
  if (line) chooseStatements(line.statements);
  else source?.show(number, number);
}

function unmark() {
  byId('search').value = '';
  byId('search-count').textContent = '';
  state.found = [];
  mark(null);
}

function search() {
  const text = byId('search').value;
  if (!text.trim()) {
    unmark();
    return;
  }
  state.found = model.search(text);
  state.at = -1;
  mark(state.found, `“${text.trim().slice(0, 40)}”: ${whole(state.found.length)} task${state.found.length === 1 ? '' : 's'}`);
  byId('search-count').textContent = state.found.length ? whole(state.found.length) : 'none';
}

/** Go to the next or the previous of the marked tasks. */
function jump(step) {
  const { found } = state;
  if (!found.length) return;
  state.at = state.at < 0 && step < 0 ? found.length - 1 : (state.at + step + found.length) % found.length;
  byId('search-count').textContent = `${whole(state.at + 1)} / ${whole(found.length)}`;
  select(found[state.at]);
}

/** Select the next or the previous task on the selected one's unit. */
function neighbour(step) {
  if (state.selected < 0) {
    if (model.byStart.length) select(model.byStart[0]);
    return;
  }
  const track = timeline.tracks[model.unit[state.selected]];
  const at = track ? track.ids.indexOf(state.selected) + step : -1;
  if (track && at >= 0 && at < track.count) select(track.ids[at]);
}

// Keys

const KEYS = {
  '/': () => byId('search').focus(),
  '+': () => timeline.zoom(0.5),
  '=': () => timeline.zoom(0.5),
  '-': () => timeline.zoom(2),
  0: () => timeline.fit(),
  ArrowLeft: () => timeline.pan((timeline.from - timeline.to) / 8),
  ArrowRight: () => timeline.pan((timeline.to - timeline.from) / 8),
  n: () => neighbour(1),
  p: () => neighbour(-1),
  Escape: () => {
    unmark();
    select(-1);
  },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches('input');
  if (isTyping && event.key === 'Enter') jump(event.shiftKey ? -1 : 1);
  else if (isTyping && event.key === 'Escape') {
    unmark();
    event.target.blur();
  } else if (isTyping) return;
  else if (KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]) {
    KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]();
  } else return;
  event.preventDefault();
}

/** Buttons of the timeline, the search and the keys. */
function listenToTimeline() {
  document.addEventListener('keydown', onKey);
  byId('search').addEventListener('input', search);
  onClick({
    'search-next': () => jump(1),
    'search-previous': () => jump(-1),
    'zoom-in': () => timeline.zoom(0.5),
    'zoom-out': () => timeline.zoom(2),
    'zoom-fit': () => timeline.fit(),
    'idle-toggle': toggleIdle,
    unmark,
  });
  byId('idle-toggle').hidden = !timeline.hidden;
}

function onClick(actions) {
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener('click', action);
}

function toggleIdle() {
  timeline.showsIdle = !timeline.showsIdle;
  byId('idle-toggle').setAttribute('aria-pressed', String(timeline.showsIdle));
  timeline.layOut();
}
