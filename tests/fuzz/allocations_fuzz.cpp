// Files of Slurm's prologs, of its list of GPUs, and of `gpumeter allocate`.
#include "collectors/attribution/names/manual_file.hpp"
#include "collectors/attribution/names/slurm.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace gpumeter;

using fuzz::expect;

void slurm_job(std::string_view text) {
  auto job = slurm::parse_job(text);
  if (!job) return;
  expect(!job->id.empty() && job->id.size() <= 10);
  expect(job->uuids.empty() || job->positions.empty());
  expect(job->positions.size() <= slurm::kMostGpus);
  const slurm::Job before = *job;
  slurm::add_claims(text, *job);
  expect(job->user == before.user && job->positions == before.positions && job->uuids == before.uuids);
  for (const Label& label : slurm::labels_of(*job)) expect(!label.value.empty());
}

void gpu_list(std::string_view text) {
  const slurm::GpuList list = slurm::GpuList::parse(text);
  expect(list.size() <= slurm::GpuList::kMost);
  for (std::size_t at = 0; at < list.size(); ++at) expect(!list.at(at) || !list.at(at)->id.empty());
}

void grant(std::string_view text) {
  const auto parsed = manual::parse_grant(text);
  if (!parsed) return;
  expect(manual::is_name(parsed->workload.name) && parsed->gpus.size() <= manual::kMostGpus);
  expect(manual::parse_grant(manual::to_text(*parsed)) == parsed ||
         manual::to_text(*parsed).size() > manual::kMostBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  slurm_job(text);
  gpu_list(text);
  grant(text);
  return 0;
}
