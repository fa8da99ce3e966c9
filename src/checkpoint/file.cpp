// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "backend/compression_layout.hpp"
#include "backend/set_layout.hpp"
#include "core/shape_text.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {
// A seal's tag: the attempt above the steps done, plus 1.
constexpr int step_bits = 40;
std::uint64_t tag_of(const Stamp& stamp) {
  return (static_cast<std::uint64_t>(stamp.attempt) << step_bits) + static_cast<std::uint64_t>(stamp.step) + 1;
}

constexpr const char* format_name = "convoy-checkpoint";
static_assert(std::endian::native == std::endian::little, "tensors are stored as they lie in memory");
const std::string ema_group = "/ema", anchor_group = "/outer/anchor", outer_momentum_group = "/outer/momentum",
                  residual_group = "/residual", basis_group = "/basis", correction_group = "/optimiser/correction/";

std::span<const std::byte> bytes_of(const HostSet& set, Range range) {
  return std::as_bytes(std::span(set.block).subspan(static_cast<std::size_t>(range.begin - set.first),
                                                    static_cast<std::size_t>(range.count)));
}

std::span<std::byte> bytes_of(std::vector<float>& block, Range range) {
  return std::as_writable_bytes(
      std::span(block).subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count)));
}

/// What goes into a file: a tensor and where its values lie; then the place that they get.
struct Written {
  StoredTensor tensor;
  std::span<const std::byte> values;
  std::uint64_t offset = 0;
};

/// What a file with this meta has of compressed gradients, and the floats of its block.
std::pair<std::vector<StoredTensor>, Index> stored_compressed(const Plan& plan, const FileMeta& file) {
  const CompressionLayout layout = compression_layout(plan.table, file.meta.compression);
  if (file.replica >= 0) return {stored_residuals(plan, file.meta.compression), layout.residual_floats};
  return {stored_bases(plan, file.meta.compression), layout.basis_floats};
}

/// Where gradients are averaged all replicas share one set: a shard has a residual, and nothing that the main file has.
bool is_residual_alone(const FileMeta& file) { return file.replica >= 0 && file.meta.compression.is_on(); }

std::vector<Written> tensors_to_write(const Plan& plan, const SetLayout& layout, const FileMeta& file,
                                      const FileSets& sets) {
  std::vector<Written> all;
  const auto append = [&](const std::vector<StoredTensor>& tensors, const HostSet& set, Index floats) {
    require(set.first + static_cast<Index>(set.block.size()) == floats,
            "a set to be saved has another size than its layout");
    for (const StoredTensor& tensor : tensors)
      if (tensor.range.begin >= set.first) all.push_back({tensor, bytes_of(set, tensor.range)});
  };
  if (!is_residual_alone(file)) append(stored_tensors(plan, layout), sets.set, layout.count());
  if (sets.compressed != nullptr) {
    const auto [tensors, floats] = stored_compressed(plan, file);
    append(tensors, *sets.compressed, floats);
  }
  if (sets.ema != nullptr) append(stored_ema(plan, layout), *sets.ema, layout.count());
  if (sets.outer != nullptr) append(stored_outer(plan, layout), *sets.outer, outer_layout(layout).count());
  return all;
}

Index version_of(const FileMeta& meta) {
  if (meta.meta.compression.is_on()) return residual_checkpoint_version;
  if (meta.values_in_main) return slim_shard_version;
  if (meta.meta.has_outer) return outer_checkpoint_version;
  return meta.meta.ema_decay > 0 ? ema_checkpoint_version : oldest_checkpoint_version;
}

/// Makes the file's structure, with places for the tensors' bytes.
void lay_out(const std::string& path, std::vector<Written>& all, Index version, const std::string& meta) {
  Hdf5File file(path, Hdf5File::Access::create);
  file.attribute("format", std::string(format_name));
  file.attribute("version", version);
  file.attribute("meta", meta);
  for (Written& written : all)
    written.offset = file.reserve(written.tensor.name, {Element::f32, written.tensor.extent});
  file.close();
}

