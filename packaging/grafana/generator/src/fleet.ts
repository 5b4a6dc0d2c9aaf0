// The fleet: what is wrong, one row per GPU, totals, and the most important values over time.
import { deviceChoices } from './choices';
import { benchmarks } from './fleet_benchmarks';
import { daemons } from './fleet_daemons';
import { devices } from './fleet_devices';
import { health } from './fleet_health';
import { FLEET_LINKS, trends } from './fleet_trends';
import { CHOSEN_JOBS } from './links';
import type { Board, Row } from './panel';
import { OBSERVED, POWER, VIDEO_MEMORY, ofGpu, rate } from './promql';
import { COUNT, FILLED, SHARE, WATTS } from './scales';

const totals: Row = {
  title: 'Totals',
  panels: [
    {
      kind: 'stat',
      title: 'GPUs',
      description: 'Known devices, read or lost.',
      width: 6,
      ...COUNT,
      queries: [{ expr: `count(${ofGpu('gpu_up')})`, legend: 'GPUs' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Mean utilisation',
      description: 'Busy seconds of all devices divided by their observed seconds: the true mean.',
      width: 6,
      ...SHARE,
      decimals: 0,
      queries: [{ expr: `sum(${rate(ofGpu('gpu_busy_seconds_total'))}) / sum(${OBSERVED})`, legend: 'utilisation' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Power',
      description: 'Mean power of all boards, from their energy counters.',
      width: 6,
      ...WATTS,
      queries: [{ expr: `sum(${POWER})`, legend: 'power' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Video memory',
      description: 'Used share of the video memory of all devices, and of the host memory of GPUs without their own.',
      width: 6,
      ...FILLED,
      decimals: 0,
      queries: [
        {
          expr: `sum(${ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY)}) / sum(${ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY)})`,
          legend: 'used',
        },
      ],
      links: [CHOSEN_JOBS],
    },
  ],
};

export const fleet: Board = {
  uid: 'gpumeter-fleet',
  title: 'GPU fleet',
  description: 'All GPUs of all machines that gpumeter measures: what is wrong first.',
  rows: [health, devices, totals, trends, benchmarks, daemons],
  choices: deviceChoices(true),
  links: FLEET_LINKS,
  single: false,
};
