// The buckets of a histogram over time.
import {
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
import { asBuckets, dress } from './common';
import type { HeatmapPanel } from './panel';

export const heatmap = (panel: HeatmapPanel): PanelBuilder =>
  dress(new PanelBuilder(), { width: 12, height: 8, ...panel }, { unit: units.Short })
    .targets(asBuckets(panel.buckets))
    .calculate(false)
    .color(new HeatmapColorOptionsBuilder().mode(HeatmapColorMode.Scheme).scheme('Blues').steps(32).exponent(0.5))
    .yAxis(new YAxisConfigBuilder().unit(panel.unit))
    .scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Linear))
    .cellGap(1)
    .showLegend()
    .tooltip(new HeatmapTooltipBuilder().mode(TooltipDisplayMode.Single));
