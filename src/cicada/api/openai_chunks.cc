#include "cicada/api/openai_chunks.h"

#include "cicada/api/frames.h"
#include "cicada/api/openai_words.h"
#include "cicada/api/usage_json.h"

namespace cicada::api {

std::string end_chunk(json::Writer& writer, std::string_view finish_reason, bool include_usage) {
  writer.text_or_null("finish_reason", finish_reason).end_object().end_array();
  if (include_usage) writer.key("usage").null();
  writer.end_object();
  return data_frame(writer.take());
}

std::string usage_frame(const ReplyHead& head, std::string_view object, const Usage& usage) {
  json::Writer writer;
  writer.begin_object();
  write_head(writer, head, object);
  writer.key("choices").begin_array().end_array();
  write_openai_usage(writer, usage);
  writer.end_object();
  return data_frame(writer.take());
}

std::string done_frame() { return data_frame("[DONE]"); }

}  // namespace cicada::api
