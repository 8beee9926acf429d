// The inside of a Loop, for the sources of this module.
// Threads: as loop.h.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "cicada/http/loop.h"

namespace cicada::http {

struct Loop::Impl {
  boost::asio::io_context context;
  // Without it run() would return as soon as there is nothing to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      context.get_executor()};
};

}  // namespace cicada::http
