// The GPUs of a fleet, one row each.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { ROW_TO_GPU, ROW_TO_JOBS, ROW_TO_NODE } from './links';
import type { Column, Row } from './panel';
import {
  HEALTH,
  HOLDER,
  LAST_XIDS,
  LINKS_DOWN,
  LINKS_OF_TOTAL,
  MARGIN,
  MEMORY_USED,
  POWER_OF_LIMIT,
  TEMPERATURE,
  THROTTLED,
  UNCORRECTED,
  meanShare,
  perGpu,
} from './promql';
import { CELSIUS, FILLED, HEALTH_WORDS, LOAD, MARGIN_CELL, NONE_EXPECTED, OF_LIMIT, THROTTLED_CELL } from './scales';

const columns: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance', width: 180, link: ROW_TO_NODE },
  { name: 'GPU', label: 'gpu', width: 60, link: ROW_TO_GPU },
  { name: 'Health', expr: HEALTH, cell: 'colour', ...HEALTH_WORDS, width: 100 },
  { name: 'Throttled', expr: THROTTLED, cell: 'colour', ...THROTTLED_CELL, decimals: 0, width: 90 },
  { name: 'ECC uncorrected', expr: UNCORRECTED, cell: 'colour', ...NONE_EXPECTED, width: 130 },
  { name: 'XID, 1 h', label: 'xids', width: 90 },
  { name: 'Links up', label: 'links', width: 90 },
  { name: 'Links down', expr: LINKS_DOWN, cell: 'colour', ...NONE_EXPECTED, width: 95 },
  { name: 'Temperature', expr: TEMPERATURE, ...CELSIUS, width: 110 },
  { name: 'Margin', expr: MARGIN, cell: 'colour', ...MARGIN_CELL, width: 80 },
  { name: 'Held by', label: 'holder', link: ROW_TO_JOBS },
  { name: 'Utilisation', expr: perGpu('max', meanShare('gpu_busy_seconds_total')), cell: 'bar', ...LOAD, decimals: 0 },
  { name: 'Power of limit', expr: POWER_OF_LIMIT, cell: 'bar', ...OF_LIMIT, decimals: 0 },
  { name: 'Memory used', expr: MEMORY_USED, cell: 'bar', ...FILLED, decimals: 0 },
  { name: 'Model', label: 'model' },
];

export const devices: Row = {
  title: 'GPUs',
  panels: [
    {
      kind: 'table',
      title: 'Every GPU',
      description:
        'The worst first, then the most throttled. Utilisation, power and throttling are means over the last rate interval; uncorrected memory errors are those since the driver was loaded; XIDs are the last two error codes of the driver in the last hour; the temperature is that of the hottest sensor, and the margin what is left to the nearest limit. Cells are empty if the card does not report the value or if it cannot be read now.',
      height: 12,
      unit: units.Short,
      columns,
      facts: [LAST_XIDS, LINKS_OF_TOTAL, HOLDER],
      sortBy: ['Health', '-Throttled', 'Margin'],
      links: [],
    },
  ],
};
