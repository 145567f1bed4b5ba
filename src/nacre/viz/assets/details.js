// The panel about the selected task.

const MOST_LINKS = 12;
const CAUSE_TEXT = {
  window: 'for its iteration to be admitted',
  dependence: 'for what it depends on',
  token: 'for a token of the sequencer',
  unit: 'for a free unit',
};

class Details {
  constructor(model, { select, showLine, canStart, layerOf, chooseLayer }) {
    Object.assign(this, { model, select, showLine, canStart, layerOf, chooseLayer });
    this.panel = byId('details');
  }

  show(id) {
    if (id < 0) {
      this.panel.replaceChildren(el('p', { class: 'hint' }, 'No task selected. Click one in the timeline, or press ',
        el('kbd', {}, 'N'), ' for the first.'));
      return;
    }
    const { model } = this;
    const s = model.statementOf(id);
    const iteration = model.iteration(id).map((part) => `${part.variable} = ${part.value}`).join(', ');
    const layer = this.layerOf(s);
    const facts = [
      ['Opcode', s.op],
      s.debug === null ? null : ['Debug', visible(s.debug)],
      layer ? ['Layer', el('button', { type: 'button', class: 'link', onclick: () => this.chooseLayer(layer) }, visible(layer.name))] : null,
      layer && layer.nodes.length ? ['Node', nodeText(layer)] : null,
      iteration ? ['Iteration', visible(iteration)] : null,
      ['Unit', model.unitText(id)],
      model.hasStarted(id)
        ? ['Time', `${whole(model.start[id])} – ${whole(model.end[id])}`] : ['Time', 'never started'],
      ['Cycles', whole(model.end[id] - model.start[id])],
      ['Source', el('button', { type: 'button', class: 'link', onclick: () => this.showLine(s.line) }, `line ${s.line}`)],
    ].filter(Boolean);
    this.panel.replaceChildren(...present(
      el('h3', { id: 'details-name' }, visible(model.name(id))),
      el('dl', { class: 'facts' }, facts.flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)])),
      this.waiting(id),
      this.why(id),
      this.links('Depends on', model.deps(id), model.deps(id).length),
      this.users(id),
    ));
  }

  /** Stalls by cause, as a bar and as numbers. */
  waiting(id) {
    const { model } = this;
    const total = model.waited(id);
    const box = el('section', { 'aria-label': 'Waiting' }, el('h4', {}, 'Waited ', el('span', { class: 'count' }, `${whole(total)} cycles`)));
    if (!total) return box;
    const parts = CAUSES.map((cause, index) => ({ cause, label: cause, class: `cause-${cause}`, cycles: model.stalls[index][id] }))
      .filter((part) => part.cycles);
    const text = parts.map((part) => `${part.cause} ${whole(part.cycles)}`).join(', ');
    const admitted = parts.filter((part) => part.cause !== 'window');
    const rest = total - model.stalls[0][id];
    if (rest) box.append(stackedBar(admitted, rest, text));
    box.append(el('ul', { class: 'causes' }, parts.map((part) => el('li', {},
      el('span', { class: `swatch ${part.class}` }), el('span', {}, `${whole(part.cycles)} ${CAUSE_TEXT[part.cause]}`)))));
    return box;
  }

  /** What the start waited for last. */
  why(id) {
    const { model } = this;
    if (!model.hasStarted(id)) return null;
    const box = el('p', { class: 'why' });
    const holder = this.canStart(id);
    if (model.stalls[3][id] && holder >= 0) box.append('Started when ', this.link(holder), ' left the unit.');
    else if (model.stalls[2][id]) box.append('Started when its engine had a token again.');
    else if (model.blocker[id] >= 0) box.append('Started when ', this.link(model.blocker[id]), ' was complete.');
    else box.append('Started as soon as it was reached.');
    return box;
  }

  link(id) {
    return el('button', { type: 'button', class: 'link', onclick: () => this.select(id) }, visible(this.model.name(id)));
  }

  links(title, ids, total) {
    if (!ids.length) return null;
    const list = el('ul', { class: 'links' }, ids.slice(0, MOST_LINKS).map((id) => el('li', {}, this.link(id),
      el('span', { class: 'count' }, this.model.hasStarted(id) ? `${whole(this.model.start[id])} – ${whole(this.model.end[id])}` : 'never started'))));
    if (total > MOST_LINKS) list.append(el('li', { class: 'count' }, `and ${whole(total - MOST_LINKS)} more`));
    return el('section', { 'aria-label': title }, el('h4', {}, title), list);
  }

  users(id) {
    const ids = [];
    let total = 0;
    for (const [first, end] of this.model.users(id)) {
      total += end - first;
      for (let user = first; user < end && ids.length < MOST_LINKS; user++) ids.push(user);
    }
    return this.links('Needed by', ids, total);
  }
}
