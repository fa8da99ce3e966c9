// SPDX-License-Identifier: Apache-2.0
// The only file that includes cudnn_frontend.h, which costs half a minute to compile. Sources of the attributes:
// NVIDIA's graph API pages; what plans exist for was tried (docs/cuda.md).
#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <exception>
#include <unordered_map>
#include <utility>

#include "backend/cuda/graphs/library.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::DataType_t;
using Mode = fe::PointwiseMode_t;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

DataType_t storage_of(Precision precision) {
  if (precision == Precision::fp16) return DataType_t::HALF;
  if (precision == Precision::bf16) return DataType_t::BFLOAT16;
  return DataType_t::FLOAT;
}

/// Where graphs are compiled: a handle of the current device, or a description.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<fe::DeviceProperties> described;
  int sm = 0;
};

/// A convolution spelled as the library's engines expect it: they match the pattern, not the maths.
class GraphWriter {
 public:
  GraphWriter(const ConvolutionGraph& convolution, const Target& target, fe::graph::Graph& graph)
      : convolution_(convolution), graph_(graph) {
    graph.set_io_data_type(storage_of(convolution.precision))
        .set_intermediate_data_type(DataType_t::FLOAT)
        .set_compute_data_type(DataType_t::FLOAT);
    // Said to the graph, since the frontend would ask the CUDA runtime, which needs a driver.
    if (target.described) graph.set_device_properties(target.described).set_sm_version(target.sm);
    for (const Operand& operand : operands_of(convolution)) operands_.emplace(operand.role, operand);
  }

  void write() {
    switch (convolution_.pass) {
      case Pass::forward: {
        const Tensor z = prologue();
        const Tensor y = graph_.conv_fprop(z, in(Role::w), window<fe::graph::Conv_fprop_attributes>());
        out(Role::y, y);
        if (!convolution_.statistics) return;
        auto [sum, squares] = graph_.genstats(y, fe::graph::Genstats_attributes());
        out(Role::sum, sum);
        out(Role::squares, squares);
        return;
      }
      case Pass::data_gradient:
        return data_gradient();
      case Pass::weight_gradient: {
        const Tensor dy = in(Role::dy);
        out(Role::dw, graph_.conv_wgrad(dy, prologue(), window<fe::graph::Conv_wgrad_attributes>()));
        return;
      }
    }
  }

 private:
  struct Norm {
    Tensor x, mean, rstd, gamma, y;
  };

  static std::vector<std::int64_t> strides(const std::array<Index, 4>& dims) {
    return {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
  }

  Tensor in(Role role) {
    const Operand& operand = operands_.at(role);
    const auto& dims = operand.dims;
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(static_cast<std::int64_t>(role) + 1)
                             .set_dim({dims.begin(), dims.end()})
                             .set_stride(strides(dims))
                             .set_data_type(type_of(operand)));
  }
  void out(Role role, const Tensor& tensor) {
    const Operand& operand = operands_.at(role);
    const auto& dims = operand.dims;
    tensor->set_output(true)
        .set_uid(static_cast<std::int64_t>(role) + 1)
        .set_dim({dims.begin(), dims.end()})
        .set_stride(strides(dims))
        .set_data_type(type_of(operand));
  }
  DataType_t type_of(const Operand& operand) const {
    return operand.is_float ? DataType_t::FLOAT : storage_of(convolution_.precision);
  }

  Tensor pointwise(Mode mode, const Tensor& a, const Tensor& b) {
    return graph_.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
  }
  template <class Attributes>
  Attributes window() const {
    return Attributes()
        .set_padding({convolution_.pad, convolution_.pad_w})
        .set_stride({convolution_.stride, convolution_.stride})
        .set_dilation({1, 1});
  }

  Tensor affine(const Tensor& x, Role scale, Role shift) {
    return pointwise(Mode::ADD, pointwise(Mode::MUL, x, in(scale)), in(shift));
  }

  /// The convolution's input.
  Tensor prologue() {
    Tensor z = in(Role::x);
    if (convolution_.fusion == Fusion::none) return z;
    z = affine(z, Role::scale, Role::shift);
    if (convolution_.fusion != Fusion::norm) {
      Tensor other = in(Role::other);
      if (convolution_.fusion == Fusion::join_norms) other = affine(other, Role::scale2, Role::shift2);
      z = pointwise(Mode::ADD, z, other);
    }
    z = graph_.pointwise(z, fe::graph::Pointwise_attributes().set_mode(Mode::RELU_FWD));
    if (operands_.count(Role::z) != 0) out(Role::z, z);
    return z;
  }

