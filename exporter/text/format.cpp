#include "exporter/text/format.hpp"

#include <zlib.h>

#include <limits>
#include <memory>

namespace gpumeter {
namespace {

constexpr int kLevel = 1;
constexpr int kGzipWindowBits = 15 + 16;  // deflateInit2: 15 is the largest window, 16 adds a gzip header
constexpr int kMemoryLevel = 8;           // zlib's default

}  // namespace

Result<std::string> gzip(std::string_view bytes) {
  z_stream stream{};
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2)
    return Error("gzip: the page is too long for one call of zlib");
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Error("gzip: zlib is out of memory");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return Error("gzip: zlib could not compress the page");
  out.resize(stream.total_out);
  out.shrink_to_fit();  // pages are kept, and deflateBound() assumes incompressible data
  return out;
}

Result<std::string> gunzip(std::string_view file) {
  constexpr std::size_t kTrailer = 4;  // the length of the bytes, little-endian
  if (file.size() < kTrailer) return Error("gunzip: the file is cut");
  std::size_t length = 0;
  for (std::size_t i = 1; i <= kTrailer; ++i) {
    length = length << 8 | static_cast<unsigned char>(file[file.size() - i]);
  }
  constexpr std::size_t kMostGrowth = 1032;  // of deflate, by zlib's "Technical Details"
  if (length > kMostGrowth * file.size()) return Error("gunzip: the file is damaged");
  std::string bytes(length, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) return Error("gunzip: zlib is out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END) return Error("gunzip: the file is damaged");
  return bytes;
}

}  // namespace gpumeter
