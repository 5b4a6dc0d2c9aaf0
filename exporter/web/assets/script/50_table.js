const COLUMNS = [
  {text: 'GPU', by: (gpu) => Number(gpu.gpu)},
  {text: 'State', by: (gpu) => -rank(gpu)},
  {text: 'Utilisation', by: (gpu) => gpu.values.utilization_ratio},
  {text: 'Power', by: (gpu) => gpu.values.power_watts},
  {text: 'Memory', by: (gpu) => gpu.values.memory_used_bytes},
  {text: 'Temperature', by: (gpu) => gpu.values.temperature_celsius},
  {text: 'Held by', by: holdersText},
];

/** What the filter of GPUs looks into. */
const gpuText = (gpu) => [`gpu ${gpu.gpu}`, gpu.uuid, gpu.pci_address, gpu.vendor, gpu.name, gpu.model, stateOf(gpu).word, stateNote(gpu),
  holdersText(gpu)].join(' ');

/** The row of one GPU. */
class GpuRow {
  constructor(gpu, onToggle) {
    this.uuid = gpu.uuid;
    this.recent = new Recent();
    this.isSeen = true;
    this.gpu = gpu;
    this.makeCells(onToggle);
  }

  makeCells(onToggle) {
    this.name = el('span', {class: 'gpu-name'});
    this.model = el('span', {class: 'note'});
    this.button = el('button', {type: 'button', class: 'open', 'aria-expanded': 'false'}, this.name);
    this.icon = el('span', {class: 'icon', 'aria-hidden': 'true'});
    this.word = el('span', {class: 'word'});
    this.note = el('span', {class: 'note'});
    this.spark = makeSparkline('utilization');
    this.texts = COLUMNS.slice(2).map(() => el('span', {class: 'value'}));
    this.margin = el('span', {class: 'note'});
    this.powerBar = makeBar();
    this.memoryBar = makeBar();
    const [utilization, power, memory, temperature, holders] = this.texts;
    const contents = [[this.button, this.model], [el('span', {class: 'state'}, this.icon, this.word), this.note],
      [this.spark.root, utilization], [power, this.powerBar.root], [memory, this.memoryBar.root],
      [temperature, this.margin], [holders]];
    const cells = contents.map((content, place) => this.makeCell(place, content));
    this.root = el('tr', {role: 'row', class: 'gpu'}, ...cells);
    this.root.addEventListener('click', (event) => {
      if (!window.getSelection()?.toString() || event.target.closest('button')) onToggle(this);
    });
  }

  makeCell(place, content) {
    const attributes = {'data-label': COLUMNS[place].text, class: `c-${place}`};
    if (place === 0) return el('th', {...attributes, scope: 'row', role: 'rowheader'}, ...content);
    return el('td', {...attributes, role: 'cell'}, ...content);
  }

  update(gpu, time) {
    const state = stateOf(gpu);
    if (stateOf(this.gpu).rank > state.rank) this.flash();
    this.gpu = gpu;
    this.recent.add(gpu.values.utilization_ratio, time);
    this.root.dataset.state = gpu.state;
    this.root.classList.toggle('is-slowed', slowed(gpu).length > 0);
    if (this.isSeen) this.draw();
  }

  /** Draws attention to a row that became worse. */
  flash() {
    this.root.classList.remove('is-worse');
    void this.root.offsetWidth; // begins the animation again
    this.root.classList.add('is-worse');
  }

  draw() {
    const {gpu} = this;
    const state = stateOf(gpu);
    const values = gpu.values;
    setText(this.name, `GPU ${gpu.gpu}`);
    setText(this.model, [gpu.name, gpu.model].filter(Boolean).join(', '));
    setText(this.icon, state.icon);
    setText(this.word, state.word);
    setText(this.note, stateNote(gpu));
    const texts = [percent(values.utilization_ratio), share(values.power_watts, values.power_limit_watts, watts),
      share(values.memory_used_bytes, gpu.memory_size_bytes, gibibytes), celsius(values.temperature_celsius),
      holdersText(gpu) || (gpu.up ? 'nobody' : NONE)];
    texts.forEach((text, place) => setText(this.texts[place], text));
    setText(this.margin, marginText(values.temperature_margin_celsius));
    setBar(this.powerBar, ratio(values.power_watts, values.power_limit_watts));
    setBar(this.memoryBar, ratio(values.memory_used_bytes, gpu.memory_size_bytes));
    drawSparkline(this.spark, this.recent.values, 0, 1);
  }
}

/** All GPUs, the worst first. */
class GpuTable {
  constructor(root) {
    this.rows = new Map();
    this.open = null; // the row whose detail is shown
    this.detail = null;
    this.body = el('tbody', {role: 'rowgroup'});
    this.gpus = [];
    this.order = new Order(COLUMNS, 'GPUs', 'the worst first', () => this.arrange());
    this.table = el('table', {class: 'gpus', role: 'table'},
      el('caption', {class: 'hidden-text'}, 'GPUs, the worst first. The button of a row opens its last hours.'),
      el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, ...this.order.heads)), this.body);
    root.append(this.order.root, this.table);
    this.watcher = watchRows(this.rows);
  }

  update(gpus, time) {
    this.gpus = [...gpus].sort(byUrgency);
    const present = new Set(gpus.map((gpu) => gpu.uuid));
    for (const [uuid, row] of this.rows) {
      if (!present.has(uuid)) this.remove(row);
    }
    for (const gpu of this.gpus) {
      const row = this.rows.get(gpu.uuid) ?? this.add(gpu);
      if (gpu.utilization) row.recent.load(gpu.utilization, time);
      row.update(gpu, time);
    }
    this.table.hidden = gpus.length === 0;
    this.detail?.update(this.open.gpu);
    this.arrange();
  }

  arrange() {
    const rows = this.order.of(this.gpus, gpuText).flatMap((gpu) => {
      const row = this.rows.get(gpu.uuid);
      return row === this.open ? [row.root, this.detail.root] : [row.root];
    });
    arrange(this.body, rows);
  }

  add(gpu) {
    const row = new GpuRow(gpu, (chosen) => this.toggle(chosen));
    row.root.dataset.key = gpu.uuid;
    this.rows.set(gpu.uuid, row);
    this.watcher.observe(row.root);
    if (location.hash === `#gpu-${gpu.gpu}` && this.open === null) queueMicrotask(() => this.toggle(row));
    return row;
  }

  remove(row) {
    if (this.open === row) this.close();
    this.watcher.unobserve(row.root);
    this.rows.delete(row.uuid);
  }

  toggle(row) {
    const wasOpen = this.open === row;
    this.close();
    if (wasOpen) return;
    this.open = row;
    this.detail = new Detail(row.gpu, COLUMNS.length);
    row.button.setAttribute('aria-expanded', 'true');
    row.root.after(this.detail.root);
    history.replaceState(null, '', `#gpu-${row.gpu.gpu}`);
    this.detail.load();
  }

  close() {
    if (this.open === null) return;
    this.open.button.setAttribute('aria-expanded', 'false');
    this.detail.close();
    this.open = this.detail = null;
    history.replaceState(null, '', location.pathname + location.search);
  }
}
