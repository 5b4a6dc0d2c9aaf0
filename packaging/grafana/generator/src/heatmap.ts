// How often each value occurs, over time.
import {
  HeatmapCalculationBucketConfigBuilder,
  HeatmapCalculationMode,
  HeatmapCalculationOptionsBuilder,
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  TooltipDisplayMode,
} from '@grafana/grafana-foundation-sdk/common';
import {
  HeatmapColorMode,
  HeatmapColorOptionsBuilder,
  HeatmapTooltipBuilder,
  PanelBuilder,
  YAxisConfigBuilder,
} from '@grafana/grafana-foundation-sdk/heatmap';
import * as units from '@grafana/grafana-foundation-sdk/units';
import { asBuckets, dress, overTime } from './common';
import type { HeatmapPanel } from './panel';

const bands = (count: number) =>
  new HeatmapCalculationOptionsBuilder().yBuckets(
    new HeatmapCalculationBucketConfigBuilder().mode(HeatmapCalculationMode.Size).value(`${1 / count}`),
  );

export const heatmap = (panel: HeatmapPanel): PanelBuilder =>
  dress(new PanelBuilder(), { width: 12, height: 8, ...panel }, { unit: units.Short })
    .targets(panel.cells ? overTime([{ expr: panel.cells.expr, legend: '' }]) : asBuckets(panel.buckets ?? ''))
    .calculate(panel.cells !== undefined)
    .calculation(panel.cells ? bands(panel.cells.bands) : new HeatmapCalculationOptionsBuilder())
    .color(new HeatmapColorOptionsBuilder().mode(HeatmapColorMode.Scheme).scheme('Blues').steps(32).exponent(0.5))
    .yAxis(new YAxisConfigBuilder().unit(panel.unit))
    .scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Linear))
    .cellGap(1)
    .showLegend()
    .tooltip(new HeatmapTooltipBuilder().mode(TooltipDisplayMode.Single));
