// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"
#include "data/dataset.hpp"

namespace convoy {

OptionGroup source_options(DataConfig& data) {
  auto& synthetic = data.synthetic_spec;
  OptionGroup group{"Data set", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("data", "DIR", data.folder, "folder that convoy-preprocess wrote"))
      .also({"data-path", "data-dir", "data-root"});
  add(text_option("train-data", "DIR", data.train_folder, "folder of the train split; default: --data"))
      .also({"data-train", "train-dir", "train-data-path"});
  add(text_option("val-data", "DIR", data.val_folder, "folder of the val split; default: --data"))
      .also({"data-val", "val-dir", "eval-data-path"});
  add(switch_option("synthetic", data.synthetic, "train on generated images instead of a data set"))
      .also({"synthetic-data", "use-synthetic-data", "dummy"})
      .decides_bits();
  add(number_option("synthetic-samples", "N", synthetic.samples, at_least(1),
                    "number of images in the synthetic train split"))
      .decides_bits();
  Option size = number_option("synthetic-size", "PIXELS", synthetic.height, from_to(1, 16384),
                              "height and width of synthetic images, pixels");
  size.set = [&synthetic, set_height = size.set](const std::string& text) {
    set_height(text);
    synthetic.width = synthetic.height;
  };
  add(std::move(size)).decides_bits();
  add(number_option("synthetic-channels", "N", synthetic.channels, from_to(1, 4), "channels of the synthetic images"))
      .decides_bits();
  add(number_option("synthetic-classes", "N", synthetic.classes, from_to(2, most_synthetic_classes),
                    "classes of the synthetic set"))
      .decides_bits();
  add(number_option("workers", "N", data.workers, from_to(1, 1024), "threads per rank that prepare batches ahead"))
      .short_form('j')
      .also({"data-nthreads", "num-io-threads", "num-workers"});
  add(number_option("prefetch", "N", data.prefetch, from_to(1, 1024), "batches that each rank prepares ahead"));
  add(choice_option<DataCache>(
      "data-cache", data.cache,
      {{"auto", DataCache::automatic},
       {"ram", DataCache::ram},
       {"stream", DataCache::stream},
       {"stage", DataCache::stage}},
      "ram: keep the samples in memory; stream: read each sample when it is used; stage: stream from a copy on this host; auto: ram if --data-memory is enough, else stream"));
  add(number_option(
          "data-memory", "MB", data.memory_mb, at_least(0),
          "memory for the samples of a rank, MB of 10^6 bytes; 0: half of the host's free memory, divided by its ranks"))
      .also({"cache-mb"});
  add(text_option("stage-dir", "DIR", data.stage_folder,
                  "folder to which --data-cache stage copies partitions; default: convoy-data-UID in TMPDIR or /tmp"))
      .also({"cache-dir"});
  add(choice_option<OnCorrupt>("on-corrupt", data.on_corrupt, {{"fail", OnCorrupt::fail}, {"skip", OnCorrupt::skip}},
                               "a sample with a wrong checksum: end the run, or replace and count it"))
      .decides_bits();
  return group;
}

OptionGroup input_options(DataConfig& data) {
  using Normalise = InputSpec::Normalise;
  OptionGroup group{"Network input", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(number_option("image-size", "PIXELS", data.image_size, from_to(0, 16384),
                    "height and width of the network input, pixels; 0: the stored size"))
      .also({"img-size", "input-size", "train-crop-size"})
      .decides_bits();
  add(number_option(
          "resize", "PIXELS", data.augment.resize, from_to(0, 16384),
          "resize the short side to this before a centre crop or a window, pixels; 0: to 8/7 of the input; stored pixels keep their size where it is the input's or --crop window is given, and with --pad shrink to the input"))
      .decides_bits();
  add(choice_option<Normalise>(
          "normalise", data.normalise,
          {{"channel", Normalise::channel}, {"mean-image", Normalise::mean_image}, {"per-image", Normalise::per_image}},
          "subtract the mean of each channel, the mean image, or the mean of each image"))
      .also({"normalize"})
      .decides_bits();
  add(list_option("rgb-mean", "M,M,M", data.rgb_mean, from_to(0, 255),
                  "mean of each channel, pixel units (0 to 255); default: the data set's"))
      .also({"mean"})
      .decides_bits();
  add(list_option("rgb-std", "S,S,S", data.rgb_std, {.low = 0, .high = 255, .low_excluded = true},
                  "standard deviation of each channel, pixel units; default: the data set's"))
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
          "partition: permute each replica's part of the set; buffered: permute it in buffers that are read from front to back; global: permute all samples"))
      .decides_bits();
  add(number_option("shuffle-buffer", "N", data.shuffle_buffer, from_to(1, 1 << 30), "samples per buffer"))
      .also({"shuffle-buffer-size"})
      .decides_bits();
  add(choice_option<EpochMode>("epoch-mode", data.epoch_mode,
                               {{"exact", EpochMode::exact}, {"resample", EpochMode::resample}},
                               "exact: each sample once per epoch; resample: draw with replacement"))
      .decides_bits();
  add(number_option("train-fraction", "F", data.train_fraction, {.low = 0, .high = 1, .low_excluded = true},
                    "train on the first part of the split, as a share"))
      .decides_bits();
  add(number_option("limit-train-batches", "N", data.limit_train_batches, at_least(0),
                    "at most this many steps per epoch, for smoke tests; 0: all"))
      .also({"short-epoch-batches"})
      .decides_bits();
  add(number_option("limit-val-batches", "N", data.limit_val_batches, at_least(0),
                    "at most this many evaluation batches per rank; 0: all"))
      .also({"eval-batch-count"});
  add(number_option("repeated-augmentation", "N", data.repeats, from_to(1, 64),
                    "show 1/N of the images per epoch, each N times with different augmentation"))
      .also({"ra-reps", "aug-repeats"})
      .decides_bits();
  return group;
}

}  // namespace convoy
