// The wheel's headers name this one too, and use nothing of it here.
#pragma once

#include <cuda_runtime_api.h>
