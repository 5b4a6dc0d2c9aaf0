#include "config/load.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "base/duration.hpp"
#include "config/collector_keys.hpp"
#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/yaml_tree.hpp"

namespace gpumeter::config {
namespace {

/// The keys right below a section, or the sections and keys of the file itself for "".
std::vector<std::string> names_below(std::string_view section) {
  std::vector<std::string> names;
  if (section.empty()) names = {"collectors"};
  for (const Key& key : keys()) {
    std::string_view rest = key.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest.substr(section.size(), 1) != ".") continue;
      rest.remove_prefix(section.size() + 1);
    }
    const std::string name(rest.substr(0, rest.find('.')));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? printable(key) : path + "." + printable(key);
}

/// Goes through the tree once, collecting values and problems.
class Loader {
 public:
  Loader(std::string file, Schemas schemas)
      : file_(std::move(file)), schemas_(schemas), config_(defaults(schemas)) {}

  Loaded load(std::string_view text) {
    auto parsed = parse_yaml(text);
    if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
      report(error->line, "", error->text);
    } else {
      read_file(std::get<Node>(parsed));
    }
    if (problems_.empty()) return std::move(config_);
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    return std::move(problems_);
  }

  std::map<std::string, std::vector<int>> take_lines() { return std::move(lines_); }

  void report(int line, const std::string& key, const std::string& text) {
    problems_.push_back({file_, line, key, text});
  }

 private:
  void read_file(const Node& root) {
    if (!is_map(root, "")) return;
    find_duplicates(root, "");
    for (const Node& child : root.children) read_top(child);
    check_floor();
    check_order();
    check_sockets();
  }

  void read_top(const Node& child) {
    if (find_key(child.key) != nullptr) return read_key(child, child.key);
    if (child.key == "collectors") return read_collectors(child);
    const auto names = names_below("");
    if (std::find(names.begin(), names.end(), child.key) == names.end())
      return report_unknown(child, "", names);
    read_section(child, child.key);
  }

  /// Sections may lie in sections, such as jobs.limits.
  void read_section(const Node& section, const std::string& section_path) {
    if (!is_map(section, section_path)) return;
    for (const Node& child : section.children) {
      const std::string path = section_path + "." + child.key;
      if (find_key(path) != nullptr) {
        read_key(child, path);
      } else if (!names_below(path).empty()) {
        read_section(child, path);
      } else {
        report_unknown(child, section_path, names_below(section_path));
      }
    }
  }

  void read_key(const Node& node, const std::string& path) {
    note_lines(path, node);
    if (node.kind == Node::Kind::null) return;
    if (const auto complaint = find_key(path)->read(node, config_)) report(node.line, path, *complaint);
  }

  void read_collectors(const Node& section) {
    if (!is_map(section, section.key)) return;
    for (const Node& child : section.children) {
      const auto schema = std::find_if(schemas_.begin(), schemas_.end(),
                                       [&child](const CollectorSchema& s) { return s.name == child.key; });
      if (schema == schemas_.end()) {
        report_unknown(child, "collectors", collector_names(schemas_));
      } else {
        read_collector(child, *schema);
      }
    }
  }

  void read_collector(const Node& section, const CollectorSchema& schema) {
    const std::string path = "collectors." + schema.name;
    if (!is_map(section, path)) return;
    const auto names = key_names(schema);
    for (const Node& child : section.children) {
      if (std::find(names.begin(), names.end(), child.key) == names.end()) {
        report_unknown(child, path, names);
        continue;
      }
      note_lines(joined(path, child.key), child);
      if (const auto complaint = read_collector_key(child, schema, config_.collectors[schema.name])) {
        report(child.line, joined(path, child.key), *complaint);
      }
    }
  }

  void note_lines(const std::string& path, const Node& node) {
    std::vector<int>& lines = lines_[path];
    lines = {node.line};
    if (node.kind != Node::Kind::sequence) return;
    lines.clear();
    for (const Node& element : node.children) lines.push_back(element.line);
  }

  /// 0: the file does not have the key.
  int line_of(const std::string& path) const {
    const auto found = lines_.find(path);
    return found == lines_.end() || found->second.empty() ? 0 : found->second.front();
  }

  /// Reports what should be a map and is not; an empty one has nothing to read.
  bool is_map(const Node& node, const std::string& path) {
    if (node.kind == Node::Kind::map) return true;
    if (node.kind != Node::Kind::null) report(node.line, path, "must be a map of keys, not " + found(node));
    return false;
  }

  void find_duplicates(const Node& node, const std::string& path) {
    std::map<std::string_view, int> seen;
    for (const Node& child : node.children) {
      const std::string child_path = node.kind == Node::Kind::map ? joined(path, child.key) : path;
      if (node.kind == Node::Kind::map) {
        const auto [first, is_new] = seen.emplace(child.key, child.line);
        if (!is_new) {
          report(child.line, child_path,
                 "is there twice, first on line " + std::to_string(first->second) + "; keep one of them");
        }
      }
      find_duplicates(child, child_path);
    }
  }

