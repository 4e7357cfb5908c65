// Tiles through the flow: log-densities, with or without a tape for the gradient, and the way back from the base.

// The last map, whose stage ends with the linear layer: returns that.
template <bool TAPE> __device__ __forceinline__ const float *last_map(ForwardTile &tile, int layer) {
    Sums<LOGITS_PADDED> sums;
    sums.clear();
    const float *bias = staged_product<LOGITS_PADDED, UNITS, SLAB_LOGITS>(sums, tile.pipe, tile.left);
    if (is_helper()) {
        if (TAPE) tile.keep(layer, TAPE_HIDDEN, UNITS, tile.left);
        return bias + LOGITS_PADDED;
    }
#pragma unroll
    for (int p = 0; p < PASSES(LOGITS_PADDED); ++p)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= LOGITS) break;
            float value[ROWS_PER_THREAD];
            for (int r = 0; r < ROWS_PER_THREAD; ++r) value[r] = sums.of[p][j][r] + bias[column];
            store_rows(tile.logits + column * STRIDE + first_row(), value);
        }
    return bias + LOGITS_PADDED;
}

// The splines, in two steps: a thread each for widths and heights, then one for the curve.
template <bool TAPE, bool INVERSE> __device__ __forceinline__ void splines(ForwardTile &tile, int layer) {
    int count = DIM - known_of(layer);
    __syncthreads();
    for (int at = threadIdx.x; at < 2 * count * ROWS; at += THREADS + FORWARD_HELPERS) {
        int part = at / ROWS, start = part / 2 * SPLINE_LOGITS + part % 2 * BINS;
        softmax(tile.logits + start * STRIDE + at % ROWS);
    }
    __syncthreads();
    if (is_helper()) {
        if (TAPE) tile.keep(layer, TAPE_LOGITS, count * SPLINE_LOGITS, tile.logits);
    } else {
        for (int at = threadIdx.x; at < count * ROWS; at += THREADS) {
            int row = at % ROWS, s = at / ROWS;
            float *value = tile.z + transformed_feature(layer, s) * STRIDE + row;
            *value = spline<INVERSE>(tile.logits + s * SPLINE_LOGITS * STRIDE + row, *value, tile.log_det[s * STRIDE + row]);
        }
    }
    __syncthreads();
}

// y = L U z + b, and the logarithms of all slopes.
template <bool TAPE> __device__ __forceinline__ void linear(ForwardTile &tile, int layer, const float *linear) {
    const float *product = linear, *bias = product + DIM * DIM, log_det = bias[DIM];
    if (is_helper()) {
        if (TAPE) tile.keep(layer, TAPE_COUPLED, DIM, tile.z);
    } else {
        for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
            int row = at % ROWS, f = at / ROWS;
            float sum = bias[f];
            for (int g = 0; g < DIM; ++g) sum += product[f * DIM + g] * tile.z[g * STRIDE + row];
            tile.next_z[f * STRIDE + row] = sum;
            if (f == 0) {
                float total = log_det;
                for (int s = 0; s < DIM - known_of(layer); ++s) total += tile.log_det[s * STRIDE + row];
                tile.log_q[row] += total;
            }
        }
    }
    float *before = tile.z;
    tile.z = tile.next_z;
    tile.next_z = before;
}

// log N(z; 0, I) less the volume of theta's scaling.
__device__ float base_log_density(const Job &job, const ForwardTile &tile, int row) {
    float log_q = (float)job.log_constant;
    for (int f = 0; f < DIM; ++f) {
        float z = tile.z[f * STRIDE + row];
        log_q -= 0.5f * z * z;
    }
    return log_q;
}

