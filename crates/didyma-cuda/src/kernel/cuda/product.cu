// Matrix products of a tile: of weights and activations, and of activations with gradients.

// The columns of a product that a thread computes.
template <int COLUMNS> struct Sums {
    float of[PASSES(COLUMNS)][4][ROWS_PER_THREAD];

    __device__ void clear() {
        for (int p = 0; p < PASSES(COLUMNS); ++p)
            for (int j = 0; j < 4; ++j)
                for (int r = 0; r < ROWS_PER_THREAD; ++r) of[p][j][r] = 0.0f;
    }
};

__device__ int first_row() {
    return threadIdx.x % ROW_GROUPS * ROWS_PER_THREAD;
}
// The first of 4 columns; beyond the last where there is nothing to do for this thread.
__device__ int first_column(int pass) {
    return 4 * (threadIdx.x / ROW_GROUPS + pass * COLUMN_GROUPS);
}

// sums += weights[inner][COLUMNS]ᵀ input[inner][STRIDE].
template <int COLUMNS>
__device__ __forceinline__ void add_product(Sums<COLUMNS> &sums, const float *weights, const float *input, int inner) {
    const float *rows = input + first_row();
#pragma unroll
    for (int p = 0; p < PASSES(COLUMNS); ++p) {
        int column = first_column(p);
        if (column >= COLUMNS) break;
        const float *w = weights + column;
#pragma unroll 10
        for (int k = 0; k < inner; ++k) {
            float x[ROWS_PER_THREAD];
            load_rows(x, rows + k * STRIDE);
            float4 quad = *(const float4 *)(w + k * COLUMNS);
            for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                sums.of[p][0][r] += quad.x * x[r];
                sums.of[p][1][r] += quad.y * x[r];
                sums.of[p][2][r] += quad.z * x[r];
                sums.of[p][3][r] += quad.w * x[r];
            }
        }
    }
}

// The tensor cores multiply numbers of 11 significant bits (TF32) and ignore what follows. A number is the sum of two of
// them, to 21 bits: three products of parts are as good as one of the numbers.
struct Parts {
    u32 high, low;
};

__device__ Parts split(float a) {
    Parts parts;
    parts.high = __float_as_uint(a) & 0xffffe000u;
    parts.low = __float_as_uint(a - __uint_as_float(parts.high));
    return parts;
}

#ifndef EMULATED
// sum[16][8] += a[16][8] b[8][8], of which a warp holds the parts as the tensor cores have it.
__device__ void multiply(float *sum, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif

// Where the gradient of an output goes: of its weights, from the input `first` on, and of its bias.
struct Destination {
    float *weights, *bias;
    int first;
};

// Of the inputs, 8 each, that a warp takes at once.
#define INPUT_TILES 4

// An output's gradient, of which this thread has two numbers of each tile from the input `i` on.
template <bool ADD>
__device__ __forceinline__ void put_output(const Destination &to, int i, int inputs, int half, float (&sum)[INPUT_TILES][4]) {
    int at = i + 2 * (threadIdx.x % 4);
    float *weights = global(to.weights) + at;
#pragma unroll
    for (int n = 0; n < INPUT_TILES; ++n) {
        // The same for all threads of a warp, and true for all tiles but the last.
        if (to.first == 0 && i + 8 * n + 8 <= inputs) {
            put_number<ADD>(weights + 8 * n, sum[n][2 * half]);
            put_number<ADD>(weights + 8 * n + 1, sum[n][2 * half + 1]);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            int input = at + 8 * n + k;
            if (input >= to.first && input < inputs) put_number<ADD>(weights + 8 * n + k, sum[n][2 * half + k]);
            if (input == inputs) put_number<ADD>(global(to.bias), sum[n][2 * half + k]);
        }
    }
}

// Σ over rows of d[output] · input(i) for i < inputs, and for i = inputs of d[output] alone, the bias: there `input` is a
// row of ones. Added to what is there, or in its place. Only one thread ever writes to a place, so that sums have one order.
// `d` and what `input` returns are places in shared memory. The helpers' work.
template <typename Input, typename To>
__device__ __forceinline__ void outer_product(int d, int outputs, Input input, int inputs, bool accumulate, To to) {
    int lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
    int across = (inputs / 8 + INPUT_TILES) / INPUT_TILES, items = (outputs + 15) / 16 * across;
#pragma unroll 1
    for (int item = (threadIdx.x - THREADS) / 32; item < items; item += BACKWARD_HELPERS / 32) {
        __syncwarp();
        int o = item / across * 16 + group, i = item % across * (8 * INPUT_TILES);
        const float *left[2], *right[INPUT_TILES];
        left[0] = shared_floats + d + min(o, outputs - 1) * STRIDE + place;
        left[1] = shared_floats + d + min(o + 8, outputs - 1) * STRIDE + place;
#pragma unroll
        for (int n = 0; n < INPUT_TILES; ++n) right[n] = shared_floats + input(min(i + 8 * n + group, inputs)) + place;
        float sum[INPUT_TILES][4] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r += 8) {
            Parts a[4] = {split(left[0][r]), split(left[1][r]), split(left[0][r + 4]), split(left[1][r + 4])};
            Parts b[INPUT_TILES][2];
#pragma unroll
            for (int n = 0; n < INPUT_TILES; ++n) {
                b[n][0] = split(right[n][r]);
                b[n][1] = split(right[n][r + 4]);
            }
            // Products of the same sum depend on each other: those of all tiles take turns.
#pragma unroll
            for (int n = 0; n < INPUT_TILES; ++n)
                multiply(sum[n], a[0].low, a[1].low, a[2].low, a[3].low, b[n][0].high, b[n][1].high);
#pragma unroll
            for (int n = 0; n < INPUT_TILES; ++n)
                multiply(sum[n], a[0].high, a[1].high, a[2].high, a[3].high, b[n][0].low, b[n][1].low);
#pragma unroll
            for (int n = 0; n < INPUT_TILES; ++n)
                multiply(sum[n], a[0].high, a[1].high, a[2].high, a[3].high, b[n][0].high, b[n][1].high);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (o + 8 * half >= outputs) break;
            if (accumulate) {
                put_output<true>(to(o + 8 * half), i, inputs, half, sum);
            } else {
                put_output<false>(to(o + 8 * half), i, inputs, half, sum);
            }
        }
    }
}
