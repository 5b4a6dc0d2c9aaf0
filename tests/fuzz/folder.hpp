#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::fuzz {

/// A temporary folder for targets whose parser reads files, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gpumeter-fuzz-XXXXXX").string();
    expect(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// `name` may contain folders.
  void write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::ofstream file(path, std::ios::binary);
    if (!file) {
      std::filesystem::create_directories(path.parent_path());
      file.open(path, std::ios::binary);
    }
    file.write(bytes.data(), std::ssize(bytes));
  }

 private:
  std::string path_;
};

}  // namespace gpumeter::fuzz
