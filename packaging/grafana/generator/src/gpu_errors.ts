// Errors of the device.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './panel';
import { HEALTH, REASONS, increase, ofGpu, perGpu } from './promql';
import { COUNT, HEALTH_WORDS, NONE_IS_GOOD, SEVERITY_WORDS } from './scales';

export const errors: Row = {
  title: 'Errors of GPU $gpu of $instance',
  panels: [
    {
      kind: 'timeline',
      title: 'Health',
      description:
        'State of the GPU as the daemon judges it; the reasons of each state are below.',
      width: 24,
      height: 4,
      ...HEALTH_WORDS,
      queries: [{ expr: HEALTH, legend: 'health' }],
    },
    {
      kind: 'timeline',
      title: 'Reasons over time',
      description: 'Each reason that failed or degraded the GPU, by its severity. Empty if there was none.',
      width: 24,
      height: 6,
      ...SEVERITY_WORDS,
      queries: [{ expr: REASONS, legend: '{{reason}}' }],
    },
    {
      kind: 'series',
      title: 'New memory and hardware errors',
      crowd: true,
      description: 'Errors in each step: of memory, by severity and location, and of other blocks (AMD), by severity and block.',
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
      description: 'Errors of PCIe and of the links between GPUs, and retransmitted packets, in each step.',
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
        "Device events in each step: resets, losses and returns, and the driver's error codes (XID). Events counted while a device is away for longer than a step do not show here; see Health.",
      ...COUNT,
      queries: [
        { expr: increase(ofGpu('gpu_events_total')), legend: '{{event}}', look: 'bars' },
        { expr: `${increase(ofGpu('gpu_xid_errors_total'))} > 0`, legend: 'XID {{xid}}', look: 'bars' },
      ],
    },
    {
      kind: 'table',
      title: 'Driver errors, last seen',
      description: 'Time of the last event of each driver error code (XID). Empty if there was none.',
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
      title: 'Retired and remapped memory',
      description:
        'Rows remapped to spare rows, retired pages, remappings and repairs that wait for the next reset, a remapping that failed, and memory that cannot be repaired. If a remapping failed or the memory cannot be repaired, replace the card.',
      width: 6,
      height: 8,
      ...NONE_IS_GOOD,
      queries: [
        { expr: perGpu('sum', ofGpu('gpu_remapped_rows')), legend: 'rows remapped' },
        { expr: perGpu('sum', ofGpu('gpu_retired_pages')), legend: 'pages retired' },
        { expr: ofGpu('gpu_row_remap_pending'), legend: 'waits for a reset' },
        { expr: ofGpu('gpu_row_remap_failed'), legend: 'failed' },
        { expr: perGpu('max', ofGpu('gpu_repair_pending')), legend: 'repair waits for a reset' },
        { expr: ofGpu('gpu_memory_unrepairable'), legend: 'cannot be repaired' },
      ],
    },
  ],
};
