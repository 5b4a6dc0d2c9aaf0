#include "programs/servers/watch.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/log.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/jobs/model/buckets.hpp"
#include "exporter/store/store.hpp"
#include "programs/client/http.hpp"

namespace gpumeter::servers {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000);
constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // 64 engines with 100 histograms each are 4 MiB
constexpr long kOk = 200;

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string key_of(const Target& target) {
  return (is_loopback(target.host) ? "localhost" : target.host) + ":" + target.port;
}

/// One GET, without redirects.
Result<std::string> fetch(const Target& target) {
  const bool is_ip6 = target.host.find(':') != std::string::npos;
  const std::string host = is_ip6 ? "[" + target.host + "]" : target.host;
  const std::string url = (target.is_tls ? "https://" : "http://") + host + ":" + target.port;
  client::HttpClient client({url, host}, {}, {kPatience, kPatience, kMostBytes}, "gpumeter");
  Result<client::HttpClient::Answer> answer = client.get(target.path);
  if (client.was_refused()) return Error("connection refused");
  if (!answer) return answer.error();
  if (answer->status != kOk) return Error("HTTP status " + std::to_string(answer->status));
  return std::move(answer->body);
}

void say(Log& log, const Watch::Notice& notice) {
  if (notice.error.empty()) return log.info(notice.message + " is read", {{"server", notice.server}});
  log.warn(notice.message + " is not read; gpumeter retries",
           {{"server", notice.server}, {"error", notice.error}});
}

std::shared_ptr<Part> open(const PartContext& context) {
  const auto& settings = context.settings_of<Settings>();
  if (!settings.enabled && settings.targets.empty()) return nullptr;
  return std::make_shared<Watch>(
      context, Watch::Outside{fetch, [&log = context.log](const auto& notice) { say(log, notice); }});
}

}  // namespace

const PartEntry kPart = {.name = "servers", .options = &kSection, .open = open};

Watch::Watch(const PartContext& context, Outside outside)
    : settings_(context.settings_of<Settings>()),
      interval_(context.interval),
      machine_(context.machine),
      outside_(std::move(outside)),
      kin_(context.paths.procfs),
      energy_(kin_),
      series_(context.store.attach({}, context.name)) {
  if (!settings_.enabled) return;
  finder_.emplace(settings_, Finder::Roots{context.paths.procfs, context.paths.cgroups()}, kin_,
                  outside_.listeners);
}

Nanoseconds Watch::turn(Nanoseconds now) {
  kin_.begin_pass(now);
  const auto devices = machine_.uses.get();
  for (auto& [key, server] : servers_) server.is_present = false;
  for (const Target& target : settings_.targets) note(target, {}, true);
  find_places(*devices);
  std::erase_if(servers_, [](const auto& entry) { return !entry.second.is_present; });
  std::vector<Holder> holders;
  for (auto& [key, server] : servers_) {
    read(server);
    if (!server.kind.empty()) holders.push_back({key, server.place.pid, server.place.group});
  }
  energy_.update(holders, *devices);
  for (const auto& [key, server] : servers_) write(server);
  series_.commit(now);
  return interval_;
}

void Watch::note(const Target& target, const Place& place, bool is_named) {
  const std::string key = key_of(target);
  if (servers_.size() >= kMostServers && !servers_.contains(key)) return;
  Server& server = servers_[key];
  const bool is_repeated = std::exchange(server.is_present, true);
  if (!is_repeated) server.target = target;
  if (!is_repeated) server.is_named = is_named;
  server.place = place;
}

void Watch::find_places(const jobs::DeviceUses& devices) {
  if (!finder_) return;
  const Result<std::vector<Place>> places = finder_->find(devices);
  const std::string error = places ? "" : places.error().message();
  if (error != std::exchange(find_error_, error))
    outside_.say({"listening ports of GPU processes", "", error});
  if (!places) return;
  for (const Place& place : *places) {
    const std::string port = std::to_string(place.port);
    note({.host = place.address, .port = port, .text = place.address + ":" + port}, place, false);
  }
}

void Watch::read(Server& server) {
  const Result<std::string> page = outside_.fetch(server.target);
  server.reading = page ? read_page(*page) : std::nullopt;
  const std::string error = !page             ? page.error().message()
                            : !server.reading ? "the page is not that of a known model server"
                                              : "";
  if (server.reading) {
    server.kind = server.reading->kind;
    server.model = server.reading->model;
  }
  if (error != std::exchange(server.error, error)) {
    outside_.say({"metrics page of a model server", server.target.text, error});
  }
}

void Watch::write(const Server& server) {
  if (server.kind.empty() && !server.is_named) return;
  const std::string& host = server.target.host;
  const Labels labels{
      {"server", server.kind}, {"port", server.target.port}, {"host", is_loopback(host) ? "" : host}};
  series_.add(catalog::ml_server_up, labels, server.reading ? 1 : 0);
  if (!server.kind.empty()) write_facts(server, labels);
  if (server.reading) write_figures(*server.reading, labels);
}

void Watch::write_facts(const Server& server, const Labels& labels) {
  const ServerEnergy::Account& account = energy_.of(key_of(server.target));
  if (account.joules) series_.add(catalog::ml_server_energy, labels, *account.joules);
  const cgroup::Attribution owner = cgroup::attribution_of(cgroup::read_path(server.place.group));
  const bool is_owned = !owner.workload.empty();
  const Labels facts = labels.with({{"model", server.model},
                                    {"kind", is_owned ? std::string(cgroup::to_string(owner.kind)) : ""},
                                    {"workload", owner.workload}});
  for (const ServerEnergy::Gpu& gpu : account.gpus) {
    const Labels one = facts.with({{"gpu", std::to_string(gpu.index)}, {"uuid", gpu.uuid}});
    series_.add(catalog::ml_server_info, one, 1);
  }
  if (account.gpus.empty()) series_.add(catalog::ml_server_info, facts, 1);
}

void Watch::write_figures(const ServerReading& reading, const Labels& labels) {
  const auto add = [&](const MetricDescriptor& family, const Labels& of, std::optional<double> value) {
    if (value) series_.add(family, of, *value);
  };
  add(catalog::ml_server_tokens, labels.with({{"kind", "input"}}), reading.input_tokens);
  add(catalog::ml_server_tokens, labels.with({{"kind", "output"}}), reading.output_tokens);
  add(catalog::ml_server_requests, labels, reading.requests);
  add(catalog::ml_server_requests_running, labels, reading.running);
  add(catalog::ml_server_requests_waiting, labels, reading.waiting);
  add(catalog::ml_server_cache_utilization, labels, reading.cache_ratio);
  if (reading.first_token) write_histogram(*reading.first_token, labels);
}

// Views need the buckets first, then the sum, then the count.
void Watch::write_histogram(const ServerHistogram& histogram, const Labels& labels) {
  const MetricDescriptor& family = catalog::ml_server_time_to_first_token;
  for (const ServerHistogram::Bucket& bucket : histogram.buckets) {
    series_.add(family, labels.with({{"le", jobs::bound_text(bucket.bound)}}), bucket.count,
                SeriesPart::bucket);
  }
  series_.add(family, labels.with({{"le", "+Inf"}}), histogram.count, SeriesPart::bucket);
  series_.add(family, labels, histogram.sum, SeriesPart::sum);
  series_.add(family, labels, histogram.count, SeriesPart::count);
}

}  // namespace gpumeter::servers
