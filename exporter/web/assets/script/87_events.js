const EVENTS_MS = 5000;

/** "GPU 3: XID 79" */
function eventName(event) {
  const {gpu, pci_address: address} = event.device;
  const device = gpu === null ? address ?? 'the machine' : `GPU ${gpu}`;
  const code = [event.code, event.subcode].filter(isNumber).join('.');
  const place = [isNumber(event.link) ? ` link ${event.link}` : '', isNumber(event.instance) ? ` instance ${event.instance}` : ''].join('');
  return `${device}: ${words(event.kind).replace(/^xid$|^sxid$/i, (name) => name.toUpperCase())}${code ? ` ${code}` : ''}${place}`;
}

/** "GPU 3: XID 79: GPU has fallen off the bus. (12 times). What helps: reboot the machine." */
function loggedEventText(event) {
  const parts = [eventName(event), event.meaning, event.text].filter(Boolean).join(': ').replace(/\.$/, '');
  const count = event.count > 1 ? ` (${event.count} times)` : '';
  const action = event.action && event.action !== 'none' ? ` What helps: ${ACTIONS[event.action] ?? words(event.action)}.` : '';
  return `${parts}${count}.${action}`;
}

/** The last events of the kernel's log and of the drivers, the newest first. */
class EventList {
  constructor(root) {
    this.root = root;
    this.list = el('ol', {class: 'events', reversed: ''});
    this.root.append(el('h2', {}, 'Events'), this.list);
    this.asked = 0;
  }

  /** There is a new event. */
  expire() {
    this.asked = 0;
  }

  /** Asks at most once in five seconds unless it expired. A failure leaves the list as it is. */
  async update() {
    if (Date.now() - this.asked < EVENTS_MS) return;
    this.asked = Date.now();
    try {
      this.show((await fetchJson('api/v1/events')).events.reverse());
    } catch {
      this.asked = 0; // the poll of the live values reports it
    }
  }

  show(events) {
    while (this.list.children.length < events.length) this.list.append(el('li'));
    while (this.list.children.length > events.length) this.list.lastElementChild.remove();
    events.forEach((event, place) => {
      const about = event.time_estimated ? 'about ' : '';
      setText(this.list.children[place], `${about}${dateAndClock(event.time)} ${loggedEventText(event)}`);
    });
    this.root.hidden = events.length === 0;
  }
}
