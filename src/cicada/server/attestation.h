// What a reply says about the model that made it, and what a request may insist on (SPEC M21).
// Everything is derived from the plan that the engine loaded, as its Hello tells it.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/api/reply.h"
#include "cicada/http/exchange.h"
#include "cicada/messages/messages.h"

namespace cicada::server {

// "500000.0": always with a digit behind the point.
std::string rope_theta_text(double theta);
// "rel_pos_proj,blk.7.attn"; empty when nothing is left out.
std::string zeroed_text(const messages::Hello& hello);

// x-model-arch, x-rope-theta and, where something is left out, x-layer-zeroed.
std::vector<http::Header> attestation_headers(const messages::Hello& hello);
// What the same headers of a request, if it has any, say that is not so: 400.
std::optional<api::ApiError> check_assertions(const http::Request& request,
                                              const messages::Hello& hello);
// The attested part of `usage`; details where `anthropic-beta` asks for them.
void attest(api::Usage& usage, const http::Request& request, const messages::Hello& hello);

}  // namespace cicada::server