  /// SUB, MUL, MUL, ADD with floats: one scale and one bias, or a stored z as mask, are refused.
  Norm norm(Role x, Role mean, Role rstd, Role gamma, Role beta) {
    Norm n{in(x), in(mean), in(rstd), in(gamma), nullptr};
    n.y = pointwise(Mode::MUL, pointwise(Mode::SUB, n.x, n.mean), n.rstd);
    n.y = pointwise(Mode::ADD, pointwise(Mode::MUL, n.y, n.gamma), in(beta));
    return n;
  }

  void norm_gradient(const Tensor& g, const Norm& n, std::array<Role, 5> roles) {
    auto outputs = graph_.dbn_weight(g, n.x, n.mean, n.rstd, n.gamma, fe::graph::DBN_weight_attributes());
    for (std::size_t i = 0; i < roles.size(); ++i) out(roles[i], outputs[i]);
  }

  void data_gradient() {
    const Tensor dy = in(Role::dy), w = in(Role::w);
    Tensor dx = graph_.conv_dgrad(dy, w, window<fe::graph::Conv_dgrad_attributes>());
    dx->set_dim({convolution_.n, convolution_.c, convolution_.h, convolution_.w});  // not inferred
    if (convolution_.adds) dx = pointwise(Mode::ADD, dx, in(Role::add));
    if (convolution_.fusion == Fusion::none) return out(Role::dx, dx);
    const Norm first = norm(Role::x, Role::mean, Role::rstd, Role::gamma, Role::beta);
    Tensor z = first.y;
    Norm second;
    if (convolution_.fusion == Fusion::join) z = pointwise(Mode::ADD, z, in(Role::other));
    if (convolution_.fusion == Fusion::join_norms) {
      second = norm(Role::other, Role::mean2, Role::rstd2, Role::gamma2, Role::beta2);
      z = pointwise(Mode::ADD, z, second.y);
    }
    const Tensor g = pointwise(Mode::RELU_BWD, dx, z);
    out(Role::dx, g);
    norm_gradient(g, first, {Role::dgamma, Role::dbeta, Role::a, Role::b, Role::d});
    if (second.y) norm_gradient(g, second, {Role::dgamma2, Role::dbeta2, Role::a2, Role::b2, Role::d2});
  }

  const ConvolutionGraph& convolution_;
  fe::graph::Graph& graph_;
  std::unordered_map<Role, Operand> operands_;
};

class CudnnOperation final : public Operation {
 public:
  CudnnOperation(const ConvolutionGraph& convolution, const Target& target, std::unique_ptr<fe::graph::Graph> graph,
                 std::int64_t plan, std::string engine, Index workspace)
      : convolution_(convolution),
        target_(target),
        graph_(std::move(graph)),
        plan_(plan),
        engine_(std::move(engine)),
        workspace_(workspace) {
    for (const Operand& operand : operands_of(convolution))
      pack_.emplace(static_cast<std::int64_t>(operand.role) + 1, nullptr);
  }

  Index workspace_bytes() const override { return workspace_; }
  const std::string& engine() const override { return engine_; }

  void execute(const Pointers& pointers, cudaStream_t stream) override {
    require(target_.handle != nullptr, "a plan for a described card can't run");
    if (cudnnSetStream(target_.handle, stream) != CUDNN_STATUS_SUCCESS)
      fail(Exit::device, "cuDNN refuses the stream; report it with the output of `convoy inspect build`");
    for (auto& [uid, pointer] : pack_) pointer = pointers[static_cast<Role>(uid - 1)];
    auto status = graph_->execute_plan_at_index(target_.handle, pack_, pointers.workspace, plan_);
    if (status.is_bad())
      fail(Exit::device, "cuDNN failed to run '{}' ({}); report it with the output of `convoy inspect build`",
           describe(convolution_), status.get_message());
  }

 private:
  const ConvolutionGraph convolution_;
  const Target& target_;
  std::unique_ptr<fe::graph::Graph> graph_;
  std::int64_t plan_;
  std::string engine_;
  Index workspace_;
  std::unordered_map<std::int64_t, void*> pack_;
};

