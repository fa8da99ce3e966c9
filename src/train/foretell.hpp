// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/forecast.hpp"

namespace convoy {

/// Tells the log how long the run will take: after the first steps, and again when the first epoch of the job, and of
/// every later phase, and its validation have been measured.
class Foreteller {
 public:
  struct Job {
    double began = 0;                 ///< this process, seconds since 1970
    double end_time = 0, margin = 0;  ///< its limit; 0: none
  };
  Foreteller(const ForecastSpec& spec, const Job& job);

  /// `step`: done so far.
  void step_done(double seconds, Index step);
  /// `images`: that it looked at; a rehearsal takes a part of them.
  void validation_done(double seconds, Index images);
  void save_done(double seconds) { forecast_.add_save(seconds); }

  const ForecastSpec& spec() const { return spec_; }
  Estimate estimate(Index step) const { return forecast_.estimate(step); }
  double start_up_seconds() const { return start_up_; }

 private:
  void tell(Index step);

  ForecastSpec spec_;
  Job job_;
  Forecast forecast_;
  double start_up_ = 0;
  std::size_t phase_ = 0;  ///< of the last step
  bool told_ = false;
  Index tell_again_at_ = 0;
};

}  // namespace convoy
