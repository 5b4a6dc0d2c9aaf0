#include "config/config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "base/log.hpp"
#include "base/options.hpp"
#include "base/paths.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/setup.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/text/selection.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter::config {
namespace {

using Values = std::vector<std::string>;

TEST(Keys, HaveAPathOfTheirOwnAndAFullStop) {
  std::set<std::string_view> paths;
  const std::vector<Key> all = keys(schema());
  for (const Key& key : all) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(key.help.ends_with('.')) << key.path;
    EXPECT_EQ(find_key(all, key.path), &key);
  }
  EXPECT_EQ(find_key(all, "web"), nullptr);
}

TEST(Keys, CanBeSetFromOutsideOfTheFile) {
  Config config;
  EXPECT_EQ(set(keys(schema()), config, "web.listen", Values{":1", ":2"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"warn"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"false"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "workloads.processes", Values{"true"}), std::nullopt);
  Config expected;
  expected.edit<HttpSettings>().listen = {":1", ":2"};
  expected.edit<Logging>().level = LogLevel::warn;
  expected.edit<WorkloadOptions>() = {false, true};
  EXPECT_EQ(config, expected);
}

TEST(Keys, StayAsTheyAreWhereAValueIsRefused) {
  Config config;
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"loud"})->text,
            "must be debug, info, warn or error, not \"loud\"");
  EXPECT_EQ(set(keys(schema()), config, "web.listen", Values{":1", "x"})->text,
            "must be host:port, such as localhost:10478, [::1]:10478 or :10478, unix:/path or "
            "vsock:CID:PORT, not \"x\"");
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"info", "warn"})->text, "must be one value");
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"auto"})->text,
            "must be true or false, not \"auto\"");
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"1"})->text,
            "must be true or false, not \"1\"");
  EXPECT_EQ(set(keys(schema()), config, "log.loudness", Values{"1"})->text,
            "is not a key of the configuration");
  EXPECT_EQ(config, Config{});
}

TEST(Keys, SayWhichChangesNeedARestart) {
  Config wanted;
  wanted.edit<HttpSettings>().listen = {":1"};
  wanted.edit<Paths>().state = "/x";
  wanted.edit<WorkloadOptions>().processes = true;
  wanted.edit<DeviceLabels>() = {.vendor = false};
  wanted.edit<SamplingIntervals>().fast = Duration(2'000);
  wanted.edit<Logging>().level = LogLevel::debug;
  wanted.edit<DeviceOptions>().names = {{"a", "b"}};
  wanted.collectors["amd"].enabled = Enabled::off;
  wanted.edit<jobs::Settings>().users = {"alice"};
  wanted.edit<jobs::Limits>().series = 1;
  wanted.edit<jobs::Settings>().sockets.datagram = "/x";
  EXPECT_EQ(restart_needed(schema(), Config{}, wanted),
            (Values{"web.listen", "device_labels", "workloads.processes", "paths.state", "jobs.socket"}));
  EXPECT_EQ(restart_needed(schema(), wanted, wanted), Values{});
}

using Kind = OptionSchema::Kind;

TEST(ConfigurationMarkdown, HasALineForEveryKey) {
  const std::string page = configuration_markdown(schema());
  for (const Key& key : keys(schema())) {
    EXPECT_NE(page.find("\n| `" + std::string(key.path) + "` | " + std::string(key.type) + " | `" +
                        key.show(defaults(schema())) + "` | " +
                        (key.reload == options::Reload::applies ? "yes" : "no") + " | " +
                        std::string(key.help) + " |\n"),
              std::string::npos)
        << key.path;
  }
}

TEST(ConfigurationMarkdown, EndsWithTheCollectors) {
  const Schema known = {.collectors = {{"toy",
                                        {{"size", Kind::integer, "3", "a|b."},
                                         {"name", Kind::text, "", "Its name."},
                                         {"events", Kind::list, "", "What happens."}}}}};
  const std::string page = configuration_markdown(known);
  EXPECT_EQ(page.substr(page.find("\n## collectors.toy")),
            "\n## collectors.toy\n"
            "\n"
            "| key | type | default | reload | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `collectors.toy.enabled` | auto, true or false | `auto` | yes | auto: enabled if the "
            "collector is enabled "
            "by default. |\n"
            "| `collectors.toy.size` | whole number | `3` | yes | a\\|b. |\n"
            "| `collectors.toy.name` | text | `\"\"` | yes | Its name. |\n"
            "| `collectors.toy.events` | list of texts | `[]` | yes | What happens. |\n");
}

TEST(Suggest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"listen", "config_file", "max_requests", "fast"};
  EXPECT_EQ(options::nearest("lissen", words), "listen");
  EXPECT_EQ(options::nearest("config-file", words), "config_file");
  EXPECT_EQ(options::nearest("maxrequest", words), "max_requests");
  EXPECT_EQ(options::nearest("fst", words), "fast");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  const std::vector<std::string> words = {"listen", "fast", "on"};
  EXPECT_EQ(options::nearest("certificate", words), "");
  EXPECT_EQ(options::nearest("xy", words), "");
  EXPECT_EQ(options::nearest("", words), "");
  EXPECT_EQ(options::nearest(std::string(65, 'l'), words), "");
  EXPECT_EQ(options::nearest("listen", {}), "");
}

