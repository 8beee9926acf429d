#include "cicada/platform/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "cicada/platform/file.h"

namespace cicada::platform {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 24;  // between two calls of progress

EVP_MD_CTX* as_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

// `after_piece` sees each range that was hashed.
Result<std::string> digest_pieces(
    std::span<const std::byte> bytes, const HashProgress& progress,
    const std::function<void(std::size_t, std::size_t)>& after_piece) {
  CICADA_ASSIGN(Sha256 hash, Sha256::create());
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    const std::size_t size = std::min(kPieceBytes, bytes.size() - begin);
    CICADA_TRY(hash.update(bytes.subspan(begin, size)));
    if (after_piece) after_piece(begin, size);
    if (progress && !progress(begin + size)) return fail(Code::kCancelled, "hashing was stopped");
  }
  return hash.hex_digest();
}

}  // namespace

void Sha256::Deleter::operator()(void* context) const { EVP_MD_CTX_free(as_context(context)); }

Result<Sha256> Sha256::create() {
  Sha256 hash(EVP_MD_CTX_new());
  if (hash.context_ == nullptr ||
      EVP_DigestInit_ex(as_context(hash.context_.get()), EVP_sha256(), nullptr) != 1) {
    return fail(Code::kInternal, "SHA-256: libcrypto cannot start a digest");
  }
  return hash;
}

Result<void> Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(as_context(context_.get()), bytes.data(), bytes.size()) != 1) {
    return fail(Code::kInternal, "SHA-256: libcrypto cannot continue a digest");
  }
  return {};
}

Result<std::string> Sha256::hex_digest() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(as_context(context_.get()), digest.data(), nullptr) != 1) {
    return fail(Code::kInternal, "SHA-256: libcrypto cannot finish a digest");
  }
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

Result<std::string> sha256_hex(std::span<const std::byte> bytes, const HashProgress& progress) {
  return digest_pieces(bytes, progress, {});
}

Result<std::string> sha256_file(const std::string& path, const HashProgress& progress) {
  CICADA_ASSIGN(const MappedFile file, MappedFile::open(path));
  // Pages that were hashed are given back, so that a model larger than memory can be checked.
  return digest_pieces(file.bytes(), progress, [&file](std::size_t begin, std::size_t size) {
    file.drop_pages(begin, size);
  });
}

}  // namespace cicada::platform
