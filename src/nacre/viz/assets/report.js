// The page: what is selected, what is marked, and the keys.

const model = new Model(JSON.parse(byId('data').textContent));
model.byStart = orderedByStart(model);
const path = Array.from(unpack(model.raw.critical.task));

const state = { selected: -1, found: [], at: -1, showsCritical: true };

const timeline = new Timeline(model, { onSelect: (id) => select(id, { reveal: false }) });
const layerOf = layersByStatement(model);
const details = new Details(model, {
  layerOf: (statement) => layerOf?.get(statement.index),
  chooseLayer: (layer) => chooseLayer(layer),
  select: (id) => select(id),
  showLine: (line) => chooseLine(line),
  canStart: (id) => previousOnUnit(id),
});
let source = null; // until its text is there
const tasks = new TaskList(model, { select });

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
  timeline.mark(ids);
  tasks.show(ids);
  byId('marked').hidden = !ids;
  byId('marked-text').textContent = ids ? text : '';
}

function chooseStatements(statements, label = null) {
  const ids = [];
  for (const index of statements) {
    const s = model.statements[index];
    for (let id = s.first; id < s.first + s.count; id++) if (model.hasStarted(id)) ids.push(id);
  }
  ids.sort((a, b) => model.start[a] - model.start[b]);
  const first = model.statements[statements[0]];
  const name = label ?? (statements.length === 1 ? visible(first.name) : first.op);
  mark(ids, `${name}: ${whole(ids.length)} task${ids.length === 1 ? '' : 's'}`);
  source?.show(first.line, first.endLine);
  state.found = ids;
  state.at = -1;
}

/** Mark the tasks of a layer and bring its time into sight. */
function chooseLayer(layer) {
  if (!layer.statements.length) return;
  chooseStatements(layer.statements, visible(layer.name));
  const margin = 0.05 * (layer.end - layer.start);
  timeline.show(layer.start - margin, layer.end + margin);
  byId('timeline').scrollIntoView({ block: 'nearest' });
  say(`${layer.name}, ${whole(layer.start)} to ${whole(layer.end)}`);
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

function toggleCritical() {
  state.showsCritical = !state.showsCritical;
  byId('critical-toggle').setAttribute('aria-pressed', String(state.showsCritical));
  timeline.showCritical(state.showsCritical ? path : null);
}

function toggleIdle() {
  timeline.showsIdle = !timeline.showsIdle;
  byId('idle-toggle').setAttribute('aria-pressed', String(timeline.showsIdle));
  timeline.layOut();
}

// Light and dark

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId('theme-toggle').textContent = isDark() ? 'Light' : 'Dark';
  timeline.retheme();
}

function listenToTheme() {
  byId('theme-toggle').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme(document.documentElement.dataset.theme));
  let before;
  window.addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    setTheme('light');
    timeline.draw(); // at once: the printer does not wait for a frame
  });
  window.addEventListener('afterprint', () => setTheme(before));
  setTheme(document.documentElement.dataset.theme);
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
  c: () => toggleCritical(),
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

// The rest of the page

function fillHeader() {
  const { raw } = model;
  const bound = Math.max(...Object.values(raw.bounds.kinds));
  const busiest = [...model.units].sort((a, b) => b.busy - a.busy)[0];
  byId('device').textContent = raw.device;
  byId('status').textContent = raw.status;
  byId('status').dataset.status = raw.status;
  const figures = [
    ['Cycles', whole(model.cycles)],
    ['Tasks', whole(model.count)],
    ['Above the bound', bound && raw.status === 'completed' ? percent(model.cycles - bound, bound) : '–'],
    ['Busiest unit', busiest && busiest.busy ? `${busiest.name} ${percent(busiest.busy, model.cycles)}` : '–'],
    ...raw.memory.filter((m) => m.capacity).slice(0, 2).map((m) => [`Peak ${m.place}`, `${byteText(m.peak)} ${percent(m.peak, m.capacity)}`]),
  ];
  byId('figures').replaceChildren(...figures.map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
  if (!raw.waiting_count) return;
  const rest = raw.waiting_count - raw.waiting.length;
  byId('stuck').hidden = false;
  byId('stuck-list').textContent = visible(raw.waiting.join(', ')) + (rest > 0 ? `, and ${whole(rest)} more` : '');
}

function listen() {
  document.addEventListener('keydown', onKey);
  byId('search').addEventListener('input', search);
  const clicks = {
    'search-next': () => jump(1),
    'search-previous': () => jump(-1),
    'zoom-in': () => timeline.zoom(0.5),
    'zoom-out': () => timeline.zoom(2),
    'zoom-fit': () => timeline.fit(),
    'critical-toggle': toggleCritical,
    'idle-toggle': toggleIdle,
    unmark,
  };
  for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener('click', action);
  byId('idle-toggle').hidden = !timeline.hidden;
}

fillHeader();
fillLayers(model, { chooseLayer });
fillWaiting(model, { chooseStatements });
fillUnits(model);
fillBounds(model);
fillCritical(model, path, { select });
fillMemory(model);
fillRoofline(model, { chooseStatements });
fillFigures(model);
listen();
listenToTheme();
timeline.showCritical(path);
details.show(-1);
sourceText(model.raw).then((text) => {
  source = new SourceView(model, text, { chooseLine });
  document.documentElement.dataset.ready = 'true';
});
// For the console, and for tests.
window.nacre = { model, timeline, select, state };