TEST(Suggest, EnumeratesWords) {
  EXPECT_EQ(options::enumerate(std::vector<std::string>{}, "or"), "");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a"}, "or"), "a");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b"}, "or"), "a or b");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b", "c"}, "and"), "a, b and c");
}

using Kind = OptionSchema::Kind;

/// The sections of the daemon, and collectors of this test.
const Schema& known_keys() {
  static const Schema kSchema = {.sections = schema().sections,
                                 .collectors = {
                                     {"amd", {}},
                                     {"simulated",
                                      {{"devices", Kind::integer, "2", "How many."},
                                       {"duty", Kind::number, "0.37", "Share of time busy."},
                                       {"period", Kind::duration, "7.3s", "Of the wave."},
                                       {"mood", Kind::text, "", "How it feels."},
                                       {"events", Kind::list, "", "What happens."}}},
                                 }};
  return kSchema;
}

Config good(const std::string& yaml) {
  auto loaded = load_text(yaml, "gpumeter.yaml", known_keys());
  if (!loaded.problems.empty()) ADD_FAILURE() << to_string(loaded.problems.front());
  return std::move(loaded.config);
}

/// All problems, one a line; empty if the text is a valid configuration.
std::string problems(const Loaded& loaded) {
  std::string text;
  for (const Problem& problem : loaded.problems) text += to_string(problem) + "\n";
  return text;
}
std::string problems(const std::string& yaml) { return problems(load_text(yaml, "g.yaml", known_keys())); }

TEST(Load, GivesDefaultsWhereTheFileSaysNothing) {
  EXPECT_EQ(good(""), defaults(known_keys()));
  EXPECT_EQ(good("# nothing\n"), defaults(known_keys()));
  EXPECT_EQ(good("web:\nsampling: ~\ncollectors:\njobs:\n"), defaults(known_keys()));
  EXPECT_EQ(good("log: {level: }\ncollectors: {amd: , simulated: {duty: }}\njobs: {}\n"),
            defaults(known_keys()));
}

TEST(Load, FillsInTheCollectorsOwnDefaults) {
  const Config config = good("");
  ASSERT_EQ(config.collectors.size(), 2U);
  EXPECT_EQ(config.collectors.at("amd"), CollectorConfig{});
  const std::map<std::string, std::vector<std::string>> expected = {
      {"devices", {"2"}}, {"duty", {"0.37"}}, {"period", {"7.3s"}}, {"mood", {""}}, {"events", {}}};
  EXPECT_EQ(config.collectors.at("simulated").options, expected);
}

