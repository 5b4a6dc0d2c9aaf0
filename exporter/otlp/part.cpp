#include "exporter/otlp/part.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/build_info.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/sources/sysfs.hpp"
#include "exporter/otlp/pusher.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::otlp {
namespace {

using options::check_optional_path;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

// The receiver's path for metrics.
constexpr std::string_view kPath = "/v1/metrics";
constexpr Duration kShortestInterval = std::chrono::seconds(1);
constexpr Duration kLongestTimeout = std::chrono::minutes(1);
// Of the attempts of one turn, without the last one's timeout. More follow in the next turn.
constexpr Nanoseconds kTurn = std::chrono::seconds(20);

/// Returns an empty text for an address without scheme or host.
std::string_view host_and_path(std::string_view endpoint) noexcept {
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) return {};
  endpoint.remove_prefix(endpoint.find("://") + 3);
  const bool is_plain = std::ranges::none_of(endpoint, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  return is_plain && !endpoint.starts_with('/') ? endpoint : std::string_view();
}

Complaint check_endpoint(const std::string& endpoint) {
  if (endpoint.empty() || !host_and_path(endpoint).empty()) return std::nullopt;
  return "must be a URL such as https://collector:4318, not \"" + printable(endpoint) + "\"";
}
Complaint check_interval(const Duration& interval) {
  if (interval >= kShortestInterval) return std::nullopt;
  return "must be at least 1s";
}
Complaint check_timeout(const Duration& timeout) {
  if (timeout > Duration{} && timeout <= kLongestTimeout) return std::nullopt;
  return "must be at most 1m, and not 0";
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::endpoint>("endpoint", Reload::applies, "URL of a receiver of OTLP over HTTP, such as `https://collector:4318`; `/v1/metrics` is added to one without a path. Empty: that of the variable `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`; without them, nothing is sent (docs/otlp.md).", checked<check_endpoint>),
    option<&Settings::interval>("interval", Reload::applies, "Time between two exports.", checked<check_interval>),
    option<&Settings::timeout>("timeout", Reload::applies, "Time that a request may take.", checked<check_timeout>),
    option<&Settings::headers>("headers", Reload::applies, "Further headers of each request, such as `{Authorization: Bearer TOKEN}`."),
    option<&Settings::compression>("compression", Reload::applies, "Compression of the requests."),
    option<&Settings::ca_file>("ca_file", Reload::applies, "Authorities of the receiver's certificate, PEM. Empty: the system's.", checked<check_optional_path>),
    option<&Settings::cert_file>("cert_file", Reload::applies, "Certificate to show to the receiver, PEM. Empty: none.", checked<check_optional_path>),
    option<&Settings::key_file>("key_file", Reload::applies, "Key of `cert_file`, PEM.", checked<check_optional_path>),
    option<&Settings::semantic_conventions>("semantic_conventions", Reload::applies, "Call series as OpenTelemetry's conventions for hardware do where these have a name (docs/otlp.md). false: all series have the names of the metrics page."),
    option<&Settings::series, &PageSelection::detail>("detail", Reload::applies, "Series that are sent, as `metrics.detail`."),
    option<&Settings::series, &PageSelection::include>("include", Reload::applies, "Series that are sent in any case, as `metrics.include`."),
    option<&Settings::series, &PageSelection::exclude>("exclude", Reload::applies, "Series that are not sent, as `metrics.exclude`."),
};
// clang-format on
constinit const options::Section kSection = options::section("otlp", kOptions);

/// Undoes %XX, as W3C's Baggage writes values.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const auto code = text.front() == '%' ? parse_number<unsigned char>(text.substr(1, 2), 16) : std::nullopt;
    const bool is_escaped = code && text.size() > 2;
    decoded += is_escaped ? static_cast<char>(*code) : text.front();
    text.remove_prefix(is_escaped ? 3 : 1);
  }
  return decoded;
}

/// "name=value,name=value" with values in percent-encoding.
std::map<std::string, std::string> pairs_of(std::string_view text) {
  std::map<std::string, std::string> pairs;
  while (!text.empty()) {
    std::string_view value = take_until(text, ',');
    const std::string_view name = trimmed(take_until(value, '='));
    if (!name.empty()) pairs.insert_or_assign(percent_decoded(name), percent_decoded(trimmed(value)));
  }
  return pairs;
}

