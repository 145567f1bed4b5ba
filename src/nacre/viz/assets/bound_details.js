// The panel about the selected task: the task of the program and its block.

class BoundDetails {
  constructor(model, { select, showLine }) {
    Object.assign(this, { model, select, showLine });
    this.panel = byId('details');
    this.blocks = Object.fromEntries(['waits', 'signal', 'chained', 'format', 'layer']
      .map((key) => [key, words(model.raw.placed_blocks[key])]));
  }

  show(id) {
    const { model } = this;
    if (id < 0) {
      this.panel.replaceChildren(model.isMerged
        ? el('p', { class: 'hint' }, 'Tasks are too many to be selected one by one.')
        : el('p', { class: 'hint' }, 'No task selected. Click one in the timeline, or press ', el('kbd', {}, 'N'), ' for the first.'));
      return;
    }
    const image = model.isImage(id) ? id : model.counterpart(id);
    const s = model.statementOf(id);
    this.panel.replaceChildren(...present(
      el('h3', { id: 'details-name' }, visible(model.name(id))),
      el('dl', { class: 'facts' }, this.facts(s, id).flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)])),
      this.runs(model.isImage(id) ? model.task(id) : id, image),
      this.order(model.statementOf(image)),
      this.lost(image),
      this.deps(id),
    ));
  }

  facts(s, id) {
    const { model } = this;
    const iteration = model.iteration(id).map((part) => `${part.variable} = ${part.value}`).join(', ');
    const layer = this.blocks.layer[s.index];
    return [
      ['Opcode', s.op],
      iteration ? ['Iteration', visible(iteration)] : null,
      layer ? ['Layer', visible(layer)] : null,
      ['Source', el('button', { type: 'button', class: 'link', onclick: () => this.showLine(s.line) }, `line ${s.line}`)],
      this.merged(s),
      this.blocks.chained[s.index] ? ['Chain', this.blocks.chained[s.index]] : null,
      s.op === 'store' ? ['Format', this.blocks.format[s.index]] : null,
    ].filter(Boolean);
  }

  /** A conversion that a store does on its way has no block of its own. */
  merged(s) {
    const store = this.model.mergedInto[s.index];
    return store < 0 ? null : ['Block', `that of ${visible(this.model.statements[store].name)}, which does it on its way`];
  }

  /** The two runs side by side. */
  runs(task, image) {
    const { model } = this;
    const row = (name, id) => el('tr', { 'data-run': name },
      el('th', { scope: 'row' }, el('button', { type: 'button', class: 'link', onclick: () => this.select(id) }, name)),
      el('td', {}, model.unitsOf(id).map((unit) => model.units[unit].name).join(' + ') || 'none'),
      ...(model.hasStarted(id)
        ? [model.start[id], model.end[id], model.end[id] - model.start[id]].map((value) => el('td', { class: 'number' }, whole(value)))
        : [el('td', { colspan: 3 }, 'never started')]));
    const head = ['Run', 'Units', 'Start', 'End', 'Cycles'];
    return el('div', { class: 'table' }, el('table', { 'aria-label': 'The task in both runs' },
      el('thead', {}, el('tr', {}, head.map((text, index) => el('th', { scope: 'col', class: index > 1 ? 'number' : null }, text)))),
      el('tbody', {}, row('Program', task), row('Image', image))));
  }

  /** What its block waits for and signals; counters are those of the loops around it. */
  order(s) {
    const waits = this.blocks.waits[s.index];
    const signal = this.blocks.signal[s.index];
    return el('section', { 'aria-label': 'Tags' }, el('h4', {}, 'Tags'), el('dl', { class: 'facts' },
      el('dt', {}, 'Waits'), el('dd', { class: 'code' }, waits ? waits.split(', ').map((one) => el('div', {}, one)) : 'for nothing'),
      el('dt', {}, 'Signals'), el('dd', { class: 'code' }, signal || 'nothing')));
  }

  lost(image) {
    const parts = this.model.lostBy(image).filter((part) => part.cycles);
    const total = parts.reduce((sum, part) => sum + part.cycles, 0);
    const box = el('section', { 'aria-label': 'Cycles lost' }, el('h4', {}, 'Lost ', el('span', { class: 'count' }, `${whole(total)} cycles`)));
    if (!total) return box;
    box.append(stackedBar(parts.map((part) => ({ ...part, label: part.cause, class: `lost-${part.cause}` })), total,
      parts.map((part) => `${part.cause} ${whole(part.cycles)}`).join(', ')));
    box.append(el('ul', { class: 'causes' }, parts.map((part) => el('li', {},
      el('span', { class: `swatch lost-${part.cause}` }), el('span', {}, `${whole(part.cycles)} ${LOST_TEXT[part.cause]}`)))));
    return box;
  }

  deps(id) {
    const ids = this.model.deps(id);
    if (!ids.length) return null;
    const list = el('ul', { class: 'links' }, ids.slice(0, 12).map((dep) => el('li', {},
      el('button', { type: 'button', class: 'link', onclick: () => this.select(dep) }, visible(this.model.name(dep))),
      el('span', { class: 'count' }, `${whole(this.model.start[dep])} – ${whole(this.model.end[dep])}`))));
    if (ids.length > 12) list.append(el('li', { class: 'count' }, `and ${whole(ids.length - 12)} more`));
    return el('section', { 'aria-label': 'Depends on' }, el('h4', {}, 'Depends on'), list);
  }
}
