const lossOf = (run) => run.loss.train ?? Object.values(run.loss)[0];
const JOB_COLUMNS = [
  {text: 'Run', by: (run) => run.run},
  {text: 'GPUs', by: (run) => run.gpus.length},
  {text: 'State', by: (run) => (run.status ? words(run.status) : run.run_time_seconds)},
  {text: 'Step', by: (run) => run.step ?? run.steps_total},
  {text: 'Rate', by: (run) => run.steps_per_second},
  {text: 'Loss', by: lossOf},
  {text: 'Phases'},
];
const CURVE_SECONDS = 10;

/** What the filter of jobs looks into. */
const runText = (run) => [run.run, run.user, run.status || 'running', ...run.gpus.map((gpu) => `gpu ${gpu}`)].join(' ');

const keyOf = (run) => JSON.stringify([run.run, run.user]);

/** Shares of the phases, the largest first: of the last minute, or of the whole run at first. */
function phaseShares(before, now) {
  const spent = Object.entries(now).map(([phase, seconds]) => [phase, Math.max(0, seconds - (before?.[phase] ?? 0))]);
  const sum = spent.reduce((total, [, seconds]) => total + seconds, 0);
  if (sum <= 0) return before ? phaseShares(null, now) : [];
  return spent.map(([phase, seconds]) => [phase, seconds / sum]).sort((a, b) => b[1] - a[1]);
}

class JobRow {
  constructor(run) {
    this.phasesBefore = []; // of the last minute
    this.isSeen = false; // the observer reports each row once at least
    this.curveAt = -Infinity;
    this.name = el('span', {class: 'gpu-name'}, run.run);
    this.user = el('span', {class: 'note'}, run.user);
    this.texts = JOB_COLUMNS.slice(1).map(() => el('span', {class: 'value'}));
    this.rates = el('span', {class: 'note'});
    this.curve = makeSparkline('loss');
    this.phases = el('span', {class: 'phases', 'aria-hidden': 'true'});
    const [gpus, state, step, rate, loss, phases] = this.texts;
    const contents = [[gpus], [state], [step], [rate, this.rates], [this.curve.root, loss], [this.phases, phases]];
    this.root = el('tr', {role: 'row'}, el('th', {scope: 'row', role: 'rowheader', 'data-label': 'Run'}, this.name, this.user),
      ...contents.map((content, place) => el('td', {role: 'cell', 'data-label': JOB_COLUMNS[place + 1].text}, ...content)));
    this.run = run;
  }

  update(run, time) {
    this.run = run;
    this.time = time;
    this.phasesBefore.push([time, run.phase_seconds]);
    while (time - this.phasesBefore[0][0] > 60) this.phasesBefore.shift();
    if (this.isSeen) this.draw();
  }

  draw() {
    const {run} = this;
    const losses = Object.entries(run.loss).map(([split, value]) => `${split ? `${words(split)} ` : ''}${significant(value)}`);
    const shares = phaseShares(this.phasesBefore.length > 2 ? this.phasesBefore[0][1] : null, run.phase_seconds);
    const texts = [run.gpus.length > 0 ? run.gpus.join(', ') : NONE,
      run.status ? words(run.status) : `running, ${duration(run.run_time_seconds)}`, significant(run.step ?? run.steps_total),
      withUnit(significant(run.steps_per_second), 'steps/s'), losses.join(', ') || NONE,
      shares.slice(0, 4).map(([phase, part]) => `${words(phase)} ${percent(part)}`).join(', ') || NONE];
    texts.forEach((text, place) => setText(this.texts[place], text));
    setText(this.rates, [[run.samples_per_second, 'samples/s'], [run.tokens_per_second, 'tokens/s']].filter(([rate]) => rate > 0)
      .map(([rate, unit]) => withUnit(significant(rate), unit)).join(', '));
    this.drawPhases(shares);
    if (this.time - this.curveAt >= CURVE_SECONDS) this.loadCurve(this.time);
  }

  drawPhases(shares) {
    while (this.phases.children.length < shares.length) this.phases.append(el('span', {class: `phase p-${this.phases.children.length % 5}`}));
    [...this.phases.children].forEach((part, place) => {
      part.style.flexGrow = shares[place]?.[1] ?? 0;
    });
  }

  async loadCurve(time) {
    this.curveAt = time;
    const range = this.run.run_time_seconds < 300 ? '5m' : '6h';
    const {run, user} = this.run;
    try {
      const data = await fetchJson(`api/v1/history?run=${encodeURIComponent(run)}&user=${encodeURIComponent(user)}&range=${range}`);
      const {mean} = linesOf(data.columns.loss);
      const numbers = mean.filter(isNumber);
      this.curve.root.toggleAttribute('hidden', numbers.length < 2);
      drawSparkline(this.curve, mean, numbers.reduce((a, b) => Math.min(a, b), Infinity), numbers.reduce((a, b) => Math.max(a, b), -Infinity));
    } catch { // the run left the page in the meantime
      this.curve.root.toggleAttribute('hidden', true);
    }
  }
}

/** Runs that report their progress; those that run come first. */
class JobTable {
  constructor(root) {
    this.rows = new Map();
    this.body = el('tbody', {role: 'rowgroup'});
    this.none = el('p', {class: 'note'}, 'No job reports its progress.');
    this.runs = [];
    this.order = new Order(JOB_COLUMNS, 'jobs', 'running first', () => this.arrange());
    this.watcher = watchRows(this.rows);
    this.table = el('table', {class: 'jobs', role: 'table'}, el('caption', {class: 'hidden-text'}, 'Training and inference jobs that report their progress'),
      el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, ...this.order.heads)), this.body);
    root.append(el('h2', {}, 'Jobs'), this.none, this.order.root, this.table);
  }

  update(runs, time) {
    this.runs = [...runs].sort((a, b) => Number(Boolean(a.status)) - Number(Boolean(b.status)) || a.run.localeCompare(b.run));
    const present = new Set(runs.map(keyOf));
    for (const [key, row] of this.rows) {
      if (!present.has(key)) this.remove(key, row);
    }
    for (const run of runs) (this.rows.get(keyOf(run)) ?? this.add(run)).update(run, time);
    this.none.hidden = runs.length > 0;
    this.table.hidden = runs.length === 0;
    this.arrange();
  }

  arrange() {
    arrange(this.body, this.order.of(this.runs, runText).map((run) => this.rows.get(keyOf(run)).root));
  }

  add(run) {
    const row = new JobRow(run);
    row.root.dataset.key = keyOf(run);
    this.rows.set(keyOf(run), row);
    this.watcher.observe(row.root);
    return row;
  }

  remove(key, row) {
    this.watcher.unobserve(row.root);
    this.rows.delete(key);
  }
}