/// The exporter's variables: one for metrics wins over one for all signals.
struct Exporter {
  const Variables& variables;
  std::string wrong = {};  ///< what is wrong with one of them

  std::string name_of(const std::string& name) const {
    std::string specific = "OTEL_EXPORTER_OTLP_METRICS_" + name;
    return variables(specific).empty() ? "OTEL_EXPORTER_OTLP_" + name : specific;
  }
  std::string value_of(const std::string& name) const { return variables(name_of(name)); }
  /// The receiver's URL by the configuration or a variable; empty: nothing names one.
  std::string url_of(const std::string& endpoint) {
    const bool has_path = host_and_path(endpoint).find('/') != std::string_view::npos;
    if (!endpoint.empty()) return has_path ? endpoint : endpoint + std::string(kPath);
    const std::string name = name_of("ENDPOINT");
    std::string url = variables(name);
    if (const Complaint complaint = check_endpoint(url)) wrong = name + " " + complaint->text;
    if (url.empty() || name.ends_with("METRICS_ENDPOINT")) return url;
    if (url.ends_with('/')) url.pop_back();
    return url + std::string(kPath);
  }
  void expect(const std::string& name, const std::string& supported) {
    const std::string value = value_of(name);
    if (!value.empty() && value != supported)
      wrong = name_of(name) + " must be " + supported + ", not \"" + printable(value) + "\"";
  }
  void take(const std::string& name, const std::string& milliseconds, options::CheckOf<Duration> check,
            Duration& to) {
    if (milliseconds.empty()) return;
    const Duration time(parse_number<unsigned>(milliseconds).value_or(0));
    if (const Complaint complaint = check(time)) {
      wrong = name + " (milliseconds) " + complaint->text;
    } else {
      to = time;
    }
  }
};

}  // namespace

Result<Settings> with_variables(Settings settings, const Variables& variables) {
  const Settings defaults;
  Exporter exporter{variables};
  settings.endpoint = exporter.url_of(settings.endpoint);
  if (settings.endpoint.empty()) return settings;
  exporter.expect("PROTOCOL", "http/protobuf");
  exporter.expect("TEMPORALITY_PREFERENCE", "cumulative");
  if (exporter.value_of("COMPRESSION") == "none") {
    settings.compression = Compression::none;
  } else {
    exporter.expect("COMPRESSION", "gzip");
  }
  if (settings.headers.empty()) settings.headers = pairs_of(exporter.value_of("HEADERS"));
  if (settings.ca_file.empty()) settings.ca_file = exporter.value_of("CERTIFICATE");
  if (settings.cert_file.empty()) settings.cert_file = exporter.value_of("CLIENT_CERTIFICATE");
  if (settings.key_file.empty()) settings.key_file = exporter.value_of("CLIENT_KEY");
  if (settings.timeout == defaults.timeout)
    exporter.take(exporter.name_of("TIMEOUT"), exporter.value_of("TIMEOUT"), check_timeout, settings.timeout);
  constexpr const char* kInterval = "OTEL_METRIC_EXPORT_INTERVAL";
  if (settings.interval == defaults.interval)
    exporter.take(kInterval, variables(kInterval), check_interval, settings.interval);
  if (!exporter.wrong.empty()) return Error(exporter.wrong);
  return settings;
}

Attributes resource_of(const std::string& host, const std::string& machine_id, const Variables& variables) {
  const std::string node = variables("K8S_NODE_NAME");
  Attributes attributes = {{"service.name", "gpumeter"},
                           {"service.version", build::kVersion},
                           {"service.instance.id", node.empty() ? host : node},
                           {"host.name", host},
                           {"host.id", machine_id},
                           {"k8s.node.name", node}};
  for (auto& [name, value] : pairs_of(variables("OTEL_RESOURCE_ATTRIBUTES")))
    attributes.insert_or_assign(name, std::move(value));
  if (std::string name = variables("OTEL_SERVICE_NAME"); !name.empty()) attributes["service.name"] = name;
  std::erase_if(attributes, [](const auto& attribute) { return attribute.second.empty(); });
  return attributes;
}

