const UNREAD_MS = 10000; // drivers are loaded and permissions change rarely

/** GPUs on the bus that no collector reads, and what would help. */
class UnreadList {
  constructor(root) {
    this.root = root;
    this.list = el('ul', {class: 'reasons'});
    this.root.append(el('h2', {}, 'On the bus, not read'), this.list);
    this.asked = 0;
  }

  /** Asks at most once in ten seconds. A failure leaves the list as it is. */
  async update() {
    if (Date.now() - this.asked < UNREAD_MS) return;
    this.asked = Date.now();
    try {
      this.show((await fetchJson('api/v1/devices')).unread);
    } catch {
      this.asked = 0; // the poll of the live values reports it
    }
  }

  show(unread) {
    while (this.list.children.length < unread.length) this.list.append(el('li'));
    while (this.list.children.length > unread.length) this.list.lastElementChild.remove();
    unread.forEach((device, place) => setText(this.list.children[place], unreadText(device)));
    this.root.hidden = unread.length === 0;
  }
}
