/** The path of values at equal distances; null interrupts it. */
function linePath(values, x, y) {
  let path = '';
  let isOpen = false;
  values.forEach((value, place) => {
    if (!isNumber(value)) {
      isOpen = false;
      return;
    }
    path += `${isOpen ? 'L' : 'M'}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!isOpen && !isNumber(values[place + 1])) path += 'h0.1'; // a single value is a dot
    isOpen = true;
  });
  return path;
}

/** The area between two lines, in as many parts as there are gaps. */
function bandPath(low, high, x, y) {
  let path = '';
  for (let begin = 0; begin < low.length;) {
    if (!isNumber(low[begin]) || !isNumber(high[begin])) {
      ++begin;
      continue;
    }
    let end = begin;
    while (end < low.length && isNumber(low[end]) && isNumber(high[end])) ++end;
    const places = Array.from({length: end - begin}, (_, i) => begin + i);
    const point = (line) => (place) => `${x(place).toFixed(1)} ${y(line[place]).toFixed(1)}`;
    path += `M${places.map(point(high)).join('L')}L${places.reverse().map(point(low)).join('L')}Z`;
    begin = end;
  }
  return path;
}

/** A line without axes. Its numbers stand beside it as text. */
function makeSparkline(className) {
  const area = svg('path', {class: 'spark-area'});
  const line = svg('path', {class: 'spark-line', 'vector-effect': 'non-scaling-stroke'});
  const root = svg('svg', {class: `spark ${className}`, 'aria-hidden': 'true', focusable: 'false',
    viewBox: '0 0 300 100', preserveAspectRatio: 'none'}, area, line);
  return {root, area, line};
}

/** Draws the values over the whole width; `low` and `high` are the ends of the scale. */
function drawSparkline(spark, values, low, high) {
  const x = (place) => (300 * place) / Math.max(1, values.length - 1);
  const y = (value) => 96 - 92 * Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  setAttribute(spark.line, 'd', linePath(values, x, y));
  setAttribute(spark.area, 'd', bandPath(values.map((value) => (isNumber(value) ? low : null)), values, x, y));
}

/** The values of the last five minutes, one a second, as polls bring them. */
class Recent {
  constructor() {
    this.values = new Array(300).fill(null);
    this.second = 0;
  }
  load(values, time) {
    this.values = [...new Array(Math.max(0, 300 - values.length)).fill(null), ...values.slice(-300)];
    this.second = Math.floor(time);
  }
  add(value, time) {
    const passed = Math.min(300, Math.floor(time) - this.second);
    if (passed <= 0) return;
    // A poll may be late by a second; a longer gap stays one.
    const between = passed <= 3 ? value : null;
    for (let i = 1; i < passed; ++i) this.values.push(between);
    this.values.push(value);
    this.values.splice(0, this.values.length - 300);
    this.second = Math.floor(time);
  }
}