/// Sorted by place.
std::vector<KnownBytes> places_of(const std::vector<Written>& all) {
  std::vector<KnownBytes> places;
  places.reserve(all.size());
  for (const Written& written : all) places.push_back({written.offset, written.values});
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return places;
}

/// What HDF5 finds in the file, whose bytes are known to be good, is what was meant to be there.
void check_structure(const std::string& path, const std::vector<Written>& all, const std::string& meta) {
  const Hdf5File file(path, Hdf5File::Access::read);
  bool same = file.text_attribute("meta") == meta;
  for (const Written& written : all) {
    same = same && file.shape(written.tensor.name) == DatasetShape{Element::f32, written.tensor.extent} &&
           file.offset(written.tensor.name) == written.offset;
  }
  if (!same)
    fail(Exit::data,
         "checkpoint '{}' reads back with another structure than was written (storage fault); use another disk", path);
}

/// An open, sealed file of this format and version, and its meta part.
FileMeta check_header(const Hdf5File& file, const std::string& path) {
  if (!file.has_attribute("format") || file.text_attribute("format") != format_name)
    fail(Exit::data, "'{}' is not a checkpoint (it has no format attribute '{}'); give a file that convoy train wrote",
         path, format_name);
  const Index version = file.integer_attribute("version");
  if (version < oldest_checkpoint_version || version > newest_checkpoint_version)
    fail(Exit::data,
         "checkpoint '{}' has format version {} (this program reads versions {} to {}); use the program that wrote it",
         path, version, oldest_checkpoint_version, newest_checkpoint_version);
  return parse_meta(file.text_attribute("meta"), path);
}

/// A shard has no weights of its own between two averages: taken for a checkpoint it would be a network of zeros.
void require_main(const FileMeta& file, const std::string& path) {
  if (file.replica < 0) return;
  fail(
      Exit::data,
      "'{}' is no checkpoint but the shard of replica {} (of {}); give the main file beside it, whose name has no 'shard'",
      path, file.replica, file.meta.replicas);
}

/// Names of the file under one of the tensor groups, as StoredTensor::name.
std::vector<std::string> names_below(const Hdf5File& file, const std::string& group) {
  std::vector<std::string> names;
  if (!file.exists(group)) return names;
  for (const std::string& name : file.names(group)) names.push_back(group + "/" + name);
  return names;
}

/// Of what is read: with Content::weights the groups below `weights`, the root or the moving average.
std::vector<std::string> tensor_names(const Hdf5File& file, Content content, const std::string& weights) {
  std::vector<std::string> names;
  const auto append = [&](const std::string& group) {
    const std::vector<std::string> more = names_below(file, group);
    names.insert(names.end(), more.begin(), more.end());
  };
  const auto append_weights = [&](const std::string& below) {
    append(below + "/parameters");
    append(below + "/statistics");
  };
  append_weights(weights);
  if (content == Content::all) {
    for (const std::string& slot : names_below(file, "/optimiser")) append(slot);
    append_weights(ema_group);
    for (const std::string& group : {anchor_group, outer_momentum_group, residual_group, basis_group}) append(group);
  }
  return names;
}

/// A file, the network that is to take it, and how much of it.
struct Fit {
  const std::string& path;
  const Plan& plan;
  Content content;
};

[[noreturn]] void fail_difference(const Fit& fit, const FileMeta& meta, const std::string& difference) {
  fail(Exit::data, "checkpoint '{}' of {} doesn't fit {} ({}); give {} of its run{}", fit.path, meta.model,
       fit.plan.graph.model, difference,
       fit.content == Content::all ? "the model, the number of classes and the optimizer"
                                   : "the model and the number of classes",
       meta.model == fit.plan.graph.model ? ", with the options in its config.cfg" : "");
}

/// `/parameters/fc.` of each layer that makes classes.
std::vector<std::string> heads_of(const Plan& plan) {
  std::vector<std::string> heads;
  for (const Node* layer : class_layers(plan.graph))
    heads.push_back(fmt::format("/parameters/{}.", layer == nullptr ? "" : layer->name));
  return heads;
}

