const SHOWN_MS = 1000;
const HIDDEN_MS = 15000;
const PATIENCE_MS = 8000;
const GAP_SECONDS = 4; // a longer pause between two pictures: the sparklines are fetched again
const BROKEN_MS = 60000; // after a stream broke or fell silent, the page polls for so long

async function fetchJson(path) {
  const response = await fetch(path, {signal: AbortSignal.timeout(PATIENCE_MS)});
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

/**
 * Shows the daemon's pictures: from its stream while the window has the focus, because a browser opens only six connections to a
 * host and all its pages share them; otherwise, and if the stream breaks, by polls.
 */
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
    this.streamsFrom = 0;
    document.addEventListener('visibilitychange', () => this.poll());
    for (const change of ['focus', 'blur']) window.addEventListener(change, () => this.poll());
    this.poll();
  }

  /** Shows a picture at once, and then those of the stream or of later polls. */
  async poll() {
    clearTimeout(this.timer);
    this.stream?.close();
    const begun = Date.now();
    const turn = this.turn = {};
    try {
      const isBehind = begun / 1000 - this.updatedAt > GAP_SECONDS;
      const answer = await fetchJson(`api/v1/live${isBehind ? '?sparklines=1' : ''}`);
      if (turn !== this.turn) return;
      this.show(answer);
      this.updatedAt = begun / 1000;
      if (!document.hidden && document.hasFocus() && begun > this.streamsFrom) {
        this.follow();
        return;
      }
    } catch (error) {
      if (turn !== this.turn) return;
      this.fail(error);
    }
    const pause = (document.hidden ? HIDDEN_MS : SHOWN_MS) - (Date.now() - begun);
    this.timer = setTimeout(() => this.poll(), Math.max(100, pause));
  }

  follow() {
    const fallBack = () => {
      this.streamsFrom = Date.now() + BROKEN_MS;
      this.poll();
    };
    const expect = () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(fallBack, PATIENCE_MS);
    };
    this.stream = new EventSource('api/v1/stream');
    this.stream.onerror = fallBack;
    this.stream.onmessage = () => this.events.expire();
    this.stream.addEventListener('picture', (message) => {
      expect();
      this.show(JSON.parse(message.data));
      this.updatedAt = Date.now() / 1000;
    });
    expect();
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
