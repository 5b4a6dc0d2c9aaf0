#include <sys/stat.h>
#include <sys/utsname.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/build_info.hpp"
#include "base/folder.hpp"
#include "base/paths.hpp"
#include "base/program.hpp"
#include "base/text.hpp"
#include "collectors/builtin.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/cli/once.hpp"
#include "daemon/setup.hpp"
#include "programs/client/http.hpp"
#include "programs/commands/bundle/nvml_answers.hpp"
#include "programs/commands/bundle/redaction.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using bundle::Redaction;

// Files of devices are texts of a page and blobs of a few KiB.
constexpr std::size_t kMostFileBytes = std::size_t{64} << 10;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of all files
constexpr std::size_t kMostPageBytes = std::size_t{16} << 20;
constexpr std::size_t kMostLogBytes = std::size_t{8} << 20;
constexpr std::size_t kMostNames = 4096;  // of one folder
constexpr int kDeepest = 8;               // folders below a device
constexpr auto kFilePatience = std::chrono::seconds(2);
constexpr auto kWalkPatience = std::chrono::seconds(10);
constexpr auto kPagePatience = std::chrono::seconds(60);
constexpr auto kDaemonPatience = std::chrono::seconds(10);

// Keys of the configuration whose values are secrets.
constexpr std::string_view kSecretKeys[] = {"otlp.headers"};

// Entries of devices that are not copied, with all that begins so after a *: serial numbers of cards (config,
// vpd) and of monitors (connectors, i2c), a card's ROM and memory (a read of resource0 may be a read of a
// port), dumps of memory, and devices of other drivers.
constexpr std::string_view kLeftOut[] = {"config",      "vpd",  "rom",   "resource*", "error",
                                         "devcoredump", "edid", "card*", "i2c-*",     "drm",
                                         "sound",       "net",  "nvmem", "accel",     "neuron_device"};
constexpr std::string_view kFirmware = ".mei";  // the firmware's own devices, with uuids of its protocols

// Files whose whole text names one device.
constexpr std::string_view kIdentityFiles[] = {"unique_id",      "serial_number", "serial", "xgmi_hive_id",
                                               "xgmi_device_id", "fru_id",        "uuid"};

// A line of the kernel's log is about devices if it has one of these. Others stay out: they may be private.
constexpr std::string_view kKernelWords[] = {"NVRM", "nvidia",     "amdgpu", "[drm",     "i915", " xe ",
                                             "kfd",  "habanalabs", "neuron", "pcieport", "AER:"};

struct Entry {
  std::string path;
  std::string bytes;
  bool has_names = true;  ///< of users and hosts, not only identities
};

struct Bundle {
  Redaction redaction;
  std::vector<Entry> entries = {};
  std::vector<std::string> missing = {};  ///< sentences
  std::size_t bytes = 0;
  bool has_hung = false;  ///< a call was left behind

  void add(Entry entry) {
    bytes += entry.bytes.size();
    if (bytes <= kMostBytes) return entries.push_back(std::move(entry));
    missing.push_back(entry.path + ": the bundle would have more than 64 MiB");
  }
};

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const PathOfFile place(path);
  const Result<Folder> folder = Folder::open(place.folder);
  return folder ? folder->read(place.name, most) : folder.error();
}

std::string text_in(const std::string& path) {
  const Result<std::string> text = read_file(path, kMostFileBytes);
  return text ? std::string(trimmed(*text)) : std::string();
}

// Devices in sysfs, in the layout of captures: VENDOR/NAME/cardN/device/...

/// A file of a device, and its path in the bundle.
struct DeviceFile {
  std::string from;
  std::string to;
};

bool is_left_out(const std::string& name) {
  return name.find(kFirmware) != std::string::npos ||
         std::ranges::any_of(kLeftOut, [&](std::string_view each) {
           return each.ends_with('*') ? name.starts_with(each.substr(0, each.size() - 1)) : name == each;
         });
}

