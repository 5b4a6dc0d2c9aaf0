// Records of runs (ml_*) and workloads (gpu_workload_*).
// A run belongs to one user on one machine. Every record keeps job, instance, run and user, so that runs of one name stay apart
// by machine and user. A quotient is absent if its divisor is absent or 0, so no record is NaN or infinite. A share of time is 0
// only if time was observed and its share was 0.
local steps = 'ml_step_duration_seconds';
// Of the training steps, by a classic or a native histogram.
local part(of, window) = 'rate(%(steps)s_%(of)s{split="train"}[%(window)s]) or histogram_%(of)s(rate(%(steps)s{split="train"}[%(window)s]))' % { steps: steps, of: of, window: window };

function(config) {
  name: 'gpumeter-jobs',
  rules: [
    // GPUs that the run holds now, however many of its processes are on each.
    {
      record: 'run:ml_run_gpus:count',
      expr: 'count without (uuid) (max without (gpu, pid, source) (ml_run_gpu_info))',
    },
    // Seconds of the last 300 in which the run ran: to its stop, or to now. The rates below are increases divided by this time,
    // not by the whole window: a run that is 100 s old has used a third of it. Counters lag behind the job by up to some
    // seconds. The increase of a young run lacks these seconds, so up to 5 s are subtracted here. If the run began again within
    // the window, the earlier start counts, because the increase includes both. Up to 15 s the record is absent, because the lag
    // would multiply the quotient. Series without a start (`_other`) have plain rates.
    {
      record: 'run:ml_run_time_seconds:last5m',
      expr: |||
        (
            max without (status) (ml_run_stop_timestamp_seconds)
              - clamp_min(min_over_time(ml_run_start_timestamp_seconds[5m]), time() - 300)
          or
            clamp_max(time() - min_over_time(ml_run_start_timestamp_seconds[5m])
              - (clamp_max(timestamp(ml_last_update_timestamp_seconds) - ml_last_update_timestamp_seconds, 5)
                or 0 * ml_run_start_timestamp_seconds), 300)
        ) > 15
      |||,
    },
    // Mean power of the run's share of its GPUs, in watts. An hour of it in joules is 3600 times that.
    {
      record: 'run:ml_energy_joules:rate5m',
      expr: |||
        (
            increase(ml_energy_joules_total[5m]) / run:ml_run_time_seconds:last5m
          or
            rate(ml_energy_joules_total[5m]) unless ml_run_start_timestamp_seconds
        ) > 0
      |||,
    },
    // Samples of training and inference, without those of evaluations.
    {
      record: 'run:ml_samples:rate5m',
      expr: |||
        (
            sum without (split) (increase(ml_samples_total{split!="eval"}[5m])) / run:ml_run_time_seconds:last5m
          or
            sum without (split) (rate(ml_samples_total{split!="eval"}[5m])) unless ml_run_start_timestamp_seconds
        ) > 0
      |||,
    },
    {
      record: 'run:ml_samples_per_gpu:rate5m',
      expr: 'run:ml_samples:rate5m / run:ml_run_gpus:count',
    },
    // Energy per sample. The energy of evaluations and checkpoints is included.
    {
      record: 'run:ml_energy_joules_per_sample:ratio_rate5m',
      expr: 'run:ml_energy_joules:rate5m / run:ml_samples:rate5m',
    },
    // Tokens by kind: input, output, train. Rates and tokens per joule may be added up over the kinds, joules per token may not.
    {
      record: 'run_kind:ml_tokens:rate5m',
      expr: |||
        (
            sum without (split) (increase(ml_tokens_total{split!="eval"}[5m]))
              / ignoring (kind) group_left () run:ml_run_time_seconds:last5m
          or
            sum without (split) (rate(ml_tokens_total{split!="eval"}[5m])) unless ignoring (kind) ml_run_start_timestamp_seconds
        ) > 0
      |||,
    },
    {
      record: 'run_kind:ml_tokens_per_gpu:rate5m',
      expr: 'run_kind:ml_tokens:rate5m / ignoring (kind) group_left () run:ml_run_gpus:count',
    },
    {
      record: 'run_kind:ml_tokens_per_joule:ratio_rate5m',
      expr: 'run_kind:ml_tokens:rate5m / ignoring (kind) group_left () run:ml_energy_joules:rate5m',
    },
    {
      record: 'run_kind:ml_energy_joules_per_token:ratio_rate5m',
      expr: '1 / run_kind:ml_tokens_per_joule:ratio_rate5m',
    },

    // Energy per token of a model server, by kind: input, output. Each kind has all of the energy.
    {
      record: 'server_kind:ml_server_energy_joules_per_token:ratio_rate5m',
      expr: 'rate(ml_server_energy_joules_total[5m]) / ignoring (kind) group_right () (rate(ml_server_tokens_total[5m]) > 0)',
    },

    // Floating-point operations of the model per second, of any dtype.
    {
      record: 'run:ml_model_flops:rate5m',
      expr: |||
        (
            sum without (dtype) (increase(ml_model_flops_total[5m])) / run:ml_run_time_seconds:last5m
          or
            sum without (dtype) (rate(ml_model_flops_total[5m])) unless ml_run_start_timestamp_seconds
        ) > 0
      |||,
    },
    // Model FLOPs utilisation (MFU): FLOPs of any dtype as a share of the dense bf16 peak of each GPU that the run holds. A GPU
    // shared with another run counts as a whole. The peak has no `user`, so runs of the same name of two users on one machine
    // are each compared with the peak of their own GPUs. If a GPU's peak is unknown, the MFU is absent.
    {
      record: 'run:ml_model_flops_utilization:ratio_rate5m',
      expr: |||
        (
            run:ml_model_flops:rate5m
              / on (job, instance, run) group_left ()
                (sum by(job,instance,run)(max by(job,instance,run,uuid)(ml_run_gpu_info) * on(job,instance,uuid) group_left() max by(job,instance,uuid)(gpu_peak_flops{dtype="bf16"})) > 0)
              unless on (job, instance, run) count by (job, instance, run) (run:ml_run_gpus:count) > 1
          or
            run:ml_model_flops:rate5m
              / on (job, instance, run, user) group_left () (sum by (job, instance, run, user) (
                  max by (job, instance, run, user, uuid) (ml_run_gpu_info)
                    * on (job, instance, uuid) group_left () max by (job, instance, uuid) (gpu_peak_flops{dtype="bf16"})) > 0)
        )
          unless on (job, instance, run, user) (ml_run_gpu_info unless on (job, instance, uuid) gpu_peak_flops{dtype="bf16"} > 0)
      |||,
    },

    // OFU: the mean of gpu:gpu_tensor_peak:ratio_rate5m over the GPUs that the run holds. It needs no report of the job, counts
    // recomputation and padding as work, and everybody's work on a shared GPU. Absent if one of the GPUs has none.
    {
      record: 'run:ml_tensor_peak:ratio_rate5m',
      expr: |||
        avg by (job, instance, run, user) (
          max by (job, instance, run, user, uuid) (ml_run_gpu_info)
            * on (job, instance, uuid) group_left () max by (job, instance, uuid) (gpu:gpu_tensor_peak:ratio_rate5m))
          unless on (job, instance, run, user) (ml_run_gpu_info unless on (job, instance, uuid) gpu:gpu_tensor_peak:ratio_rate5m)
      |||,
    },

    // Share of the steps' time spent waiting for data. Both are sums over the processes. The clamp removes the time that
    // loaders measure outside of the steps.
    {
      record: 'run:ml_input_bound:ratio_rate5m',
      expr: |||
        clamp_max(
          sum without (phase) (rate(ml_phase_seconds_total{phase="data_loading"}[5m]))
            / (sum without (split) (%s) > 0), 1)
      ||| % part('sum', '5m'),
    },

    // Goodput: progress of the run (ml_step) times the mean duration of its training steps, divided by the elapsed time (30
    // minutes, or since its start). The processes of a run step together, so their number cancels out. ml_step itself falls
    // when steps are lost, so repeated steps count once. Evaluations, checkpoints, stalls and the recovery from a crash count
    // as lost too. Absent if the run stopped, reported no step, or restarted within the window.
    {
      record: 'run:ml_goodput:ratio_rate30m',
      expr: |||
        clamp_min(delta(ml_step[30m]), 0)
          * (sum without (split) (%s) > 0)
          / (sum without (split) (%s) > 0)
          / (clamp_max(time() - ml_run_start_timestamp_seconds, 1800) > 0)
          unless changes(ml_run_start_timestamp_seconds[30m]) > 0
          unless ignoring (status) ml_run_stop_timestamp_seconds
      ||| % [part('sum', '30m'), part('count', '30m')],
    },

    // GPU seconds of the last five minutes in which the run's GPUs were read, at most the run's own time for each. A GPU
    // that is not read is neither idle nor busy.
    {
      record: 'run:ml_gpu_observed_seconds:last5m',
      expr: |||
        (
          count by (job, instance, run, user) (max by (job, instance, run, user, uuid) (last_over_time(ml_run_gpu_info[5m])))
            * max by (job, instance, run, user) (run:ml_run_time_seconds:last5m)
            < sum by (job, instance, run, user) (
              max by (job, instance, run, user, uuid) (last_over_time(ml_run_gpu_info[5m])) * on (job, instance, uuid)
                group_left () max by (job, instance, uuid) (increase(gpu_observed_seconds_total{tier="fast"}[5m])))
          or sum by (job, instance, run, user) (
            max by (job, instance, run, user, uuid) (last_over_time(ml_run_gpu_info[5m])) * on (job, instance, uuid)
              group_left () max by (job, instance, uuid) (increase(gpu_observed_seconds_total{tier="fast"}[5m])))
        ) > 0
      |||,
    },
    // Idle share of that time. The clamp removes the part that increase() extrapolates.
    {
      record: 'run:ml_gpu_idle_allocated:ratio_rate5m',
      expr: |||
        clamp_max(
          increase(ml_gpu_idle_allocated_seconds_total[5m])
            / on (job, instance, run, user) group_left () run:ml_gpu_observed_seconds:last5m, 1)
      |||,
    },

  ] + (import 'costs.libsonnet')(config.cost) + [
    // Quantiles (50 %, 95 %, 99 %) of the durations of training steps and requests, of the time to the first token, and of the
    // time between tokens. With the daemon's buckets histogram_quantile is within 10 %. It returns NaN if nothing was
    // counted, which the comparison removes. A server has either classic or native histograms, or both while it changes.
    {
      record: 'run_quantile:%s:rate5m' % family,
      labels: { quantile: share },
      expr: |||
        (
            histogram_quantile(%(share)s, sum without (split) (rate(%(family)s_bucket%(only)s[5m])))
          or
            histogram_quantile(%(share)s, sum without (split) (rate(%(family)s%(only)s[5m])))
        ) >= 0
      ||| % { share: share, family: family, only: if family == steps then '{split="train"}' else '' },
    }
    for family in [steps, 'ml_inference_duration_seconds', 'ml_time_to_first_token_seconds', 'ml_inter_token_latency_seconds']
    for share in ['0.5', '0.95', '0.99']
  ] + [
    // Who used a GPU within the last 10 minutes: its runs, otherwise its three largest workloads. The alerts' texts name them.
    {
      record: 'gpu_holder:gpu_workload_info:last10m',
      expr: |||
        label_replace(
            label_replace(
              group by (job, instance, uuid, run, user) (last_over_time(ml_run_gpu_info[10m])), "workload", "$1", "run", "(.+)"),
            "kind", "run", "", "")
          or
            topk by (job, instance, uuid) (3, max by (job, instance, uuid, kind, workload) (
              max_over_time(gpu_workload_share_ratio{kind!="unattributed"}[10m]) > 0))
              * on (job, instance, kind, workload) group_left (user)
                topk by (job, instance, kind, workload) (1, last_over_time(gpu_workload_info[10m]))
              unless on (job, instance, uuid) last_over_time(ml_run_gpu_info[10m])
      |||,
    },
  ],
}
