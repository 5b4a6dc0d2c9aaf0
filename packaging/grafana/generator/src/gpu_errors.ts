// What went wrong with the device.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './panel';
import { HEALTH, increase, ofGpu, perGpu } from './promql';
import { COUNT, HEALTH_WORDS, NONE_IS_GOOD } from './scales';

export const errors: Row = {
  title: 'Errors of GPU $gpu of $instance',
  panels: [
    {
      kind: 'timeline',
      title: 'Health',
      description:
        'Not read: lost, or its driver hangs. Wants attention: the driver asks for a recovery action, or a memory row could not be replaced.',
      width: 24,
      height: 4,
      ...HEALTH_WORDS,
      queries: [{ expr: HEALTH, legend: 'health' }],
    },
    {
      kind: 'series',
      title: 'New memory and hardware errors',
      crowd: true,
      description: 'Errors of memory, by severity and place, and of the other blocks (AMD), by severity and block, in each step.',
      ...COUNT,
      queries: [
        {
          expr: `sum by (severity, location) (${increase(ofGpu('gpu_memory_errors_total'))})`,
          legend: '{{severity}} {{location}}',
          look: 'bars',
        },
        {
          expr: `sum by (severity, block) (${increase(ofGpu('gpu_hardware_errors_total'))})`,
          legend: '{{severity}} {{block}}',
          look: 'bars',
        },
      ],
    },
    {
      kind: 'series',
      title: 'New link errors',
      crowd: true,
      description: 'Errors of PCIe and of the links between GPUs, and packets that were sent again, in each step.',
      ...COUNT,
      queries: [
        {
          expr: `sum by (severity, kind) (${increase(ofGpu('gpu_pcie_errors_total'))})`,
          legend: 'PCIe {{severity}} {{kind}}',
          look: 'bars',
        },
        { expr: increase(ofGpu('gpu_pcie_replays_total')), legend: 'PCIe replays', look: 'bars' },
        { expr: increase(ofGpu('gpu_interconnect_errors_total')), legend: '{{kind}} {{error}}', look: 'bars' },
      ],
    },
    {
      kind: 'series',
      title: 'Events and driver errors',
      crowd: true,
      description:
        "What happened to the device in each step: resets, losses and returns, and the driver's error codes (XID). What is counted while a device is away for longer than a step does not show here; its health does.",
      ...COUNT,
      queries: [
        { expr: increase(ofGpu('gpu_events_total')), legend: '{{event}}', look: 'bars' },
        { expr: `${increase(ofGpu('gpu_xid_errors_total'))} > 0`, legend: 'XID {{xid}}', look: 'bars' },
      ],
    },
    {
      kind: 'table',
      title: 'Driver errors, last seen',
      description: 'When each error code of the driver (XID) was last seen. Empty where none was.',
      width: 6,
      height: 8,
      unit: units.Short,
      sortBy: ['XID'],
      columns: [
        { name: 'XID', label: 'xid' },
        {
          name: 'Last seen',
          expr: `1000 * max by (xid) (${ofGpu('gpu_xid_last_timestamp_seconds')})`,
          unit: units.DateTimeFromNow,
        },
      ],
    },
    {
      kind: 'stat',
      title: 'Memory taken out of use',
      description:
        'Rows replaced by spare ones, pages taken out of use, a replacement that waits for the next reset, and one that failed: such a card wants replacing.',
      width: 6,
      height: 8,
      ...NONE_IS_GOOD,
      queries: [
        { expr: perGpu('sum', ofGpu('gpu_remapped_rows')), legend: 'rows replaced' },
        { expr: perGpu('sum', ofGpu('gpu_retired_pages')), legend: 'pages retired' },
        { expr: ofGpu('gpu_row_remap_pending'), legend: 'waits for a reset' },
        { expr: ofGpu('gpu_row_remap_failed'), legend: 'failed' },
      ],
    },
  ],
};