/// A graph up to the point where plans can be listed; null where the library has none.
std::unique_ptr<fe::graph::Graph> write(const ConvolutionGraph& convolution, const Target& target,
                                        Index workspace_limit, Kernels kernels) {
  auto graph = std::make_unique<fe::graph::Graph>();
  GraphWriter(convolution, target, *graph).write();
  if (graph->validate().is_bad()) return nullptr;
  if (graph->build_operation_graph(target.handle).is_bad()) return nullptr;
  // A alone leaves some strict fp32 convolutions without a plan.
  if (graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad()) return nullptr;
  graph->deselect_workspace_greater_than(workspace_limit);
  if (kernels == Kernels::ready) graph->deselect_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
  // A step repeated gives the same bits: what a resumed run and --reproducible promise.
  graph->deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (convolution.precision == Precision::fp32)
    graph->deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE, fe::NumericalNote_t::DOWN_CONVERT_INPUTS});
  if (graph->check_support().is_bad()) return nullptr;
  return graph;
}

std::string engine_at(fe::graph::Graph& graph, std::int64_t plan) {
  std::string name;
  if (graph.get_plan_name_at_index(plan, name).is_bad()) return {};
  return name;
}

class CudnnLibrary final : public Library {
 public:
  explicit CudnnLibrary(Target target, const std::string& card) : target_(std::move(target)) {
    const std::size_t version = cudnnGetVersion();
    if (version < oldest_cudnn)
      fail(Exit::device, "cuDNN {}.{} is too old ({}.{} or newer is needed); install a newer one", version / 10000,
           version % 10000 / 100, oldest_cudnn / 10000, oldest_cudnn % 10000 / 100);
    name_ = fmt::format("{} sm_{}, cuDNN {}.{}.{}", card, target_.sm, version / 10000, version % 10000 / 100,
                        version % 100);
  }
  ~CudnnLibrary() override {
    // It waits for the device, as Queue does.
    if (target_.handle != nullptr && std::uncaught_exceptions() == 0) cudnnDestroy(target_.handle);
  }

  std::shared_ptr<Operation> build(const ConvolutionGraph& convolution, const BuildSpec& spec) override {
    auto graph = write(convolution, target_, spec.workspace_limit, spec.kernels);
    if (!graph) return nullptr;
    const std::int64_t plans = graph->get_execution_plan_count();
    for (std::int64_t plan = 0; plan < plans; ++plan) {
      const std::string engine = engine_at(*graph, plan);
      if (!spec.engine.empty() && engine != spec.engine) continue;
      auto status = graph->build_plan_at_index(plan);
      std::int64_t workspace = 0;
      if (status.is_good()) {
        if (graph->get_workspace_size_plan_at_index(plan, workspace).is_bad()) continue;
        if (workspace > spec.workspace_limit) continue;
      } else if (!target_.described || status.get_message().find("cuLibraryLoadData") == std::string::npos) {
        // Without a driver a kernel that was compiled at run time can't be loaded, and all before that succeeded.
        continue;
      }
      return std::make_shared<CudnnOperation>(convolution, target_, std::move(graph), plan, engine, workspace);
    }
    return nullptr;
  }

  std::vector<std::string> engines(const ConvolutionGraph& convolution, Index workspace_limit) override {
    std::vector<std::string> result;
    const auto graph = write(convolution, target_, workspace_limit, Kernels::ready);
    if (!graph) return result;
    for (std::int64_t plan = 0; plan < graph->get_execution_plan_count(); ++plan)
      result.push_back(engine_at(*graph, plan));
    return result;
  }

  const std::string& name() const override { return name_; }
  int sm() const override { return target_.sm; }

 private:
  Target target_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Library> make_library() {
  Target target;
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
    fail(Exit::device, "no CUDA device can be asked for its properties; check the driver with nvidia-smi");
  target.sm = properties.major * 10 + properties.minor;
  if (const cudnnStatus_t status = cudnnCreate(&target.handle); status != CUDNN_STATUS_SUCCESS)
    fail(Exit::device, "cuDNN doesn't start ({}); check that its version fits the driver", cudnnGetErrorString(status));
  return std::make_unique<CudnnLibrary>(target, properties.name);
}

std::unique_ptr<Library> make_library(const CardDescription& card) {
  Target target;
  target.described = std::make_shared<fe::DeviceProperties>();
  std::vector<std::uint8_t> bytes(card.properties.begin(), card.properties.end());
  while (!bytes.empty() && bytes.back() == '\n') bytes.pop_back();
  bytes.push_back(0);
  if (auto status = target.described->deserialize(bytes); status.is_bad())
    fail(Exit::device,
         "cuDNN refuses the card's description ({}); it takes what cudnn_frontend::DeviceProperties writes",
         status.get_message());
  target.sm = card.sm;
  return std::make_unique<CudnnLibrary>(target, card.name);
}

}  // namespace convoy::cuda
