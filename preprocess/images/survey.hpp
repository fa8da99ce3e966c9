// SPDX-License-Identifier: Apache-2.0
// What all runs hold together: classes, the global order, splits and partitions, sums. Nothing here depends on which
// rank read what, nor when.
#pragma once
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/labels.hpp"
#include "preprocess/spill/run_file.hpp"
#include "preprocess/statistics.hpp"

namespace convoy::preparation {

/// An image in the global order of its split in the source, its origin.
struct OrderedImage {
  RunEntry entry;
  std::size_t run = 0;     ///< number of its run
  std::size_t number = 0;  ///< number of its entry there
  std::int32_t label = 0;
  std::string name;
};

/// Returns the images of one origin with low <= hash <= high, in order; of several of one name only the first of the
/// source. `notes` gets what was left out, if it isn't null.
std::vector<OrderedImage> load_order(const std::vector<RunReader>& runs, const ClassList& classes, Split origin,
                                     std::uint64_t low, std::uint64_t high, std::vector<Note>* notes);

/// Where a partition begins: images of lower hash come before it, and `before` images of its origin do.
struct Boundary {
  std::uint64_t hash = 0;
  Index before = 0;
};

/// A split as it will lie on the disk.
struct SplitPlan {
  std::string name;
  Split origin = Split::train;                    ///< split of the source from which its images come
  Range range;                                    ///< places in the order of its origin
  std::vector<Index> stored_bytes;                ///< by size
  std::vector<std::vector<Boundary>> boundaries;  ///< by size, then by partition, and the end
  Index partitions(std::size_t size) const { return static_cast<Index>(boundaries[size].size()) - 1; }
};

/// Images of the val split that train has, too: the same bytes, whatever their names and classes.
struct SharedImages {
  struct Pair {
    std::string train, val;  ///< names
    void fields(auto&& visit) { visit(train, val); }
  };
  Index images = 0;
  std::vector<Pair> examples;  ///< two at most
};

struct Survey {
  ClassList classes;
  std::vector<SplitPlan> splits;             ///< none of them empty; none at all where no image for train was read
  std::vector<Normalisation> normalisation;  ///< by size
  std::string source_digest;
  Index images_read = 0;
  std::vector<Note> notes;                                 ///< rank 0 has all, sorted
  std::vector<std::vector<std::int64_t>> images_of_class;  ///< by split, then by class
  SharedImages shared;
};

/// What is known before images are looked at.
struct SurveySpec {
  const PrepareSpec& prepare;
  ClassList given;               ///< what the user or a set gives
  std::vector<ClassText> known;  ///< that the source names whether or not it has images of them
  /// Lines of a label file that gives labels by images' numbers, by origin; else 0.
  std::vector<Index> numbered_lines;
};

/// Collective. Throws AgreedError where two images have one number and labels go by numbers.
Survey survey_runs(Communicator& comm, const SurveySpec& spec, const std::vector<RunReader>& runs);

}  // namespace convoy::preparation
