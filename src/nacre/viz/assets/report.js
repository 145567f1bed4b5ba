// The report page: its parts, filled from its data.

const model = new Model(JSON.parse(byId('data').textContent));
model.byStart = orderedByStart(model);
const path = Array.from(unpack(model.raw.critical.task));

const timeline = new Timeline(model, { onSelect: (id) => select(id, { reveal: false }) });
const layerOf = layersByStatement(model);
const details = new Details(model, {
  layerOf: (statement) => layerOf?.get(statement.index),
  chooseLayer: (layer) => chooseLayer(layer),
  select: (id) => select(id),
  showLine: (line) => chooseLine(line),
  canStart: (id) => previousOnUnit(id),
});
const tasks = new TaskList(model, { select });

/** Mark the tasks of a layer and bring its time into sight. */
function chooseLayer(layer) {
  if (!layer.statements.length) return;
  chooseStatements(layer.statements, visible(layer.name));
  const margin = 0.05 * (layer.end - layer.start);
  timeline.show(layer.start - margin, layer.end + margin);
  byId('timeline').scrollIntoView({ block: 'nearest' });
  say(`${layer.name}, ${whole(layer.start)} to ${whole(layer.end)}`);
}

function toggleCritical() {
  state.showsCritical = !state.showsCritical;
  byId('critical-toggle').setAttribute('aria-pressed', String(state.showsCritical));
  timeline.showCritical(state.showsCritical ? path : null);
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

fillHeader();
fillLayers(model, { chooseLayer });
fillNoise(model);
fillWaiting(model, { chooseStatements });
fillUnits(model);
fillBounds(model);
fillCritical(model, path, { select });
fillMemory(model);
fillRoofline(model, { chooseStatements });
fillFigures(model);
KEYS.c = toggleCritical;
onClick({ 'critical-toggle': toggleCritical });
listenToTimeline();
listenToTheme();
timeline.showCritical(path);
details.show(-1);
sourceText(model.raw).then((text) => {
  source = new SourceView(model, text, { chooseLine });
  document.documentElement.dataset.ready = 'true';
});
// For the console, and for tests.
window.nacre = { model, timeline, select, state };