/// Adds the regular files that have a permission to read, and follows no link.
void walk(const std::string& from, const std::string& to, int depth, std::vector<DeviceFile>& files) {
  const Result<Folder> folder = Folder::open(from);
  if (!folder) return;
  for (const std::string& name : folder->names(kMostNames)) {
    const std::optional<struct stat> facts = folder->facts(name);
    if (!facts || is_left_out(name)) continue;
    if (S_ISDIR(facts->st_mode) && depth < kDeepest)
      walk(from + "/" + name, to + "/" + name, depth + 1, files);
    const bool is_readable = (facts->st_mode & (S_IRUSR | S_IRGRP | S_IROTH)) != 0;
    if (S_ISREG(facts->st_mode) && is_readable && facts->st_size <= static_cast<off_t>(kMostFileBytes))
      files.push_back({from + "/" + name, to + "/" + name});
  }
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? std::string() : real.string();
}

/// "PCI_ID=1002:73BF" -> "1002:73BF"; empty: no device of the PCI bus.
std::string uevent_value(const std::string& device, std::string_view key) {
  const std::string text = "\n" + text_in(device + "/uevent") + "\n";
  const std::size_t at = text.find("\n" + std::string(key) + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string vendor_of(const std::string& device) {
  const std::string id = uevent_value(device, "PCI_ID");
  return id.starts_with("1002:")   ? "amd"
         : id.starts_with("8086:") ? "intel"
         : id.starts_with("10DE:") ? "nvidia"
                                   : "other";
}

/// The bridges above a card, whose links are the slot's.
void walk_bridges(const std::string& device, const std::string& to, std::vector<DeviceFile>& files) {
  std::filesystem::path bridge = std::filesystem::path(device).parent_path();
  for (int level = 0; level < kDeepest && !uevent_value(bridge.string(), "PCI_ID").empty(); ++level) {
    walk(bridge.string(), to + "/bridges/" + bridge.filename().string(), kDeepest, files);
    bridge = bridge.parent_path();
  }
}

/// The cards with a node of their own, then PCI functions of GPUs without one, such as those of a driver for
/// computing alone.
std::vector<DeviceFile> device_files(const std::string& sysfs) {
  std::vector<DeviceFile> files;
  std::vector<std::string> seen;
  const auto add = [&](const std::string& name, const std::string& node, const std::string& device) {
    const std::string real = device.empty() ? node : device;
    if (real.empty() || std::ranges::find(seen, real) != seen.end()) return;
    const std::string home = vendor_of(real) + "/" + (node.empty() ? real.substr(real.rfind('/') + 1) : name);
    if (!device.empty()) walk(device, home + "/" + name + "/device", 0, files);
    if (!node.empty()) walk(node, home + "/" + name, 0, files);
    walk_bridges(real, home, files);
    const bool is_first =
        std::ranges::none_of(seen, [](const std::string& each) { return vendor_of(each) == "amd"; });
    if (is_first && home.starts_with("amd/"))
      walk(real_path(sysfs + "/class/kfd/kfd/topology/nodes"), home + "/kfd/topology/nodes", 1, files);
    seen.push_back(real);
  };
  for (const std::string kind :
       {"/class/drm", "/class/accel", "/class/tenstorrent", "/devices/virtual/neuron_device"}) {
    const std::string all = sysfs + kind;
    const Result<Folder> folder = Folder::open(all);
    for (const std::string& name : folder ? folder->names(kMostNames) : std::vector<std::string>()) {
      if (kind == "/class/drm" && (!name.starts_with("card") || name.find('-') != std::string::npos))
        continue;
      add(name, real_path(all + "/" + name), real_path(all + "/" + name + "/device"));
    }
  }
  const std::string bus = sysfs + "/bus/pci/devices";
  const Result<Folder> functions = Folder::open(bus);
  for (const std::string& name : functions ? functions->names(kMostNames) : std::vector<std::string>()) {
    const std::string code = uevent_value(bus + "/" + name, "PCI_CLASS");
    const bool is_gpu = code.size() == 5 ? code.starts_with('3') : code.starts_with("12");
    if (is_gpu) add("card0", "", real_path(bus + "/" + name));
  }
  return files;
}

bool is_identity_file(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return std::ranges::find(kIdentityFiles, name) != std::end(kIdentityFiles);
}

/// The compute driver's properties have the card's unique_id as a decimal number.
void add_numbers_of(std::string_view properties, Redaction& redaction) {
  while (!properties.empty()) {
    std::string_view line = take_until(properties, '\n');
    const std::string_view key = take_until(line, ' ');
    if (key == "unique_id" || key == "hive_id")
      redaction.add_number(parse_number<std::uint64_t>(trimmed(line)).value_or(0));
  }
}

void add_devices(const Paths& paths, const Clock& clock, Bundle& bundle) {
  BoundedCalls walks("bundle-walk", kWalkPatience, clock);
  auto walked = walks.ask<std::vector<DeviceFile>>({paths.sysfs}, device_files);
  bundle.has_hung = bundle.has_hung || !walked.silent.empty();
  const std::vector<DeviceFile> files = std::move(walked.values[paths.sysfs]);
  std::vector<std::string> from;
  for (const DeviceFile& each : files) from.push_back(each.from);
  BoundedCalls calls("bundle-files", kFilePatience, clock);
  const auto read = calls.ask<Result<std::string>>(
      from, [](const std::string& path) { return read_file(path, kMostFileBytes); });
  bundle.has_hung = bundle.has_hung || !read.silent.empty();
  std::size_t denied = 0;
  for (const std::string& silent : read.silent)
    bundle.missing.push_back(silent + ": a read of it does not return");
  for (const DeviceFile& each : files) {
    const auto answer = read.values.find(each.from);
    if (answer == read.values.end()) continue;
    if (!answer->second) {
      denied += answer->second.error().message().ends_with(std::strerror(EACCES)) ? 1U : 0U;
      continue;  // drivers answer so for what the chip lacks
    }
    const std::string& text = *answer->second;
    const std::string_view id = trimmed(std::string_view(text).substr(0, text.find('\0')));
    if (is_identity_file(each.to)) bundle.redaction.add_identity(id);
    if (each.to.ends_with("/unique_id"))
      bundle.redaction.add_number(parse_number<std::uint64_t>(id, 16).value_or(0));
    if (each.to.ends_with("/properties")) add_numbers_of(text, bundle.redaction);
    bundle.add({each.to, text, false});
  }
  if (!walked.silent.empty()) bundle.missing.push_back(paths.sysfs + ": a driver does not answer");
  if (files.empty()) bundle.missing.push_back("no device of a GPU in " + paths.sysfs);
  if (denied > 0)
    bundle.missing.push_back(std::to_string(denied) + " files of devices are root's: run it as root");
}

void add_nvml(const config::Config& config, const Clock& clock, Bundle& bundle) {
  const auto nvidia = config.collectors.find("nvidia");
  if (nvidia == config.collectors.end() || nvidia->second.enabled == options::Enabled::off) return;
  const auto library = nvidia->second.options.find("library");
  if (library == nvidia->second.options.end() || library->second.empty()) return;
  bundle::NvmlReading reading = bundle::read_nvml(library->second.front(), clock);
  for (const std::string& each : reading.identities) bundle.redaction.add_identity(each);
  bundle.has_hung = bundle.has_hung || reading.hangs;
  for (std::string& each : reading.missing) bundle.missing.push_back(std::move(each));
  if (!reading.scenario.empty()) bundle.add({"nvidia/scenario.yaml", std::move(reading.scenario), false});
}

// Pages, configuration, versions, log.

void add_own_page(config::Config config, const Clock& clock, Bundle& bundle) {
  if (bundle.has_hung)
    return void(bundle.missing.emplace_back("pages/once.prom: not read, because a driver hangs"));
  const std::vector<config::Key> keys = config::keys(schema());
  const std::string full = "full";
  [[maybe_unused]] const auto always_valid = config::set(keys, config, "metrics.detail", {&full, 1});
  BoundedCalls calls("bundle-page", kPagePatience, clock);
  const auto read =
      calls.ask<std::string>({""}, [config](const std::string&) { return page_once(config, 1); });
  const auto page = read.values.find("");
  if (page == read.values.end()) {
    bundle.has_hung = true;
    return void(bundle.missing.emplace_back("pages/once.prom: a driver does not answer"));
  }
  bundle.redaction.add_labels_of(page->second);
  bundle.add({"pages/once.prom", page->second});
}

/// Adds the hosts and the logins of URLs, and the values of `{NAME: VALUE, ...}` if these are secrets.
void add_secrets_of(std::string_view shown, bool is_secret, Redaction& redaction) {
  std::string_view urls = shown;
  for (std::size_t scheme = urls.find("://"); scheme != std::string_view::npos; scheme = urls.find("://")) {
    urls.remove_prefix(scheme + 3);
    std::string_view authority = urls.substr(0, urls.find_first_of("/\",]"));
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
      redaction.add_secret(authority.substr(0, at));
      authority.remove_prefix(at + 1);
    }
    redaction.add_host(authority.substr(0, authority.rfind(':')));
  }
  while (is_secret && !shown.empty()) {
    std::string_view pair = take_until(shown, ',');
    take_until(pair, ':');
    const std::string_view value = pair.substr(pair.find_last_of(' ') + 1);
    redaction.add_secret(value.substr(0, value.find_first_of("\"}")));
  }
}

void add_daemon_pages(const BundleOptions& options, const config::Config& config, Bundle& bundle) {
  const std::string& url = options.daemon.url;
  const bool has_host = !url.starts_with("unix:") && !url.starts_with("vsock:");
  if (has_host)
    add_secrets_of(url.find("://") == std::string::npos ? "://" + url : url, false, bundle.redaction);
  Result<client::Address> address = options.daemon.address(config);
  if (!address) return bundle.missing.push_back("pages of the daemon: " + address.error().message());
  client::HttpClient client(*std::move(address), {kDaemonPatience, kDaemonPatience, kMostPageBytes},
                            "gpumeter-commands");
  for (const auto& [path, name] : {std::pair("/metrics?detail=full", "pages/daemon.prom"),
                                   std::pair("/api/v1/health", "pages/health.json")}) {
    const Result<client::HttpClient::Answer> answer = client.get(path);
    if (answer && answer->status == 200) {
      bundle.redaction.add_labels_of(answer->body);
      bundle.add({name, answer->body});
    } else {
      bundle.missing.push_back(
          std::string(name) + ": " +
          (answer ? "status " + std::to_string(answer->status) : answer.error().message()));
    }
    if (client.was_refused()) return;
  }
}

void add_configuration(const config::Config& config, Bundle& bundle) {
  const config::Config defaults = config::defaults(schema());
  std::string text = "# Keys that differ from their defaults; comments are left out.\n";
  for (const config::Key& key : config::keys(schema())) {
    const std::string shown = key.show(config);
    if (shown == key.show(defaults)) continue;
    const bool is_secret = std::ranges::find(kSecretKeys, key.path) != std::end(kSecretKeys);
    add_secrets_of(shown, is_secret, bundle.redaction);
    text += key.path + ": " + (is_secret ? "REDACTED" : shown) + "\n";
  }
  bundle.add({"configuration.txt", std::move(text)});
}

void add_names(Bundle& bundle) {
  struct utsname system {};
  if (uname(&system) == 0) {
    const std::string_view host = system.nodename;
    bundle.redaction.add_host(host);
    bundle.redaction.add_host(host.substr(0, host.find('.')));
  }
  // Users of a directory service: whoever runs the command, and those in the label `user` of the pages.
  for (const char* const variable : {"SUDO_USER", "LOGNAME", "USER"}) {
    if (const char* const name = std::getenv(variable)) bundle.redaction.add_user(name);
  }
  constexpr unsigned kFirstPerson = 1000;  // below: accounts of the system, which each machine has
  std::string_view rest;
  const Result<std::string> users = read_file("/etc/passwd", std::size_t{1} << 20);
  if (users) rest = *users;
  while (!rest.empty()) {
    std::string_view line = take_until(rest, '\n');
    const std::string_view name = take_until(line, ':');
    take_until(line, ':');
    if (parse_number<unsigned>(take_until(line, ':')).value_or(0) >= kFirstPerson && !name.empty())
      bundle.redaction.add_user(name);
  }
}

void add_versions(const Paths& paths, Bundle& bundle) {
  struct utsname system {};
  uname(&system);
  std::string text =
      build::version_text("gpumeter") + "\nkernel " + system.release + " " + system.machine + "\n";
  std::string_view release;
  const Result<std::string> read = read_file("/usr/lib/os-release", kMostFileBytes);
  if (read) release = *read;
  while (!release.empty()) {
    const std::string_view line = take_until(release, '\n');
    if (line.starts_with("PRETTY_NAME=")) text.append(line).append("\n");
  }
  for (const std::string module : {"nvidia", "amdgpu", "i915", "xe", "habanalabs", "neuron"}) {
    const std::string version = text_in(paths.sysfs + "/module/" + module + "/version");
    if (!version.empty()) text += "module " + module + " " + version + "\n";
  }
  bundle.add({"versions.txt", std::move(text)});
}

/// The journal's last lines, read within 20 s by a journalctl without an environment. `what`: constant
/// options.
std::string journal(const std::string& what) {
  const std::string command =
      "exec /usr/bin/env -i /usr/bin/timeout 20 /usr/bin/journalctl --no-pager --quiet --no-hostname "
      "--output=short-iso " +
      what + " </dev/null 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "re"), pclose);
  std::string text;
  std::array<char, 16384> piece;
  while (output != nullptr && text.size() < kMostLogBytes) {
    const std::size_t got = std::fread(piece.data(), 1, piece.size(), output.get());
    if (got == 0) break;
    text.append(piece.data(), got);
  }
  return text;
}

void add_log(const BundleOptions& options, Bundle& bundle) {
  if (!options.log.empty()) {
    const Result<std::string> log = read_file(options.log, kMostLogBytes);
    return log ? bundle.add({"log/daemon.log", *log})
               : bundle.missing.push_back("log: " + log.error().message());
  }
  const std::string daemon = journal("--lines=2000 --unit='gpumeter*'");
  const std::string kernel = journal("--lines=20000 --dmesg");
  std::string about_devices;
  for (std::string_view rest = kernel; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    const bool is_about_devices = std::ranges::any_of(
        kKernelWords, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
    if (is_about_devices) about_devices.append(line).append("\n");
  }
  if (!daemon.empty()) bundle.add({"log/daemon.log", daemon});
  if (daemon.empty())
    bundle.missing.emplace_back(
        "log of the daemon: the journal has none that you may read; --log names a file");
  if (!about_devices.empty()) bundle.add({"log/kernel.log", std::move(about_devices)});
}

// The archive.

/// A header of POSIX's ustar, and the bytes in blocks of 512.
std::string tar_of(const std::string& path, const std::string& bytes, std::time_t now) {
  struct Header {
    char name[100], mode[8], uid[8], gid[8], size[12], modified[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
  };
  static_assert(sizeof(Header) == 512);
  Header header{};
  const std::size_t slash =
      path.size() <= sizeof header.name ? 0 : path.find('/', path.size() - sizeof header.name - 1);
  path.copy(header.prefix, std::min(slash, sizeof header.prefix));
  path.copy(header.name, sizeof header.name, slash == 0 ? 0 : slash + 1);
  std::snprintf(header.mode, sizeof header.mode, "%07o", 0600U);
  std::snprintf(header.uid, sizeof header.uid, "%07o", 0U);
  std::snprintf(header.gid, sizeof header.gid, "%07o", 0U);
  std::snprintf(header.size, sizeof header.size, "%011zo", bytes.size());
  std::snprintf(header.modified, sizeof header.modified, "%011lo", static_cast<unsigned long>(now));
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memset(header.version, '0', sizeof header.version);
  std::memset(header.sum, ' ', sizeof header.sum);
  std::string block(sizeof header, '\0');
  std::memcpy(block.data(), &header, sizeof header);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + offsetof(Header, sum), sizeof header.sum, "%06o", sum);
  block += bytes;
  block.resize((block.size() + sizeof header - 1) / sizeof header * sizeof header);
  return block;
}

Result<Done> write_archive(const std::string& file, const std::string& tar) {
  const PathOfFile place(file);
  const Result<Folder> folder = Folder::open(place.folder);
  if (!folder) return folder.error();
  Result<Descriptor> created = folder->create(place.name, S_IRUSR | S_IWUSR);
  if (!created) return created.error();
  const gzFile zipped = gzdopen(created->release(), "wb");
  const bool is_whole = zipped != nullptr && gzwrite(zipped, tar.data(), static_cast<unsigned>(tar.size())) ==
                                                 static_cast<int>(tar.size());
  if (zipped != nullptr && gzclose(zipped) == Z_OK && is_whole) return Done{};
  [[maybe_unused]] const Result<Done> removed = folder->remove(place.name);
  return Error(file + ": cannot be written: " + std::strerror(errno));
}

std::string named_by_time(std::time_t now) {
  struct tm parts {};
  std::array<char, 64> text{};
  gmtime_r(&now, &parts);
  return {text.data(),
          std::strftime(text.data(), text.size(), "gpumeter-bundle-%Y%m%dT%H%M%SZ.tar.gz", &parts)};
}

/// Redacts all entries, adds the list of them, and returns that list.
std::string finish(Bundle& bundle) {
  std::string list;
  for (Entry& entry : bundle.entries) {
    entry.bytes =
        entry.has_names ? bundle.redaction.all_in(entry.bytes) : bundle.redaction.identities_in(entry.bytes);
    entry.path = bundle.redaction.identities_in(entry.path);
    list += entry.path + " " + std::to_string(entry.bytes.size()) + "\n";
  }
  std::string missing;
  for (const std::string& each : bundle.missing)
    missing += "missing: " + bundle.redaction.all_in(each) + "\n";
  list += missing + "replaced: " + std::to_string(bundle.redaction.identities()) +
          " identities of devices, " + std::to_string(bundle.redaction.names()) +
          " names of users, hosts and jobs' variables\n";
  bundle.entries.push_back({"contents.txt", list});
  return list;
}

}  // namespace

Result<Done> make_bundle(const BundleOptions& options, const config::Config* config, const Clock& clock) {
  Bundle bundle{Redaction(metrics_markdown(builtin_collectors()) + config::configuration_markdown(schema()))};
  const config::Config used = config != nullptr ? *config : config::defaults(schema());
  if (config == nullptr)
    bundle.missing.emplace_back("configuration: it is wrong, and the defaults were used");
  const auto& paths = used.of<Paths>();
  add_names(bundle);
  add_versions(paths, bundle);
  add_configuration(used, bundle);
  add_nvml(used, clock, bundle);
  add_devices(paths, clock, bundle);
  add_own_page(used, clock, bundle);
  add_daemon_pages(options, used, bundle);
  add_log(options, bundle);
  if (print(finish(bundle)) != 0 || options.lists_only) return Done{};
  const std::time_t now = std::time(nullptr);
  const std::string file = options.file.empty() ? named_by_time(now) : options.file;
  std::string tar;
  for (const Entry& entry : bundle.entries) tar += tar_of("gpumeter-bundle/" + entry.path, entry.bytes, now);
  if (const Result<Done> written = write_archive(file, tar.append(1024, '\0')); !written) return written;
  print(file + " is written\n");
  return Done{};
}

}  // namespace gpumeter
