// Shared by the builders: texts, position, scale and queries of a panel.
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import type { DataSourceRef, VizLegendOptions } from '@grafana/grafana-foundation-sdk/common';
import { LegendDisplayMode, LegendPlacement, VizLegendOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import type {
  DynamicConfigValue,
  FieldColor,
  Threshold,
  ThresholdsConfig,
  ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import {
  FieldColorBuilder,
  FieldColorModeId,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import type { Query, Scale } from './panel';

export const DATASOURCE: DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

/** Methods of the generated builders of all panel types, which share no type. */
interface AnyPanelBuilder {
  title(title: string): this;
  description(description: string): this;
  datasource(datasource: DataSourceRef): this;
  span(width: number): this;
  height(height: number): this;
  unit(unit: string): this;
  decimals(decimals: number): this;
  min(min: number): this;
  max(max: number): this;
  mappings(mappings: ValueMapping[]): this;
  thresholds(thresholds: Builder<ThresholdsConfig>): this;
  colorScheme(color: Builder<FieldColor>): this;
  targets(targets: Builder<Dataquery>[]): this;
}

export interface Place {
  title: string;
  description: string;
  width: number;
  height: number;
}

export function dress<B extends AnyPanelBuilder>(builder: B, place: Place, scale: Scale): B {
  builder.title(place.title).description(place.description).datasource(DATASOURCE);
  builder.span(place.width).height(place.height).unit(scale.unit);
  if (scale.decimals !== undefined) builder.decimals(scale.decimals);
  if (scale.min !== undefined) builder.min(scale.min);
  if (scale.max !== undefined) builder.max(scale.max);
  if (scale.mappings) builder.mappings(scale.mappings);
  if (scale.thresholds) builder.thresholds(thresholds(scale.thresholds));
  return builder;
}

const thresholds = (steps: Threshold[]) => new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps);

export const colours = (mode: FieldColorModeId) => new FieldColorBuilder().mode(mode);

/** The same scale for one column or query of a panel. */
export function overridesOf(scale: Scale): DynamicConfigValue[] {
  const said: [string, unknown][] = [
    ['unit', scale.unit],
    ['decimals', scale.decimals],
    ['min', scale.min],
    ['max', scale.max],
    ['mappings', scale.mappings],
    ['thresholds', scale.thresholds && { mode: ThresholdsMode.Absolute, steps: scale.thresholds }],
  ];
  return said.filter(([, value]) => value !== undefined).map(([id, value]) => ({ id, value }));
}

export const refId = (index: number): string => String.fromCharCode('A'.charCodeAt(0) + index);

export const overTime = (queries: Query[]) =>
  queries.map((query, index) => {
    const line = target(query.expr, index).legendFormat(query.legend).range();
    return query.exemplars ? line.exemplar(true) : line;
  });

/** The last value only. */
export const now = (queries: Query[]) =>
  queries.map((query, index) => target(query.expr, index).legendFormat(query.legend).instant());

/** One series per bucket, by its upper bound. */
export const asBuckets = (expression: string) => [
  target(expression, 0).legendFormat('{{le}}').format(PromQueryFormat.Heatmap).range(),
];

/** The last values as rows with a column per label. */
export const asTable = (expressions: string[]) =>
  expressions.map((expr, index) => target(expr, index).format(PromQueryFormat.Table).instant());

const target = (expr: string, index: number) =>
  new DataqueryBuilder().refId(refId(index)).datasource(DATASOURCE).expr(expr);

export const legendBelow = (): Builder<VizLegendOptions> =>
  new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    .showLegend(true)
    .calcs([]);

export const legendBeside = (lowestFirst: boolean): Builder<VizLegendOptions> =>
  new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.Table)
    .placement(LegendPlacement.Right)
    .showLegend(true)
    .calcs([lowestFirst ? 'min' : 'max'])
    .sortBy(lowestFirst ? 'Min' : 'Max')
    .sortDesc(!lowestFirst);

export { FieldColorModeId };
