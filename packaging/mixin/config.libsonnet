// All that a site may want to change. To change a value, import mixin.libsonnet and add to its `_config`: README.md shows how.
{
  _config+:: {
    // Selects `up` of the daemons. No other rule selects by job: all others use the metrics' names.
    gpumeterSelector: 'job="gpumeter"',

    // Address of the page with the runbooks; an alert adds '#' and its name in lower case. The default is the page of the alert's own
    // daemon, at the address that Prometheus scrapes. With TLS: https. If relabelling takes the port from `instance`:
    // 'http://{{ $labels.instance }}:10478/runbooks'. If phones cannot reach the daemons: the address of a published copy.
    runbookURL: 'http://{{ $labels.instance }}/runbooks',

    // A failure pages (critical) for this long. Later somebody knows about it, so it remains as a warning.
    newFailure: '1d',

    // Mean utilisation above which a card counts as busy, so that its link and clocks should run at full speed.
    busyRatio: 0.5,

    // Share of time in which heat limits the clocks. Cards touch their thermal limit briefly at the start of a load. A tenth of
    // the time is a loss that users can measure.
    thermalThrottlingRatio: 0.1,
    // The same within one minute, for the fast alert: most of it, because a card that starts a load may be at its limit for some seconds.
    // A scrape every 30 s or less feeds it; with longer ones only cards past their limit and the slow alert are left.
    overheatingRatio: 0.5,
    // The same for the board's own protection (slowdown signal, VR, prochot), which a working card never needs.
    hardwareThrottlingRatio: 0.1,
    // The same for the power supply's brake signal.
    powerBrakeRatio: 0.05,
    // The same for limits that protect the chip's life. Cards without a tight power limit reach them under full load.
    reliabilityThrottlingRatio: 0.5,
    // Degrees below the lowest limit of any sensor, because a fixed temperature would depend on the model. Sensors count in
    // whole degrees and vary by one or two; 5 is outside of that.
    temperatureMarginCelsius: 5,
    // GPUs of one machine that are hot at once, as a number and as a share of all, above which the cause is one for all of them:
    // the room's or the chassis' cooling. Hot is a GPU within temperatureMarginCelsius, or above thermalThrottlingRatio.
    manyHot: { number: 2, ratio: 0.5 },
    // Cards that stop their fans when idle start them at 50 to 60 degrees.
    fanTemperatureCelsius: 70,
    // Highest graphics clock of 5 minutes as a share of its maximum, on a busy card that nothing throttles.
    clockRatio: 0.5,

    // Errors since the driver was loaded. None is tolerated: one uncorrected error means wrong data.
    memoryErrorsUncorrected: 0,
    hardwareErrorsUncorrected: 0,
    // Corrected errors within an hour. Single ones are normal; many in one place precede uncorrected ones.
    memoryErrorsCorrectedPerHour: 100,
    // Used share of the memory. Inference servers fill 90 to 95 % by design; above, the next allocation fails.
    memoryUsedRatio: 0.98,

    // Retransmitted PCIe packets a minute. DCGM's health check uses the same number.
    pcieReplaysPerMinute: 8,

    // Measured rates as a share of earlier ones and of the median of the model. Healthy cards of one model differ by some percent;
    // gpu-fryer and Megatron's sniff test tolerate a tenth too.
    benchmarkRatio: 0.9,

    // Daemons that are down at once, as a number and as a share of all, above which the cause is one for all of them.
    manyDown: { number: 2, ratio: 0.25 },

    // Time before the end of the daemon's TLS certificate: two weeks are enough to issue a new one by hand. Certificates that are
    // renewed by a program live 90 days or longer and are renewed a month before their end.
    certificateEnds: '14d',

    // Memory above which a workload holds a card. A screen takes some hundred MB; a framework with data takes 1 GiB or more.
    heldBytes: 1024 * 1024 * 1024,
    // Mean utilisation below which a card is idle: 3 s of work in 5 minutes are a health check or a cursor, not a job.
    idleRatio: 0.01,
    // Share of its GPUs' time that a run may leave idle, as above.
    runIdleRatio: 0.99,
    // Share of the time in which an allocated GPU is idle, above which its holder does not use it. The daemon's
    // allocations.idle_percent decides when it is idle. A restart of the daemon may hide a minute of the 10 that are counted.
    allocatedIdleRatio: 0.8,
    // Seconds since a run's last message; longer than most steps, evaluations and checkpoints. A run whose processes are gone
    // stays on the page for 10 minutes, so this and its hold time must end well before.
    runSilenceSeconds: 300,

    // Seconds without a collective operation of any rank, after which a run on busy GPUs makes no progress; longer than most evaluations and
    // checkpoints. The daemon asks NCCL every 30 s.
    ncclStalledSeconds: 300,
    // Mean utilisation above which the GPUs of such a run are busy: a collective operation that waits keeps a kernel running.
    ncclBusyRatio: 0.9,
    // Share of cycles with work of the tensor pipe, above which a GPU computes. Kernels that wait have none.
    ncclTensorRatio: 0.02,
    // Mean power as a share of the limit, above which a GPU computes, for GPUs without a reading of the tensor pipe. Kernels that
    // wait take a third to a half.
    ncclPowerRatio: 0.6,

    // Cost and CO2 of the GPUs, recorded with the jobs: docs/cost.md. null: not known, and what needs it is not recorded, because no value
    // suits every site. Each is a number, or an expression with one series, such as
    // 'max(last_over_time(ceems_emissions_gCo2_kWh{provider="rte",country_code="FR"}[2h]))'.
    cost: {
      // Power usage effectiveness: energy of the site for one unit of energy of its machines. null: the GPUs' own energy.
      pue: null,
      co2GramsPerKwh: null,
      // In one currency. pricePerGpuHour may also be an object with prices by a regular expression of the label model, such as
      // { 'NVIDIA H100.*': 2.5, 'NVIDIA A100.*': 1.2 }. GPUs that none matches have none.
      pricePerKwh: null,
      pricePerGpuHour: null,
      // Record the use of containers for OpenCost, as DCGM_FI_PROF_GR_ENGINE_ACTIVE.
      openCost: false,
    },

    // How long a condition must hold before its alert fires. Alerts on a reason of gpu_health_reason have no entry: the daemon
    // has already waited.
    hold: {
      GpuThermalThrottling: '5m',
      // One more look: with scrapes and evaluations every 15 s and 30 s of Alertmanager a message takes at most 100 s.
      GpuOverheating: '15s',
      GpuHardwareThrottling: '5m',
      GpuPowerBrake: '5m',
      GpuReliabilityThrottling: '15m',
      GpuTemperatureNearLimit: '5m',
      GpuManyHot: '5m',
      GpuFanStopped: '5m',
      GpuClocksLow: '10m',
      GpuLost: '2m',
      GpuExpectedMissing: '5m',
      GpuMissingFromBus: '2m',
      GpuNotMeasured: '10m',
      GpuCollectorDown: '5m',
      GpumeterDown: '10m',
      GpumeterManyDown: '2m',
      GpumeterCertificateEnds: '10m',
      GpuMemoryNearlyFull: '15m',
      GpuPcieLinkDegraded: '10m',
      GpuPcieReplays: '10m',
      // A day and an hour: the next daily result is slow too.
      GpuSlowerThanBefore: '25h',
      GpuSlowerThanPeers: '25h',
      GpuAllocatedButIdle: '30m',
      GpuHeldButIdle: '30m',
      MlRunStalled: '2m',
      NcclRankStandsStill: '3m',
      NcclNoProgress: '2m',
      // Dumps appear within seconds of each other, and the page is scraped at different times on each machine.
      FlightRecorderRankBehind: '1m',
    },
  },
}
