// What is wrong in the fleet: states of the GPUs, and the reasons.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { DEVICE } from './fleet_trends';
import { CHOSEN_JOBS, ROW_TO_GPU, ROW_TO_JOBS, ROW_TO_NODE } from './links';
import type { Panel, Row, Scale } from './panel';
import { HOLDER_WITH_REASON, LEAST_MARGINS, MOST_THROTTLED, REASONS, THROTTLED, countOf, ofDaemon, ofGpu } from './promql';
import { COUNT, FEW_EXPECTED, MARGIN_LEFT, NONE_IS_GOOD, SEVERITY_WORDS, SHARE } from './scales';

const state = (name: string, description: string, scale: Scale): Panel => ({
  kind: 'stat',
  title: name.charAt(0).toUpperCase() + name.slice(1),
  description,
  ...scale,
  queries: [{ expr: countOf(name), legend: name }],
  links: [CHOSEN_JOBS],
});

const ON_BUS = ofDaemon('gpumeter_pci_devices');
const READ_BY_VENDOR = `label_replace(${ofDaemon('gpumeter_collector_devices')}, "vendor", "$1", "collector", "(.+)")`;
const SAME_VENDOR = 'on (job, instance, vendor)';

export const health: Row = {
  title: 'Health',
  panels: [
    state('failed', 'GPUs that cannot be trusted with work: see the reasons.', NONE_IS_GOOD),
    state('degraded', 'GPUs that work, but slower or with a fault: see the reasons.', FEW_EXPECTED),
    state('unknown', 'GPUs that were not read yet, or whose driver is closed on request.', FEW_EXPECTED),
    state('ok', 'GPUs for which no reason holds, those asleep included.', COUNT),
    {
      kind: 'stat',
      title: 'Not read',
      description: 'Devices that are lost or whose driver hangs.',
      ...NONE_IS_GOOD,
      queries: [{ expr: `sum(1 - ${ofGpu('gpu_up')})`, legend: 'not read' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'On the bus, not read',
      description:
        'GPUs on the PCI bus that no collector reads: no driver, no permission, or no collector for their vendor. Simulated GPUs are on no bus.',
      ...NONE_IS_GOOD,
      queries: [
        {
          expr: `sum(clamp_min(${ON_BUS} - ${SAME_VENDOR} ${READ_BY_VENDOR} or ${SAME_VENDOR} ${ON_BUS}, 0))`,
          legend: 'missing',
        },
      ],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Throttled',
      description: 'Devices whose clocks were recently limited, by any cause, also the power limit. Idle is not throttling.',
      ...FEW_EXPECTED,
      queries: [{ expr: `sum(${THROTTLED} > bool 0)`, legend: 'throttled' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Lowest margin',
      description:
        'Degrees between the hottest sensor and its lowest limit. Unlike limits, margins are comparable between models.',
      ...MARGIN_LEFT,
      queries: [{ expr: `min(${ofGpu('gpu_temperature_margin_celsius')})`, legend: 'margin' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'series',
      title: 'Throttled share of time',
      crowd: true,
      description: 'Share of the longest cause, of the 10 GPUs most throttled in the time shown. The GPU dashboard shows the cause.',
      ...SHARE,
      queries: [{ expr: MOST_THROTTLED, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Least temperature margins',
      crowd: 'low',
      description: 'Degrees between the hottest sensor of a device and its lowest limit, of the 10 GPUs that came closest to it in the time shown; negative above the limit.',
      ...MARGIN_LEFT,
      marks: true,
      queries: [{ expr: LEAST_MARGINS, legend: DEVICE }],
    },
    {
      kind: 'table',
      title: 'Reasons',
      description:
        'Why GPUs are failed or degraded now, failed ones first, with the action that helps and the run or workload that holds the GPU. docs/conditions.md explains the reasons, docs/runbooks.md what to do. Empty if all GPUs are ok.',
      height: 8,
      unit: units.Short,
      columns: [
        { name: 'job', label: 'job', hidden: true },
        { name: 'Severity', expr: REASONS, cell: 'colour', ...SEVERITY_WORDS, width: 110 },
        { name: 'Instance', label: 'instance', width: 220, link: ROW_TO_NODE },
        { name: 'GPU', label: 'gpu', width: 60, link: ROW_TO_GPU },
        { name: 'Reason', label: 'reason' },
        { name: 'Action', label: 'action' },
        { name: 'Held by', label: 'holder', link: ROW_TO_JOBS },
        { name: 'Model', label: 'model' },
        { name: 'UUID', label: 'uuid' },
      ],
      facts: [HOLDER_WITH_REASON],
      sortBy: ['Severity', 'Instance', 'GPU'],
      links: [],
    },
  ],
};
