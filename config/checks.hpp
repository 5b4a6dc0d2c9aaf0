#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"

/// What a value must be beyond its type; keys.cpp names one of these in a row.
namespace gpumeter::config {

/// Known, so that the refusal says more than "unknown key"; exporters of Prometheus have it.
Complaint check_no_web_config(const std::string& file);
Complaint check_addresses(const std::vector<std::string>& addresses);
Complaint check_url_path(const std::string& path);
Complaint check_interval(const Duration& interval);
Complaint check_absolute_path(const std::string& path);
Complaint check_device_names(const std::map<std::string, std::string>& names);

}  // namespace gpumeter::config
