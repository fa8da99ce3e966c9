// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"

namespace convoy {

OptionGroup source_options(DataConfig& data) {
  auto& synthetic = data.synthetic_spec;
  OptionGroup group{"Data set", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("data", "DIR", data.folder, "folder that convoy-preprocess wrote")).also({"data-path", "data-dir"});
  add(text_option("train-data", "DIR", data.train_folder, "folder of the train split; default: --data"))
      .also({"data-train", "train-dir", "train-data-path"});
  add(text_option("val-data", "DIR", data.val_folder, "folder of the val split; default: --data"))
      .also({"data-val", "val-dir", "eval-data-path"});
  add(switch_option("synthetic", data.synthetic, "learnable images made in memory instead of a data set"))
      .also({"synthetic-data", "dummy"})
      .decides_bits();
  add(number_option("synthetic-samples", "N", synthetic.samples, at_least(1), "images of a synthetic train split"))
      .decides_bits();
  Option size = number_option("synthetic-size", "PIXELS", synthetic.height, from_to(1, 16384),
                              "height and width of synthetic images, pixels");
  size.set = [&synthetic, set_height = size.set](const std::string& text) {
    set_height(text);
    synthetic.width = synthetic.height;
  };
  add(std::move(size)).decides_bits();
  add(number_option("synthetic-channels", "N", synthetic.channels, from_to(1, 4), "channels of synthetic images"))
      .decides_bits();
  add(number_option("synthetic-classes", "N", synthetic.classes, from_to(2, 1 << 20), "classes of a synthetic set"))
      .decides_bits();
  add(number_option("workers", "N", data.workers, from_to(1, 1024), "threads a rank that prepare batches ahead"))
      .short_form('j')
      .also({"data-nthreads", "num-io-threads", "num-workers"});
  add(number_option("prefetch", "N", data.prefetch, from_to(1, 1024), "batches prepared ahead, a rank"));
  add(choice_option<DataCache>(
      "data-cache", data.cache,
      {{"auto", DataCache::automatic},
       {"ram", DataCache::ram},
       {"stream", DataCache::stream},
       {"stage", DataCache::stage}},
      "keep samples in memory, read them when they are used, or that from a copy on this host; "
      "auto: memory where --data-memory is enough"));
  add(number_option("data-memory", "MB", data.memory_mb, at_least(0),
                    "for the samples of a rank, MB of 10^6 bytes; 0: half of the host's free memory, shared by its "
                    "ranks"))
      .also({"cache-mb"});
  add(text_option("stage-dir", "DIR", data.stage_folder,
                  "where --data-cache stage copies partitions; default: convoy-data in TMPDIR or /tmp"))
      .also({"cache-dir"});
  add(choice_option<OnCorrupt>("on-corrupt", data.on_corrupt, {{"fail", OnCorrupt::fail}, {"skip", OnCorrupt::skip}},
                               "a sample whose checksum is wrong ends the run, or is replaced and counted"))
      .decides_bits();
  return group;
}

OptionGroup input_options(DataConfig& data) {
  using Normalise = InputSpec::Normalise;
  OptionGroup group{"Network input", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(number_option("image-size", "PIXELS", data.image_size, from_to(0, 16384),
                    "height and width of the network input, pixels; 0: the stored size"))
      .also({"img-size", "input-size"})
      .decides_bits();
  add(number_option("resize", "PIXELS", data.augment.resize, from_to(0, 16384),
                    "short side before a centre crop or window, pixels; 0: stored pixels as they are, files 8/7 of the "
                    "input"))
      .also({"val-resize-size"})
      .decides_bits();
  add(choice_option<Normalise>(
          "normalise", data.normalise,
          {{"channel", Normalise::channel}, {"mean-image", Normalise::mean_image}, {"per-image", Normalise::per_image}},
          "subtract the mean a channel, the mean image, or each image's own mean"))
      .also({"normalize"})
      .decides_bits();
  add(list_option("rgb-mean", "M,M,M", data.rgb_mean, from_to(0, 255),
                  "mean a channel, pixel units (0 to 255); default: the data set's"))
      .also({"mean"})
      .decides_bits();
  add(list_option("rgb-std", "S,S,S", data.rgb_std, {.low = 0, .high = 255, .low_excluded = true},
                  "standard deviation a channel, pixel units; default: the data set's"))
      .also({"std"})
      .decides_bits();
  return group;
}

OptionGroup order_options(DataConfig& data) {
  OptionGroup group{"Order", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(choice_option<Shuffle>(
          "shuffle", data.shuffle,
          {{"partition", Shuffle::partition}, {"buffered", Shuffle::buffered}, {"global", Shuffle::global}},
          "permute within each replica's part of the set, within buffers of it that are read from front to back, or "
          "all "
          "samples"))
      .decides_bits();
  add(number_option("shuffle-buffer", "N", data.shuffle_buffer, from_to(1, 1 << 30), "samples of a buffer"))
      .also({"shuffle-buffer-size"})
      .decides_bits();
  add(choice_option<EpochMode>("epoch-mode", data.epoch_mode,
                               {{"exact", EpochMode::exact}, {"resample", EpochMode::resample}},
                               "each sample once an epoch, or draws with replacement"))
      .decides_bits();
  add(number_option("train-fraction", "F", data.train_fraction, {.low = 0, .high = 1, .low_excluded = true},
                    "train on this first part of the split"))
      .decides_bits();
  add(number_option("limit-train-batches", "N", data.limit_train_batches, at_least(0),
                    "steps an epoch at most, for smoke runs; 0: all"))
      .also({"short-epoch-batches"})
      .decides_bits();
  add(number_option("limit-val-batches", "N", data.limit_val_batches, at_least(0),
                    "evaluation batches a rank at most; 0: all"))
      .also({"eval-batch-count"});
  add(number_option("repeated-augmentation", "N", data.repeats, from_to(1, 64),
                    "an epoch shows a part 1/N of the images, each N times, differently augmented"))
      .also({"ra-reps", "aug-repeats"})
      .decides_bits();
  return group;
}

}  // namespace convoy
