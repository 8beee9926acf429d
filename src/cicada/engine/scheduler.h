// Who computes what in the next step: continuous batching with prompts cut into chunks.
//
// Policy only. It sees ids and counts, never tensors or tokens; what holds keys and values is asked
// through KvHolder. Every answer that runs gets its token in every step; what the budget leaves
// goes to prompts. Waiting requests are admitted by priority, then by whose tenant has had least,
// then by age; one that was preempted goes before all. A request that finds no room to grow is
// preempted itself: never another. Threads: one thread, the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cicada/messages/messages.h"

namespace cicada::engine {

using messages::RequestId;

class KvHolder {
 public:
  enum class Room : std::uint8_t {
    kYes,
    kNo,     // not now
    kLater,  // another request is computing what this one could share: worth waiting for
  };
  struct Admission {
    Room room = Room::kNo;
    std::size_t cached_tokens = 0;  // of the prompt: fewer than it has
  };

  virtual ~KvHolder() = default;
  // Takes room for all tokens that are known of a request, if `spare_pages` are left beside it.
  virtual Admission admit(RequestId id, std::size_t spare_pages) = 0;
  // Room for `tokens` in all. False: there is none; what it has stays.
  virtual bool grow(RequestId id, std::size_t tokens) = 0;
  // Gives back all room.
  virtual void release(RequestId id) = 0;
};

struct SchedulerLimits {
  std::size_t max_running = 64;  // requests at once
  std::size_t max_rows = 256;    // of a step
};

struct NewRequest {
  RequestId id = 0;
  std::size_t prompt_tokens = 0;   // at least 1
  std::size_t emitted_tokens = 0;  // generated before, to be computed again
  std::string tenant;
  std::int32_t priority = 0;
};

// Positions [first, first + count) of a request.
struct Slice {
  RequestId id = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  bool is_prefill = false;   // of the prompt
  bool wants_token = false;  // the last one's logits give the next token
};

struct PlannedStep {
  std::vector<Slice> slices;    // those of prompts first
  std::size_t chunk_rows = 0;   // of prompts, and of answers that are computed again
  std::size_t num_answers = 0;  // that go on by one token
  // What happened while planning.
  struct Admitted {
    RequestId id = 0;
    std::size_t cached_tokens = 0;
    bool is_resumed = false;
  };
  std::vector<Admitted> admitted;
  std::vector<RequestId> preempted;
  std::vector<RequestId> failed;  // can never have room; they are forgotten
};

class Scheduler {
 public:
  // Lifetime: borrows the holder.
  Scheduler(const SchedulerLimits& limits, KvHolder& holder) : limits_(limits), holder_(&holder) {}

  // Precondition: the id is new.
  void submit(const NewRequest& request);
  // Forgets a request in whatever state, with its room. False: there is none.
  bool remove(RequestId id);
  // A paused request keeps its room and its answer gets no tokens; its prompt is read on.
  void pause(RequestId id, bool is_paused);

  // The next step, with at most `chunk_rows` rows beside those of answers that go on. Empty slices:
  // nothing can be done. Valid until the next call.
  const PlannedStep& plan(std::size_t chunk_rows);
  // The planned step was computed.
  void complete();
  // A request got its next token and goes on.
  void add_token(RequestId id);

  std::size_t num_running() const { return running_.size(); }
  std::size_t num_waiting() const { return waiting_.size(); }
  std::uint64_t num_preemptions() const { return preemptions_; }
  // Of running requests that go on by one token each step.
  std::size_t num_answers() const;
  // Of running requests that will, once their prompts are read.
  std::size_t num_to_come() const;
  // Whether any request is still computing what another engine had emitted: its client waits in the
  // middle of an answer.
  bool is_replaying() const;

 private:
  struct Tenant {
    double served_rows = 0;
    std::size_t num_requests = 0;
  };
  using Tenants = std::map<std::string, Tenant>;
  struct Entry {
    RequestId id = 0;
    std::size_t prompt_tokens = 0;
    std::size_t known_tokens = 0;     // of the prompt and the answer
    std::size_t computed_tokens = 0;  // of these
    std::int32_t priority = 0;
    std::uint64_t arrival = 0;
    bool is_replay = false;  // begun in another engine, and not yet where it was
    bool was_preempted = false;
    bool is_paused = false;
    Tenants::iterator tenant;

    std::size_t left() const { return known_tokens - computed_tokens; }
    bool is_answering() const { return computed_tokens >= prompt_tokens && left() == 1; }
  };

  Tenants::iterator join_tenant(const std::string& name);
  void leave_tenant(Tenants::iterator tenant);
  static bool goes_before(const Entry& a, const Entry& b);
  void admit();
  // Takes answers that go on into the step, and preempts those without room.
  void plan_answers();
  void plan_chunks(std::size_t chunk_rows);
  void add_chunk(Entry& entry, std::size_t rows);
  void preempt(std::size_t index);

  SchedulerLimits limits_;
  KvHolder* holder_;
  Tenants tenants_;
  std::vector<Entry> running_;  // in order of admission
  std::deque<Entry> waiting_;   // in order of arrival
  std::uint64_t arrivals_ = 0;
  std::uint64_t preemptions_ = 0;
  PlannedStep step_;
  std::vector<Entry*> chunk_order_;
};

}  // namespace cicada::engine
