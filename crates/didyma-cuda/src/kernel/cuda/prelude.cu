// What all kernels share: the job, vectors of rows, and asynchronous copies.
//
// Didyma writes the constants of a flow's shape before this file (see src/shape/header.rs), so that every loop has a known
// length. Activations are [feature][row], rows side by side: a warp reads rows, and a gradient sums over them.

typedef unsigned int u32;
typedef unsigned long long u64;

// Distance of two features in shared memory: quads of rows of eight neighbouring features fall into different banks.
#define STRIDE (ROWS + 4)
// A thread computes ROWS_PER_THREAD rows of 4 neighbouring columns.
#define ROW_GROUPS (ROWS / ROWS_PER_THREAD)
#define COLUMN_GROUPS (THREADS / ROW_GROUPS)
#define PASSES(columns) (((columns) / 4 + COLUMN_GROUPS - 1) / COLUMN_GROUPS)

// One group of a plan: rows of theta that share an x.
struct Group {
    u32 context, first, pairs, shared, first_term, terms, unused0, unused1;
    double own;
};

struct Term {
    double weight;
    u32 size, blocks;
};

// What a step is about. It is followed by groups, terms, log-weights and atoms.
struct Plan {
    u32 rows, groups, terms_at, log_weights_at, atoms_at, has_log_weights, unused0, unused1;
    // Adam's numbers.
    double clip, coupled_decay, shrink, beta1, rest1, beta2, rest2, rate, v_scale, epsilon;
};

// What survives a step.
struct State {
    double loss_sum;
    u64 losses;
    // 0; or why this step and all after it changed nothing: 1 the loss, 2 the gradient's norm.
    u64 diverged;
    double diverged_value;
    // Of the latest plan.
    double loss;
};

// Where everything lies on the device.
struct Job {
    const float *theta, *x;
    const double *log_prior;
    const Plan *plan;
    float *params, *first_moments, *second_moments;
    float *forward_image, *backward_image, *context_image;
    const int2 *places;
    float *contexts;
    u32 *row_group;
    float *tape, *log_q, *z, *weights;
    double *d_log_q, *group_losses;
    float *gradients, *gradient;
    double *norms;
    State *state;
    // log N(0; 0, I), less the volume of theta's scaling.
    double log_constant;
};

#ifndef EMULATED
#define INFINITY_64 __longlong_as_double(0x7ff0000000000000ULL)
#endif

__device__ const Group *plan_groups(const Plan *plan) {
    return (const Group *)(plan + 1);
}
__device__ const Term *plan_terms(const Plan *plan) {
    return (const Term *)((const char *)plan + plan->terms_at);
}
__device__ const double *plan_log_weights(const Plan *plan) {
    return (const double *)((const char *)plan + plan->log_weights_at);
}
__device__ const u32 *plan_atoms(const Plan *plan) {
    return (const u32 *)((const char *)plan + plan->atoms_at);
}

__device__ int tiles_of(const Plan *plan) {
    return (plan->rows + ROWS - 1) / ROWS;
}

// Which features of theta a layer leaves alone and which its splines act on: every other one, by turns.
__device__ int known_of(int layer) {
    return DIM == 1 ? 0 : (layer % 2 == 0 ? DIM / 2 : (DIM + 1) / 2);
}
__device__ int identity_feature(int layer, int i) {
    return 2 * i + 1 - layer % 2;
}
__device__ int transformed_feature(int layer, int i) {
    return DIM == 1 ? 0 : 2 * i + layer % 2;
}

__device__ float sigmoid(float a) {
    return 1.0f / (1.0f + expf(-a));
}
__device__ float softplus(float a) {
    return fmaxf(a, 0.0f) + log1pf(expf(-fabsf(a)));
}

#ifdef EMULATED
#define shared_floats ((float *)shared_memory)
#else
extern __shared__ float4 shared_memory[];
#define shared_floats ((float *)shared_memory)
#endif

// An address of the device's memory: what the compiler does not see of one that came out of a structure.
__device__ float *global(float *address) {
#ifndef EMULATED
    __builtin_assume(__isGlobal(address));
#endif
    return address;
}

// In place of what is there, or added to it.
template <bool ADD> __device__ void put_number(float *to, float value) {
    if (ADD) {
        atomicAdd(to, value);
    } else {
        *to = value;
    }
}

// Neighbouring rows of one feature, read and written at once.
__device__ void load_rows(float *to, const float *from) {
    if (ROWS_PER_THREAD == 4) {
        *(float4 *)to = *(const float4 *)from;
    } else if (ROWS_PER_THREAD == 2) {
        *(float2 *)to = *(const float2 *)from;
    } else {
        *to = *from;
    }
}
__device__ void store_rows(float *to, const float *from) {
    if (ROWS_PER_THREAD == 4) {
        *(float4 *)to = *(const float4 *)from;
    } else if (ROWS_PER_THREAD == 2) {
        *(float2 *)to = *(const float2 *)from;
    } else {
        *to = *from;
    }
}

// 16 bytes from device to shared memory, in the background.
__device__ void copy_quad(float *to, const float *from) {
#ifdef EMULATED
    *(float4 *)to = *(const float4 *)from;
#else
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#endif
}
// Quads in a row, by threads that are numbered from 0; small code, as it is needed in many places.
__device__ __noinline__ void copy_quads(float *to, const float *from, int quads, int number, int threads) {
#pragma unroll 1
    for (int q = number; q < quads; q += threads) copy_quad(to + 4 * q, from + 4 * q);
}
// Features of ROWS numbers, to a distance of STRIDE.
__device__ __noinline__ void copy_features(float *to, const float *from, int features, int number, int threads) {
#pragma unroll 1
    for (int q = number; q < features * (ROWS / 4); q += threads)
        copy_quad(to + q / (ROWS / 4) * STRIDE + q % (ROWS / 4) * 4, from + 4 * q);
}
__device__ void commit_copies() {
#ifndef EMULATED
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all copies but those of the latest AHEAD - 1 groups.
__device__ void wait_for_copies() {
#ifndef EMULATED
    asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
#endif
}
