const SHOWN_MS = 1000;
const HIDDEN_MS = 15000;
const PATIENCE_MS = 8000;
const GAP_SECONDS = 4; // a longer pause between two polls: the sparklines are fetched again

async function fetchJson(path) {
  const response = await fetch(path, {signal: AbortSignal.timeout(PATIENCE_MS)});
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

/** Polls the daemon and shows what it answers. */
class Page {
  constructor() {
    this.summary = document.getElementById('summary');
    this.freshness = document.getElementById('freshness');
    this.name = document.getElementById('host');
    this.host = location.hostname;
    this.sections = ['gpus', 'jobs'].map((id) => document.getElementById(id));
    this.machine = el('ul', {class: 'reasons machine', 'aria-label': 'Findings about the machine'});
    this.sections[0].append(this.machine);
    this.gpus = new GpuTable(this.sections[0]);
    this.jobs = new JobTable(this.sections[1]);
    this.unread = new UnreadList(document.getElementById('unread'));
    this.events = new EventList(document.getElementById('events'));
    this.updatedAt = 0;
    this.timer = 0;
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.poll();
    });
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    const begun = Date.now();
    const turn = this.turn = {};
    try {
      const isBehind = begun / 1000 - this.updatedAt > GAP_SECONDS;
      const answer = await fetchJson(`api/v1/live${isBehind ? '?sparklines=1' : ''}`);
      if (turn !== this.turn) return;
      this.show(answer);
      this.updatedAt = begun / 1000;
    } catch (error) {
      if (turn !== this.turn) return;
      this.fail(error);
    }
    const pause = (document.hidden ? HIDDEN_MS : SHOWN_MS) - (Date.now() - begun);
    this.timer = setTimeout(() => this.poll(), Math.max(100, pause));
  }

  show(answer) {
    if (this.sections[0].hidden) this.reveal();
    showFindings(this.machine, answer.machine);
    this.gpus.update(answer.gpus, answer.time);
    this.jobs.update(answer.runs, answer.time);
    this.unread.update(answer.gpus.length > 0);
    this.events.update();
    const text = answer.gpus.length > 0 ? summaryText(answer.gpus) : 'No GPU is read.';
    setText(this.summary, text + (answer.simulated ? ' (simulated or a recording)' : ''));
    setText(this.freshness, `as of ${clock(answer.time)}`);
    document.body.classList.remove('is-stale');
    this.host = answer.host || location.hostname;
    setText(this.name, this.host);
    document.title = `${text.replace(/^.*: /, '')} – gpumeter ${this.host}`;
  }

  reveal() {
    document.getElementById('static').remove();
    this.sections.forEach((section) => {
      section.hidden = false;
    });
  }

  fail(error) {
    document.body.classList.add('is-stale');
    const last = this.updatedAt ? ` The values are those of ${clock(this.updatedAt)}.` : '';
    setText(this.freshness, `gpumeter does not answer (${error.message}).${last}`);
    document.title = `no answer – gpumeter ${this.host}`;
  }
}

new Page();
