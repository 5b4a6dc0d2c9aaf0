const PLOT_HEIGHT = 128;
const PLOT_TOP = 8;
const PLOT_BOTTOM = 18;
const PLOT_LEFT = 52; // for the numbers of the scale

const THROTTLES = [
  {column: 'throttled_power_ratio', name: 'power', text: 'power limit'},
  {column: 'throttled_thermal_ratio', name: 'thermal', text: 'heat'},
  {column: 'throttled_hardware_ratio', name: 'hardware', text: 'hardware, current or voltage'},
];

/**
 * `lines`: columns, the first one in front; `low`, `high`: ends of the scale at least; `step`: the smallest difference that
 * `text` shows, so that no two ticks read the same.
 */
const PLOTS = [
  {title: 'Utilisation', low: 0, high: 1, text: percent, step: 0.01,
    lines: [{column: 'utilization_ratio', name: 'busy'}, {column: 'compute_active_ratio', name: 'compute units'}]},
  {title: 'Power', low: 0, text: watts, step: 1,
    lines: [{column: 'power_watts', name: 'power'}, {column: 'power_limit_watts', name: 'limit'}]},
  {title: 'Memory', low: 0, text: gibibytes, unit: GIBI, step: 0.01 * GIBI, high: (gpu) => gpu.memory_size_bytes,
    lines: [{column: 'memory_used_bytes', name: 'used'}]},
  {title: 'Temperature', text: celsius, step: 1, lines: [{column: 'temperature_celsius', name: 'temperature'}]},
  {title: 'Margin to the temperature limit', low: 0, text: celsius, step: 1, lines: [{column: 'temperature_margin_celsius', name: 'margin'}]},
  {title: 'Clock', low: 0, text: megahertz, unit: 1e6, step: 1e6, lines: [{column: 'clock_hertz', name: 'clock'}]},
];

/** A column of an answer of /api/v1/history as {low, mean, high}. */
function linesOf(column) {
  return Array.isArray(column) ? {mean: column, low: null, high: null} : {mean: column.mean, low: column.min, high: column.max};
}

/** Round numbers of the unit on the scale, three to five. */
function ticksOf(low, high, unit) {
  const raw = (high - low) / 4 / unit || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1000; tick += step) ticks.push(tick);
  return ticks;
}

/** One quantity over time. The caption has its numbers, so that the picture itself needs no reader. */
class Plot {
  constructor(spec) {
    this.spec = spec;
    this.readout = el('span', {class: 'readout'});
    this.svg = svg('svg', {class: 'plot', 'aria-hidden': 'true', focusable: 'false'});
    this.root = el('figure', {}, el('figcaption', {}, el('span', {class: 'plot-title'}, spec.title), this.readout), this.svg);
    this.cursor = svg('line', {class: 'cursor', visibility: 'hidden', y1: PLOT_TOP, y2: PLOT_HEIGHT - PLOT_BOTTOM});
  }

  draw(data, gpu) {
    const columns = this.spec.lines.map((line) => linesOf(data.columns[line.column]));
    this.columns = columns;
    this.width = Math.max(200, this.svg.clientWidth);
    this.count = data.times.length;
    setAttribute(this.svg, 'viewBox', `0 0 ${this.width} ${PLOT_HEIGHT}`);
    const scale = this.scaleOf(columns, gpu);
    const parts = [...this.throttling(data), ...this.grid(scale, data), ...this.events(data)];
    columns.forEach((column, place) => parts.push(...this.line(column, scale, place)));
    this.svg.replaceChildren(...parts, this.cursor);
    this.read(null, data);
  }

  x(place) {
    return PLOT_LEFT + ((this.width - PLOT_LEFT) * place) / Math.max(1, this.count - 1);
  }

  scaleOf(columns, gpu) {
    const all = columns.flatMap((column) => [...column.mean, ...(column.low ?? []), ...(column.high ?? [])]).filter(isNumber);
    const wanted = typeof this.spec.high === 'function' ? this.spec.high(gpu) : this.spec.high;
    if (all.length === 0 && !isNumber(wanted)) return null;
    const bound = (value, fallback) => (isNumber(value) ? value : fallback);
    const least = all.reduce((a, b) => Math.min(a, b), bound(this.spec.low, Infinity));
    const most = all.reduce((a, b) => Math.max(a, b), bound(wanted, -Infinity));
    const low = isNumber(this.spec.low) && least >= 0 ? this.spec.low : Math.min(least, most - 1);
    const high = Math.max(most, low + 4 * this.spec.step);
    const room = wanted === high ? 0 : (high - low) * 0.08;
    return {low, high: high + room};
  }

