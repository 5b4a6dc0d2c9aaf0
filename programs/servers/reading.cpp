#include "programs/servers/reading.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>

#include "base/text.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/sources/page/sample_lines.hpp"

namespace gpumeter::servers {
namespace {

enum class Figure : std::uint8_t { input, output, requests, running, waiting, cache, first_token };

enum class Server : std::uint8_t { triton, vllm, sglang, tgi, llama };
constexpr std::string_view kServers[] = {"triton", "vllm", "sglang", "tgi", "llama.cpp"};

/// A series of a server. Of the rows of one figure, the first one that the page has counts: servers renamed
/// series and serve both names for some releases.
struct Row {
  Server server;
  Figure figure;
  std::string_view name;        ///< of a histogram: without _bucket, _sum and _count
  std::string_view label = {};  ///< only samples with this label ...
  std::string_view value = {};  ///< ... and this value
  double scale = 1;             ///< to the base unit
};

// clang-format off
constexpr Row kRows[] = {
    {Server::vllm, Figure::input, "vllm:prompt_tokens_total"},
    {Server::vllm, Figure::output, "vllm:generation_tokens_total"},
    {Server::vllm, Figure::requests, "vllm:request_success_total"},
    {Server::vllm, Figure::running, "vllm:num_requests_running"},
    {Server::vllm, Figure::waiting, "vllm:num_requests_waiting"},
    {Server::vllm, Figure::cache, "vllm:kv_cache_usage_perc"},
    {Server::vllm, Figure::cache, "vllm:gpu_cache_usage_perc"},  // before 0.10
    {Server::vllm, Figure::first_token, "vllm:time_to_first_token_seconds"},
    {Server::sglang, Figure::input, "sglang:prompt_tokens_total"},
    {Server::sglang, Figure::output, "sglang:generation_tokens_total"},
    {Server::sglang, Figure::requests, "sglang:num_requests_total"},
    {Server::sglang, Figure::requests, "sglang:e2e_request_latency_seconds_count"},  // before 0.4.7
    {Server::sglang, Figure::running, "sglang:num_running_reqs"},
    {Server::sglang, Figure::waiting, "sglang:num_queue_reqs"},
    {Server::sglang, Figure::cache, "sglang:token_usage"},
    {Server::sglang, Figure::first_token, "sglang:time_to_first_token_seconds"},
    {Server::tgi, Figure::input, "tgi_request_input_length_sum"},
    {Server::tgi, Figure::output, "tgi_request_generated_tokens_sum"},
    {Server::tgi, Figure::requests, "tgi_request_success"},
    {Server::tgi, Figure::running, "tgi_batch_current_size"},
    {Server::tgi, Figure::waiting, "tgi_queue_size"},
    {Server::llama, Figure::input, "llamacpp:prompt_tokens_total"},
    {Server::llama, Figure::output, "llamacpp:tokens_predicted_total"},
    {Server::llama, Figure::running, "llamacpp:requests_processing"},
    {Server::llama, Figure::waiting, "llamacpp:requests_deferred"},
    {Server::llama, Figure::cache, "llamacpp:kv_cache_usage_ratio"},  // until 2025
    {Server::triton, Figure::requests, "nv_inference_request_success"},
    {Server::triton, Figure::running, "nv_trt_llm_request_metrics", "request_type", "scheduled"},
    {Server::triton, Figure::running, "vllm:num_requests_running"},
    {Server::triton, Figure::waiting, "nv_trt_llm_request_metrics", "request_type", "waiting"},
    {Server::triton, Figure::waiting, "nv_inference_pending_request_count"},
    {Server::triton, Figure::input, "nv_llm_input_token_len_sum", "response_metric_type", "total_input_tokens"},
    {Server::triton, Figure::input, "vllm:prompt_tokens_total"},
    {Server::triton, Figure::output, "nv_llm_output_token_len_sum", "response_metric_type", "total_output_tokens"},
    {Server::triton, Figure::output, "vllm:generation_tokens_total"},
    {Server::triton, Figure::cache, "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction"},
    {Server::triton, Figure::first_token, "vllm:time_to_first_token_seconds"},
    {Server::triton, Figure::first_token, "nv_inference_first_response_histogram_ms", {}, {}, 1e-3},
};
// clang-format on

/// Labels of models, in the order of preference. Triton's own series name the model `model`.
constexpr std::string_view kModelLabels[] = {"model_name", "model"};

/// SGLang's schedulers repeat the gauges of an engine for each of its ranks, and next to the total once more
/// by priority. Its counters are of another process, which counts a request under its own priority only
/// (tokenizer_manager.py, collect_metrics).
bool is_repeated(Figure figure, const SampleLine& sample) {
  const auto is_other = [&](std::string_view label) {
    const std::string_view rank = sample.label(label);
    return !rank.empty() && rank != "0";
  };
  const bool is_gauge = figure == Figure::running || figure == Figure::waiting || figure == Figure::cache;
  return is_other("tp_rank") || is_other("pp_rank") || is_other("moe_ep_rank") ||
         (is_gauge && !sample.label("priority").empty());
}

/// What the page has of one row.
struct Found {
  double sum = 0;
  std::size_t samples = 0;
  struct Bucket {
    double count = 0;
    std::size_t samples = 0;
  };
  std::map<double, Bucket> buckets;
  double observed = 0;
  std::size_t counts = 0;  ///< histograms: samples of _count
};

void take_bucket(const SampleLine& sample, double scale, Found& found) {
  std::string_view le = sample.label("le");
  if (le.starts_with('+')) le.remove_prefix(1);
  const auto bound = le == "Inf" ? std::numeric_limits<double>::infinity() : parse_number<double>(le);
  if (!bound || std::isnan(*bound) || found.buckets.size() > kMostBuckets) return;
  // A division by 1000 rounds once, so that 100 ms become exactly 0.1 s.
  Found::Bucket& bucket = found.buckets[scale == 1 ? *bound : *bound / (1 / scale)];
  bucket.count += sample.value;
  ++bucket.samples;
}

void take(const Row& row, const SampleLine& sample, Found& found) {
  if (!row.label.empty() && sample.label(row.label) != row.value) return;
  if (row.figure != Figure::first_token) {
    found.sum += sample.value;
    ++found.samples;
    return;
  }
  const std::string_view suffix = sample.name.substr(row.name.size());
  if (suffix == "_bucket") return take_bucket(sample, row.scale, found);
  if (suffix == "_sum") found.sum += sample.value * row.scale;
  if (suffix == "_sum") ++found.samples;
  if (suffix == "_count") found.observed += sample.value;
  if (suffix == "_count") ++found.counts;
}

bool is_of(const Row& row, std::string_view name) noexcept {
  if (row.figure != Figure::first_token) return name == row.name;
  return name.starts_with(row.name);
}

/// nullopt if the page's parts contradict each other; a count may be NaN. Engines with different bounds
/// cannot be summed.
std::optional<ServerHistogram> histogram_of(const Found& found) {
  if (found.counts == 0 || found.samples != found.counts || found.buckets.size() > kMostBuckets) return {};
  ServerHistogram histogram{{}, found.sum, found.observed};
  double last = 0;
  for (const auto& [bound, bucket] : found.buckets) {
    if (bucket.samples != found.counts || !(bucket.count >= last)) return {};
    last = bucket.count;
    if (std::isfinite(bound)) histogram.buckets.push_back({bound, bucket.count});
  }
  const bool is_whole = !found.buckets.empty() && std::isinf(found.buckets.rbegin()->first) &&
                        last == histogram.count && std::isfinite(histogram.count);
  return is_whole ? std::optional(std::move(histogram)) : std::nullopt;
}

using Page = std::array<Found, std::size(kRows)>;

std::optional<Server> server_of(const Page& page) {
  std::optional<Server> server;
  for (std::size_t i = 0; i < page.size(); ++i) {
    const bool is_there = page[i].samples > 0 || page[i].counts > 0;
    // Triton with the backend for vLLM has series of both.
    const bool is_own = kRows[i].server != Server::triton || kRows[i].name.starts_with("nv_");
    if (is_there && is_own && (!server || kRows[i].server < *server)) server = kRows[i].server;
  }
  return server;
}

std::optional<double>* place_of(Figure figure, ServerReading& reading) noexcept {
  switch (figure) {
    case Figure::input:
      return &reading.input_tokens;
    case Figure::output:
      return &reading.output_tokens;
    case Figure::requests:
      return &reading.requests;
    case Figure::running:
      return &reading.running;
    case Figure::waiting:
      return &reading.waiting;
    case Figure::cache:
      return &reading.cache_ratio;
    case Figure::first_token:
      return nullptr;
  }
  return nullptr;
}

void fill(const Row& row, const Found& found, ServerReading& reading) {
  std::optional<double>* const place = place_of(row.figure, reading);
  if (place == nullptr) {
    if (!reading.first_token) reading.first_token = histogram_of(found);
    return;
  }
  const double parts = row.figure == Figure::cache ? static_cast<double>(found.samples) : 1;
  const bool is_sane = found.samples > 0 && std::isfinite(found.sum) && found.sum >= 0;
  if (is_sane && !*place) *place = found.sum / parts;
}

}  // namespace

std::optional<ServerReading> read_page(std::string_view page) {
  Page found{};
  std::array<std::string, std::size(kModelLabels)> models;
  for (SampleLines lines(page); lines.next();) {
    const SampleLine& sample = lines.sample();
    bool is_known = false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!is_of(kRows[i], sample.name) || is_repeated(kRows[i].figure, sample)) continue;
      take(kRows[i], sample, found[i]);
      is_known = true;
    }
    for (std::size_t i = 0; is_known && i < models.size(); ++i) {
      if (models[i].empty()) models[i] = jobs::label_text(sample.label(kModelLabels[i]));
    }
  }
  const std::optional<Server> server = server_of(found);
  if (!server) return std::nullopt;
  ServerReading reading;
  reading.kind = kServers[static_cast<std::size_t>(*server)];
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (kRows[i].server == *server) fill(kRows[i], found[i], reading);
  }
  for (const std::string& model : models) {
    if (reading.model.empty()) reading.model = model;
  }
  return reading;
}

}  // namespace gpumeter::servers