template <bool TAPE> __device__ void forward_tiles(const Job &job) {
    ForwardTile tile;
    tile.place(job, 1);
    int tiles = tiles_of(job.plan);
    const u32 *atoms = plan_atoms(job.plan);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        __syncthreads();
        tile.pipe.start();
        tile.enter(job, t);
        tile.tape = job.tape + (u64)t * TAPE_TILE;
        for (int at = threadIdx.x; at < DIM * ROWS; at += blockDim.x) {
            int row = at / DIM, f = at % DIM;
            tile.z[f * STRIDE + row] = row < tile.rows ? job.theta[(u64)atoms[tile.first + row] * DIM + f] : 0.0f;
            if (f == 0) tile.log_q[row] = 0.0f;
        }
#pragma unroll 1
        for (int layer = 0; layer < LAYERS; ++layer) {
            Sums<UNITS_PADDED> hidden;
            if (!is_helper()) load_context(tile, layer, hidden);
            const float *initial = tile.pipe.next();
            if (TAPE && is_helper()) tile.keep(layer, TAPE_INPUT, DIM, tile.z);
            conditioner<TAPE>(tile, layer, initial, hidden);
            const float *rest = last_map<TAPE>(tile, layer);
            splines<TAPE, false>(tile, layer);
            linear<TAPE>(tile, layer, rest);
        }
        __syncthreads();
        for (int row = threadIdx.x; row < tile.rows; row += blockDim.x)
            job.log_q[tile.first + row] = tile.log_q[row] + base_log_density(job, tile, row);
        if (TAPE)
            for (int at = threadIdx.x; at < DIM * ROWS; at += blockDim.x)
                tile.tape[LAYERS * TAPE_FEATURES * ROWS + at] = tile.z[at / ROWS * STRIDE + at % ROWS];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + FORWARD_HELPERS, 1) forward_with_tape(Job job) {
    forward_tiles<true>(job);
}

extern "C" __global__ void __launch_bounds__(THREADS + FORWARD_HELPERS, 1) forward(Job job) {
    forward_tiles<false>(job);
}

// U⁻¹ L⁻¹ (z − b), a thread a row.
__device__ __forceinline__ void solve(ForwardTile &tile, const float *lower, const float *upper, const float *bias) {
    for (int row = threadIdx.x; row < ROWS; row += blockDim.x) {
        float *z = tile.z + row;
        for (int f = 0; f < DIM; ++f) {
            float sum = z[f * STRIDE] - bias[f];
            for (int g = 0; g < f; ++g) sum -= lower[f * DIM + g] * z[g * STRIDE];
            z[f * STRIDE] = sum;
        }
        for (int f = DIM - 1; f >= 0; --f) {
            float sum = z[f * STRIDE];
            for (int g = f + 1; g < DIM; ++g) sum -= upper[f * DIM + g] * z[g * STRIDE];
            z[f * STRIDE] = sum / upper[f * DIM + f];
        }
    }
}

// From the base to theta: `theta` of the job holds the base's draws, `z` receives theta, both by row.
extern "C" __global__ void __launch_bounds__(THREADS + FORWARD_HELPERS, 1) inverse(Job job) {
    ForwardTile tile;
    tile.place(job, -1);
    int tiles = tiles_of(job.plan);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        __syncthreads();
        tile.pipe.start();
        tile.enter(job, t);
        for (int at = threadIdx.x; at < DIM * ROWS; at += blockDim.x) {
            int row = at / DIM, f = at % DIM;
            tile.z[f * STRIDE + row] = row < tile.rows ? job.theta[(u64)(tile.first + row) * DIM + f] : 0.0f;
        }
        __syncthreads();
        for (int row = threadIdx.x; row < ROWS; row += blockDim.x) tile.log_q[row] = base_log_density(job, tile, row);
#pragma unroll 1
        for (int layer = LAYERS - 1; layer >= 0; --layer) {
            Sums<UNITS_PADDED> hidden;
            if (!is_helper()) load_context(tile, layer, hidden);
            const float *initial = tile.pipe.next();
            const float *factors = initial + KNOWN * UNITS_PADDED;
            solve(tile, factors, factors + DIM * DIM, factors + 2 * DIM * DIM);
            __syncthreads();
            conditioner<false>(tile, layer, initial, hidden);
            const float *rest = last_map<false>(tile, layer);
            splines<false, true>(tile, layer);
            for (int row = threadIdx.x; row < ROWS; row += blockDim.x) {
                float total = rest[DIM * DIM + DIM];
                for (int s = 0; s < DIM - known_of(layer); ++s) total += tile.log_det[s * STRIDE + row];
                tile.log_q[row] += total;
            }
        }
        __syncthreads();
        for (int at = threadIdx.x; at < DIM * tile.rows; at += blockDim.x)
            job.z[(u64)tile.first * DIM + at] = tile.z[at % DIM * STRIDE + at / DIM];
        for (int row = threadIdx.x; row < tile.rows; row += blockDim.x) job.log_q[tile.first + row] = tile.log_q[row];
    }
}
