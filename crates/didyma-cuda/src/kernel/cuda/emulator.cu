// The kernels on the CPU: a block's threads are fibres that take turns at barriers. Written before all other files.

#define EMULATED
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

using std::isfinite;
using std::isnan;
struct Index {
    unsigned x;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct int2 {
    int x, y;
};
static Index threadIdx, blockIdx, blockDim, gridDim;
static ucontext_t scheduler, *running;
static float4 *shared_memory;

#define __device__
#define __global__
#define __shared__ static
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)
#define INFINITY_64 HUGE_VAL
#define NAN_64 std::nan("")
#define min(a, b) ((a) < (b) ? (a) : (b))

static float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static void __syncthreads() {
    swapcontext(running, &scheduler);
}

// One block after the other; of each, every thread up to its next barrier, in turns.
template <typename Kernel, typename Job> static void launch(Kernel kernel, unsigned grid, unsigned threads, size_t shared, const Job &job) {
    const size_t stack = 1 << 16;
    static std::vector<char> stacks;
    stacks.resize(threads * stack);
    std::vector<ucontext_t> fibres(threads);
    std::vector<char> done(threads);
    // Poisoned: what a kernel reads before it is written must show.
    shared_memory = (float4 *)aligned_alloc(64, (shared + 127) / 64 * 64);
    gridDim.x = grid;
    blockDim.x = threads;
    static Job current;
    static Kernel function;
    static std::vector<char> *finished;
    current = job;
    function = kernel;
    finished = &done;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        memset(shared_memory, 0xff, (shared + 127) / 64 * 64);
        for (unsigned t = 0; t < threads; ++t) {
            done[t] = 0;
            getcontext(&fibres[t]);
            fibres[t].uc_stack.ss_sp = stacks.data() + t * stack;
            fibres[t].uc_stack.ss_size = stack;
            fibres[t].uc_link = &scheduler;
            makecontext(&fibres[t], (void (*)()) + [] {
                function(current);
                (*finished)[threadIdx.x] = 1;
            }, 0);
        }
        for (unsigned left = threads; left > 0;) {
            for (unsigned t = 0; t < threads; ++t) {
                if (done[t]) continue;
                threadIdx.x = t;
                running = &fibres[t];
                swapcontext(&scheduler, running);
                left -= done[t];
            }
        }
    }
    free(shared_memory);
}
