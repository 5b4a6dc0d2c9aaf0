const FEW = 8; // items that need no filter

/**
 * The order of a table's items and which of them are shown: heads that sort, a field that filters, and for narrow
 * screens, on which a table has no head, a list of the columns.
 * `columns`: {text, by}; `by` returns what an item is sorted by, and a column without it does not sort. `own`: the table's own
 * order, in words.
 */
class Order {
  constructor(columns, what, own, onChange) {
    this.columns = columns;
    this.onChange = onChange;
    this.column = null; // null: the table's own order
    this.isDown = false;
    this.heads = columns.map((column, place) => this.makeHead(column, place));
    this.field = el('input', {type: 'search', placeholder: 'name, user, state …', spellcheck: 'false'});
    this.field.addEventListener('input', onChange);
    this.choice = el('select', {}, el('option', {value: ''}, own),
      ...columns.flatMap(({text, by}, place) => (by ? [el('option', {value: place}, text.toLowerCase())] : [])));
    this.choice.addEventListener('change', () => this.sort(this.choice.value === '' ? null : columns[this.choice.value]));
    this.count = el('span', {class: 'note', role: 'status'});
    this.root = el('div', {class: 'order', role: 'search'}, el('label', {}, `Filter ${what}`, this.field),
      el('label', {class: 'narrow'}, 'Sort by', this.choice), this.count);
  }

  makeHead({text, by}) {
    const head = el('th', {scope: 'col', role: 'columnheader'}, by ? el('button', {type: 'button', class: 'sort'}, text) : text);
    head.firstElementChild?.addEventListener('click', () => this.turn(this.columns.find((column) => column.text === text)));
    return head;
  }

  /** A head sorts downwards, then upwards, then no more. */
  turn(column) {
    if (this.column !== column) return this.sort(column, true);
    return this.isDown ? this.sort(column, false) : this.sort(null);
  }

  sort(column, isDown = true) {
    this.column = column;
    this.isDown = isDown;
    this.choice.value = column === null ? '' : this.columns.indexOf(column);
    this.heads.forEach((head, place) => {
      if (this.columns[place] === column) head.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    this.onChange();
  }

  /** The items to show, of those that came in the table's own order. `textOf`: what the field looks into. */
  of(items, textOf) {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = items.filter((item) => words.every((word) => textOf(item).toLowerCase().includes(word)));
    this.root.hidden = items.length <= FEW && words.length === 0;
    setText(this.count, found.length < items.length ? `${found.length} of ${items.length}` : '');
    if (this.column === null) return found;
    const compared = found.map((item) => [this.column.by(item), item]);
    return compared.sort(([a], [b]) => compare(a, b, this.isDown)).map(([, item]) => item);
  }
}

/** Numbers by size and texts by their alphabet; what has no value comes last. */
function compare(a, b, isDown) {
  const isKnown = (value) => isNumber(value) || (typeof value === 'string' && value !== '');
  if (!isKnown(a) || !isKnown(b)) return Number(isKnown(b)) - Number(isKnown(a));
  const difference = isNumber(a) ? a - b : a.localeCompare(b, 'en', {numeric: true});
  return isDown ? -difference : difference;
}
