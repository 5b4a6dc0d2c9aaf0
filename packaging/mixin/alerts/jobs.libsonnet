// Runs and the GPUs that they hold. They need jobs.yml.
local text = import '../lib/annotations.libsonnet';
local duration = import '../lib/duration.libsonnet';

function(config, make)
  local run = '{job=%q,instance=%q,run=%q,user=%q}';
  local of_workload = 'job=%q,instance=%q,kind=%q,workload=%q})';
  local to_workload = '$labels.job $labels.instance $labels.kind $labels.workload';
  local of_allocation = 'job=%q,instance=%q,uuid=%q,kind=%q,workload=%q})';
  local to_allocation = '$labels.job $labels.instance $labels.uuid $labels.kind $labels.workload';
  local of_run = '$labels.job $labels.instance $labels.run $labels.user';
  [
    // Means of 5 minutes bridge the time between two batches and a restart of the daemon. After two minutes without an
    // observed second, the state of the GPU is unknown: this alert stays quiet, and GpuLost most likely fires.
    make.alert(
      'GpuAllocatedButIdle',
      'warning',
      |||
        run:ml_gpu_idle_allocated:ratio_rate5m > %s
          unless ignoring (gpu, uuid, pid, source)
            (ml_run_gpu_info unless ignoring (run, user, pid, source, vendor, model, pci_address, serial, name, tier)
              increase(gpu_observed_seconds_total{tier="fast"}[2m]) > 0)
      ||| % config.runIdleRatio,
      'The run {{ $labels.run }} of {{ $labels.user }} on {{ $labels.instance }} leaves its GPUs idle',
      |||
        The GPUs that the run {{ $labels.run }} of {{ $labels.user }} holds were idle for {{ $value | humanizePercentage }} of the
        last 5 minutes, for %s already; the alert's limit is %s.
      ||| % [duration.words(config.hold.GpuAllocatedButIdle), config.percent.runIdleRatio]
      + text.with('ml_run_gpu_info' + run,
                  ' It holds{{ range $i, $s := . }}{{ if $i }},{{ end }} GPU {{ $s.Labels.gpu }}{{ end }}.',
                  'gpu',
                  of_run)
    ),
    // For workloads that report no run, held memory marks a GPU as held. The alert above covers the GPUs of idle runs.
    make.alert(
      'GpuAllocatedButIdle',
      'info',
      |||
        last_over_time(gpu_workload_memory_used_bytes{kind!="unattributed"}[5m]) > %(heldBytes)s
          and ignoring (kind, workload, vendor, model, pci_address, serial, name) gpu:gpu_utilization:ratio_rate5m < %(idleRatio)s
          and ignoring (kind, workload, vendor, model, pci_address, serial, name, tier)
            increase(gpu_observed_seconds_total{tier="fast"}[2m]) > 0
          unless ignoring (kind, workload, run, user, pid, source)
            (last_over_time(ml_run_gpu_info[5m]) and ignoring (gpu, uuid, pid, source)
              run:ml_gpu_idle_allocated:ratio_rate5m > %(runIdleRatio)s)
      ||| % config,
      'GPU {{ $labels.gpu }} of {{ $labels.instance }} is held by {{ $labels.workload }} and idle',
      |||
        The {{ $labels.kind }} {{ $labels.workload }} holds {{ $value | humanize1024 }}B of GPU {{ $labels.gpu }}
        ({{ $labels.uuid }}), which has been idle for %s.
      ||| % duration.words(config.hold.GpuAllocatedButIdle)
      + text.value(text.selector('gpu:gpu_utilization:ratio_rate5m'),
                   'Mean utilisation',
                   ', idle below %s.' % config.percent.idleRatio,
                   'humanizePercentage')
      + text.with("max by (user) (gpu_workload_info{user!='',job=%q,instance=%q,kind=%q,workload=%q})",
                  ' Its user is {{ . | first | label "user" }}.',
                  arguments='$labels.job $labels.instance $labels.kind $labels.workload')
    ),

    // By what Slurm, the kubelet or an administrator reports, so a process need not run. `and` keeps the alert to allocations that
    // have not ended, since the counter stays for 10 minutes.
    make.alert(
      'GpuHeldButIdle',
      'warning',
      |||
        rate(gpu_allocated_idle_seconds_total[10m]) > %s
          and ignoring (source) gpu_allocation_info
      ||| % config.allocatedIdleRatio,
      'GPU {{ $labels.gpu }} of {{ $labels.instance }} is allocated to the {{ $labels.kind }} {{ $labels.workload }} and idle',
      |||
        GPU {{ $labels.gpu }} ({{ $labels.uuid }}){{ with $labels.partition }}, partition {{ . }},{{ end }} is allocated to the
        {{ $labels.kind }} {{ $labels.workload }} and was idle for {{ $value | humanizePercentage }} of the last 10 minutes, for
        %s already; the alert's limit is %s.
      ||| % [duration.words(config.hold.GpuHeldButIdle), config.percent.allocatedIdleRatio]
      + text.with("max by (user) (gpu_workload_info{user!=''," + of_workload,
                  ' Its user is {{ . | first | label "user" }}.',
                  arguments=to_workload)
      + text.with("max by (slurm_job_name) (gpu_workload_info{slurm_job_name!=''," + of_workload,
                  ' The job is {{ . | first | label "slurm_job_name" }}.',
                  arguments=to_workload)
      + text.with("max by (k8s_namespace, k8s_pod) (gpu_workload_info{k8s_pod!=''," + of_workload,
                  ' The pod is {{ . | first | label "k8s_namespace" }}/{{ . | first | label "k8s_pod" }}.',
                  arguments=to_workload)
      + text.with('time() - min(gpu_allocation_start_timestamp_seconds{' + of_allocation,
                  ' Allocated {{ . | first | value | humanizeDuration }} ago.',
                  arguments=to_allocation)
      + text.with('sum(gpu_allocated_idle_seconds_total{' + of_allocation + ' / 3600',
                  ' Idle so far: {{ . | first | value | printf "%.1f" }} GPU hours.',
                  arguments=to_allocation)
    ),

    // Also for runs whose processes are gone: their series stay for 10 minutes; the hold time and the threshold leave 3 of them.
    make.alert(
      'MlRunStalled',
      'warning',
      |||
        time() - ml_last_update_timestamp_seconds > %s
          unless ignoring (status) ml_run_stop_timestamp_seconds{status!="lost"}
      ||| % config.runSilenceSeconds,
      'The run {{ $labels.run }} of {{ $labels.user }} on {{ $labels.instance }} has stalled',
      |||
        The run {{ $labels.run }} of {{ $labels.user }} sent its last message {{ $value | humanizeDuration }} ago and did not report
        its end; the alert's limit is {{ %s | humanizeDuration }}.
      ||| % config.runSilenceSeconds
      + text.with('ml_step' + run, ' It was at step {{ . | first | value }}.', arguments=of_run)
      + text.with('run:ml_run_gpus:count' + run, ' GPUs held: {{ . | first | value }}.{{ else }} It holds no GPU.', arguments=of_run)
    ),

    // Every machine of a job reports all ranks of the job: one alert for each rank.
    make.alert(
      'NcclRankStandsStill',
      'warning',
      |||
        max without (instance) (ml_nccl_stalled_rank)
      |||,
      'Rank {{ $labels.rank }} of the run {{ $labels.run }} of {{ $labels.user }} stands still ({{ $labels.job }})',
      |||
        {{ if eq $labels.state "behind" }}Rank {{ $labels.rank }} on the host {{ $labels.host }} launches no collective operation
        while other ranks wait for it{{ else }}NCCL reports rank {{ $labels.rank }} on the host {{ $labels.host }} as
        {{ $labels.state }}{{ end }}, for %s already.
      ||| % duration.words(config.hold.NcclRankStandsStill)
      + text.with('max(ml_nccl_rank_lag{job=%q,run=%q,user=%q})',
                  ' The ranks are up to {{ . | first | value }} operations apart.',
                  arguments='$labels.job $labels.run $labels.user')
      + text.with('sum(max by (state) (ml_nccl_ranks{job=%q,run=%q,user=%q}))',
                  ' The run has {{ . | first | value }} ranks.',
                  arguments='$labels.job $labels.run $labels.user'),
      is_served=false
    ),

    // Ranks launch operations long before these complete, so counts that stand still are no stall alone; neither are busy GPUs. GPUs
    // that are busy without computing, while no rank launches anything, are.
    make.alert(
      'NcclNoProgress',
      'warning',
      |||
        ml_nccl_stalled_seconds > %(ncclStalledSeconds)s
          and on (job, instance, run, user)
            min by (job, instance, run, user) (
              max by (job, instance, run, user, uuid) (ml_run_gpu_info)
                * on (job, instance, uuid) group_left () max by (job, instance, uuid) (gpu:gpu_utilization:ratio_rate5m)) > %(ncclBusyRatio)s
          unless on (job, instance, run, user)
            max by (job, instance, run, user) (
              max by (job, instance, run, user, uuid) (ml_run_gpu_info)
                * on (job, instance, uuid) group_left () (
                    max by (job, instance, uuid) (avg_over_time(gpu_pipe_active_ratio{pipe="tensor"}[5m])) / %(ncclTensorRatio)s
                  or
                    max by (job, instance, uuid) (avg_over_time(gpu_power_watts[5m]))
                      / on (job, instance, uuid) max by (job, instance, uuid) (gpu_power_limit_watts{limit="enforced"}) / %(ncclPowerRatio)s)) > 1
      ||| % config,
      'The run {{ $labels.run }} of {{ $labels.user }} on {{ $labels.instance }} makes no progress',
      |||
        No rank of the run {{ $labels.run }} of {{ $labels.user }} has launched a collective operation for
        {{ $value | humanizeDuration }}; the alert's limit is {{ %(ncclStalledSeconds)s | humanizeDuration }}. Its GPUs are busy, but
        compute nothing.
      ||| % config
      + text.with('ml_nccl_rank_lag' + run, ' Its ranks are up to {{ . | first | value }} operations apart.', arguments=of_run)
    ),

    // Each machine reports the dumps of its own ranks, so the comparison is across instances. Without the label run, ranks of different
    // jobs of a user could not be told apart.
    make.alert(
      'FlightRecorderRankBehind',
      'warning',
      |||
        max by (job, run, user, group, description) (ml_flight_recorder_collective{run!="",state="enqueued"})
          - on (job, run, user, group, description) group_right ()
            ml_flight_recorder_collective{run!="",state="enqueued"} > 0
      |||,
      'Rank {{ $labels.rank }} of the run {{ $labels.run }} of {{ $labels.user }} on {{ $labels.instance }} stood behind',
      |||
        PyTorch's flight recorder dumped the ranks of the run {{ $labels.run }} of {{ $labels.user }}. In the process group
        {{ $labels.group }}{{ if $labels.description }} ({{ $labels.description }}){{ end }}, rank {{ $labels.rank }} had launched
        fewer collective operations than the others. Operations behind the furthest rank: {{ $value }}.
      |||
      + text.with('count(ml_flight_recorder_dump_timestamp_seconds{job=%q,run=%q,user=%q})',
                  ' Ranks with a dump: {{ . | first | value }}.',
                  arguments='$labels.job $labels.run $labels.user')
    ),
  ]
