// What is in a model file, as one name: for whatever outlives a process and belongs to one model.
// Threads: as the pool.
#pragma once

#include <string>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/platform/thread_pool.h"

namespace cicada::formats {

// 64 hex digits: a SHA-256 over the metadata and over the SHA-256 of every piece of 1 MiB of the
// file as it was opened. Two files that differ in any byte, or in what config.json says, have
// different ids, also where their weights are the same. Nothing is remembered between processes, so
// nothing can be stale: it costs one read of the file, on all workers.
// Errors: kInternal when libcrypto refuses.
Result<std::string> content_id(const ModelFile& file, platform::ThreadPool& pool);

}  // namespace cicada::formats
