// The models that are served, as lists show them. Threads: the loop's.
#pragma once

#include <vector>

#include "cicada/api/models.h"
#include "cicada/server/app.h"

namespace cicada::server {

// One a name; patterns are not shown.
std::vector<api::ModelCard> model_cards(const App& app);

}  // namespace cicada::server
