const NONE = '–';
const GIBI = 2 ** 30;

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

function number(value, digits = 0) {
  return isNumber(value) ? value.toFixed(digits) : NONE;
}

/** Three significant digits, or all digits of a whole number. */
function significant(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  if (size !== 0 && size < 0.001) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}

const withUnit = (text, unit) => (text === NONE ? NONE : `${text}\u00a0${unit}`);
const scaled = (value, factor) => (isNumber(value) ? value * factor : null); // null times a number would be 0
const percent = (ratio) => withUnit(number(scaled(ratio, 100)), '%');
const watts = (value) => withUnit(number(value), 'W');
const celsius = (value) => withUnit(number(value), '°C');
const gibibytes = (bytes) => withUnit(significant(scaled(bytes, 1 / GIBI)), 'GiB');
/** "5 °C below limit". */
function marginText(value) {
  if (!isNumber(value)) return '';
  return `${celsius(Math.abs(value))} ${value < 0 ? 'above' : 'below'} limit`;
}
const megahertz = (hertz) => withUnit(number(scaled(hertz, 1e-6)), 'MHz');

/** "412 of 700 W"; without a total only the value. */
function share(value, total, text) {
  if (!isNumber(value)) return NONE;
  return isNumber(total) && total > 0 ? `${text(value).split('\u00a0')[0]} of ${text(total)}` : text(value);
}

const ratio = (value, total) => (isNumber(value) && total > 0 ? value / total : NaN);

function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const CLOCK_SHORT = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit'});
const DAY = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short'});
const clock = (seconds) => CLOCK.format(new Date(seconds * 1000));
const dateAndClock = (seconds) => `${DAY.format(new Date(seconds * 1000))} ${clock(seconds)}`;
const clockShort = (seconds) => CLOCK_SHORT.format(new Date(seconds * 1000));

/** "thermal throttling", "XID 79". */
function words(name) {
  return name.replace(/^xid_/, 'XID ').replaceAll('_', ' ');
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
