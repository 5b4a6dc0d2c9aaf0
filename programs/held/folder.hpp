#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/folder.hpp"
#include "base/result.hpp"
#include "programs/held/record.hpp"

namespace gpumeter::held {

/// The files of the records, in a folder of root's, and `.managed` with the PCI addresses that are known to
/// be managed, one a line. One thread; blocks as the file system does.
class RecordFolder {
 public:
  struct Content {
    Records records;
    std::map<std::string, std::chrono::seconds> written;  ///< since 1970, by job
    std::set<std::string> managed;
  };

  /// Error: there is no such folder, or others than its owner may write in it.
  static Result<RecordFolder> open(const std::string& path);

  Content read() const;
  /// Replaces the file at once, so that a reader never sees a part. Error: the file cannot be written.
  Result<Done> write(const std::string& job, const Record& record) const;
  Result<Done> write_managed(const std::set<std::string>& gpus) const;
  void remove(const std::string& job) const;

 private:
  explicit RecordFolder(Folder folder) : folder_(std::move(folder)) {}
  Result<Done> replace(const std::string& name, const std::string& text) const;

  Folder folder_;
};

}  // namespace gpumeter::held
