// Protobuf of the kubelet and of the container runtime, and the device ids and names in it. The first byte
// chooses the message.
#include <string>
#include <vector>

#include "collectors/kubernetes/names.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::kubelet {
namespace {

const CardAddress kAnyCard = [](std::string_view card) { return std::optional<std::string>(card); };

void check(const std::vector<Pod>& pods) {
  const workloads::Names names = names_of(pods, kAnyCard);
  for (const auto& [key, labels] : names.labels) {
    for (std::size_t i = 1; i < labels.size(); ++i) fuzz::expect(labels[i - 1].name <= labels[i].name);
  }
  for (const auto& allocation : names.allocations) fuzz::expect(!allocation.device.id.empty());
}

void check(const Result<std::vector<Pod>>& pods) {
  if (pods) check(*pods);
}

void check(const Result<Pod>& pod) {
  if (pod) check(std::vector<Pod>{*pod});
}

}  // namespace
}  // namespace gpumeter::kubelet

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  using namespace gpumeter::kubelet;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const std::vector<std::string> allowed = {"team", "app.kubernetes.io/name"};
  switch (*data % 5) {
    case 0:
      check(decode_pod(bytes, allowed));
      break;
    case 1:
      check(decode_pod_resources(bytes));
      break;
    case 2:
      check(decode_cri_containers(bytes));
      break;
    case 3:
      if (const auto event = decode_pod_event(bytes)) check(decode_pod(event->pod, allowed));
      break;
    default:
      if (const auto list = decode_pod_list(bytes)) {
        for (const std::string_view each : *list) check(decode_pod(each, allowed));
      }
  }
  return 0;
}
