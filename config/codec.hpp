#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_tree.hpp"

/// How each type of a key is read from the file, shown again and named in words. A further type of key is
/// one more overload of the three.
namespace gpumeter::config {

/// What would be right, where a value is not: `must be ..., not "..."`. nullopt: the value is fine.
using Complaint = std::optional<std::string>;

Complaint read(const Node& node, std::string& value);
Complaint read(const Node& node, unsigned& value);
Complaint read(const Node& node, bool& value);
Complaint read(const Node& node, Duration& value);
Complaint read(const Node& node, std::vector<std::string>& value);
Complaint read(const Node& node, std::map<std::string, std::string>& value);
Complaint read(const Node& node, LogLevel& value);
Complaint read(const Node& node, LogFormat& value);
Complaint read(const Node& node, Enabled& value);
Complaint read(const Node& node, std::vector<DeviceLabel>& value);

std::string show(const std::string& value);
std::string show(unsigned value);
std::string show(bool value);
std::string show(Duration value);
std::string show(const std::vector<std::string>& value);
std::string show(const std::map<std::string, std::string>& value);
std::string show(LogLevel value);
std::string show(LogFormat value);
std::string show(const std::vector<DeviceLabel>& value);

template <class T>
inline constexpr std::string_view kTypeWords = "text";
template <>
inline constexpr std::string_view kTypeWords<unsigned> = "whole number";
template <>
inline constexpr std::string_view kTypeWords<bool> = "true or false";
template <>
inline constexpr std::string_view kTypeWords<Duration> = "duration";
template <>
inline constexpr std::string_view kTypeWords<std::vector<std::string>> = "list of texts";
template <>
inline constexpr std::string_view kTypeWords<std::map<std::string, std::string>> = "map of texts";
template <>
inline constexpr std::string_view kTypeWords<LogLevel> = "debug, info, warn or error";
template <>
inline constexpr std::string_view kTypeWords<LogFormat> = "auto, logfmt or json";
template <>
inline constexpr std::string_view kTypeWords<std::vector<DeviceLabel>> =
    "list of vendor, model, pci_address, serial, name";

/// What a value is, for the end of a complaint: `"40x"`, `the text "40"`, `a list`.
std::string found(const Node& node);

/// Text of the file that is safe and short enough to stand in a message.
std::string printable(std::string_view text);

/// Whole numbers and decimals as the file may spell them.
Complaint check_integer(const Node& node);
Complaint check_number(const Node& node);

}  // namespace gpumeter::config