TEST(Load, ReadsEveryKey) {
  const Config config = good(R"(
web:
  listen: [":10478", "[::1]:1"]
  config_file: ""
  telemetry_path: /
  max_requests: 0
sampling: {fast: 500ms, normal: 5s, slow: 1m, floor: 100ms}
device_labels: [serial, name]
devices:
  expected: {nvidia: 8, amd: 1}
  forget: 10m
  names: {"0000:0c:00.0": left, GPU-1: 2}
paths: {sysfs: /a, procfs: /b, state: /c}
log: {level: debug, format: json}
collectors:
  amd: {enabled: false}
  simulated: {enabled: true, devices: 8, duty: 1, period: 500ms, mood: yes, events: [hang 1 after 5s, "b"]}
)");
  Config expected = defaults(known_keys());
  expected.edit<HttpSettings>() = {{":10478", "[::1]:1"}, "", "/", 0};
  expected.edit<SamplingIntervals>() = {Duration(500), Duration(5'000), Duration(60'000), Duration(100)};
  expected.edit<DeviceLabels>() = {.vendor = false, .model = false, .serial = true, .name = true};
  expected.edit<DeviceOptions>() = {
      {{{"amd", 1}, {"nvidia", 8}}}, std::chrono::minutes(10), {{"0000:0c:00.0", "left"}, {"GPU-1", "2"}}};
  expected.edit<Paths>() = {"/a", "/b", "/c"};
  expected.edit<Logging>() = {LogLevel::debug, LogFormat::json};
  expected.collectors["amd"].enabled = Enabled::off;
  expected.collectors["simulated"] = {Enabled::on,
                                      {{"devices", {"8"}},
                                       {"duty", {"1"}},
                                       {"period", {"500ms"}},
                                       {"mood", {"yes"}},
                                       {"events", {"hang 1 after 5s", "b"}}}};
  EXPECT_EQ(config, expected);
}

TEST(Load, ReadsTheExpectedDevicesAsANumberOrByVendor) {
  using Counts = std::map<std::string, unsigned>;
  const auto expected = [](const std::string& value) {
    return good("devices: {expected: " + value + "}").of<DeviceOptions>().expected.by_vendor;
  };
  EXPECT_EQ(expected("8"), (Counts{{"any", 8}}));
  EXPECT_EQ(expected("{nvidia: 8, amd: 1}"), (Counts{{"amd", 1}, {"nvidia", 8}}));
  EXPECT_EQ(expected("{}"), Counts{});
  for (const char* value : {"8", "{amd: 1, nvidia: 8}", "{}"}) {
    const Config config = good("devices: {expected: " + std::string(value) + "}");
    const std::vector<Key> all = keys(known_keys());
    EXPECT_EQ(find_key(all, "devices.expected")->show(config), value);
  }
  const std::string must = "must be a whole number, or a map of numbers by vendor such as {nvidia: 8}, not ";
  EXPECT_EQ(problems("devices: {expected: many}"), "g.yaml:1: devices.expected: " + must + "\"many\"\n");
  EXPECT_EQ(problems("devices: {expected: [8]}"), "g.yaml:1: devices.expected: " + must + "a list\n");
  EXPECT_EQ(problems("devices: {expected: {nvida: 8}}"),
            "g.yaml:1: devices.expected: must name vendors out of amd, apple, arm, aws, broadcom, intel, "
            "nvidia, qualcomm, simulated, tenstorrent, vivante and other, not "
            "\"nvida\"\n");
  EXPECT_EQ(problems("devices: {expected: {amd: -1}}"),
            "g.yaml:1: devices.expected: the value of \"amd\" must be a whole number from 0 to 1000000, not "
            "\"-1\"\n");
}

TEST(Load, ForgetsMissingDevicesNeverOrAfterATime) {
  EXPECT_EQ(good("").of<DeviceOptions>().forget, std::nullopt);
  EXPECT_EQ(good("devices: {forget: never}").of<DeviceOptions>().forget, std::nullopt);
  EXPECT_EQ(good("devices: {forget: 24h}").of<DeviceOptions>().forget, std::chrono::hours(24));
  EXPECT_EQ(problems("devices: {forget: soon}"),
            "g.yaml:1: devices.forget: must be never or a duration such as 500ms, 10s or 1h30m, not "
            "\"soon\"\n");
}

TEST(Load, TheStandardPageIsTheDefault) {
  EXPECT_EQ(good("").of<PageSelection>().detail, MetricsDetail::standard);
  EXPECT_EQ(good("metrics: {include: [gpu_up]}").of<PageSelection>().detail, MetricsDetail::standard);
  EXPECT_EQ(good("metrics: {detail: full}").of<PageSelection>().detail, MetricsDetail::full);
}

