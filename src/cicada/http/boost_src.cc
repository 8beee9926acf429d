// The compiled halves of Asio and Beast, once: the other sources see declarations only
// (BOOST_…_SEPARATE_COMPILATION), and no Boost library is linked.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
