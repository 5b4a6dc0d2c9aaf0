#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/jobs/wire/payload.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// A file, or named pipe, into which an MLPerf job logs: followed from its start, also where it is cut, put
/// aside for another or made only later. One thread.
///
/// Its owner says what is in it, and could make it a link to what only the daemon may read or to a device
/// that a read disturbs: no link is followed anywhere on the path, and nothing else is opened.
class MllogFile {
 public:
  /// What one read() takes at the most, and a buffer beyond, so that a large file holds up nobody: 1 MiB is
  /// 7000 lines.
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

  using Take = std::function<void(std::string_view line)>;

  /// `number` counts from 1: it makes the senders of two files different.
  MllogFile(std::string run, std::string path, std::int32_t number)
      : run_(std::move(run)), path_(std::move(path)), number_(number) {}

  /// Takes what has been added; how many lines were over kMaxPayload.
  std::uint64_t read(const Take& take);

  const std::string& run() const noexcept { return run_; }
  const std::string& path() const noexcept { return path_; }
  /// The file's owner, with the number as negative pid and the inode for its start time; while it is open.
  std::optional<SenderId> sender() const noexcept;
  /// Why it is not read, where that is more than that it is not there. Empty: no trouble.
  std::string_view trouble() const noexcept { return trouble_; }

 private:
  Descriptor find();
  void open();
  bool is_replaced();
  std::uint64_t read_some(const Take& take);

  std::string run_;
  std::string path_;
  std::int32_t number_;
  Descriptor descriptor_;
  struct stat status_ {};
  std::size_t offset_ = 0;
  std::optional<StreamSplitter> lines_;
  std::string_view trouble_;
};

}  // namespace gpumeter::jobs
