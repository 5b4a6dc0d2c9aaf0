// Prints what a kubelet says. `kubelet_names PODS_SOCKET RESOURCES_SOCKET LOG_PATH` prints the names and
// allocations of one turn; `kubelet_names PODS_SOCKET RESOURCES_SOCKET LOG_PATH CALLS` makes so many calls of
// pod-resources and prints the number of each outcome.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "collectors/kubernetes/part.hpp"

namespace gpumeter {
namespace {

using workloads::NameKey;

constexpr EnumNames<workloads::DeviceSelector::By, 4> kSelectorNames = {
    {{workloads::DeviceSelector::By::uuid, "uuid"},
     {workloads::DeviceSelector::By::pci_address, "pci_address"},
     {workloads::DeviceSelector::By::minor, "minor"},
     {workloads::DeviceSelector::By::position, "position"}}};

void print(const workloads::Allocation& allocation) {
  std::printf("%s %s %s %s since %lld", std::string(to_string(allocation.source)).c_str(),
              std::string(kSelectorNames.of(allocation.device.by)).c_str(), allocation.device.id.c_str(),
              allocation.workload.name.c_str(),
              static_cast<long long>(allocation.since.value_or(std::chrono::seconds(0)).count()));
  for (const Label& label : allocation.names) std::printf(" %s=%s", label.name.c_str(), label.value.c_str());
  std::printf("\n");
}

int print_names(const kubelet::Settings& settings, const Clock& clock) {
  workloads::NameBook book;
  kubelet::Sources sources(settings, "/sys", clock, book);
  sources.turn();
  for (const workloads::Allocation& allocation : book.allocations()) print(allocation);
  for (const auto& [source, figures] : sources.figures()) {
    if (figures.is_used)
      std::printf("%s %s\n", std::string(to_string(source)).c_str(), figures.is_up ? "up" : "down");
  }
  return 0;
}

int print_outcomes(const kubelet::Settings& settings, const Clock& clock, int calls) {
  std::map<std::string, int> outcomes;
  for (int i = 0; i < calls; ++i) {
    const grpc::Answer answer =
        grpc::ask(settings.resources_socket, {.method = "/v1.PodResourcesLister/List", .message = {}}, clock,
                  clock.monotonic() + std::chrono::seconds(10));
    const bool is_valid = answer.outcome && kubelet::decode_pod_resources(answer.message);
    ++outcomes[answer.outcome && !is_valid ? "invalid" : std::string(to_string(answer.outcome.failure))];
  }
  for (const auto& [outcome, count] : outcomes) std::printf("%s %d\n", outcome.c_str(), count);
  return 0;
}

}  // namespace
}  // namespace gpumeter

int main(int argc, char** argv) {
  using namespace gpumeter;
  if (argc < 4) return 2;
  const SystemClock clock;
  const kubelet::Settings settings = {.pods_socket = argv[1],
                                      .resources_socket = argv[2],
                                      .log_path = argv[3],
                                      .cri_socket = "",
                                      .labels = {"team"}};
  return argc == 4 ? print_names(settings, clock) : print_outcomes(settings, clock, std::atoi(argv[4]));
}
