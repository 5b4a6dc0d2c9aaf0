// The daemons themselves: do their collectors work, what do they miss, what do they cost.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './panel';
import { increase, ofDaemon, rate } from './promql';
import { BYTES, COUNT, OPEN_SHARE, UP_WORDS } from './scales';

export const daemons: Row = {
  title: 'The daemons',
  panels: [
    {
      kind: 'timeline',
      title: 'Collectors',
      description:
        'Whether a collector as a whole works: its library loads and it finds devices. The trouble of one device is its health.',
      ...UP_WORDS,
      queries: [{ expr: ofDaemon('gpumeter_collector_up'), legend: '{{instance}} {{collector}}' }],
    },
    {
      kind: 'series',
      title: 'Failed reads',
      crowd: true,
      description:
        'Reads that gave no value, by how they ended, in each step. A device that sleeps or resets denies some: that is normal.',
      ...COUNT,
      queries: [
        {
          expr: `sum by (instance, collector, status) (${increase(ofDaemon('gpumeter_read_errors_total'))})`,
          legend: '{{instance}} {{collector}} {{status}}',
          look: 'bars',
        },
      ],
    },
    {
      kind: 'series',
      title: 'Duration of a pass',
      crowd: true,
      description:
        'The slowest device of each collector. Passes run in the background; a scrape does not wait for one.',
      unit: units.Seconds,
      min: 0,
      queries: [
        {
          expr: `max by (instance, collector, tier) (${ofDaemon('gpumeter_sample_duration_seconds')})`,
          legend: '{{instance}} {{collector}} {{tier}}',
        },
      ],
    },
    {
      kind: 'series',
      title: 'What the daemons use',
      description: 'CPU time per second on the left, resident memory on the right.',
      ...OPEN_SHARE,
      queries: [
        { expr: rate(ofDaemon('process_cpu_seconds_total')), legend: '{{instance}} CPU' },
        {
          expr: ofDaemon('process_resident_memory_bytes'),
          legend: '{{instance}} memory',
          look: 'right',
          unit: BYTES.unit,
        },
      ],
    },
  ],
};
