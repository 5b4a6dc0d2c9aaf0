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
        'A collector works if its library is loaded and device discovery succeeds. For single devices, see Health.',
      ...UP_WORDS,
      queries: [{ expr: ofDaemon('gpumeter_collector_up'), legend: '{{instance}} {{collector}}' }],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'Failed reads',
      crowd: true,
      description:
        'Failed reads in each step, by status. A sleeping or resetting device denies some reads, which is normal.',
      ...COUNT,
      queries: [
        {
          expr: `sum by (instance, collector, status) (${increase(ofDaemon('gpumeter_read_errors_total'))})`,
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
      description:
        'The slowest device of each collector. Passes run in the background; scrapes do not wait for them.',
      unit: units.Seconds,
      min: 0,
      queries: [
        {
          expr: `max by (instance, collector, tier) (${ofDaemon('gpumeter_sample_duration_seconds')})`,
          legend: '{{instance}} {{collector}} {{tier}}',
        },
      ],
      links: OF_MACHINE,
    },
    {
      kind: 'series',
      title: 'Resources of the daemons',
      crowd: true,
      description: 'CPU time per second on the left, resident memory on the right; the 20 highest of each.',
      ...OPEN_SHARE,
      queries: [
        { expr: `topk(20, ${rate(ofDaemon('process_cpu_seconds_total'))})`, legend: '{{instance}} CPU' },
        {
          expr: `topk(20, ${ofDaemon('process_resident_memory_bytes')})`,
          legend: '{{instance}} memory',
          look: 'right',
          unit: BYTES.unit,
        },
      ],
      links: OF_MACHINE,
    },
  ],
};
