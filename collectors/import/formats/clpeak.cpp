#include "collectors/import/formats/clpeak.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/json.hpp"
#include "collectors/import/lines.hpp"
#include "collectors/import/xml.hpp"

namespace gpumeter::import {
namespace {

/// Tests of a vendor's library by the start of their names: XML of version 2 has "rocblas-fp", JSON of
/// version 3 "cublas_gemm".
struct Library {
  std::string_view test;
  std::string_view backend;
};
constexpr Library kLibraries[] = {
    {"cublas", "cublaslt"}, {"rocblas", "rocblas"}, {"hipblaslt", "hipblaslt"}, {"onemkl", "onemkl"}};

constexpr std::string_view kDtypes[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

/// "fp8_e4m3" is fp8, "nvf4_e2m1" is fp4. Sparse products ("2:4") count operations that are not made.
std::string_view dtype_of(std::string_view metric) {
  if (metric.find("2:4") != std::string_view::npos) return {};
  if (metric.starts_with("nvf4") || metric.starts_with("mxf4")) return "fp4";
  for (const std::string_view dtype : kDtypes) {
    if (metric == dtype || metric.starts_with(std::string(dtype) + "_")) return dtype;
  }
  return {};
}

struct Copy {
  std::string_view metric;  ///< the start of its name
  std::string_view direction;
};
constexpr Copy kCopies[] = {{"enqueuewritebuffer", "host_to_device"},
                            {"enqueuereadbuffer", "device_to_host"},
                            {"h2d_pinned", "host_to_device"},
                            {"d2h_pinned", "device_to_host"}};

/// Its metrics are widths of one vector, or chains of one instruction.
bool has_widths(std::string_view test) {
  return test.ends_with("_compute") || test.ends_with("_bandwidth") || test.starts_with("integer_compute");
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool take_product(GpuResults& gpu, const ClpeakValue& value) {
  const auto* const library = std::ranges::find_if(
      kLibraries, [&](const Library& each) { return value.test.starts_with(each.test); });
  const std::string_view dtype = dtype_of(value.metric);
  if (library == std::end(kLibraries) || dtype.empty()) return false;
  gpu.flops(dtype, library->backend, value.value);
  return true;
}

bool take_copy(GpuResults& gpu, const ClpeakValue& value) {
  // A buffer in the host's memory is mapped without a copy: Instincts "transfer" 156 TB/s so.
  const bool is_mapping = value.metric.starts_with("enqueuemap") || value.metric.starts_with("enqueueunmap");
  if (value.test == "transfer_bandwidth" && is_mapping) return true;
  const auto* const copy =
      std::ranges::find_if(kCopies, [&](const Copy& each) { return value.metric.starts_with(each.metric); });
  if (value.test != "transfer_bandwidth" || copy == std::end(kCopies)) return false;
  gpu.transfer(copy->direction, value.value);
  return true;
}

}  // namespace

void take_clpeak(GpuResults& gpu, const ClpeakValue& value) {
  if (value.test == "global_memory_bandwidth") return gpu.memory_bandwidth("read", value.value);
  if (take_product(gpu, value) || take_copy(gpu, value)) return;
  const std::string test = lower(value.backend) + ' ' + std::string(value.test);
  // The XML of version 1.1 gives integer operations in gflops.
  const bool is_integer = value.test.starts_with("integer") && value.unit == kFlops;
  const std::string_view unit = is_integer ? find_unit("ops")->base : value.unit;
  if (value.test != "transfer_bandwidth" && has_widths(value.test)) {
    return gpu.best_result(test, unit, value.value);
  }
  const bool is_named = value.metric.empty() || value.metric == value.test;
  gpu.result(is_named ? test : test + ' ' + std::string(value.metric), unit, value.value);
}

namespace {

/// "2026-10-01T15:23:16Z" in Unix time; nullopt for any other form.
std::optional<double> time_of(std::string_view text) {
  std::tm parts{};
  const std::string whole(text);
  const char* const end = strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&parts));
}

}  // namespace

Result<Sheet> parse_clpeak(std::string_view text, const Context&) {
  const std::string_view start = trimmed(text.substr(0, std::min<std::size_t>(text.size(), 64)));
  if (start.starts_with('{')) return parse_clpeak_json(text);
  if (start.starts_with('<')) return parse_clpeak_xml(text);
  return parse_clpeak_text(text);
}

namespace {

std::optional<Error> take_metric(GpuResults& gpu, const Json& device, const Json& test, const Json& metric) {
  const Json* const value = metric.find("value");
  if (value == nullptr && !metric.text_of("status").empty()) return std::nullopt;  // unsupported
  const Json* const own = metric.find("unit");
  const Unit* const unit = find_unit(own != nullptr ? std::string_view(own->text) : test.text_of("unit"));
  if (unit == nullptr) return at_line(metric.line, "a metric in a unit that is not known");
  if (value == nullptr || !value->is(Json::Kind::number) || value->number < 0) {
    return at_line(metric.line, "a metric without a value");
  }
  take_clpeak(gpu, {device.text_of("backend"), test.text_of("id"), metric.text_of("id"),
                    value->number * unit->scale, unit->base});
  return std::nullopt;
}

std::optional<Error> take_device(Sheet& sheet, const Json& device) {
  constexpr double kMostDevices = 1024;
  const Json* const index = device.find("device_index");
  const Json* const tests = device.find("tests");
  const bool has_index =
      index != nullptr && index->is(Json::Kind::number) && index->number >= 0 && index->number < kMostDevices;
  if (!has_index || tests == nullptr)
    return at_line(device.line, "a device without its device_index or tests");
  if (device.text_of("type") == "cpu") return std::nullopt;
  GpuResults& gpu = sheet.gpus[static_cast<unsigned>(index->number)];
  for (const Json& test : tests->items) {
    const Json* const metrics = test.find("metrics");
    if (metrics == nullptr) return at_line(test.line, "a test without metrics");
    for (const Json& metric : metrics->items) {
      if (auto error = take_metric(gpu, device, test, metric)) return error;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Sheet> parse_clpeak_json(std::string_view text) {
  const Result<Json> root = parse_json(text);
  if (!root) return root.error();
  const Json* const devices = root->find("devices");
  if (root->text_of("schema") != "clpeak/run" || devices == nullptr) {
    return at_line(root->line, "no run of clpeak (schema clpeak/run)");
  }
  Sheet sheet;
  sheet.timestamp = time_of(root->text_of("generated_at"));
  for (const Json& device : devices->items) {
    if (auto error = take_device(sheet, device)) return *error;
  }
  return sheet;
}

}  // namespace gpumeter::import
