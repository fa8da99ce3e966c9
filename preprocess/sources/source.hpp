// SPDX-License-Identifier: Apache-2.0
// Where samples come from. A new source is a file beside this one, its line in source.cpp and in the CMake list, and
// its options if it has some of its own.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/sample_reader.hpp"
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

/// Digests of what was found in a source, one for each kind of change, so that a message can name it.
struct SourceTrace {
  std::uint64_t names = 0, sizes = 0, times = 0;  ///< sizes: or a digest of the bytes. times: or a store's versions
  Index unsized = 0;                              ///< files of which nothing but the name is known

  void add(const ObjectInfo& object);
  /// Adds what tells the bytes themselves.
  void add_contents(const std::string& digest);
  void append(const SourceTrace& next);
  void fields(auto&& visit) { visit(names, sizes, times, unsized); }
};

/// The shards that one rank cuts from a container, and what tells that the container has changed.
class ShardList {
 public:
  void add(const Shard& shard) { shards_.push_back(shard); }
  /// Cuts `entries` entries into shards of at most `per_shard`.
  void add_slices(Shard shard, Index entries, Index per_shard);
  /// Adds a shard for all of an object.
  void add_object(OpenSplit& split, Shard shard);
  /// The name or the bytes of something, as earlier versions noted it: their sets are told by this digest.
  void note(const std::string& what);
  /// Notes the name, and what is known of size and version, of one file of many.
  void trace(const ObjectInfo& object) { trace_.add(object); }
  void trace_contents(const std::string& digest) { trace_.add_contents(digest); }
  /// The container goes on with the one before it: earlier versions took both for one, and noted one digest.
  void go_on() { goes_on_ = true; }
  void count_objects(Index objects) { objects_ += objects; }
  /// Notes name, size and version of an object, and counts it.
  ObjectInfo note_object(OpenSplit& split, const std::string& name);
  void leave_out(const std::vector<Count>& files) { left_out_.insert(left_out_.end(), files.begin(), files.end()); }
  const std::vector<Count>& left_out() const { return left_out_; }
  const std::vector<Shard>& shards() const { return shards_; }
  const std::string& digest() const { return digest_; }
  const SourceTrace& trace() const { return trace_; }
  bool goes_on() const { return goes_on_; }
  Index objects() const { return objects_; }
  void fields(auto&& visit) { visit(shards_, digest_, trace_, goes_on_, objects_, left_out_); }

 private:
  std::vector<Shard> shards_;
  std::string digest_;
  SourceTrace trace_;
  bool goes_on_ = false;
  Index objects_ = 0;
  std::vector<Count> left_out_;
};

/// One of the sources that `convoy-preprocess NAME` reads.
class Source {
 public:
  virtual ~Source() = default;
  virtual const char* name() const = 0;
  /// Whether its samples are the pixels of a set (PixelSet) instead of image files.
  virtual bool has_pixels() const { return false; }
  /// Whether folders name its classes, and so may name its splits.
  virtual bool has_class_folders() const { return false; }
  /// Describes for --help what --train may name.
  virtual const char* train_help() const { return ""; }
  /// Says whether a location names containers (an archive, a record file) instead of the folder in which they lie.
  virtual bool names_container(const std::string& location) const;
  /// Rank 0: looks at --source, --train and --val. Throws Error(usage) where they make no sense together, Error(data)
  /// where nothing fits.
  virtual std::vector<SplitSource> find(const PrepareSpec& spec) const;
  /// Every rank: opens the set, if the samples are pixels of one. Throws Error(data).
  virtual std::shared_ptr<const PixelSet> open_set(const PrepareSpec&) const { return nullptr; }
  /// Rank 0: lists what holds the samples of a split. Throws Error(data) where nothing does.
  virtual std::vector<Container> list(const PrepareSpec& spec, OpenSplit& split, const ClassList& classes) const = 0;
  /// One rank: looks into a container.
  virtual void cut(const PrepareSpec& spec, OpenSplit& split, const Container& container, ShardList& to) const = 0;
  /// Reads a shard from a position that an earlier reader of it gave; -1: from its beginning. A split has one reader at
  /// a time.
  virtual std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                             Index position = -1) const = 0;
};

/// Lists the objects of a split: those that the user named, or those in its folder that `is_container` accepts. Throws
/// Error(data) where there are none; `expected` describes them.
std::vector<Container> list_objects(const PrepareSpec& spec, OpenSplit& split, const char* expected,
                                    bool (*is_container)(const std::string& name));
[[noreturn]] void fail_without_containers(const PrepareSpec& spec, OpenSplit& split, const char* expected);

/// All sources, in the order in which --help lists them.
const std::vector<const Source*>& all_sources();
/// Null for a word that names none.
const Source* find_source(const std::string& name);

}  // namespace convoy::preparation
