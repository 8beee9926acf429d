#include "cicada/model/kv_format.h"

#include <gtest/gtest.h>

namespace cicada::model {
namespace {

using kernels::CacheType;

TEST(KvFormat, NamesReadBackAsTheSame) {
  for (const char* text : {"f16", "q8", "q6", "q4", "q8/q6", "f16/q4", "q6,0-1:q8", "q6,0:f16/q8",
                           "q8/q6,1-2:q4,5:f16"}) {
    const auto format = parse_kv_format(text, 6);
    ASSERT_TRUE(format.has_value()) << text;
    EXPECT_EQ(kv_format_name(*format), text);
  }
}

TEST(KvFormat, LayersOfTheirOwnReplaceTheRest) {
  const auto format = parse_kv_format("q6,1-2:q8/f16", 4);
  ASSERT_TRUE(format.has_value());
  EXPECT_EQ(format->layer(0).keys, CacheType::kQ6);
  EXPECT_EQ(format->layer(2).keys, CacheType::kQ8);
  EXPECT_EQ(format->layer(2).values, CacheType::kF16);
  EXPECT_EQ(format->layer(3).values, CacheType::kQ6);
  EXPECT_TRUE(format->rotates_keys(1));
  EXPECT_FALSE(format->rotates_values(1));
  EXPECT_EQ(parse_kv_format("q6,0-3:q8", 4)->layers, parse_kv_format("q8", 4)->layers);
}

TEST(KvFormat, WhatIsNotOneIsRefusedWithWhatIsAllowed) {
  for (const char* text : {"", "q5", "Q6", "q6 ", "q6/", "/q6", "q6/q6/q6", "q6,", "q6,0",
                           "q6,0:", "q6,0:q9", "q6,:q8", "q6,1-0:q8", "q6,0-4:q8", "q6,4:q8",
                           "q6,-1:q8", "q6,0-:q8", "q6,0x1:q8", "q6,99999999999:q8"}) {
    const auto format = parse_kv_format(text, 4);
    ASSERT_FALSE(format.has_value()) << text;
    EXPECT_EQ(format.error().code(), Code::kInvalidArgument);
  }
}

TEST(KvFormat, OnlyPackedKeysWithABiasAndNoNormAreCachedWithoutIt) {
  const KvFormat packed = *parse_kv_format("q6,1:f16", 2);
  Config config;
  config.has_qkv_bias = true;
  EXPECT_TRUE(caches_keys_without_bias(config, packed, 0));
  EXPECT_FALSE(caches_keys_without_bias(config, packed, 1));
  EXPECT_FALSE(caches_keys_without_bias(config, {}, 0));
  config.has_qk_norm = true;
  EXPECT_FALSE(caches_keys_without_bias(config, packed, 0));
  EXPECT_FALSE(caches_keys_without_bias({}, packed, 0));
}

}  // namespace
}  // namespace cicada::model
