// The kernels on the CPU: a block's threads are fibres that take turns at barriers. Written before all other files.

#define EMULATED
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

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
static float4 *shared_memory;

// A thread of a block. It lives on its own stack for ever and begins anew with every block, since making one takes a
// system call and a turn does not.
struct Fibre {
    jmp_buf place;
    // Waits until this number is no longer what was seen, if it is about one.
    const unsigned *watched;
    unsigned seen;
    bool begun, done;
    bool is_ready() const {
        return !done && !(watched && *watched == seen);
    }
};
static Fibre fibres[1024];
static jmp_buf scheduler;
static void take_turn() {
    unsigned thread = threadIdx.x;
    if (!_setjmp(fibres[thread].place)) _longjmp(scheduler, 1);
    threadIdx.x = thread;
}

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

// A barrier of some threads: the last to arrive opens it, and the others have no turn until then.
struct Barrier {
    unsigned arrived, opened;
    void wait(unsigned threads) {
        if (++arrived == threads) {
            arrived = 0;
            ++opened;
            return;
        }
        Fibre &self = fibres[threadIdx.x];
        self.watched = &opened;
        self.seen = opened;
        take_turn();
        self.watched = nullptr;
    }
};
static Barrier block_barrier, warp_barriers[32];
static void __syncthreads() {
    block_barrier.wait(blockDim.x);
}
static void __syncwarp() {}
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
    // Two of each by turns: nobody comes to the next but one before all have read this one.
    static unsigned left[2][32][32][4], right[2][32][32][2], turns[1024];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    unsigned turn = turns[threadIdx.x]++ % 2;
    auto a = left[turn][warp];
    auto b = right[turn][warp];
    unsigned mine[] = {a0, a1, a2, a3, b0, b1};
    memcpy(a[lane], mine, 16);
    memcpy(b[lane], mine + 4, 8);
    warp_barriers[warp].wait(32);
    for (int c = 0; c < 4; ++c) {
        unsigned m = g + 8 * (c / 2), n = 2 * t + c % 2;
        for (unsigned k = 0; k < 8; ++k)
            sum[c] += tf32(a[m % 8 * 4 + k % 4][m / 8 + 2 * (k / 4)]) * tf32(b[n * 4 + k % 4][k / 4]);
    }
}

static void (*work)();
static void live() {
    for (;;) {
        work();
        fibres[threadIdx.x].done = true;
        take_turn();
    }
}
// Lets a thread work up to its next barrier.
static void give_turn(unsigned thread) {
    const size_t stack = 1 << 16;
    static char *stacks = (char *)malloc(1024 * stack);
    threadIdx.x = thread;
    if (_setjmp(scheduler)) return;
    if (fibres[thread].begun) _longjmp(fibres[thread].place, 1);
    fibres[thread].begun = true;
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = stacks + thread * stack;
    start.uc_stack.ss_size = stack;
    makecontext(&start, live, 0);
    setcontext(&start);
}

// One block after the other; of each, every thread up to its next barrier, in turns.
template <typename Kernel, typename Job> static void launch(Kernel kernel, unsigned grid, unsigned threads, size_t shared, const Job &job) {
    static Job current;
    static Kernel function;
    current = job;
    function = kernel;
    work = [] { function(current); };
    size_t bytes = (shared + 127) / 64 * 64;
    shared_memory = (float4 *)aligned_alloc(64, bytes);
    gridDim.x = grid;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        block_barrier = {};
        memset(warp_barriers, 0, sizeof warp_barriers);
        // Poisoned: what a kernel reads before it is written must show.
        memset(shared_memory, 0xff, bytes);
        for (unsigned t = 0; t < threads; ++t) fibres[t].done = false;
        for (unsigned left = threads; left > 0;) {
            for (unsigned t = 0; t < threads; ++t) {
                if (!fibres[t].is_ready()) continue;
                give_turn(t);
                left -= fibres[t].done;
            }
        }
    }
    free(shared_memory);
}
