// The variables of the dashboards. Each depends on the ones before it.
import type { Choice } from './panel';

const PLACE = ['job=~"$job", $cluster_label=~"$cluster"', '$rack_label=~"$rack"'];

/** From gpu_up, which every device of every vendor has, even while it is lost. */
const HOSTS: Choice[] = [
  { name: 'job', query: 'label_values(gpu_up, job)', multi: true },
  // Labels of the targets. A series without the label has the value "".
  { name: 'cluster', query: 'label_values(gpu_up{job=~"$job"}, $cluster_label)', multi: true, all: '.*' },
  { name: 'rack', query: `label_values(gpu_up{${PLACE[0]}}, $rack_label)`, multi: true, all: '.*' },
  { name: 'instance', query: `label_values(gpu_up{${PLACE.join(', ')}}, instance)`, multi: true },
];

export const deviceChoices = (multi: boolean): Choice[] => [
  ...HOSTS,
  { name: 'gpu', query: 'label_values(gpu_up{job=~"$job", instance=~"$instance"}, gpu)', multi, numbers: true },
];

/** From ml_run_time_seconds, which every run has from its first message on. */
export const jobChoices: Choice[] = [
  ...HOSTS,
  { name: 'user', query: 'label_values(ml_run_time_seconds{job=~"$job", instance=~"$instance"}, user)', multi: true },
  {
    name: 'run',
    query: 'label_values(ml_run_time_seconds{job=~"$job", instance=~"$instance", user=~"$user"}, run)',
    multi: true,
  },
];
