#include "cicada/engine/scheduler.h"

#include <algorithm>

#include "cicada/base/check.h"

namespace cicada::engine {
namespace {

template <class Entries>
auto find_entry(Entries& entries, RequestId id) {
  return std::find_if(entries.begin(), entries.end(),
                      [id](const auto& entry) { return entry.id == id; });
}

}  // namespace

// A tenant that comes back has no claim to the time it was away.
Scheduler::Tenants::iterator Scheduler::join_tenant(const std::string& name) {
  double least = 0.0;
  bool is_first = true;
  for (const auto& [other, tenant] : tenants_) {
    least = is_first ? tenant.served_rows : std::min(least, tenant.served_rows);
    is_first = false;
  }
  const auto [tenant, is_new] = tenants_.try_emplace(name);
  if (is_new) tenant->second.served_rows = least;
  ++tenant->second.num_requests;
  return tenant;
}

void Scheduler::leave_tenant(Tenants::iterator tenant) {
  if (--tenant->second.num_requests == 0) tenants_.erase(tenant);
}

void Scheduler::submit(const NewRequest& request) {
  CICADA_CHECK(request.prompt_tokens > 0, "a prompt has tokens");
  waiting_.push_back({.id = request.id,
                      .prompt_tokens = request.prompt_tokens,
                      .known_tokens = request.prompt_tokens + request.emitted_tokens,
                      .priority = request.priority,
                      .arrival = arrivals_++,
                      .is_replay = request.emitted_tokens > 0,
                      .tenant = join_tenant(request.tenant)});
}

bool Scheduler::remove(RequestId id) {
  if (const auto entry = find_entry(running_, id); entry != running_.end()) {
    holder_->release(id);
    leave_tenant(entry->tenant);
    running_.erase(entry);
    return true;
  }
  if (const auto entry = find_entry(waiting_, id); entry != waiting_.end()) {
    leave_tenant(entry->tenant);
    waiting_.erase(entry);
    return true;
  }
  return false;
}

void Scheduler::pause(RequestId id, bool is_paused) {
  if (const auto entry = find_entry(running_, id); entry != running_.end()) {
    entry->is_paused = is_paused;
  } else if (const auto queued = find_entry(waiting_, id); queued != waiting_.end()) {
    queued->is_paused = is_paused;
  }
}

std::size_t Scheduler::num_answers() const {
  return static_cast<std::size_t>(
      std::count_if(running_.begin(), running_.end(),
                    [](const Entry& entry) { return entry.is_answering() && !entry.is_paused; }));
}

std::size_t Scheduler::num_to_come() const {
  return static_cast<std::size_t>(std::count_if(
      running_.begin(), running_.end(), [](const Entry& entry) { return !entry.is_answering(); }));
}

bool Scheduler::is_replaying() const {
  const auto is_replay = [](const Entry& entry) { return entry.is_replay; };
  return std::any_of(running_.begin(), running_.end(), is_replay) ||
         std::any_of(waiting_.begin(), waiting_.end(), is_replay);
}

bool Scheduler::goes_before(const Entry& a, const Entry& b) {
  if (a.was_preempted != b.was_preempted) return a.was_preempted;
  if (a.priority != b.priority) return a.priority > b.priority;
  const double a_served = a.tenant->second.served_rows;
  const double b_served = b.tenant->second.served_rows;
  if (a_served != b_served) return a_served < b_served;
  return a.arrival < b.arrival;
}

const PlannedStep& Scheduler::plan(std::size_t chunk_rows) {
  step_.slices.clear();
  step_.chunk_rows = 0;
  step_.num_answers = 0;
  step_.admitted.clear();
  step_.preempted.clear();
  step_.failed.clear();
  admit();
  plan_answers();
  plan_chunks(chunk_rows);
  std::stable_partition(step_.slices.begin(), step_.slices.end(),
                        [](const Slice& slice) { return slice.is_prefill; });
  return step_;
}

void Scheduler::admit() {
  std::vector<RequestId> later;
  while (running_.size() < limits_.max_running) {
    auto best = waiting_.end();
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (std::find(later.begin(), later.end(), it->id) != later.end()) continue;
      if (best == waiting_.end() || goes_before(*it, *best)) best = it;
    }
    if (best == waiting_.end()) return;
    // Each that runs may want one more page before any is given back.
    const KvHolder::Admission admission = holder_->admit(best->id, running_.size());
    if (admission.room == KvHolder::Room::kLater && !running_.empty()) {
      later.push_back(best->id);
      continue;
    }
    if (admission.room != KvHolder::Room::kYes) {
      // Who finds no room when all of it is free never will.
      if (!running_.empty()) return;
      step_.failed.push_back(best->id);
      leave_tenant(best->tenant);
      waiting_.erase(best);
      continue;
    }
    step_.admitted.push_back({.id = best->id,
                              .cached_tokens = admission.cached_tokens,
                              .is_resumed = best->was_preempted});
    best->computed_tokens = admission.cached_tokens;
    best->was_preempted = false;
    running_.push_back(*best);
    waiting_.erase(best);
  }
}

