const UNREAD_MS = 10000; // drivers are loaded and permissions change rarely

/** GPUs on the bus that no collector reads, and what would help; without any GPU, also what was tried. */
class UnreadList {
  constructor(root) {
    this.root = root;
    this.heading = el('h2', {});
    this.tried = el('p', {class: 'prose'});
    this.list = el('ul', {class: 'reasons devices'});
    this.help = el('ul', {class: 'reasons'},
      el('li', {}, 'Does the machine have a GPU? ', el('code', {}, "lspci -nn | grep -E 'VGA|3D|Display|accelerators'"), ' lists them.'),
      el('li', {}, 'Is its driver loaded? gpumeter looks again when a device or a driver appears, and every minute.'),
      el('li', {}, 'In a container or a virtual machine, the devices must be passed in.'),
      el('li', {}, 'To look around without a GPU: ', el('code', {}, 'gpumeter --simulate=4'), '.'));
    this.root.append(this.heading, this.tried, this.list, this.help);
    this.asked = 0;
  }

  /** Asks at most once in ten seconds. A failure leaves the list as it is. */
  async update(isAnyRead) {
    if (Date.now() - this.asked < UNREAD_MS) return;
    this.asked = Date.now();
    try {
      const {unread} = await fetchJson('api/v1/devices');
      const {series} = isAnyRead ? {series: []} : await fetchJson('api/v1/series?match=gpumeter_collector_up');
      this.show(unread, series, isAnyRead);
    } catch {
      this.asked = 0; // the poll of the live values reports it
    }
  }

  show(unread, collectors, isAnyRead) {
    while (this.list.children.length < unread.length) this.list.append(el('li'));
    while (this.list.children.length > unread.length) this.list.lastElementChild.remove();
    unread.forEach((device, place) => setText(this.list.children[place], unreadText(device)));
    setText(this.heading, isAnyRead ? 'On the bus, not read' : 'No GPU is read');
    const names = (value) => collectors.filter((series) => series.value === value).map((series) => series.labels.collector).join(', ');
    const failed = names(0) ? ` The log has the reason why these could not look: ${names(0)}.` : '';
    const found = unread.length > 0 ? `${plural(unread.length, 'GPU')} on the PCI bus that no collector can read` : 'no GPU on the PCI bus';
    setText(this.tried, isAnyRead ? '' : `gpumeter found ${found}. Collectors that looked: ${names(1) || 'none'}.${failed}`);
    this.help.hidden = isAnyRead || unread.length > 0;
    this.root.hidden = isAnyRead && unread.length === 0;
  }
}
