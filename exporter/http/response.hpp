#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "exporter/http/message.hpp"

struct MHD_Response;

namespace gpumeter {

/// libmicrohttpd's form of a response. It may be queued on many connections at once and may outlive this
/// pointer there: the library counts its own references.
using MhdResponsePtr = std::shared_ptr<MHD_Response>;

/// Returns null if memory is short. The bytes of a page are sent in place, without a copy.
MhdResponsePtr make_response(HttpResponse message);

/// The responses of the current pages, so that a scrape of a cached page costs only its sending. The cache
/// holds one response per requested Content-Type and encoding. The first response with a new page or new
/// configured headers replaces the old ones. Any thread.
class ResponseCache {
 public:
  MhdResponsePtr response(HttpResponse message);

 private:
  struct Entry {
    std::string_view content_type;
    PagePtr page;
    std::shared_ptr<const WebGeneration> access;
    MhdResponsePtr response;
  };

  MhdResponsePtr find(const HttpResponse& message) const;
  void keep(Entry entry);

  mutable Mutex mutex_;
  std::vector<Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