TEST(Load, NamesTheLineOfAPatternThatIsNone) {
  EXPECT_EQ(good("metrics: {detail: full, exclude: ['gpu_link_*{link=\"0\"}']}").of<PageSelection>(),
            (PageSelection{MetricsDetail::full, {}, {*SeriesPattern::parse("gpu_link_*{link=\"0\"}")}}));
  EXPECT_EQ(problems("metrics:\n  include:\n    - gpu_up\n    - gpu_xid{31}\n"),
            "g.yaml:4: metrics.include: must be the name of a family, such as gpu_link_* or "
            "gpu_xid_errors_total{xid=\"31\"}, not \"gpu_xid{31}\"\n");
  EXPECT_EQ(problems("metrics: {detail: some}"),
            "g.yaml:1: metrics.detail: must be standard or full, not \"some\"\n");
}

TEST(Load, PodLabelsMustStayDifferentAndBeNames) {
  EXPECT_EQ(problems("nccl: {enabled: true, users: [ann, \"1001\"], oldest: 2.30.1}"), "");
  EXPECT_EQ(problems("nccl: {interval: 29s}"),
            "g.yaml:1: nccl.interval: must be at least 30s: a query is work for all processes of the job\n");
  EXPECT_EQ(problems("nccl: {port: 65536}"), "g.yaml:1: nccl.port: must be from 1 to 65535\n");
  EXPECT_EQ(
      problems("nccl: {inspector: /var/log/nccl, inspector_interval: 60s, flight_recorder: [/a/rank_, /b/]}"),
      "");
  EXPECT_EQ(problems("nccl: {inspector: logs}").substr(0, 29), "g.yaml:1: nccl.inspector: mus");
  EXPECT_EQ(
      problems("nccl: {inspector_interval: 10s}"),
      "g.yaml:1: nccl.inspector_interval: must be at least 30s: NCCL Inspector does not write Prometheus "
      "files more often\n");
  EXPECT_EQ(problems("nccl: {flight_recorder: [trace_rank_]}"),
            "g.yaml:1: nccl.flight_recorder: must have absolute paths, such as "
            "\"/var/log/torch/trace_rank_\", not \"trace_rank_\"\n");
  EXPECT_EQ(problems("nccl: {flight_recorder: [/a/rank_, /a/rank_]}"),
            "g.yaml:1: nccl.flight_recorder: must list each prefix once, not \"/a/rank_\" twice\n");
  for (const std::string version : {"2.29.1", "2.9.9", "2.30", "2.30.x", "1.99.99"}) {
    EXPECT_EQ(problems("nccl: {oldest: " + version + "}"),
              "g.yaml:1: nccl.oldest: must be a version from 2.29.2 on, not \"" + version + "\"\n");
  }
  EXPECT_EQ(problems("kubernetes: {labels: [team, app.kubernetes.io/name]}"), "");
  EXPECT_EQ(problems("kubernetes: {labels: [a.b, a/b]}"),
            "g.yaml:1: kubernetes.labels: must not have both \"a.b\" and \"a/b\": both are exported as "
            "k8s_label_a_b\n");
  EXPECT_EQ(problems("kubernetes: {labels: [\"*\"]}"),
            "g.yaml:1: kubernetes.labels: must have names of Kubernetes' labels, such as "
            "app.kubernetes.io/name, not \"*\"\n");
}

TEST(Load, NamesUnknownKeysAndWhatWasMeant) {
  EXPECT_EQ(problems("web:\n  lissen: []\n"),
            "g.yaml:2: web.lissen: unknown key; did you mean web.listen?\n");
  EXPECT_EQ(problems("web: {tls_certificate: x}"),
            "g.yaml:1: web.tls_certificate: unknown key; web has config_file, listen, max_requests and "
            "telemetry_path\n");
  EXPECT_EQ(problems("wed: {}"), "g.yaml:1: wed: unknown key; did you mean web?\n");
  EXPECT_EQ(
      problems("<<: {}"),
      "g.yaml:1: <<: unknown key; the file has allocations, collectors, containers, device_labels, "
      "devices, jobs, "
      "kernel, kubernetes, log, machine, metrics, nccl, otlp, pages, paths, profiles, replay, sampling, "
      "servers, web and "
      "workloads\n");
  EXPECT_EQ(problems("jobs: {listen: x}"),
            "g.yaml:1: jobs.listen: unknown key; jobs has enabled, limits, mllog, socket, socket_mode, "
            "stream_socket and users\n");
  EXPECT_EQ(problems("jobs:\n  limits:\n    seres: 1\n"),
            "g.yaml:3: jobs.limits.seres: unknown key; did you mean jobs.limits.series?\n");
  EXPECT_EQ(problems("collectors: {nvidia: {}}"),
            "g.yaml:1: collectors.nvidia: unknown collector; collectors has amd and simulated\n");
  EXPECT_EQ(
      problems("collectors:\n  simulated:\n    device: 3\n"),
      "g.yaml:3: collectors.simulated.device: unknown key; did you mean collectors.simulated.devices?\n");
  EXPECT_EQ(problems("\"a\\n\\e[1m\": 1\n").substr(0, 23), "g.yaml:1: a??[1m: unkno");
}

