#pragma once

#include "megamoe/call_report.hpp"
#include "megamoe/error.hpp"
#include "megamoe/group.hpp"
#include "megamoe/launch.hpp"
#include "megamoe/layer.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/plan.hpp"
#include "megamoe/planning.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/version.hpp"
#include "megamoe/weights.hpp"