namespace {

std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets one
  return value == nullptr ? "" : value;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

push::Target target_of(const Settings& settings) {
  push::Target target{settings.endpoint, settings.headers, settings.compression == Compression::gzip,
                      settings.timeout,  settings.ca_file, settings.cert_file,
                      settings.key_file};
  target.headers.insert_or_assign("Content-Type", "application/x-protobuf");
  return target;
}

push::Verdict judge(std::string_view body, bool is_taken) {
  const Result<Answer> answer = decode_answer(body, is_taken);
  // Proxies answer with texts of their own.
  if (!answer) return {0, is_taken ? answer.error().message() : ""};
  constexpr std::size_t kLongest = 500;
  const std::int64_t rejected = std::max<std::int64_t>(answer->rejected, 0);
  return {static_cast<std::size_t>(rejected), std::string(first_bytes(answer->message, kLongest))};
}

class Otlp final : public Part {
 public:
  Otlp(const PartContext& context, const Settings& settings, std::shared_ptr<push::Pusher> pusher)
      : context_(context),
        interval_(settings.interval),
        encoder_(context.store, settings.series,
                 resource_of(host_name(), sysfs::read_text("/etc/machine-id"), variable),
                 settings.semantic_conventions),
        pusher_(std::move(pusher)),
        series_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds now) override {
    if (now >= next_) {
      for (Request& request : encoder_.encode({now, context_.clock.realtime()}))
        pusher_->add({std::move(request.body), request.points});
      next_ = now + interval_;
    }
    pusher_->send(std::min(next_, now + kTurn));
    publish();
    const Nanoseconds due = std::min(next_, pusher_->due());
    return std::max(due - context_.clock.monotonic(), Nanoseconds{});
  }

 private:
  void publish();

  const PartContext context_;
  const Nanoseconds interval_;
  Encoder encoder_;
  const std::shared_ptr<push::Pusher> pusher_;
  SeriesList series_;
  Nanoseconds next_{};  ///< export
  bool is_up_ = true;   ///< as the log has it
};

void Otlp::publish() {
  const push::Figures& figures = pusher_->figures();
  const bool is_up = figures.problem.empty();
  if (is_up != std::exchange(is_up_, is_up)) {
    if (is_up) {
      context_.log.info("the receiver of OTLP takes all series again");
    } else {
      context_.log.warn("the receiver of OTLP does not take all series", {{"error", figures.problem}});
    }
  }
  const std::pair<const char*, std::uint64_t> outcomes[] = {
      {"sent", figures.sent}, {"rejected", figures.rejected}, {"dropped", figures.dropped}};
  series_.add(self_catalog::otlp_up, {}, is_up ? 1 : 0);
  for (const auto& [outcome, points] : outcomes)
    series_.add(self_catalog::otlp_points, {{"outcome", outcome}}, static_cast<double>(points));
  series_.add(self_catalog::otlp_queue, {}, static_cast<double>(figures.queued_bytes));
  series_.commit(context_.clock.monotonic());
}

std::shared_ptr<Part> open(const PartContext& context) {
  const Result<Settings> settings = with_variables(context.settings_of<Settings>(), variable);
  if (!settings) {
    context.log.error("nothing is sent by OTLP", {{"error", settings.error().message()}});
    return nullptr;
  }
  if (settings->endpoint.empty()) return nullptr;
  auto pusher = push::Pusher::open(target_of(*settings), judge, context.clock);
  if (!pusher) {
    context.log.error("nothing is sent by OTLP: libcurl is missing", {{"error", pusher.error().message()}});
    return nullptr;
  }
  return std::make_shared<Otlp>(context, *settings, *std::move(pusher));
}

constexpr const MetricDescriptor* kFamilies[] = {&self_catalog::otlp_up, &self_catalog::otlp_points,
                                                 &self_catalog::otlp_queue};

}  // namespace

const PartEntry kPart = {.name = "otlp",
                         .options = &kSection,
                         .families = kFamilies,
                         .deadline = kTurn + kLongestTimeout + std::chrono::seconds(10),
                         .reads_store = true,
                         .open = open};

}  // namespace gpumeter::otlp
