// Energy and GPU time of workloads, by who is charged for them: user, Slurm account, Kubernetes namespace. Jobs that ended count
// in full. The mean over any time, times its length, is therefore the energy or the GPU time, even of short jobs.

// The label of a workload's info, with the value 0. A workload that ended is joined with its info of the last five minutes. If
// the label changed, the present one counts.
local info(label) = |||
  0 * topk by (job, instance, kind, workload) (1, max by (job, instance, kind, workload, %(label)s) (
    gpu_workload_info{%(label)s!=""} + 1 or last_over_time(gpu_workload_info{%(label)s!=""}[5m])))
||| % { label: label };
local indented(text, by) = std.join('\n', [std.repeat(' ', by) + line for line in std.split(std.rstripChars(text, '\n'), '\n')]);
local by(label, quantity) = {
  record: '%s:gpu_workload_%s:rate5m' % [label, quantity],
  expr: |||
    sum without (kind, workload) (
      workload:gpu_workload_%(quantity)s:rate5m + on (job, instance, kind, workload) group_left (%(label)s)
    %(info)s
    )
  ||| % { quantity: quantity, label: label, info: indented(info(label), 4) },
};

[
  // Mean power of each workload over all GPUs of the machine, in watts. With `unattributed` the sum is the power of the GPUs.
  // If a counter starts within the window and the machine was scraped before, the counter started at 0. rate() would omit the
  // value at the first scrape, and with it short jobs. A counter that the page had within the hour before did not start: its
  // GPU was away.
  {
    record: 'workload:gpu_workload_energy_joules:rate5m',
    expr: |||
      sum without (gpu, uuid) (
          (gpu_workload_energy_joules_total unless last_over_time(gpu_workload_energy_joules_total[1h] offset 5m)
            and on (job, instance) (up offset 5m == 1)) / 300
            > (rate(gpu_workload_energy_joules_total[5m]) or gpu_workload_energy_joules_total * 0)
        or rate(gpu_workload_energy_joules_total[5m])
      ) > 0
    |||,
  },

  // The same by user, in watts. `user` is empty if no user is known, so the sum is the power of the GPUs as well. A job that
  // ended is joined with its info of the last five minutes, and no window is cut to a job's age. The mean over any time,
  // times its length, is therefore the energy, even of short jobs. If a workload's user changed, the present one counts.
  {
    record: 'user:gpu_workload_energy_joules:rate5m',
    expr: |||
      sum without (kind, workload) (
          workload:gpu_workload_energy_joules:rate5m + on (job, instance, kind, workload) group_left (user)
            0 * topk by (job, instance, kind, workload) (1, max by (job, instance, kind, workload, user) (
              gpu_workload_info + 1 or last_over_time(gpu_workload_info[5m])))
        or
          workload:gpu_workload_energy_joules:rate5m
            unless on (job, instance, kind, workload) last_over_time(gpu_workload_info[5m])
      )
    |||,
  },

  // GPUs that each workload keeps busy, over all GPUs of the machine: seconds of work per second, so its sum over time is the GPU
  // time. Processes that work at the same time count each. Absent if the driver reports no busy time of processes.
  {
    record: 'workload:gpu_workload_busy_seconds:rate5m',
    expr: |||
      sum without (gpu, uuid) (
          (gpu_workload_busy_seconds_total unless last_over_time(gpu_workload_busy_seconds_total[1h] offset 5m)
            and on (job, instance) (up offset 5m == 1)) / 300
            > (rate(gpu_workload_busy_seconds_total[5m]) or gpu_workload_busy_seconds_total * 0)
        or rate(gpu_workload_busy_seconds_total[5m])
      ) > 0
    |||,
  },

  // Both by the labels of gpu_workload_info; workloads without the label are left out.
  by('user', 'busy_seconds'),
  by('slurm_account', 'energy_joules'),
  by('slurm_account', 'busy_seconds'),
  by('k8s_namespace', 'energy_joules'),
  by('k8s_namespace', 'busy_seconds'),
]
