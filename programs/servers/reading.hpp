#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::servers {

/// A histogram as the server has it: bounds in ascending order without +Inf, and the number of observations
/// up to each of them.
struct ServerHistogram {
  struct Bucket {
    double bound = 0;
    double count = 0;
  };
  std::vector<Bucket> buckets;
  double sum = 0;
  double count = 0;
};

/// The figures of one metrics page of a model server, summed over its models and engines. nullopt: the page
/// does not have it.
struct ServerReading {
  std::string_view kind;  ///< vllm, sglang, tgi, triton or llama.cpp
  std::string model;      ///< the first that the page names; a label's text
  std::optional<double> input_tokens, output_tokens;
  std::optional<double> requests;  ///< completed
  std::optional<double> running, waiting;
  std::optional<double> cache_ratio;           ///< mean of the engines
  std::optional<ServerHistogram> first_token;  ///< seconds
};

/// Limit of buckets; a histogram with more is left out.
inline constexpr std::size_t kMostBuckets = 64;

/// Reads a page, any bytes. nullopt if no model server that the table knows serves such a page. Any thread.
///
/// Sources of the names: vllm/v1/metrics/loggers.py, docs/references/production_metrics.md of SGLang,
/// docs/source/reference/metrics.md of TGI, docs/user_guide/metrics.md of Triton and the READMEs of its
/// backends for vLLM and TensorRT-LLM, tools/server/README.md of llama.cpp.
std::optional<ServerReading> read_page(std::string_view page);

}  // namespace gpumeter::servers