TEST(Load, NamesDuplicateKeysWithBothLines) {
  EXPECT_EQ(problems("log:\n  level: info\n  level: debug\n"),
            "g.yaml:3: log.level: is set twice, first on line 2; keep one of them\n");
  EXPECT_EQ(problems("log: {}\nweb: {}\nlog: {}\n"),
            "g.yaml:3: log: is set twice, first on line 1; keep one of them\n");
  EXPECT_EQ(problems("devices: {names: {a: x,\n a: y}}"),
            "g.yaml:2: devices.names.a: is set twice, first on line 1; keep one of them\n");
}

TEST(Load, NamesWrongTypes) {
  EXPECT_EQ(problems("- web"), "g.yaml:1: must be a map of keys, not a list\n");
  EXPECT_EQ(problems("web: on"), "g.yaml:1: web: must be a map of keys, not \"on\"\n");
  EXPECT_EQ(problems("collectors: [amd]"), "g.yaml:1: collectors: must be a map of keys, not a list\n");
  EXPECT_EQ(problems("collectors: {amd: true}"),
            "g.yaml:1: collectors.amd: must be a map of keys, not \"true\"\n");
  EXPECT_EQ(problems("web: {listen: \":1\"}"),
            "g.yaml:1: web.listen: must be a list, such as [\"...\"], not the text \":1\"\n");
  EXPECT_EQ(problems("web: {listen: [\":1\", ]}\nlog: {level: [info]}\n"),
            "g.yaml:2: log.level: must be debug, info, warn or error, not a list\n");
  EXPECT_EQ(problems("web: {listen: [\":1\", ~]}"),
            "g.yaml:1: web.listen: item 2 must be a text, not empty\n");
  EXPECT_EQ(problems("web: {telemetry_path: {a: b}}"),
            "g.yaml:1: web.telemetry_path: must be a text, not a map of keys\n");
  EXPECT_EQ(problems("web: {max_requests: \"40\"}"),
            "g.yaml:1: web.max_requests: must be a whole number from 0 to 1000000, not the text \"40\"\n");
  EXPECT_EQ(problems("devices: {names: [a]}"),
            "g.yaml:1: devices.names: must be a map of keys to texts, not a list\n");
  EXPECT_EQ(problems("devices: {names: {a: }}"),
            "g.yaml:1: devices.names: the value of \"a\" must be a text, not empty\n");
}

