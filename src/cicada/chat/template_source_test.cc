#include "cicada/chat/template_source.h"

#include <gtest/gtest.h>

namespace cicada::chat {
namespace {

TEST(TemplateSource, VariablesAreReadInStatementsAndExpressions) {
  for (const char* source : {"{{ tools }}", "{%if tools%}", "{%- for t in tools -%}", "a{{tools}}",
                             "{{ '%}' ~ tools }}", "{{ 'it\\'s' ~ tools }}", "{{ x[tools] }}",
                             "{ {{ {'a': tools} }}", "{# a #}{{ tools|tojson }}"}) {
    EXPECT_TRUE(reads_variable(source, "tools")) << source;
  }
}

TEST(TemplateSource, OtherMentionsAreNone) {
  for (const char* source :
       {"tools", "{ tools }", "{# tools #}", "{# {{ tools }} #}", "{{ 'tools' }}",
        "{{ \"tools\" }}", "{{ m.tools }}", "{{ my_tools }}", "{{ tools_x }}",
        "{{ x }} tools {{ y }}", "{{ 'a", "{{", "{%", "{#", "{", "", "{{ 'a\\"}) {
    EXPECT_FALSE(reads_variable(source, "tools")) << source;
  }
}

}  // namespace
}  // namespace cicada::chat
