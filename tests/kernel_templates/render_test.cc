// A rendered variant: complete, typed, and the same text for configs that differ in launch parameters alone.
#include "kernel_templates/render.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "kernel_templates/embedded.h"
#include "tests/temp_folder.h"

namespace gemmtune {
namespace {

Variant variant(std::string_view arch, std::string_view config, std::string_view cls = "bf16-bf16-kk") {
  Variant v;
  v.arch = &find_arch(arch);
  v.family = &family_for(*v.arch);
  v.cls = parse_problem_class(cls);
  v.config = parse_config(v.family->knobs(), config);
  return v;
}

std::string template_text(std::string_view name) {
  for (const auto& file : kernel_templates_embedded())
    if (file.name == name) return std::string(file.text);
  return "";
}

// A declared knob that the template never reads would be a knob without effect; a knob that the template
// reads without a declaration would not compile.
TEST(Render, EveryCompiledKnobIsDeclaredAndUsed) {
  for (const KernelFamily* family : families()) {
    std::string text = template_text(family->template_file());
    ASSERT_FALSE(text.empty());
    for (const Knob& knob : family->knobs()) {
      bool used = text.find("knob::" + knob.name) != std::string::npos;
      EXPECT_EQ(used, knob.compiled) << family->name() << " " << knob.name;
    }
    std::set<std::string> declared = {"tmem_columns"};  // rendered by the family, derived from its knobs
    for (const Knob& knob : family->knobs()) declared.insert(knob.name);
    for (size_t at = text.find("knob::"); at != std::string::npos; at = text.find("knob::", at + 1)) {
      size_t begin = at + 6, end = begin;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      EXPECT_TRUE(declared.contains(text.substr(begin, end - begin))) << text.substr(begin, end - begin);
    }
  }
}

TEST(Render, LaunchParametersDoNotChangeTheText) {
  for (std::string_view arch : {"sm_100a", "sm_90a"}) {
    EXPECT_EQ(render(variant(arch, "raster=m,raster_group=8")),
              render(variant(arch, "raster=n,raster_group=1")));
    EXPECT_NE(render(variant(arch, "stages=4")), render(variant(arch, "stages=5")));
  }
  EXPECT_NE(render(variant("sm_100a", "")), render(variant("sm_103a", "")));
  EXPECT_NE(render(variant("sm_100a", "", "bf16-bf16-kk")), render(variant("sm_100a", "", "f16-bf16-kk")));
}

TEST(Render, HoldsNoInclude) {
  for (std::string_view arch : {"sm_100a", "sm_90a"})
    EXPECT_EQ(render(variant(arch, "")).find("#include"), std::string::npos);
}

TEST(Knob, TextRoundTripsAndOldRowsTakeDefaults) {
  const std::vector<Knob>& knobs = family_for(find_arch("sm_100a")).knobs();
  Config config = parse_config(knobs, "stages=6,swizzle_a=64B,persistent=static");
  EXPECT_EQ(parse_config(knobs, to_text(knobs, config)), config);
  EXPECT_EQ(brief_text(knobs, config), "stages=6,swizzle_a=64B,persistent=static");
  EXPECT_EQ(brief_text(knobs, parse_config(knobs, "")), "default");
}

// Both must be sources that a person can hand to nvcc as they are.
TEST(Render, CompilesAloneWithNvcc) {
  const char* home = std::getenv("CUDA_HOME");
  std::filesystem::path nvcc = std::filesystem::path(home ? home : "/usr/local/cuda") / "bin/nvcc";
  if (!std::filesystem::exists(nvcc)) GTEST_SKIP() << "no nvcc here";
  TempFolder folder;
  for (const auto& [arch, config] :
       {std::pair{"sm_100a", "cta_group=2,cluster_m=2,persistent=static,acc_slots=2"},
        std::pair{"sm_90a", "cluster_n=2,tile_n=256"}}) {
    std::string source = folder / (std::string(arch) + ".cu");
    std::ofstream(source) << render(variant(arch, config));
    std::string target = std::string(arch).substr(3);
    std::string command = nvcc.string() + " -cubin -Werror all-warnings -gencode=arch=compute_" + target +
                          ",code=sm_" + target + " " + source + " -o " + folder / "out.cubin";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace gemmtune
