// The variables of the dashboards, each of which depends on those before it.
import type { Choice } from './panel';

/** On gpu_up, which every device has whatever its vendor, and keeps while it is lost. */
const HOSTS: Choice[] = [
  { name: 'job', query: 'label_values(gpu_up, job)', multi: true },
  { name: 'instance', query: 'label_values(gpu_up{job=~"$job"}, instance)', multi: true },
];

export const deviceChoices = (multi: boolean): Choice[] => [
  ...HOSTS,
  { name: 'gpu', query: 'label_values(gpu_up{job=~"$job", instance=~"$instance"}, gpu)', multi, numbers: true },
];

/** On ml_run_time_seconds, which every run has from its first message on. */
export const jobChoices: Choice[] = [
  ...HOSTS,
  { name: 'user', query: 'label_values(ml_run_time_seconds{job=~"$job", instance=~"$instance"}, user)', multi: true },
  {
    name: 'run',
    query: 'label_values(ml_run_time_seconds{job=~"$job", instance=~"$instance", user=~"$user"}, run)',
    multi: true,
  },
];