TEST(Load, NamesBadValues) {
  const char* const kAddress =
      "g.yaml:1: web.listen: must be host:port, such as localhost:10478, [::1]:10478 or :10478, "
      "unix:/path or vsock:CID:PORT, not ";
  for (const char* bad : {"10478", "::1:10478", "[::1]", ":", ":65536", "a b:1", "http://x:1", "x:1x", "[]:1",
                          "300.1.1.1:1", "1.2.3:1"}) {
    EXPECT_EQ(problems("web: {listen: ['" + std::string(bad) + "']}"),
              kAddress + ("\"" + std::string(bad) + "\"\n"));
  }
  EXPECT_EQ(problems("web: {listen: [x, ':1', y, ':1']}"),
            "g.yaml:1: web.listen: must list each address once, not \":1\" twice and must be host:port, such "
            "as localhost:10478, [::1]:10478 or :10478, unix:/path or vsock:CID:PORT, not \"x\" or \"y\"\n");
  EXPECT_EQ(problems("web: {listen: []}"),
            "g.yaml:1: web.listen: must have at least one address, such as \"localhost:10478\"\n");
  EXPECT_EQ(problems("web: {listen: [\":1\", \":1\"]}"),
            "g.yaml:1: web.listen: must list each address once, not \":1\" twice\n");
  EXPECT_EQ(problems("web: {listen: ['unix:/run/x.sock']}"), "");
  EXPECT_EQ(problems("web: {listen: ['unix:x']}"),
            "g.yaml:1: web.listen: must have an absolute path after unix:, not \"unix:x\"\n");
  EXPECT_EQ(problems("web: {listen: ['unix:/" + std::string(107, 'x') + "']}"),
            "g.yaml:1: web.listen: must have at most 107 bytes, as the address of a socket\n");
  EXPECT_EQ(problems("web: {telemetry_path: metrics}"),
            "g.yaml:1: web.telemetry_path: must be a path such as /metrics, not \"metrics\"\n");
  EXPECT_EQ(
      problems("web: {telemetry_path: /-/healthy}"),
      "g.yaml:1: web.telemetry_path: must not begin with /-/ or /api/, which are reserved for other pages\n");
  EXPECT_EQ(problems("web:\n  config_file: web.yml\n"),
            "g.yaml:2: web.config_file: must be a path that begins with /, not \"web.yml\"\n");
  EXPECT_EQ(problems("web: {max_requests: -1}"),
            "g.yaml:1: web.max_requests: must be a whole number from 0 to 1000000, not \"-1\"\n");
  EXPECT_EQ(problems("paths: {state: gpumeter}"),
            "g.yaml:1: paths.state: must be a path that begins with /, not \"gpumeter\"\n");
  EXPECT_EQ(problems("log: {format: JSON}"),
            "g.yaml:1: log.format: must be auto, logfmt or json, not \"JSON\"\n");
  EXPECT_EQ(problems("device_labels: [vendor, uuid]"),
            "g.yaml:1: device_labels: must be a list of vendor, model, pci_address, serial or name; gpu and "
            "uuid are "
            "always present; not \"uuid\"\n");
  EXPECT_EQ(problems("device_labels: [name, name]"),
            "g.yaml:1: device_labels: must list each label once, not \"name\" twice\n");
  EXPECT_EQ(problems("devices: {names: {\"\": x}}"),
            "g.yaml:1: devices.names: must map a uuid or PCI address to a name; one of them is empty\n");
}

TEST(Load, WantsPciAddressesAsDevicesHaveThem) {
  const std::string right = "g.yaml:1: devices.names: must spell the PCI address as \"0000:0c:00.0\", not ";
  EXPECT_EQ(problems("devices: {names: {\"0C:00.0\": x}}"), right + "\"0C:00.0\"\n");
  EXPECT_EQ(problems("devices: {names: {\"0000:0C:00.0\": x}}"), right + "\"0000:0C:00.0\"\n");
  EXPECT_EQ(problems("devices: {names: {\"00000000:0c:00.0\": x}}"), right + "\"00000000:0c:00.0\"\n");
  EXPECT_EQ(problems("devices: {names: {\"0000:0c:00.0\": x, GPU-0C: y, \"0001:0c:00.0\": z}}"), "");
}

TEST(Load, NamesBadDurations) {
  EXPECT_EQ(problems("sampling: {fast: 1}"),
            "g.yaml:1: sampling.fast: must have a unit, such as 1s or 1ms, not be the bare number 1\n");
  EXPECT_EQ(problems("sampling: {fast: often}"),
            "g.yaml:1: sampling.fast: must be a duration such as 500ms, 10s or 1h30m, not \"often\"\n");
  EXPECT_EQ(problems("sampling: {fast: 2h}"), "g.yaml:1: sampling.fast: must be from 10ms to 1h\n");
  EXPECT_EQ(problems("sampling: {floor: 1ms}"), "g.yaml:1: sampling.floor: must be from 10ms to 1h\n");
}

TEST(Load, HoldsEveryTierToTheFloor) {
  EXPECT_EQ(problems("sampling:\n  fast: 100ms\n"),
            "g.yaml:2: sampling.fast: must not be below sampling.floor, which is 1s; it is 100ms\n");
  EXPECT_EQ(problems("sampling:\n  floor: 15s\n  normal: 20s\n"),
            "g.yaml:2: sampling.fast: must not be below sampling.floor, which is 15s; it is 1s\n");
  EXPECT_EQ(problems("sampling: {fast: 100ms, floor: 100ms}"), "");
  EXPECT_EQ(problems("sampling:\n  fast: 5m\n  normal: 1s\n"),
            "g.yaml:3: sampling.normal: must not be below sampling.fast, which is 5m; it is 1s\n");
  EXPECT_EQ(problems("sampling: {fast: 2s, normal: 2s, slow: 2s}"), "");
}

