// The dashboards as packaging/grafana/generator wrote them, by file name.
{
  grafanaDashboards+:: {
    'fleet.json': import '../grafana/fleet.json',
    'gpu.json': import '../grafana/gpu.json',
    'jobs.json': import '../grafana/jobs.json',
  },
}
