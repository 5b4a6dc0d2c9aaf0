// One large number: the last value.
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueTextMode,
  ReduceDataOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { FieldColorModeId, colours, dress, now } from './common';
import type { StatPanel } from './panel';

export const stat = (panel: StatPanel): PanelBuilder =>
  dress(new PanelBuilder(), { width: 3, height: 4, ...panel }, panel)
    .targets(now(panel.queries))
    .colorScheme(colours(FieldColorModeId.Thresholds))
    .colorMode(panel.thresholds || panel.mappings ? BigValueColorMode.Value : BigValueColorMode.None)
    .graphMode(BigValueGraphMode.None)
    .textMode(panel.queries.length > 1 ? BigValueTextMode.ValueAndName : BigValueTextMode.Value)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']));
