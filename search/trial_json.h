// Records as JSON: the worker protocol and the database's evidence column use the same spelling.
#pragma once

#include <nlohmann/json.hpp>

#include "search/trial.h"

namespace gemmtune {

void to_json(nlohmann::json& j, const Shape& v);
void from_json(const nlohmann::json& j, Shape& v);
void to_json(nlohmann::json& j, const ValidationCase& v);
void from_json(const nlohmann::json& j, ValidationCase& v);
void to_json(nlohmann::json& j, const Validation& v);
void from_json(const nlohmann::json& j, Validation& v);
void to_json(nlohmann::json& j, const Sample& v);
void from_json(const nlohmann::json& j, Sample& v);
void to_json(nlohmann::json& j, const StaticEvidence& v);
void from_json(const nlohmann::json& j, StaticEvidence& v);
void to_json(nlohmann::json& j, const DeviceRecord& v);
void from_json(const nlohmann::json& j, DeviceRecord& v);

}  // namespace gemmtune
