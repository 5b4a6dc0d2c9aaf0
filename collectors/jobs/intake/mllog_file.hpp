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

/// Follows a file or named pipe into which an MLPerf job logs, from its start. The file may be truncated,
/// replaced or created later. One thread.
///
/// The job controls the file, and could replace it with a link. The link could lead to a file that only the
/// daemon may read, or to a device that a read disturbs. The class therefore follows no link anywhere on the
/// path, and opens only files and pipes.
class MllogFile {
 public:
  /// The limit of one read(), in addition to one buffer, so that a large file delays no other log: 1 MiB is
  /// 7000 lines.
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

  /// New lines, in order.
  struct Batch {
    SenderId sender;
    std::string lines;           ///< each ends with a newline
    std::uint64_t overlong = 0;  ///< omitted lines over kMaxPayload
  };

  /// `number` counts from 1 and distinguishes the senders of two files.
  MllogFile(std::string path, std::int32_t number) : path_(std::move(path)), number_(number) {}

  /// Returns nullopt if there are no new lines.
  std::optional<Batch> read();

  /// The file's owner, with -number as its pid and the inode as its start time; nullopt if the file is not
  /// open.
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
