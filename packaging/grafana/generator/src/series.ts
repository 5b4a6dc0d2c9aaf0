// Lines over time. Limits are dashed in red, maxima in the text's colour; a lowest and a highest value make one band.
import {
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LineInterpolation,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { FieldColorModeId, colours, dress, legendBelow, legendBeside, overTime, refId } from './common';
import type { Look, Query, SeriesPanel } from './panel';

const DASHES = { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } };
const NO_FILL = { id: 'custom.fillOpacity', value: 0 };
const THIN = { id: 'custom.lineWidth', value: 0 };
const fixed = (fixedColor: string) => ({ id: 'color', value: { mode: 'fixed', fixedColor } });
const BAND_COLOUR = fixed('light-blue');

const LOOKS: Record<Look, DynamicConfigValue[]> = {
  line: [],
  limit: [DASHES, NO_FILL, fixed('red')],
  most: [DASHES, NO_FILL, fixed('text')],
  low: [THIN, NO_FILL, BAND_COLOUR],
  high: [THIN, BAND_COLOUR, { id: 'custom.fillOpacity', value: 25 }],
  bars: [
    { id: 'custom.drawStyle', value: 'bars' },
    { id: 'custom.fillOpacity', value: 80 },
  ],
  step: [{ id: 'custom.lineInterpolation', value: LineInterpolation.StepAfter }, NO_FILL],
  right: [{ id: 'custom.axisPlacement', value: 'right' }, NO_FILL],
  rest: [fixed('#8e8e8e')],
};

/** A band is filled from its upper edge down to the series named by its `low` query. */
function looks(query: Query, panel: SeriesPanel): DynamicConfigValue[] {
  const overrides = [...LOOKS[query.look ?? 'line']];
  const low = panel.queries.find((other) => other.look === 'low');
  if (query.look === 'high' && low) overrides.push({ id: 'custom.fillBelowTo', value: low.legend });
  if (query.unit) overrides.push({ id: 'unit', value: query.unit });
  return overrides;
}

export function series(panel: SeriesPanel): PanelBuilder {
  const place = { width: 12, height: 8, ...panel };
  const builder = dress(new PanelBuilder(), place, panel)
    .targets(overTime(panel.queries))
    .colorScheme(colours(FieldColorModeId.PaletteClassicByName))
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(5)
    .showPoints(VisibilityMode.Never)
    .spanNulls(false)
    .legend(panel.crowd ? legendBeside(panel.crowd === 'low') : legendBelow())
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi));
  // If nothing happened, the axis shows 1 instead of 0.05.
  if (panel.queries.some((query) => query.look === 'bars')) builder.axisSoftMax(1);
  if (panel.stacked) {
    builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A')).fillOpacity(60);
  }
  if (panel.marks) {
    // 0 is always on the axis, so that the distance to it can be seen.
    builder.axisSoftMin(0);
    builder.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
  }
  panel.queries.forEach((query, index) => {
    const overrides = looks(query, panel);
    if (overrides.length > 0) builder.overrideByQuery(refId(index), overrides);
  });
  return builder;
}
