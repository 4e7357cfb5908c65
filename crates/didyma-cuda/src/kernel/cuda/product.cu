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

__device__ float dot(float4 a, float4 b, float sum) {
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// Σ over rows of d[output] · input[i], and of d[output] alone for i = inputs, the bias; each handed to `put`.
// A thread's 4 × 4 outputs and inputs are far apart, those of its neighbours adjacent: no bank conflicts.
template <typename Input, typename Put>
__device__ __forceinline__ void outer_product(const float *d, int outputs, Input input, int inputs, Put put) {
    int output_groups = (outputs + 3) / 4, input_groups = (inputs + 4) / 4;
    for (int tile = threadIdx.x; tile < output_groups * input_groups; tile += THREADS) {
        int o = tile / input_groups, i = tile % input_groups;
        const float *left[4], *right[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            left[j] = d + min(o + j * output_groups, outputs - 1) * STRIDE;
            right[j] = input(min(i + j * input_groups, inputs - 1));
        }
        int ones = (inputs - i) % input_groups == 0 ? (inputs - i) / input_groups : -1;
        float sum[4][4] = {};
#pragma unroll 2
        for (int r = 0; r < ROWS; r += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                a[j] = *(const float4 *)(left[j] + r);
                b[j] = *(const float4 *)(right[j] + r);
            }
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (k == ones) b[k] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) sum[j][k] = dot(a[j], b[k], sum[j][k]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                int output = o + j * output_groups, at = i + k * input_groups;
                if (output < outputs && at <= inputs) put(output, at, sum[j][k]);
            }
    }
}
