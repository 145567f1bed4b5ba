// The page about a binding: its parts, filled from its data.

const model = new BoundModel(JSON.parse(byId('data').textContent));
model.byStart = orderedByStart(model);

// Both runs are to be seen at once.
const timeline = new Timeline(model, { onSelect: (id) => select(id, { reveal: false }), mostHeight: 780 });
const details = new BoundDetails(model, { select: (id) => select(id), showLine: (line) => chooseLine(line) });
const tasks = new BlockList(model, { select });

function fillHeader() {
  const { raw } = model;
  const { program, ideal, image } = raw.run_cycles;
  byId('device').textContent = raw.device;
  byId('uarch').textContent = raw.uarch_hash ? `${raw.uarch} (${raw.uarch_hash})` : raw.uarch;
  const blocks = Object.values(raw.blocks).reduce((a, b) => a + b, 0);
  const tags = raw.tags.map((use) => [`Tags of ${use.of}`, `${whole(use.used)}${use.available === null ? '' : ` of ${whole(use.available)}`}`]);
  const figures = [
    ['Program', `${whole(program)} cycles`],
    ['Bound to ideal hardware', ideal === program ? `${whole(ideal)}, equal` : `${whole(ideal)}, not equal`],
    [`Image on ${raw.uarch}`, `${whole(image)} cycles`],
    ['Ratio', program ? `${(image / program).toFixed(3)}×` : '–'],
    ...(raw.proof ? [['Proof', proofText(raw.proof)]] : []),
    ['Blocks', `${whole(blocks)} in ${whole(raw.streams.length)} stream${raw.streams.length === 1 ? '' : 's'}`],
    ['Tasks', whole(raw.task_count)],
    ['Repeats', whole(raw.repeats)],
    ...tags.slice(0, 6),
    ...(tags.length > 6 ? [['Tags', `of ${whole(tags.length - 6)} more under Decisions`]] : []),
  ];
  byId('figures').replaceChildren(...figures.map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
  fillTrouble(raw);
}

function proofText(proof) {
  return el('span', { class: 'proof', 'data-proved': String(proof.is_proved) }, proof.is_proved ? 'proved' : 'not proved');
}

/** What is wrong with the image, and what of it is not on the page. */
function fillTrouble(raw) {
  const findings = raw.proof?.findings ?? [];
  byId('stuck').hidden = !findings.length;
  byId('stuck-list').textContent = visible(findings.join('; '));
  byId('left-out').hidden = !model.isMerged;
  byId('left-out').textContent = model.isMerged
    ? `${whole(model.tasks)} tasks are too many to be shown one by one: the timeline shows how busy units are in steps of time. Tables have all of them added up.` : '';
}

fillHeader();
fillCauses(model);
fillStatements(model, { chooseStatements });
fillMemories(model);
fillChains(model);
fillWeights(model);
new DecisionTable(model, { chooseStatements });
listenToTimeline();
listenToTheme();
details.show(-1);
sourceText(model.raw).then((text) => {
  source = new SourceView(model, text, { chooseLine });
  document.documentElement.dataset.ready = 'true';
});
// For the console, and for tests.
window.nacre = { model, timeline, select, state };
