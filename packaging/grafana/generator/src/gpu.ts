// One device in depth, from top to bottom: health and its reasons, activity, limits, errors.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { deviceChoices } from './choices';
import { activity } from './gpu_activity';
import { benchmarks } from './gpu_benchmarks';
import { errors } from './gpu_errors';
import { links, memory } from './gpu_memory';
import { power } from './gpu_power';
import { CHOSEN_FLEET, CHOSEN_JOBS, ROW_TO_JOBS } from './links';
import type { Board, Row } from './panel';
import {
  HEALTH,
  HOLDER,
  MARGIN,
  MEMORY_USED,
  OBSERVED,
  POWER,
  POWER_OF_LIMIT,
  REASONS,
  TEMPERATURE,
  THROTTLED,
  meanShare,
  ofGpu,
} from './promql';
import { CELSIUS, FILLED, HEALTH_WORDS, LOAD, MARGIN_LEFT, OF_LIMIT, SEVERITY_WORDS, SHARE, THROTTLED_SHARE, WATTS } from './scales';

/** Labels of gpu_info, which is 1 for every device, and their columns. */
const FACTS: [label: string, name: string][] = [
  ['model', 'Model'],
  ['uuid', 'UUID'],
  ['serial', 'Serial'],
  ['pci_address', 'PCI address'],
  ['driver', 'Driver'],
  ['driver_version', 'Driver version'],
  ['vbios_version', 'VBIOS'],
  ['firmware_version', 'Firmware'],
  ['architecture', 'Architecture'],
  ['compute_units', 'Compute units'],
  ['numa_node', 'NUMA node'],
];

const device: Row = {
  title: 'GPU $gpu of $instance',
  panels: [
    {
      kind: 'stat',
      title: 'Health now',
      description:
        'Failed: cannot be trusted with work. Degraded: works, but slower or with a fault. Unknown: not read yet, or its driver is closed on request. The reasons are beside.',
      height: 5,
      ...HEALTH_WORDS,
      queries: [{ expr: HEALTH, legend: 'health' }],
    },
    {
      kind: 'table',
      title: 'Reasons',
      description:
        'Why the GPU is failed or degraded now, with the action that helps. docs/conditions.md explains the reasons, docs/runbooks.md what to do. Empty if it is ok.',
      width: 15,
      height: 5,
      unit: units.Short,
      columns: [
        { name: 'Severity', expr: REASONS, cell: 'colour', ...SEVERITY_WORDS, width: 110 },
        { name: 'Reason', label: 'reason' },
        { name: 'Action', label: 'action' },
      ],
      sortBy: ['Severity', 'Reason'],
    },
    {
      kind: 'table',
      title: 'Held by',
      description: 'Run and user, otherwise the workload with the largest share. Empty if nobody uses the GPU, or it is not known.',
      width: 6,
      height: 5,
      unit: units.Short,
      columns: [
        { name: 'job', label: 'job', hidden: true },
        { name: 'Instance', label: 'instance', hidden: true },
        { name: 'Holder', label: 'holder', link: ROW_TO_JOBS },
      ],
      facts: [HOLDER],
      links: [],
    },
    {
      kind: 'stat',
      title: 'Utilisation now',
      description: 'Mean over the last rate interval, from the counter of busy seconds.',
      ...LOAD,
      decimals: 0,
      queries: [{ expr: meanShare('gpu_busy_seconds_total'), legend: 'utilisation' }],
    },
    {
      kind: 'stat',
      title: 'Power now',
      description: 'Mean over the last rate interval, from the energy counter.',
      ...WATTS,
      decimals: 0,
      queries: [{ expr: POWER, legend: 'power' }],
    },
    {
      kind: 'stat',
      title: 'Power of limit now',
      description: 'This power as a share of the enforced limit.',
      ...OF_LIMIT,
      decimals: 0,
      queries: [{ expr: POWER_OF_LIMIT, legend: 'of limit' }],
    },
    {
      kind: 'stat',
      title: 'Temperature now',
      description: 'Of the hottest sensor.',
      ...CELSIUS,
      queries: [{ expr: TEMPERATURE, legend: 'temperature' }],
    },
    {
      kind: 'stat',
      title: 'Margin now',
      description: 'Degrees between the hottest sensor and its lowest limit; negative above the limit.',
      ...MARGIN_LEFT,
      queries: [{ expr: MARGIN, legend: 'margin' }],
    },
    {
      kind: 'stat',
      title: 'Throttled now',
      description:
        'Share of the last rate interval in which the longest cause limited the clocks.',
      ...THROTTLED_SHARE,
      decimals: 0,
      queries: [{ expr: THROTTLED, legend: 'throttled' }],
    },
    {
      kind: 'stat',
      title: 'Memory used now',
      description: 'Used share of the video memory.',
      ...FILLED,
      decimals: 0,
      queries: [{ expr: MEMORY_USED, legend: 'used' }],
    },
    {
      kind: 'stat',
      title: 'Observed now',
      description:
        'Share of the time covered by the counters. In the rest the device was lost, its driver hung, or the machine slept.',
      ...SHARE,
      decimals: 0,
      queries: [{ expr: OBSERVED, legend: 'observed' }],
    },
  ],
};

const identity: Row = {
  title: 'Identity of GPU $gpu of $instance',
  panels: [
    {
      kind: 'table',
      title: 'Identity',
      height: 3,
      unit: units.Short,
      facts: [ofGpu('gpu_info')],
      description: 'Static facts of the device. Cells are empty if the card or its driver does not report the value.',
      columns: [
        { name: 'GPU', label: 'gpu', width: 60 },
        ...FACTS.map(([label, name]) => ({ name, label })),
      ],
    },
  ],
};

export const gpu: Board = {
  uid: 'gpumeter-gpu',
  title: 'GPU',
  description: 'One GPU in depth. If you choose several instances, the rows repeat for each.',
  rows: [device, activity, power, memory, links, errors, benchmarks, identity],
  choices: deviceChoices(false),
  links: [CHOSEN_JOBS, CHOSEN_FLEET],
  single: true,
};