TEST(Load, ChecksTheCollectorsKeysByKind) {
  EXPECT_EQ(
      problems("collectors:\n  amd: {enabled: yes}\n  simulated:\n    devices: 2.5\n    duty: half\n"
               "    period: 5\n    mood: [x]\n    events: x\n"),
      "g.yaml:2: collectors.amd.enabled: must be auto, true or false, not \"yes\"\n"
      "g.yaml:4: collectors.simulated.devices: must be a whole number, not \"2.5\"\n"
      "g.yaml:5: collectors.simulated.duty: must be a number, not \"half\"\n"
      "g.yaml:6: collectors.simulated.period: must have a unit, such as 5s or 5ms, not be the bare number 5\n"
      "g.yaml:7: collectors.simulated.mood: must be a text, not a list\n"
      "g.yaml:8: collectors.simulated.events: must be a list, such as [\"...\"], not \"x\"\n");
  EXPECT_EQ(problems("collectors: {simulated: {duty: .inf}}"),
            "g.yaml:1: collectors.simulated.duty: must be a number, not \".inf\"\n");
  EXPECT_EQ(problems("collectors: {simulated: {duty: inf}}"),
            "g.yaml:1: collectors.simulated.duty: must be a number, not \"inf\"\n");
}

TEST(Load, NamesEverythingThatIsWrongInTheOrderOfTheLines) {
  EXPECT_EQ(problems("log: {level: loud}\nwebb: {}\nsampling: {fast: 100ms}\nlog: {}\n"),
            "g.yaml:1: log.level: must be debug, info, warn or error, not \"loud\"\n"
            "g.yaml:2: webb: unknown key; did you mean web?\n"
            "g.yaml:3: sampling.fast: must not be below sampling.floor, which is 1s; it is 100ms\n"
            "g.yaml:4: log: is set twice, first on line 1; keep one of them\n");
}

TEST(Load, NamesTheLineOfWhatIsNotYaml) {
  EXPECT_EQ(problems("log:\n\tlevel: info\n"), "g.yaml:2: a tab in the indentation; YAML requires spaces\n");
  EXPECT_EQ(problems(std::string((1 << 20) + 1, ' ')), "g.yaml: larger than 1 MiB\n");
}

TEST(Load, CutsLongTextsInMessages) {
  std::string umlauts;
  for (int i = 0; i < 60; ++i) umlauts += "ü";
  EXPECT_EQ(
      problems("log: {level: " + umlauts + "}"),
      "g.yaml:1: log.level: must be debug, info, warn or error, not \"" + umlauts.substr(0, 80) + "...\"\n");
  EXPECT_EQ(
      problems("log: {level: x" + umlauts + "}"),
      "g.yaml:1: log.level: must be debug, info, warn or error, not \"x" + umlauts.substr(0, 78) + "...\"\n");
}

class LoadFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const std::string file = folder_ + "/gpumeter.yaml";
    std::ofstream(file) << text;
    return file;
  }

  const std::string folder_ = testing::TempDir() + "gpumeter_load_" + std::to_string(getpid());
};

TEST_F(LoadFile, SaysWhyItCannotBeRead) {
  EXPECT_EQ(problems(load_file(folder_ + "/none.yaml", known_keys())),
            folder_ + "/none.yaml: cannot be read: No such file or directory\n");
  EXPECT_EQ(problems(load_file(folder_, known_keys())), folder_ + ": cannot be read: Is a directory\n");
  const std::string large = write(std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(problems(load_file(large, known_keys())), large + ": larger than 1 MiB\n");
}

// If this hangs, ctest's timeout fails the test.
TEST_F(LoadFile, RefusesWhatIsNoFileAndTakesTheEmptyDevice) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(problems(load_file(fifo, known_keys())), fifo + ": is not a regular file\n");
  EXPECT_EQ(problems(load_file("/dev/zero", known_keys())), "/dev/zero: is not a regular file\n");
  EXPECT_EQ(problems(load_file("/dev/null", known_keys())), "");
}