void Scheduler::preempt(std::size_t index) {
  Entry entry = running_[index];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  holder_->release(entry.id);
  if (running_.empty()) {
    step_.failed.push_back(entry.id);
    leave_tenant(entry.tenant);
    return;
  }
  ++preemptions_;
  step_.preempted.push_back(entry.id);
  entry.computed_tokens = 0;
  entry.was_preempted = true;
  waiting_.push_back(entry);
}

void Scheduler::plan_answers() {
  for (std::size_t i = 0; i < running_.size();) {
    const Entry& entry = running_[i];
    if (!entry.is_answering() || entry.is_paused || step_.num_answers == limits_.max_rows) {
      ++i;
      continue;
    }
    if (!holder_->grow(entry.id, entry.known_tokens)) {
      preempt(i);
      continue;
    }
    step_.slices.push_back(
        {.id = entry.id, .first = entry.computed_tokens, .count = 1, .wants_token = true});
    ++step_.num_answers;
    ++i;
  }
}

void Scheduler::add_chunk(Entry& entry, std::size_t rows) {
  const bool is_prefill = entry.computed_tokens < entry.prompt_tokens;
  const std::size_t end = is_prefill ? entry.prompt_tokens : entry.known_tokens;
  const std::size_t count = std::min(rows, end - entry.computed_tokens);
  if (count == 0) return;
  const bool is_last = entry.computed_tokens + count == entry.known_tokens;
  step_.slices.push_back({.id = entry.id,
                          .first = entry.computed_tokens,
                          .count = count,
                          .is_prefill = is_prefill,
                          .wants_token = is_last});
  step_.chunk_rows += count;
}

// The oldest gets half of the rows, so that it ends; the rest goes to those that are soonest done,
// so that a short prompt does not wait for a long one.
void Scheduler::plan_chunks(std::size_t chunk_rows) {
  chunk_order_.clear();
  for (Entry& entry : running_) {
    if (entry.is_answering() || entry.left() == 0) continue;
    chunk_order_.push_back(&entry);
  }
  if (chunk_order_.empty()) return;
  chunk_rows = std::min(chunk_rows, limits_.max_rows - step_.num_answers);
  const Entry* oldest = chunk_order_.front();
  std::stable_sort(chunk_order_.begin(), chunk_order_.end(), [](const Entry* a, const Entry* b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    const double a_served = a->tenant->second.served_rows;
    const double b_served = b->tenant->second.served_rows;
    if (a_served != b_served) return a_served < b_served;
    return a->left() < b->left();
  });
  std::size_t kept = std::min(oldest->left(), (chunk_rows + 1) / 2);
  for (Entry* entry : chunk_order_) {
    const std::size_t used = step_.chunk_rows;
    const std::size_t free = chunk_rows - used;
    if (entry == oldest) {
      add_chunk(*entry, free);
      kept = 0;
    } else {
      add_chunk(*entry, free - std::min(free, kept));
    }
  }
}

void Scheduler::complete() {
  for (const Slice& slice : step_.slices) {
    const auto entry = find_entry(running_, slice.id);
    if (entry == running_.end()) continue;
    entry->computed_tokens += slice.count;
    entry->tenant->second.served_rows += static_cast<double>(slice.count);
  }
}

void Scheduler::add_token(RequestId id) {
  const auto entry = find_entry(running_, id);
  CICADA_CHECK(entry != running_.end(), "who gets a token is running");
  ++entry->known_tokens;
  entry->is_replay = false;
}

}  // namespace cicada::engine
