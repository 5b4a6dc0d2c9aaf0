#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gpumeter {

/// A temporary folder for a test, removed with this object.
class Tree {
 public:
  using Files = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  explicit Tree(Files files) {
    std::string name = (std::filesystem::temp_directory_path() / "gpumeter-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = std::filesystem::canonical(name);
    for (const auto& [file, content] : files) write(file, content);
  }
  ~Tree() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

  /// Creates the file, or overwrites it in place, so that a reader with an open descriptor sees the new
  /// content. Content "-> target" creates a link.
  void write(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    if (content.starts_with("-> ")) return std::filesystem::create_symlink(content.substr(3), file);
    std::ofstream(file, std::ios::binary | std::ios::trunc).write(content.data(), std::ssize(content));
  }

  void remove(std::string_view name) const { std::filesystem::remove_all(path_ / name); }

 private:
  std::filesystem::path path_;
};

/// make_tree({{"hwmon/hwmon3/temp1_input", "42000\n"}, {"driver", "-> ../drivers/amdgpu"}})
inline Tree make_tree(Tree::Files files) { return Tree(files); }

}  // namespace gpumeter
