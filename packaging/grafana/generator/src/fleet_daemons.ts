// The daemons themselves: their collectors, failed reads and cost.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { TO_JOBS, TO_NODE } from './links';
import type { Row } from './panel';
import { increase, ofDaemon, rate } from './promql';
import { BYTES, COUNT, OPEN_SHARE, UP_WORDS } from './scales';

const OF_MACHINE = [TO_NODE, TO_JOBS];

export const daemons: Row = {
  title: 'The daemons',
  panels: [
    {
      kind: 'timeline',
      title: 'Collectors',
      description:
        'A collector works if its library is loaded and device discovery succeeds. For single devices, see Health. At most 30, those that do not work first.',
      ...UP_WORDS,
      queries: [{ expr: `bottomk(30, ${ofDaemon('gpumeter_collector_up')})`, legend: '{{instance}} {{collector}}' }],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'Failed reads',
      crowd: true,
      description:
        'Failed reads in each step, by status. A sleeping or resetting device denies some reads, which is normal. The 20 highest.',
      ...COUNT,
      queries: [
        {
          expr: `topk(20, sum by (job, instance, collector, status) (${increase(ofDaemon('gpumeter_read_errors_total'))}) > 0)`,
          legend: '{{instance}} {{collector}} {{status}}',
          look: 'bars',
        },
      ],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'Duration of a pass',
      crowd: true,
      width: 8,
      description:
        'The slowest device of each collector. Passes run in the background; scrapes do not wait for them. The 20 longest.',
      unit: units.Seconds,
      min: 0,
      queries: [
        {
          expr: `topk(20, max by (job, instance, collector, tier) (${ofDaemon('gpumeter_sample_duration_seconds')}))`,
          legend: '{{instance}} {{collector}} {{tier}}',
        },
      ],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'CPU time of the daemons',
      crowd: true,
      description: 'CPU time per second; the 20 highest.',
      width: 8,
      ...OPEN_SHARE,
      queries: [{ expr: `topk(20, ${rate(ofDaemon('process_cpu_seconds_total'))})`, legend: '{{instance}}' }],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'Memory of the daemons',
      crowd: true,
      description: 'Resident memory; the 20 highest.',
      width: 8,
      ...BYTES,
      queries: [{ expr: `topk(20, ${ofDaemon('process_resident_memory_bytes')})`, legend: '{{instance}}' }],
      links: OF_MACHINE,
    },
  ],
};
