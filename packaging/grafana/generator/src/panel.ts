// A panel as data, written in the tables of fleet.ts, gpu.ts and jobs.ts. The builders turn it into Grafana's model.
import type { Threshold, ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';

/** How the series of a query are drawn. `limit`: must not be exceeded; `most`: cannot be exceeded; `low`, `high`: the edges of a band; `rest`: unattributed. */
export type Look = 'line' | 'limit' | 'most' | 'low' | 'high' | 'bars' | 'step' | 'right' | 'rest';

export interface Query {
  expr: string;
  legend: string;
  look?: Look;
  unit?: string;
  /** Show the exemplars of its histogram as points. */
  exemplars?: boolean;
}

export interface Link {
  title: string;
  url: string;
}

/** Unit, number format and colours of a value. */
export interface Scale {
  unit: string;
  decimals?: number;
  min?: number;
  max?: number;
  thresholds?: Threshold[];
  mappings?: ValueMapping[];
}

interface Common extends Scale {
  title: string;
  description: string;
  /** Where a click on a value leads; by default the board's. */
  links?: Link[];
  /** Of 24 columns; by default 12, 3 for a stat. */
  width?: number;
  height?: number;
}

export interface SeriesPanel extends Common {
  kind: 'series';
  queries: Query[];
  /** A line is drawn at each threshold. */
  marks?: boolean;
  /** Many series: the legend is at the side, the highest value first, or the lowest. */
  crowd?: boolean | 'low';
  /** Parts of a whole, one on top of the other. */
  stacked?: boolean;
}

export interface StatPanel extends Common {
  kind: 'stat';
  queries: Query[];
}

/** Frequency of each value over time: of the buckets of a histogram, or of series that Grafana counts in bands of equal width. */
export interface HeatmapPanel extends Common {
  kind: 'heatmap';
  buckets?: string;
  cells?: { expr: string; bands: number };
}

export interface TimelinePanel extends Common {
  kind: 'timeline';
  queries: Query[];
}

/** A column is a label of the series, or the value of an expression with one series per row. */
export type Column = { name: string; width?: number } & (
  | { label: string; hidden?: boolean; link?: Link }
  | ({ expr: string; cell?: 'text' | 'colour' | 'bar' } & Scale)
);

export interface TablePanel extends Common {
  kind: 'table';
  columns: Column[];
  /** Expressions used for their labels only. */
  facts?: string[];
  /** Names of columns, the first counts most; ascending, descending with a leading minus. */
  sortBy?: string[];
}

export type Panel = SeriesPanel | StatPanel | TimelinePanel | TablePanel | HeatmapPanel;

export interface Row {
  title: string;
  panels: Panel[];
}

/** A variable whose values are those of a label. */
export interface Choice {
  name: string;
  query: string;
  multi: boolean;
  /** What All stands for; by default `.+`. */
  all?: string;
  /** The values are numbers. */
  numbers?: boolean;
}

export interface Board {
  uid: string;
  title: string;
  description: string;
  rows: Row[];
  choices: Choice[];
  /** Where a click on a value of a panel leads. */
  links: Link[];
  /** The board shows one device: its variables offer no "All", and its rows are repeated for each host chosen. */
  single: boolean;
}
