// A model file, whatever its container: metadata and a checked index of tensors.
//
// Everything in it was checked when it was opened: every tensor lies inside the file, none overlap,
// every shape and size fits. What a hostile file can still do is hold wrong numbers.
// Lifetime: views of metadata and tensor bytes are valid as long as the ModelFile lives.
// Threads: read-only after opening.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/platform/file.h"
#include "cicada/tensor/dtype.h"

namespace cicada::formats {

// Limits on what a file may claim; generous for real models, small enough to bound memory.
inline constexpr std::uint64_t kMaxTensors = 1 << 17;
inline constexpr std::uint64_t kMaxMetadataKeys = 1 << 16;
inline constexpr std::uint64_t kMaxKeyBytes = 1 << 16;
inline constexpr std::uint64_t kMaxNameBytes = 1 << 10;
inline constexpr std::size_t kMaxDims = 4;

struct TensorInfo {
  std::string name;  // GGUF's names ("blk.0.attn_q.weight"), also for safetensors
  tensor::DType dtype = tensor::DType::kF32;
  std::vector<std::uint64_t> shape;  // outermost first: [n, k] for a weight y = x · Wᵀ; never empty
  std::uint64_t offset_bytes = 0;  // from the start of the file
  std::uint64_t size_bytes = 0;

  std::uint64_t num_elements() const;
  // Innermost dimension and the product of the others.
  std::uint64_t row_elements() const { return shape.back(); }
  std::uint64_t num_rows() const { return num_elements() / shape.back(); }
};

// The bytes of a tensor by its shape and type. Errors: kCorrupt when a product does not fit in 64
// bits or a row is not whole blocks. Precondition: the shape is not empty.
Result<std::uint64_t> checked_tensor_bytes(const TensorInfo& tensor);

// How q and k rows are ordered, which decides which halves of a head RoPE turns together.
enum class RopeLayout : std::uint8_t {
  kInterleaved,  // pairs (2i, 2i+1): llama GGUF files, whose q and k rows were permuted for it
  kHalves,       // pairs (i, i + d/2): Hugging Face checkpoints, and qwen2 and gemma3 in GGUF
};

enum class Container : std::uint8_t { kGguf, kSafetensors };

class ModelFile {
 public:
  // Opens a GGUF (v2, v3) file, or a plain single-file .safetensors with config.json beside it
  // (llama shapes). The container is told by the first bytes, not by the name.
  // Errors: kNotFound, kIo; kCorrupt and kUnsupported name file, thing, found and allowed.
  static Result<ModelFile> open(const std::string& path);

  Container container() const { return container_; }
  std::uint32_t version() const { return version_; }  // of the container: GGUF 2 or 3; 0 otherwise
  const std::string& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  // The bytes of a tensor of this file (checked). In safetensors they may begin at an address that
  // is odd for their type: copy, do not cast.
  std::span<const std::byte> tensor_bytes(const TensorInfo& tensor) const;
  std::uint64_t size_bytes() const { return file_.bytes().size(); }
  std::span<const std::byte> bytes() const { return file_.bytes(); }

  // RoPE layout of llama-like q and k tensors in this container.
  RopeLayout llama_rope_layout() const {
    return container_ == Container::kGguf ? RopeLayout::kInterleaved : RopeLayout::kHalves;
  }

  // A tensor's pages are about to be read once / were read and may be given back.
  void will_need(const TensorInfo& tensor) const;
  void drop_pages(const TensorInfo& tensor) const;
  // The same for a range of the tensor's bytes.
  void drop_pages(const TensorInfo& tensor, std::size_t begin_bytes, std::size_t size_bytes) const;
  // And for a range of the file's.
  void drop_range(std::size_t begin_bytes, std::size_t size_bytes) const {
    file_.drop_pages(begin_bytes, size_bytes);
  }

 private:
  friend Result<ModelFile> read_gguf(platform::MappedFile file);
  friend Result<ModelFile> read_safetensors(platform::MappedFile file);
  explicit ModelFile(platform::MappedFile file) : file_(std::move(file)) {}

  // Sorts out duplicates, overlaps and out-of-file tensors; builds the name index.
  Result<void> index_tensors();

  platform::MappedFile file_;
  Container container_ = Container::kGguf;
  std::uint32_t version_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::shared_ptr<const std::vector<std::byte>> owned_;  // values that are not views of the file
                                                         // (shared: views move with the ModelFile)
};

// The two readers behind open(); `file` is the whole container.
Result<ModelFile> read_gguf(platform::MappedFile file);
Result<ModelFile> read_safetensors(platform::MappedFile file);

}  // namespace cicada::formats
