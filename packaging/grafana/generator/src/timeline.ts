// States over time, one line per series.
import { VisibilityMode } from '@grafana/grafana-foundation-sdk/common';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { FieldColorModeId, colours, dress, legendBelow, overTime } from './common';
import type { TimelinePanel } from './panel';

export const timeline = (panel: TimelinePanel): PanelBuilder =>
  dress(new PanelBuilder(), { width: 12, height: 8, ...panel }, panel)
    .targets(overTime(panel.queries))
    .colorScheme(colours(FieldColorModeId.Thresholds))
    .mergeValues(true)
    .showValue(VisibilityMode.Never)
    .rowHeight(0.8)
    .fillOpacity(80)
    .legend(legendBelow());