  y(value, {low, high}) {
    const height = PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM;
    return PLOT_TOP + height * (1 - (value - low) / (high - low));
  }

  line(column, scale, place) {
    const x = (i) => this.x(i);
    const y = (value) => this.y(value, scale);
    const kind = place === 0 ? 'first' : 'second';
    const range = column.low && place === 0 ? [svg('path', {class: 'plot-range', d: bandPath(column.low, column.high, x, y)})] : [];
    return [...range, svg('path', {class: `plot-line ${kind}`, d: linePath(column.mean, x, y)})];
  }

  grid(scale, data) {
    const ticks = scale ? ticksOf(scale.low, scale.high, this.spec.unit ?? 1) : []; // null: nothing to draw
    const marks = ticks.flatMap((tick) => {
      const y = this.y(tick, scale);
      return [svg('line', {class: 'grid', x1: PLOT_LEFT, x2: this.width, y1: y, y2: y}),
        svg('text', {class: 'tick', x: PLOT_LEFT - 6, y: y + 4}, this.spec.text(tick))];
    });
    return [...marks, ...this.times(data)];
  }

  times(data) {
    const span = data.times.length * data.step_seconds;
    const every = [60, 300, 900, 1800].find((seconds) => span / seconds <= 8) ?? 3600;
    return data.times.flatMap((time, place) => {
      if (time % every >= data.step_seconds) return [];
      const x = this.x(place);
      return [svg('line', {class: 'grid', x1: x, x2: x, y1: PLOT_TOP, y2: PLOT_HEIGHT - PLOT_BOTTOM}),
        ...(x > PLOT_LEFT + 12 && x < this.width - 16 ? [svg('text', {class: 'tick time', x, y: PLOT_HEIGHT - 4}, clockShort(time))] : [])];
    });
  }

  /** Bands over the time in which the clocks were limited; those of the power limit, which are common, are a thin strip. */
  throttling(data) {
    return THROTTLES.flatMap(({column, name}) => spans(linesOf(data.columns[column]).mean).map(([begin, end]) => {
      const full = PLOT_HEIGHT - PLOT_BOTTOM - PLOT_TOP;
      const height = name === 'power' ? 4 : full;
      const x = this.x(begin - 0.5);
      return svg('rect', {class: `throttle ${name}`, x: Math.max(PLOT_LEFT, x), y: PLOT_TOP + full - height,
        width: Math.max(2, this.x(end + 0.5) - x), height});
    }));
  }

  events(data) {
    return data.events.flatMap((event) => {
      const place = (event.time - data.times[0]) / data.step_seconds;
      if (event.kind === 'finding_ended' || place < 0 || place > this.count) return [];
      const x = this.x(Math.min(place, this.count - 1));
      return [svg('line', {class: 'event', x1: x, x2: x, y1: PLOT_TOP, y2: PLOT_HEIGHT - PLOT_BOTTOM}),
        svg('path', {class: 'event-mark', d: `M${x - 5} 0h10l-5 8z`}, svg('title', {}, eventText(event)))];
    });
  }

  /** Shows the numbers at a place, or the last ones, the lowest and the highest. */
  read(place, data) {
    const {text, lines} = this.spec;
    this.cursor.setAttribute('visibility', place === null ? 'hidden' : 'visible');
    if (place !== null) {
      const x = this.x(place);
      setAttribute(this.cursor, 'x1', x);
      setAttribute(this.cursor, 'x2', x);
      return setText(this.readout, lines.map((line, i) => `${line.name} ${text(this.columns[i].mean[place])}`).join(', '));
    }
    const numbers = this.columns[0].mean.filter(isNumber);
    if (numbers.length === 0) return setText(this.readout, 'no value');
    const low = (this.columns[0].low ?? numbers).filter(isNumber).reduce((a, b) => Math.min(a, b));
    const high = (this.columns[0].high ?? numbers).filter(isNumber).reduce((a, b) => Math.max(a, b));
    const last = this.columns[0].mean.at(-1);
    const others = lines.slice(1).map((line, i) => `, ${line.name} ${text(this.columns[i + 1].mean.findLast(isNumber))}`);
    return setText(this.readout, `${isNumber(last) ? `now ${text(last)}` : 'no value now'}, ${text(low)} to ${text(high)}${others.join('')}`);
  }
}

/** The ranges of places in which a share is above 2 %. */
function spans(values) {
  const found = [];
  values.forEach((value, place) => {
    if (!(value > 0.02)) return;
    if (found.length > 0 && found.at(-1)[1] === place - 1) found.at(-1)[1] = place;
    else found.push([place, place]);
  });
  return found;
}
