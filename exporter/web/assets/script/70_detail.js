const RANGES = [{range: '5m', text: '5 minutes', refresh: 2000}, {range: '6h', text: '6 hours', refresh: 15000}];
let chosenRange = RANGES[0];

/** The last hours of one GPU, in a row below its own. */
class Detail {
  constructor(gpu, columns) {
    this.gpu = gpu;
    this.range = gpu.up ? chosenRange : RANGES.at(-1); // a lost GPU has nothing in the last minutes
    this.data = null;
    this.timer = 0;
    this.plots = PLOTS.map((spec) => new Plot(spec));
    this.facts = el('p', {class: 'facts'});
    this.reasons = el('ul', {class: 'reasons'});
    this.events = el('ol', {class: 'events'});
    this.noEvents = el('p', {class: 'note'}, 'None since the daemon started.');
    this.message = el('p', {class: 'note'}, 'Loading …');
    this.makeSlider();
    const heading = el('h2', {}, `GPU ${gpu.gpu}`);
    const inner = el('div', {class: 'detail-inner'}, heading, this.facts, this.reasons, this.controls(), this.message,
      el('div', {class: 'plots'}, ...this.plots.map((plot) => plot.root)), el('h3', {}, 'Events'), this.noEvents, this.events);
    this.root = el('tr', {role: 'row', class: 'detail'}, el('td', {role: 'cell', colspan: columns}, inner));
    this.plots.forEach((plot) => this.followPointer(plot));
    this.update(gpu);
  }

  controls() {
    const choices = RANGES.map((choice) => {
      const input = el('input', {type: 'radio', name: 'range', value: choice.range});
      input.checked = choice === this.range;
      input.addEventListener('change', () => {
        chosenRange = this.range = choice;
        this.load();
      });
      return el('label', {}, input, choice.text);
    });
    const legend = THROTTLES.map(({name, text}) => el('span', {class: 'key'}, el('span', {class: `swatch ${name}`, 'aria-hidden': 'true'}), text));
    return el('div', {class: 'controls'}, el('fieldset', {}, el('legend', {}, 'Last'), ...choices),
      el('label', {class: 'slider'}, 'Point in time', this.slider, this.time),
      el('p', {class: 'keys'}, 'Slowed by: ', ...legend, el('span', {class: 'key'}, el('span', {class: 'mark', 'aria-hidden': 'true'}, '▼'), 'event')));
  }

  makeSlider() {
    this.slider = el('input', {type: 'range', min: 0, step: 1});
    this.time = el('output', {}, 'now');
    this.slider.addEventListener('input', () => {
      const place = Number(this.slider.value);
      this.readAt(place === Number(this.slider.max) ? null : place);
    });
  }

  followPointer(plot) {
    plot.svg.addEventListener('pointermove', (event) => {
      if (!this.data) return;
      const box = plot.svg.getBoundingClientRect();
      const place = Math.round(((event.clientX - box.left - PLOT_LEFT) / (box.width - PLOT_LEFT)) * (this.data.times.length - 1));
      this.readAt(Math.min(Math.max(place, 0), this.data.times.length - 1));
    });
    plot.svg.addEventListener('pointerleave', () => this.readAt(null));
  }

  /** Shows the numbers of this place in all plots; null: the last ones. */
  readAt(place) {
    if (!this.data) return;
    this.place = place;
    const last = this.data.times.length - 1;
    const text = place === null ? 'now' : clock(this.data.times[place]);
    this.slider.value = place ?? last;
    this.slider.setAttribute('aria-valuetext', text);
    setText(this.time, text);
    this.plots.forEach((plot) => plot.read(place, this.data));
  }

  update(gpu) {
    this.gpu = gpu;
    setText(this.facts, [gpu.name, gpu.model, gpu.pci_address, gpu.uuid].filter(Boolean).join(' · '));
    showFindings(this.reasons, gpu.reasons);
  }

  async load() {
    clearTimeout(this.timer);
    const choice = this.range;
    try {
      const data = await fetchJson(`api/v1/history?uuid=${encodeURIComponent(this.gpu.uuid)}&range=${choice.range}`);
      if (choice === this.range && this.root.isConnected) this.show(data);
    } catch (error) {
      setText(this.message, `The history could not be read: ${error.message}`);
    }
    if (!this.root.isConnected || choice !== this.range) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), document.hidden ? 60000 : choice.refresh);
  }

  show(data) {
    this.data = data;
    setText(this.message, '');
    this.plots.forEach((plot) => plot.draw(data, this.gpu));
    this.slider.max = Math.max(0, data.times.length - 1);
    this.readAt(isNumber(this.place) && this.place < data.times.length ? this.place : null);
    const lines = data.events.map((event) => `${dateAndClock(event.time)} ${eventText(event)}`).reverse();
    this.events.replaceChildren(...lines.map((line) => el('li', {}, line)));
    this.noEvents.hidden = lines.length > 0;
  }

  close() {
    clearTimeout(this.timer);
    this.root.remove();
  }
}
