// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/location.hpp"

#include <algorithm>
#include <charconv>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy::preparation {
namespace {

[[noreturn]] void reject_braces(const std::string& text, const char* why) {
  fail(Exit::usage, "cannot expand '{}' ({}); write {{000..127}} or {{a,b}}", text, why);
}

/// `000..127`: numbers with leading zeros keep their width.
std::vector<std::string> expand_range(const std::string& text, const std::string& first, const std::string& last) {
  const auto number = [&](const std::string& digits) {
    Index value = 0;
    const auto [end, reason] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (reason != std::errc() || end != digits.data() + digits.size() || value < 0) {
      reject_braces(text, "a range has two numbers");
    }
    return value;
  };
  const Index from = number(first), to = number(last);
  if (to < from) reject_braces(text, "the range runs backwards");
  if (to - from >= 10'000'000) reject_braces(text, "too many names");
  const std::size_t digits = first.front() == '0' ? first.size() : 0;
  std::vector<std::string> all;
  for (Index i = from; i <= to; ++i) all.push_back(fmt::format("{:0{}}", i, digits));
  return all;
}

std::vector<std::string> alternatives(const std::string& text, const std::string& inside) {
  if (const auto dots = inside.find(".."); dots != std::string::npos && dots > 0) {
    return expand_range(text, inside.substr(0, dots), inside.substr(dots + 2));
  }
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t end = std::min(inside.find(',', begin), inside.size());
    all.push_back(inside.substr(begin, end - begin));
    begin = end + 1;
  }
  if (all.size() < 2) reject_braces(text, "braces hold a range or words with commas");
  return all;
}

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

Location parse_location(const std::string& text) {
  const auto colon = text.find("://");
  if (colon == std::string::npos) return {Scheme::file, "", text};
  const std::string scheme = text.substr(0, colon), rest = text.substr(colon + 3);
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string host = rest.substr(0, slash), path = slash < rest.size() ? rest.substr(slash + 1) : "";
  if (scheme == "file") return {Scheme::file, "", rest};
  if (scheme != "s3" && scheme != "http" && scheme != "https") {
    fail(Exit::usage, "cannot read '{}' (unknown scheme '{}'); give a path, s3://BUCKET/PREFIX or http(s)://HOST/PATH",
         text, scheme);
  }
  if (host.empty())
    fail(Exit::usage, "cannot read '{}' (it names no {}); check the address", text, scheme == "s3" ? "bucket" : "host");
  if (scheme == "s3") return {Scheme::s3, host, path};
  return {Scheme::http, scheme + "://" + host, path};
}

std::vector<std::string> expand_braces(const std::string& text) {
  const auto open = text.find('{');
  if (open == std::string::npos) {
    if (text.find('}') != std::string::npos) reject_braces(text, "a brace closes that was not opened");
    return {text};
  }
  const auto close = text.find('}', open);
  if (close == std::string::npos) reject_braces(text, "a brace does not close");
  std::vector<std::string> all;
  const auto tails = expand_braces(text.substr(close + 1));
  for (const auto& middle : alternatives(text, text.substr(open + 1, close - open - 1))) {
    for (const auto& tail : tails) all.push_back(text.substr(0, open) + middle + tail);
  }
  return all;
}

std::string join_names(std::string_view folder, std::string_view name) {
  std::string joined(folder);
  if (!joined.empty() && !name.empty() && joined.back() != '/') joined += '/';
  return joined.append(name);
}

std::string base_name(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string folder_name(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

std::string plain_path(std::string_view path) {
  std::string plain;
  for (std::size_t begin = 0, end = 0; begin <= path.size(); begin = end + 1) {
    end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "..") {
      plain = folder_name(plain);
    } else if (!part.empty() && part != ".") {
      plain = join_names(plain, part);
    }
  }
  return plain;
}

std::string percent_encode(std::string_view text, Slashes slashes) {
  std::string encoded;
  for (const char c : text) {
    if (unreserved(c) || (c == '/' && slashes == Slashes::keep)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace convoy::preparation
