'use strict';
// The build joins the files of this folder into one script, in the order of their names.
// Texts of jobs, users and drivers come from outside: they are only ever set as text, never as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** An element with attributes and children; strings become text nodes. */
function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text only if it differs, so that screen readers and selections are left alone. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Puts the children in this order; moves only those that are elsewhere, and keeps the focus. */
function arrange(parent, children) {
  const focused = document.activeElement;
  children.forEach((child, place) => {
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({preventScroll: true});
}

/** A bar whose text stands beside it. */
function makeBar() {
  const fill = el('span', {class: 'bar-fill'});
  return {root: el('span', {class: 'bar', 'aria-hidden': 'true'}, fill), fill};
}

function setBar(bar, ratio) {
  bar.root.hidden = !(ratio >= 0);
  bar.fill.style.width = `${(100 * Math.min(1, Math.max(0, ratio || 0))).toFixed(1)}%`;
}

/** Draws those of the rows, by key, that are on the screen or near it; the others are drawn when they come there. */
function watchRows(rows) {
  return new IntersectionObserver((entries) => entries.forEach((entry) => {
    const row = rows.get(entry.target.dataset.key);
    if (!row) return;
    row.isSeen = entry.isIntersecting;
    if (row.isSeen) row.draw();
  }), {rootMargin: '200px'});
}