bool is_of_head(const StoredTensor& tensor, const std::vector<std::string>& heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](const std::string& head) { return tensor.name.find(head) != std::string::npos; });
}

/// The same but for the number of outputs, which differs.
bool is_other_head(const StoredTensor& tensor, const std::vector<Index>& extent,
                   const std::vector<std::string>& heads) {
  return is_of_head(tensor, heads) && extent.size() == tensor.extent.size() && !extent.empty() &&
         extent.front() != tensor.extent.front() &&
         std::equal(extent.begin() + 1, extent.end(), tensor.extent.begin() + 1);
}

/// What --overlap-average has still to add to a replica's weights. A run may go on with or without it: 0 is nothing to
/// add, and without late averages nobody adds it.
bool is_correction(const std::string& name) { return name.starts_with(correction_group); }

/// Files named the momentum by its number before there were other slots.
std::string stored_slot(const std::string& name) { return name == "momentum" ? "0" : name; }

std::vector<StoredTensor> stored_weights(const Plan& plan, const SetLayout& layout) {
  std::vector<StoredTensor> tensors = stored_tensors(plan, layout);
  std::erase_if(tensors, [](const StoredTensor& tensor) {
    return !tensor.name.starts_with("/parameters/") && !tensor.name.starts_with("/statistics/");
  });
  return tensors;
}
}  // namespace

std::vector<StoredTensor> stored_tensors(const Plan& plan, const SetLayout& layout) {
  std::vector<StoredTensor> tensors;
  for (const Parameter& row : plan.table.rows)
    tensors.push_back({"/parameters/" + row.name, row.shape, {layout.values.begin + row.range.begin, row.range.count}});
  for (std::size_t slot = 0; slot < layout.slots.size(); ++slot) {
    const std::string group = "/optimiser/" + stored_slot(layout.slots[slot]) + "/";
    for (const Parameter& row : plan.table.rows)
      if (row.trainable)
        tensors.push_back({group + row.name, row.shape, {layout.slot(slot).begin + row.range.begin, row.range.count}});
  }
  for (const NormStatistics& norm : plan.table.norms) {
    const Index begin = layout.statistics.begin;
    tensors.push_back(
        {"/statistics/" + norm.name + ".running_mean", {norm.mean.count}, {begin + norm.mean.begin, norm.mean.count}});
    tensors.push_back({"/statistics/" + norm.name + ".running_var",
                       {norm.variance.count},
                       {begin + norm.variance.begin, norm.variance.count}});
  }
  tensors.push_back({"/state", {layout.state.count}, layout.state});
  return tensors;
}

std::vector<StoredTensor> stored_ema(const Plan& plan, const SetLayout& layout) {
  std::vector<StoredTensor> tensors = stored_weights(plan, layout);
  for (StoredTensor& tensor : tensors) tensor.name = ema_group + tensor.name;
  return tensors;
}

std::vector<StoredTensor> stored_outer(const Plan& plan, const SetLayout& layout) {
  const OuterLayout outer = outer_layout(layout);
  std::vector<StoredTensor> tensors;
  for (const auto& [group, range] :
       {std::pair{anchor_group, outer.anchor}, std::pair{outer_momentum_group, outer.momentum}})
    for (const Parameter& row : plan.table.rows)
      if (row.trainable)
        tensors.push_back({group + "/" + row.name, row.shape, {range.begin + row.range.begin, row.range.count}});
  return tensors;
}

std::vector<StoredTensor> stored_residuals(const Plan& plan, const CompressionSpec& spec) {
  std::vector<StoredTensor> tensors;
  for (const CompressedTensor& tensor : compression_layout(plan.table, spec).tensors)
    tensors.push_back({residual_group + "/" + tensor.name, tensor.shape, tensor.residual});
  return tensors;
}

std::vector<StoredTensor> stored_bases(const Plan& plan, const CompressionSpec& spec) {
  std::vector<StoredTensor> tensors;
  for (const CompressedTensor& tensor : compression_layout(plan.table, spec).tensors)
    if (tensor.basis.count > 0)
      tensors.push_back(
          {basis_group + "/" + tensor.name, {tensor.basis.count / tensor.columns, tensor.columns}, tensor.basis});
  return tensors;
}

