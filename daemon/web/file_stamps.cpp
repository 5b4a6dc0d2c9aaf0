#include "daemon/web/file_stamps.hpp"

#include <sys/stat.h>

namespace gpumeter {
namespace {

std::int64_t nanoseconds_of(const timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

FileStamp stamp_of(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds_of(status.st_mtim),
          nanoseconds_of(status.st_ctim)};
}

}  // namespace

std::vector<FileStamp> stamps_of(const std::vector<std::string>& files) {
  std::vector<FileStamp> stamps;
  for (const std::string& file : files) stamps.push_back(stamp_of(file));
  return stamps;
}

}  // namespace gpumeter