  void report_unknown(const Node& child, const std::string& section, const std::vector<std::string>& names) {
    const std::string what = section == "collectors" ? "unknown collector" : "unknown key";
    std::string text = what + "; ";
    if (const std::string meant = nearest(child.key, names); !meant.empty()) {
      text += "did you mean " + joined(section, meant) + "?";
    } else {
      text += (section.empty() ? "the file" : section) + " has " + enumerate(names, "and");
    }
    report(child.line, joined(section, child.key), text);
  }

  void check_floor() {
    const Sampling& sampling = config_.sampling;
    const std::array<std::pair<const char*, Duration>, 3> tiers = {{{"sampling.fast", sampling.fast},
                                                                    {"sampling.normal", sampling.normal},
                                                                    {"sampling.slow", sampling.slow}}};
    for (const auto& [path, interval] : tiers) {
      if (interval >= sampling.floor) continue;
      const int line = line_of(path);
      report(line == 0 ? line_of("sampling.floor") : line, path,
             "must not be below sampling.floor, which is " + duration_text(sampling.floor) + "; it is " +
                 duration_text(interval));
    }
  }

  // A slower tier that is read more often than a faster one is a mistake in units or in the keys' names.
  void check_order() {
    const Sampling& sampling = config_.sampling;
    check_order("sampling.fast", sampling.fast, "sampling.normal", sampling.normal);
    check_order("sampling.normal", sampling.normal, "sampling.slow", sampling.slow);
  }

  /// Reports the key that the file has; the other one may be a default.
  void check_order(const std::string& faster, Duration shorter, const std::string& slower, Duration longer) {
    if (shorter <= longer) return;
    const int line = line_of(slower);
    if (line != 0) {
      report(line, slower,
             "must not be below " + faster + ", which is " + duration_text(shorter) + "; it is " +
                 duration_text(longer));
    } else {
      report(line_of(faster), faster,
             "must not be above " + slower + ", which is " + duration_text(longer) + "; it is " +
                 duration_text(shorter));
    }
  }

  void check_sockets() {
    const Jobs& jobs = config_.jobs;
    if (jobs.socket.empty() || jobs.socket != jobs.stream_socket) return;
    const int line = line_of("jobs.stream_socket");
    report(line == 0 ? line_of("jobs.socket") : line, line == 0 ? "jobs.socket" : "jobs.stream_socket",
           "must not be the path of the other socket, \"" + printable(jobs.socket) + "\"");
  }

  const std::string file_;
  const Schemas schemas_;
  Config config_;
  std::map<std::string, std::vector<int>> lines_;  ///< of the keys that the file has, as in Places
  std::vector<Problem> problems_;
};

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// A terminal, a pipe and a device may make a start or a reload wait for ever, and a reload could not read
/// them a second time. /dev/null is the usual name of an empty file.
bool is_readable_again(const struct stat& status) {
  return S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3));
}

std::string reason(int error) { return "cannot be read: " + std::generic_category().message(error); }

/// What is wrong with the file; empty where it was read. One byte more than a file may have is enough to
/// refuse it by. O_NONBLOCK: a FIFO without a writer must not hang the open().
std::string read_whole(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const std::unique_ptr<std::FILE, CloseFile> file(fd < 0 ? nullptr : fdopen(fd, "r"));
  struct stat status {};
  if (!file || fstat(fd, &status) != 0) return reason(errno);
  if (S_ISDIR(status.st_mode)) return reason(EISDIR);
  if (!is_readable_again(status)) return "is not a regular file";
  text.resize(kMaxFileBytes + 1);
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return std::ferror(file.get()) != 0 ? reason(errno) : "";
}

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) text += ":" + std::to_string(problem.line);
  if (!problem.key.empty()) text += ": " + problem.key;
  return text + ": " + problem.text;
}

Problem Places::problem(const std::string& key, std::size_t element, const std::string& text) const {
  const auto found = lines.find(key);
  const bool has_line = found != lines.end() && element < found->second.size();
  return {file, has_line ? found->second[element] : 0, key, text};
}

Loaded load_text(std::string_view text, const std::string& file, Schemas schemas, Places* places) {
  Loader loader(file, schemas);
  Loaded loaded = loader.load(text);
  if (places != nullptr) *places = {file, loader.take_lines()};
  return loaded;
}

Loaded load_file(const std::string& file, Schemas schemas, Places* places) {
  std::string text;
  if (const std::string problem = read_whole(file, text); !problem.empty()) {
    return std::vector<Problem>{{file, 0, "", problem}};
  }
  return load_text(text, file, schemas, places);
}

}  // namespace gpumeter::config