std::uint32_t seal_digest(const std::string& path) {
  std::array<char, seal_bytes> block{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(block.data(), block.size()))
    fail(Exit::data, "cannot read '{}' ({}); is the folder on a file system that all hosts share?", path,
         file.eof() ? "it is shorter than a seal" : std::strerror(errno));
  return crc32c(block.data(), block.size());
}

void write_set_file(const std::string& path, const Plan& plan, const SetLayout& layout, const FileMeta& meta,
                    const FileSets& sets, const Fence& fence, const std::function<void()>& before_rename) {
  require((sets.ema != nullptr) == (meta.meta.ema_decay > 0), "a moving average and its decay, or neither");
  require((sets.outer != nullptr) == meta.meta.has_outer, "an outer optimiser and its mark, or neither");
  require((sets.compressed != nullptr) == meta.meta.compression.is_on(), "residuals and their mark, or neither");
  require(is_residual_alone(meta) || sets.set.first == (meta.values_in_main ? layout.optimiser.begin : 0),
          "a shard has its values or is without them");
  std::vector<Written> all = tensors_to_write(plan, layout, meta, sets);
  const std::string text = to_text(meta);
  const std::string temporary = path + fence.suffix();
  try {
    lay_out(temporary, all, version_of(meta), text);
    const std::vector<KnownBytes> places = places_of(all);
    write_and_seal(temporary, places, tag_of({meta.meta.attempt, meta.meta.position.step}));
    forget_cached(temporary);
    check_written(temporary, places);
    check_structure(temporary, all, text);
    if (before_rename) before_rename();
    fence.rename(temporary, path);
    sync_folder(std::filesystem::path(path).parent_path().string());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);  // gives a full disk its room back
    throw;
  }
}

SetFile read_set_file(const std::string& path, const Plan& plan, const SetLayout& layout, Content content, Head head,
                      int replica) {
  check_seal(path);
  const Hdf5File file(path, Hdf5File::Access::read);
  SetFile result;
  result.meta = check_header(file, path);
  if (replica < 0) require_main(result.meta, path);
  if (replica >= 0 && result.meta.replica != replica)
    fail(Exit::data, "'{}' is not the shard of replica {} (it says {}); resume from another checkpoint", path, replica,
         result.meta.replica);

  const Fit fit{path, plan, content};
  const std::vector<std::string> heads = heads_of(plan);
  std::set<std::string> wanted;
  const auto read = [&](const std::vector<StoredTensor>& tensors, HostSet& to, Index floats) {
    to.block.assign(static_cast<std::size_t>(floats), 0.0F);
    for (const StoredTensor& tensor : tensors) {
      if (replica >= 0 && result.meta.values_in_main && tensor.range.end() <= layout.values.end()) continue;
      const bool is_there = file.exists(tensor.name);
      if (!is_there && is_correction(tensor.name)) continue;
      if (!is_there) fail_difference(fit, result.meta, fmt::format("'{}' is missing in the file", tensor.name));
      wanted.insert(tensor.name);
      const DatasetShape shape = file.shape(tensor.name);
      const bool is_left_out = head == Head::left_out && is_of_head(tensor, heads),
                 is_other = head == Head::where_it_fits && is_other_head(tensor, shape.extent, heads);
      if (is_left_out || is_other) {
        result.unread.push_back(tensor.name);
      } else if (shape.extent == tensor.extent && shape.element == Element::f32) {
        file.read(tensor.name, Element::f32, bytes_of(to.block, tensor.range));
      } else {
        fail_difference(
            fit, result.meta,
            fmt::format("'{}' is {}{} in the file and {} in the model", tensor.name, shape_text(shape.extent),
                        shape.element == Element::f32 ? "" : " of another type", shape_text(tensor.extent)));
      }
    }
  };
  const bool has_ema = content != Content::trained_weights && result.meta.meta.ema_decay > 0;
  if (content == Content::all) {
    if (!is_residual_alone(result.meta)) read(stored_tensors(plan, layout), result.set, layout.count());
    if (result.meta.meta.compression.is_on()) {
      const auto [tensors, floats] = stored_compressed(plan, result.meta);
      read(tensors, result.compressed, floats);
    }
    if (has_ema) read(stored_ema(plan, layout), result.ema, layout.count());
    if (result.meta.meta.has_outer) read(stored_outer(plan, layout), result.outer, outer_layout(layout).count());
  } else {
    read(has_ema ? stored_ema(plan, layout) : stored_weights(plan, layout), result.set, layout.count());
  }
  for (const std::string& name : tensor_names(file, content, content == Content::weights && has_ema ? ema_group : ""))
    if (wanted.count(name) == 0 && !is_correction(name))
      fail_difference(fit, result.meta, fmt::format("'{}' of the file is not in the model", name));
  // Variants of one network can share all names and shapes (the stride's place in resnet50 v1 and v1.5).
  if (result.meta.model != plan.graph.model)
    fail_difference(fit, result.meta, "names and shapes agree, the networks don't");
  return result;
}

