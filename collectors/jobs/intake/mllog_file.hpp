#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/jobs/wire/payload.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// Follows a file or named pipe into which an MLPerf job logs, from its start, also if it is truncated,
/// replaced or made only later. One thread.
///
/// The job controls the file, and could make it a link to a file that only the daemon may read, or to a
/// device that a read disturbs. So no link is followed anywhere on the path, and only files and pipes are
/// opened.
class MllogFile {
 public:
  /// The most that one read() takes, plus a buffer, so that a large file holds up nobody: 1 MiB is 7000
  /// lines.
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

  /// New lines, in order.
  struct Batch {
    SenderId sender;
    std::string lines;           ///< each ends with a newline
    std::uint64_t overlong = 0;  ///< lines over kMaxPayload, which are left out
  };

  /// `number` counts from 1: it makes the senders of two files different.
  MllogFile(std::string path, std::int32_t number) : path_(std::move(path)), number_(number) {}

  /// nullopt: no new lines.
  std::optional<Batch> read();

  /// The file's owner, with -number as its pid and the inode as its start time; nullopt if it is not open.
  std::optional<SenderId> sender() const noexcept;
  /// Why the file is not read, unless it merely does not exist. Empty: no trouble.
  std::string_view trouble() const noexcept { return trouble_; }

 private:
  Descriptor find();
  void open();
  bool is_replaced();

  std::string path_;
  std::int32_t number_;
  Descriptor descriptor_;
  struct stat status_ {};
  std::size_t offset_ = 0;
  std::optional<StreamSplitter> lines_;
  std::string_view trouble_;
};

}  // namespace gpumeter::jobs
