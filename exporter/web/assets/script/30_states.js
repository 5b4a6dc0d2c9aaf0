const STATES = {
  failed: {word: 'Failed', icon: '✖', rank: 0},
  degraded: {word: 'Degraded', icon: '▲', rank: 1},
  unknown: {word: 'Unknown', icon: '?', rank: 2},
  ok: {word: 'OK', icon: '●', rank: 3},
};

const ACTIONS = {
  none: 'watch it',
  restart_job: 'restart the job',
  drain: 'drain it, then check cooling, power and cables',
  reset: 'reset the GPU after its jobs have ended',
  reboot: 'reboot the machine',
  replace: 'replace the card',
};

const EVENTS = {lost: 'no longer read', read_again: 'read again'};

function eventText(event) {
  if (event.kind === 'event') return EVENTS[event.name] ?? words(event.name);
  return `${event.kind === 'finding' ? 'finding' : 'finding has ended'}: ${words(event.name)}`;
}

const CAUSES = {
  power: 'at its power limit',
  thermal: 'slowed by heat',
  hardware: 'slowed by the hardware',
  current: 'slowed by the current limit',
  reliability: 'slowed by the voltage limit',
};

const stateOf = (gpu) => STATES[gpu.state] ?? STATES.unknown;
const slowed = (gpu) => gpu.throttled.filter((cause) => cause !== 'power');

/** Worst first: the state, then slowed GPUs, then the number of reasons, then the index. */
function rank(gpu) {
  const findings = gpu.reasons.length;
  return stateOf(gpu).rank * 1000 - (slowed(gpu).length > 0 ? 500 : 0) - Math.min(findings, 400);
}

function byUrgency(a, b) {
  return rank(a) - rank(b) || Number(a.gpu) - Number(b.gpu);
}

function reasonText(reason) {
  return reason.text || words(reason.reason);
}

/** "Failed: XID 79: ... (for 12 s). What helps: reboot the machine." */
function findingText(reason) {
  const since = isNumber(reason.since_seconds) ? ` (for ${duration(reason.since_seconds)})` : '';
  return `${STATES[reason.severity]?.word ?? words(reason.severity)}: ${reasonText(reason).replace(/\.$/, '')}${since}. `
    + `What helps: ${ACTIONS[reason.action] ?? words(reason.action)}.`;
}

/** One list item for each finding, with a link to its runbook. */
function showFindings(list, findings) {
  while (list.children.length < findings.length) {
    list.append(el('li', {}, el('span'), ' ', el('a', {}, 'Runbook')));
  }
  while (list.children.length > findings.length) list.lastElementChild.remove();
  findings.forEach((finding, place) => {
    const [text, link] = list.children[place].children;
    setText(text, findingText(finding));
    setAttribute(link, 'href', `runbooks#${encodeURIComponent(finding.runbook)}`);
    setAttribute(link, 'aria-label', `Runbook ${finding.alert}`);
  });
  list.hidden = findings.length === 0;
}

/** "0000:65:00.0 amd 1002:73bf (no driver): no driver is bound to it. What helps: modprobe amdgpu." */
function unreadText(device) {
  const card = `${device.pci_address} ${device.vendor} ${device.pci_id} (${device.driver ?? 'no driver'})`;
  return `${card}: ${device.why}. What helps: ${device.remedy.replace(/\.$/, '')}.`;
}

/** What stands below the state: the first finding, otherwise why the GPU is slow or silent. */
function stateNote(gpu) {
  if (gpu.reasons.length > 0) {
    const more = gpu.reasons.length - 1;
    return reasonText(gpu.reasons[0]) + (more > 0 ? `, and ${more} more` : '');
  }
  if (!gpu.up) return 'not read: gone, or its driver does not answer';
  if (gpu.suspended) return 'asleep';
  return gpu.throttled.map((cause) => CAUSES[cause] ?? words(cause)).join(', ');
}

/** "8 GPUs: 1 failed, 7 OK". */
function summaryText(gpus) {
  const counts = Object.values(STATES).map((state) => [gpus.filter((gpu) => stateOf(gpu) === state).length, state]);
  const parts = counts.filter(([count]) => count > 0)
    .map(([count, state]) => `${count} ${state === STATES.ok ? 'OK' : state.word.toLowerCase()}`);
  return `${plural(gpus.length, 'GPU')}: ${parts.join(', ')}`;
}

/** Who holds the GPU: runs that report, otherwise workloads. */
function holdersText(gpu) {
  const runs = gpu.runs.map((run) => `${run.run} (${run.user})`);
  if (runs.length > 0) return [...new Set(runs)].join(', ');
  const holders = gpu.holders.filter((holder) => holder.kind !== 'unattributed');
  return holders.slice(0, 3).map((holder) => {
    const user = holder.user ? ` (${holder.user})` : '';
    const part = holder.share < 0.995 ? ` ${percent(holder.share)}` : '';
    return `${words(holder.kind)} ${holder.workload}${user}${part}`;
  }).join(', ') + (holders.length > 3 ? `, and ${holders.length - 3} more` : '');
}
