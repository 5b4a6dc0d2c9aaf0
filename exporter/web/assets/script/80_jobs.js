const JOB_COLUMNS = ['Run', 'GPUs', 'State', 'Step', 'Rate', 'Loss', 'Phases'];
const CURVE_SECONDS = 10;

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
    this.samples = []; // of the last minute
    this.curveAt = -Infinity;
    this.name = el('span', {class: 'gpu-name'});
    this.user = el('span', {class: 'note'});
    this.texts = JOB_COLUMNS.slice(1).map(() => el('span', {class: 'value'}));
    this.rates = el('span', {class: 'note'});
    this.curve = makeSparkline('loss');
    this.phases = el('span', {class: 'phases', 'aria-hidden': 'true'});
    const [gpus, state, step, rate, loss, phases] = this.texts;
    const contents = [[gpus], [state], [step], [rate, this.rates], [this.curve.root, loss], [this.phases, phases]];
    this.root = el('tr', {role: 'row'}, el('th', {scope: 'row', role: 'rowheader', 'data-label': 'Run'}, this.name, this.user),
      ...contents.map((content, place) => el('td', {role: 'cell', 'data-label': JOB_COLUMNS[place + 1]}, ...content)));
    this.run = run;
  }

  update(run, time) {
    this.run = run;
    const before = this.remember(run, time);
    setText(this.name, run.run);
    setText(this.user, run.user);
    const losses = Object.entries(run.loss).map(([split, value]) => `${split ? `${words(split)} ` : ''}${significant(value)}`);
    const shares = phaseShares(before?.run.phase_seconds, run.phase_seconds);
    const texts = [run.gpus.length > 0 ? run.gpus.join(', ') : NONE,
      run.status ? words(run.status) : `running, ${duration(run.run_time_seconds)}`, significant(run.step ?? run.steps_total),
      withUnit(significant(run.steps_per_second), 'steps/s'), losses.join(', ') || NONE,
      shares.slice(0, 4).map(([phase, part]) => `${words(phase)} ${percent(part)}`).join(', ') || NONE];
    texts.forEach((text, place) => setText(this.texts[place], text));
    setText(this.rates, this.perSecond(before, time));
    this.drawPhases(shares);
    if (time - this.curveAt >= CURVE_SECONDS) this.loadCurve(time);
  }

  remember(run, time) {
    const before = this.samples[0];
    this.samples.push({time, run});
    while (time - this.samples[0].time > 60) this.samples.shift();
    return before && time - before.time >= 2 ? before : null;
  }

  perSecond(before, time) {
    if (!before) return '';
    const rate = (name) => (this.run[name] - before.run[name]) / (time - before.time);
    return [['samples_total', 'samples/s'], ['tokens_total', 'tokens/s']].filter(([name]) => isNumber(rate(name)) && rate(name) > 0)
      .map(([name, unit]) => withUnit(significant(rate(name)), unit)).join(', ');
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
    const headers = JOB_COLUMNS.map((text) => el('th', {scope: 'col', role: 'columnheader'}, text));
    this.table = el('table', {class: 'jobs', role: 'table'}, el('caption', {class: 'hidden-text'}, 'Training and inference jobs that report their progress'),
      el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, ...headers)), this.body);
    root.append(el('h2', {}, 'Jobs'), this.none, this.table);
  }

  update(runs, time) {
    const sorted = [...runs].sort((a, b) => Number(Boolean(a.status)) - Number(Boolean(b.status)) || a.run.localeCompare(b.run)).slice(0, 50);
    const present = new Set(sorted.map(keyOf));
    for (const key of [...this.rows.keys()].filter((known) => !present.has(known))) this.rows.delete(key);
    for (const run of sorted) {
      if (!this.rows.has(keyOf(run))) this.rows.set(keyOf(run), new JobRow(run));
      this.rows.get(keyOf(run)).update(run, time);
    }
    this.none.hidden = sorted.length > 0;
    this.table.hidden = sorted.length === 0;
    arrange(this.body, sorted.map((run) => this.rows.get(keyOf(run)).root));
  }
}
