// SPDX-License-Identifier: Apache-2.0
// Where raw data lies: a path, `s3://bucket/prefix` or `http(s)://host/path`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::preparation {

enum class Scheme : std::uint8_t { file, http, s3 };

/// An address taken apart into the store that holds it and what it names there.
struct Location {
  Scheme scheme = Scheme::file;
  std::string root;  ///< file: empty; http: `https://host:port`; s3: the bucket
  std::string path;  ///< file: the path; else without leading slash, may be empty
};

/// Throws Error(usage) for another scheme (`gs://`), or an address without host or bucket.
Location parse_location(const std::string& text);

/// `a-{000..127}.tar` and `{train,val}` to all texts they stand for, in order; a text without braces to itself. Throws
/// Error(usage) for braces that don't pair or ranges that make no sense.
std::vector<std::string> expand_braces(const std::string& text);

/// Folder and name joined by one slash; an empty folder or name adds none.
std::string join_names(std::string_view folder, std::string_view name);
/// `b.tar` of `a/b.tar`.
std::string base_name(const std::string& name);
/// `a` of `a/b.tar`; empty without a slash.
std::string folder_name(const std::string& name);
/// `a/b.jpg` of `./a//b.jpg`, `/a/b.jpg`, `../a/b.jpg` and `a/c/../b.jpg`: what a path names below one place. May be
/// empty.
std::string plain_path(std::string_view path);
/// ASCII letters in lower case, whatever the locale.
std::string lower(std::string text);
/// Every byte but letters, digits and `-._~` (and with `keep_slashes` `/`) as %XX: RFC 3986, as signatures want it.
enum class Slashes : std::uint8_t { keep, encode };
std::string percent_encode(std::string_view text, Slashes slashes);
std::string percent_decode(std::string_view text);

}  // namespace convoy::preparation
