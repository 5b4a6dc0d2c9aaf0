#include "programs/benchmark/opencl/run.hpp"

#include <algorithm>

#include "programs/benchmark/measure/fault.hpp"
#include "programs/benchmark/opencl/session.hpp"
#include "programs/benchmark/opencl/test.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

/// AMD's older extension has no domain, so a second function of that number is no match.
bool is_chosen(const Choice& choice, const Device& device) {
  return choice.is_cpu ? device.is_cpu : !device.is_cpu && device.address == choice.address;
}

bool is_idle_peer(const Choice& choice, const Device& device) {
  if (choice.is_cpu) return device.is_cpu;
  return device.address && std::ranges::find(choice.idle_peers, *device.address) != choice.idle_peers.end();
}

/// The chosen device, and after it a peer of the same driver if there is one.
std::vector<Device> chosen_devices(const Choice& choice, const std::vector<Device>& all) {
  const auto found = std::ranges::find_if(all, [&](const Device& each) { return is_chosen(choice, each); });
  if (found == all.end()) return {};
  std::vector<Device> chosen{*found};
  const auto peer = std::ranges::find_if(all, [&](const Device& each) {
    return each.id != found->id && each.platform == found->platform && is_idle_peer(choice, each);
  });
  if (peer != all.end()) chosen.push_back(*peer);
  return chosen;
}

template <class Use>
void with_session(const Api& api, const std::vector<Device>& devices, Outcome& outcome, Use use) {
  Session session(api, devices);
  if (session.good()) return use(session);
  outcome.failures.push_back("opencl: " + session.problem());
}

}  // namespace

void measure(const Choice& choice, const Pace& pace, Outcome& outcome) {
  const Result<Api> api = Api::open();
  if (!api) return outcome.notes.push_back("opencl: " + api.error().message());
  const std::vector<Device> chosen = chosen_devices(choice, devices(*api));
  if (chosen.empty()) {
    outcome.notes.emplace_back("opencl: no driver in /etc/OpenCL/vendors has this device");
    return;
  }
  const Device& device = chosen[0];
  outcome.facts.push_back({"opencl_device", device.name});
  outcome.facts.push_back({"opencl", device.platform_name + " " + device.driver});
  with_session(*api, {device}, outcome, [&](Session& session) {
    Bench bench{session, device, pace, faults_of_environment(), outcome};
    measure_memory(bench);
    measure_gemm(bench);
  });
  with_session(*api, chosen, outcome, [&](Session& session) {
    Bench bench{session, device, pace, faults_of_environment(), outcome};
    measure_transfers(bench, chosen.size() > 1);
  });
}

}  // namespace gpumeter::benchmark::opencl
