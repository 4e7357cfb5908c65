// The kernels on the CPU: a block's threads are fibres that take turns at barriers. Written before all other files.

#define EMULATED
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

using std::isfinite;
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
#define __noinline__
#define __launch_bounds__(threads, blocks)
#define INFINITY_64 HUGE_VAL
#define min(a, b) ((a) < (b) ? (a) : (b))

static float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}

// A barrier of some threads: the last to arrive opens it, the others take turns until then.
struct Barrier {
    unsigned arrived, opened;
    void wait(unsigned threads) {
        unsigned before = opened;
        if (++arrived == threads) {
            arrived = 0;
            ++opened;
        }
        while (before == opened) yield();
    }
    static void yield() {
        unsigned thread = threadIdx.x;
        swapcontext(running, &scheduler);
        threadIdx.x = thread;
    }
};
static Barrier block_barrier, warp_barriers[32];
static void __syncthreads() {
    block_barrier.wait(blockDim.x);
}
static void atomicAdd(float *to, float value) {
    *to += value;
}
static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
// What a tensor core sees of a number.
static float tf32(unsigned bits) {
    return __uint_as_float(bits & 0xffffe000u);
}
// A warp's tensor core: every lane brings its part of the factors and takes its part of the product.
static void multiply(float *sum, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    static unsigned a[32][32][4], b[32][32][2];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    unsigned mine[] = {a0, a1, a2, a3, b0, b1};
    memcpy(a[warp][lane], mine, 16);
    memcpy(b[warp][lane], mine + 4, 8);
    warp_barriers[warp].wait(32);
    for (int c = 0; c < 4; ++c) {
        unsigned m = g + 8 * (c / 2), n = 2 * t + c % 2;
        for (unsigned k = 0; k < 8; ++k)
            sum[c] += tf32(a[warp][m % 8 * 4 + k % 4][m / 8 + 2 * (k / 4)]) * tf32(b[warp][n * 4 + k % 4][k / 4]);
    }
    warp_barriers[warp].wait(32);
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
        block_barrier = {};
        memset(warp_barriers, 0, sizeof warp_barriers);
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
