// The fleet: totals, one row per GPU, and the most important values over time.
import { deviceChoices } from './choices';
import { daemons } from './fleet_daemons';
import { devices } from './fleet_devices';
import type { Board, Row } from './panel';
import { OBSERVED, POWER, THROTTLED, ofDaemon, ofGpu, rate } from './promql';
import { COUNT, FILLED, MARGIN_LEFT, NONE_IS_GOOD, SHARE, WATTS } from './scales';

const ON_BUS = ofDaemon('gpumeter_pci_devices');
const READ_BY_VENDOR = `label_replace(${ofDaemon('gpumeter_collector_devices')}, "vendor", "$1", "collector", "(.+)")`;
const SAME_VENDOR = 'on (job, instance, vendor)';

const totals: Row = {
  title: 'Totals',
  panels: [
    {
      kind: 'stat',
      title: 'GPUs',
      description: 'Known devices, read or lost.',
      ...COUNT,
      queries: [{ expr: `count(${ofGpu('gpu_up')})`, legend: 'GPUs' }],
    },
    {
      kind: 'stat',
      title: 'Not read',
      description: 'Devices that are lost or whose driver hangs.',
      ...NONE_IS_GOOD,
      queries: [{ expr: `sum(1 - ${ofGpu('gpu_up')})`, legend: 'not read' }],
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
    },
    {
      kind: 'stat',
      title: 'Throttled',
      description: 'Devices whose clocks were recently limited, by any cause. Idle is not throttling.',
      ...NONE_IS_GOOD,
      queries: [{ expr: `sum(${THROTTLED} > bool 0)`, legend: 'throttled' }],
    },
    {
      kind: 'stat',
      title: 'Lowest margin',
      description:
        'Degrees between the hottest sensor and its lowest limit. Unlike limits, margins are comparable between models.',
      ...MARGIN_LEFT,
      queries: [{ expr: `min(${ofGpu('gpu_temperature_margin_celsius')})`, legend: 'margin' }],
    },
    {
      kind: 'stat',
      title: 'Mean utilisation',
      description:
        'Busy seconds of all devices divided by their observed seconds: the true mean.',
      ...SHARE,
      decimals: 0,
      queries: [{ expr: `sum(${rate(ofGpu('gpu_busy_seconds_total'))}) / sum(${OBSERVED})`, legend: 'utilisation' }],
    },
    {
      kind: 'stat',
      title: 'Power',
      description: 'Mean power of all boards, from their energy counters.',
      ...WATTS,
      queries: [{ expr: `sum(${POWER})`, legend: 'power' }],
    },
    {
      kind: 'stat',
      title: 'Video memory',
      description: 'Used share of the video memory of all devices.',
      ...FILLED,
      decimals: 0,
      queries: [
        {
          expr: `sum(${ofGpu('gpu_memory_used_bytes', 'memory="vram"')}) / sum(${ofGpu('gpu_memory_size_bytes', 'memory="vram"')})`,
          legend: 'used',
        },
      ],
    },
  ],
};

export const fleet: Board = {
  uid: 'gpumeter-fleet',
  title: 'GPU fleet',
  description: 'All GPUs of all machines that gpumeter measures.',
  rows: [totals, devices, daemons],
  choices: deviceChoices(true),
  single: false,
};
