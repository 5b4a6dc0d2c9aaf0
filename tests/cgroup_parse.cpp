// What the parser of /proc/PID/cgroup says, for tests/cgroup_cases_test.py: texts on standard input, each
// ended by a NUL; for each a block of `key=value` lines, and an empty line.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "collectors/attribution/cgroup/workload_of.hpp"

namespace {

void print(std::string_view key, std::string_view value) {
  if (!value.empty()) std::cout << key << '=' << value << '\n';
}

void print_path(const gpumeter::cgroup::Path& path) {
  print("path", path.text);
  print("qos", path.qos);
  print("driver", path.driver);
  print("monitor", path.monitor);
  print("machine", path.machine);
  print("slurm_step", path.slurm.step);
  print("slurm_task", path.slurm.task);
  print("slurm_node", path.slurm.node);
  print("slurm_uid", path.slurm.uid);
  print("slurm_side", path.slurm.daemon ? "slurmstepd" : "");
  print("slice", gpumeter::unescaped(path.slice));
  if (path.deleted) print("deleted", "true");
  if (path.namespaced) print("namespaced", "true");
}

void print_attribution(const gpumeter::cgroup::Attribution& attribution) {
  print("kind", to_string(attribution.kind));
  print("workload", attribution.workload);
  print("unit", attribution.unit);
  print("container_id", attribution.container_id);
  print("container_runtime", attribution.container_runtime);
  print("pod_uid", attribution.pod_uid);
  print("slurm_job", attribution.slurm_job);
  print("slurm_sluid", attribution.slurm_sluid);
  if (attribution.uid) print("uid", std::to_string(*attribution.uid));
}

}  // namespace

int main() {
  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  for (std::string_view rest = input; !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    const gpumeter::cgroup::Path path = gpumeter::cgroup::most_telling_path(text);
    print_path(path);
    print_attribution(attribution_of(path));
    std::cout << '\n';
  }
  return 0;
}