TEST(Load, ReadsWhatJobsMayDo) {
  const Config config = good(
      "jobs:\n"
      "  enabled: false\n"
      "  socket: \"\"\n"
      "  stream_socket: /run/x\n"
      "  socket_mode: 0660\n"
      "  users: [alice, \"1001\"]\n"
      "  mllog: [bert=/var/log/bert=1.txt]\n"
      "  limits: {lines_per_second: 10, series_per_run: 20, series_per_user: 30, series: 40, retention: "
      "1m}\n");
  Config expected = defaults(known_keys());
  expected.edit<jobs::Settings>() = {
      false, {"", "/run/x", {0660}}, {{"bert", "/var/log/bert=1.txt"}}, {"alice", "1001"}};
  expected.edit<jobs::Limits>() = {.lines_per_second = 10,
                                   .series_per_run = 20,
                                   .series_per_user = 30,
                                   .series = 40,
                                   .retention = std::chrono::minutes(1)};
  EXPECT_EQ(config, expected);
}

TEST(Load, RefusesWhatJobsCannotHave) {
  EXPECT_EQ(problems("jobs:\n  enabled: maybe\n"),
            "g.yaml:2: jobs.enabled: must be true or false, not \"maybe\"\n");
  EXPECT_EQ(problems("jobs:\n  socket: run/x\n"),
            "g.yaml:2: jobs.socket: must be a path that begins with /, not \"run/x\"\n");
  EXPECT_EQ(problems("jobs:\n  socket: /" + std::string(107, 'x') + "\n"),
            "g.yaml:2: jobs.socket: must have at most 107 bytes, as the address of a socket\n");
  for (const std::string mode : {"u+w", "0888", "1777", "66", "00666"}) {
    EXPECT_EQ(
        problems("jobs:\n  socket_mode: " + mode + "\n"),
        "g.yaml:2: jobs.socket_mode: must be permissions in octal, such as \"0666\" or \"0660\", not \"" +
            mode + "\"\n");
  }
  EXPECT_EQ(problems("jobs:\n  mllog: [/var/log/x]\n"),
            "g.yaml:2: jobs.mllog: must be RUN=/absolute/path, such as "
            "\"bert=/var/log/bert/result_0.txt\", not \"/var/log/x\"\n");
  EXPECT_EQ(problems("jobs:\n  mllog: [a=/x, b=/x]\n"),
            "g.yaml:2: jobs.mllog: must list each file once, not \"/x\" twice\n");
  EXPECT_EQ(problems("jobs:\n  users: [\"\"]\n"),
            "g.yaml:2: jobs.users: must be names or numbers of users; one of them is empty\n");
  EXPECT_EQ(
      problems("jobs:\n  limits:\n    series: 0\n"),
      "g.yaml:3: jobs.limits.series: must be at least 1; set jobs.enabled to false to ignore all jobs\n");
  EXPECT_EQ(problems("jobs:\n  limits:\n    retention: 5s\n"),
            "g.yaml:3: jobs.limits.retention: must be from 10s to 24h\n");
}

TEST(Load, ReadsTheServersAndRejectsWhatIsNoPortAndNoPage) {
  Config expected = defaults(known_keys());
  expected.edit<servers::Settings>() = {true,
                                        {{8000}},
                                        {"vllm"},
                                        {*servers::parse_target("http://[fd00::1]:8000"),
                                         *servers::parse_target("https://node-7:1/m?model=a")}};
  EXPECT_EQ(good("servers:\n  enabled: true\n  ports: [\"8000\"]\n  processes: [vllm]\n"
                 "  targets: [\"http://[fd00::1]:8000\", \"https://node-7:1/m?model=a\"]\n"),
            expected);
  for (const std::string port : {"0", "080", "65536", "http", ""}) {
    EXPECT_EQ(problems("servers: {ports: [\"" + port + "\"]}"),
              "g.yaml:1: servers.ports: must be ports from 1 to 65535, not \"" + port + "\"\n");
  }
  for (const std::string page :
       {"127.0.0.1:8000", "http://127.0.0.1", "http://:8000/", "http://a:0/", "http://a:1 /", "ftp://a:1/",
        "http://a@b:1/", "http://fd00::1:8000/", "http:///:1"}) {
    EXPECT_EQ(problems("servers: {targets: [\"" + page + "\"]}"),
              "g.yaml:1: servers.targets: must be addresses with a port, such as "
              "\"http://127.0.0.1:8000/metrics\", not \"" +
                  page + "\"\n");
  }
}

}  // namespace
}  // namespace gpumeter::config
