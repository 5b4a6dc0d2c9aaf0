// The band around a mean.
import type { Query } from './panel';
import { highest, lowest, ofGpu } from './promql';

/** The daemon keeps the extremes of the last minute, so that none falls between two scrapes. */
export const band = (lowestMetric: string, highestMetric: string): Query[] => [
  { expr: lowest(ofGpu(lowestMetric)), legend: 'lowest', look: 'low' },
  { expr: highest(ofGpu(highestMetric)), legend: 'highest', look: 'high' },
];
