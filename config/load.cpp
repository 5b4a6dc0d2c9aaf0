#include "config/load.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/result.hpp"
#include "config/keys.hpp"
#include "config/yaml.hpp"

namespace gpumeter::config {
namespace {

using options::enumerate;
using options::must_be;
using options::printable;

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? printable(key) : path + "." + printable(key);
}

/// Walks the tree once and collects values and problems.
class Loader {
 public:
  Loader(const std::string& file, const Schema& schema)
      : schema_(schema), keys_(keys(schema)), config_(defaults(schema)), places_{file, {}} {}

  Loaded load(std::string_view text) {
    auto parsed = parse_yaml(text);
    if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
      report(error->line, "", error->text);
    } else {
      read_file(std::get<Node>(std::move(parsed)));
    }
    if (problems_.empty()) return std::move(config_);
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    return std::move(problems_);
  }

  Places take_places() { return std::move(places_); }

 private:
  void read_file(Node root) {
    if (!is_map(root, "")) return;
    if (schema_.is_partial) {
      std::erase_if(root.children, [this](const Node& child) {
        return find_key(keys_, child.key) == nullptr && names_below(child.key).empty();
      });
    }
    find_duplicates(root, "");
    for (const Node& child : root.children) read(child, "");
    for (const options::Section* const section : schema_.sections) {
      if (section->check != nullptr) section->check(config_.at(*section->type), places_, problems_);
    }
  }

  /// Reads a key or a section. A section may hold further sections such as jobs.limits.
  void read(const Node& node, const std::string& section) {
    const std::string path = joined(section, node.key);
    if (const Key* key = find_key(keys_, path)) return read_key(node, *key);
    if (names_below(path).empty()) return report_unknown(node, section);
    if (!is_map(node, path)) return;
    for (const Node& child : node.children) read(child, path);
  }

  void read_key(const Node& node, const Key& key) {
    std::vector<int>& lines = places_.lines[key.path];
    lines.clear();
    for (const Node& element : node.children) lines.push_back(element.line);
    if (node.kind != Node::Kind::sequence) lines = {node.line};
    if (node.kind == Node::Kind::null) return;
    if (const auto complaint = key.read(node, config_)) {
      report(complaint->line > 0 ? complaint->line : node.line, key.path, complaint->text);
    }
  }

  /// Returns the sections and keys directly below a section, or those of the file itself for "".
  std::vector<std::string> names_below(const std::string& section) const {
    const std::string start = section.empty() ? "" : section + ".";
    std::set<std::string> names;
    for (const Key& key : keys_) {
      if (!key.path.starts_with(start)) continue;
      const std::string rest = key.path.substr(start.size());
      names.insert(rest.substr(0, rest.find('.')));
    }
    return {names.begin(), names.end()};
  }

  /// Reports a value that should be a map and is not. An empty value is not reported.
  bool is_map(const Node& node, const std::string& path) {
    if (node.kind == Node::Kind::map) return true;
    if (node.kind != Node::Kind::null) report(node.line, path, must_be("a map of keys", node).text);
    return false;
  }

  void find_duplicates(const Node& node, const std::string& path) {
    std::map<std::string_view, int> seen;
    for (const Node& child : node.children) {
      if (node.kind != Node::Kind::map) {
        find_duplicates(child, path);
        continue;
      }
      const std::string child_path = joined(path, child.key);
      const auto [first, is_new] = seen.emplace(child.key, child.line);
      if (!is_new) {
        report(child.line, child_path,
               "is set twice, first on line " + std::to_string(first->second) + "; keep one of them");
      }
      find_duplicates(child, child_path);
    }
  }

  void report_unknown(const Node& node, const std::string& section) {
    const std::vector<std::string> names = names_below(section);
    std::string text = section == "collectors" ? "unknown collector; " : "unknown key; ";
    if (const std::string meant = options::nearest(node.key, names); !meant.empty()) {
      text += "did you mean " + joined(section, meant) + "?";
    } else {
      text += (section.empty() ? "the file" : section) + " has " + enumerate(names, "and");
    }
    report(node.line, joined(section, node.key), text);
  }

  void report(int line, const std::string& key, const std::string& text) {
    problems_.push_back({places_.file, line, key, text});
  }

  const Schema& schema_;
  const std::vector<Key> keys_;
  Config config_;
  Places places_;
  std::vector<Problem> problems_;
};

}  // namespace

Loaded load_text(std::string_view text, const std::string& file, const Schema& schema, Places* places) {
  Loader loader(file, schema);
  Loaded loaded = loader.load(text);
  if (places != nullptr) *places = loader.take_places();
  return loaded;
}

Loaded load_file(const std::string& file, const Schema& schema, Places* places) {
  const Result<std::string> text = read_whole(file);
  if (!text) return std::vector<Problem>{{file, 0, "", text.error().message()}};
  return load_text(*text, file, schema, places);
}

}  // namespace gpumeter::config