FileMeta read_whole_meta(const std::string& path) { return check_header(Hdf5File(path, Hdf5File::Access::read), path); }

FileMeta read_file_meta(const std::string& path) {
  check_seal(path);
  return read_whole_meta(path);
}

namespace {

/// Throws Error(data) where the seal is broken, and names what can be taken in place of the file.
void require_whole(const std::string& path) {
  try {
    check_seal(path);
  } catch (const Error& error) {
    if (error.code() != Exit::data) throw;
    std::error_code unknown;
    std::vector<std::string> others;
    const std::filesystem::path file(path), folder = file.has_parent_path() ? file.parent_path() : ".";
    for (std::filesystem::directory_iterator at(folder, unknown), end; !unknown && at != end; at.increment(unknown)) {
      const std::string name = at->path().filename().string();
      if (name != file.filename() && name.ends_with(".h5") && name.find(".shard-") == std::string::npos)
        others.push_back("'" + name + "'");
    }
    std::sort(others.begin(), others.end());
    fail(Exit::data, "{}; {}", error.what(),
         others.empty()
             ? "restore it from a copy, or give another checkpoint"
             : fmt::format("give another checkpoint of its folder ({}), or train on with --resume auto, which "
                           "takes the newest whole one",
                           fmt::join(others, ", ")));
  }
}

}  // namespace

FileMeta read_main_meta(const std::string& path) {
  if (const std::string kind = foreign_kind_of_file(path); !kind.empty())
    fail(
        Exit::data,
        "'{}' is {}, not a checkpoint of 'convoy train'; give a run directory, or a .h5 file of its folder checkpoints",
        path, kind);
  require_whole(path);
  FileMeta file = check_header(Hdf5File(path, Hdf5File::Access::read), path);
  require_main(file, path);
  return file;
}

std::string find_damage(const std::string& path) {
  try {
    check_seal(path);
  } catch (const Error& error) {
    return error.what();
  }
  // Whole, but no checkpoint of this version: an error of its own, not damage.
  const FileMeta main = check_header(Hdf5File(path, Hdf5File::Access::read), path);
  for (const ShardRecord& shard : main.shards)
    if (std::string damage = find_damage(path, shard); !damage.empty()) return damage;
  return {};
}

std::string shard_path(const std::string& main, const ShardRecord& shard) {
  return (std::filesystem::path(main).parent_path() / shard.file).string();
}

std::string find_damage(const std::string& main, const ShardRecord& shard) {
  const std::string file = shard_path(main, shard);
  try {
    check_seal(file);
    if (seal_digest(file) != shard.seal) return fmt::format("shard '{}' is of another save", file);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Stamp peek(const std::string& path) {
  const std::uint64_t tag = peek_tag(path);
  return {static_cast<Index>(tag >> step_bits), static_cast<Index>(tag & ((std::uint64_t{1} << step_bits) - 1)) - 1};
}

}  // namespace convoy
