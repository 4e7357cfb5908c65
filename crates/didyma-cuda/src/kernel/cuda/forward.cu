// Tiles through the flow: log-densities, with or without a tape for the gradient, and the way back from the base.
//
// A block takes ROWS rows through all layers. The weights of a layer come in stages through a ring of three buffers in
// shared memory, two ahead of their use; the residual stream stays in registers. One barrier a stage serves both the
// weights and the activations of the stage before.

// Where features lie in a layer's tape, of which each is ROWS numbers.
#define TAPE_INPUT 0
#define TAPE_COUPLED DIM
#define TAPE_RECTIFIED(b) (2 * DIM + 3 * (b) * UNITS)
#define TAPE_INNER(b) (TAPE_RECTIFIED(b) + UNITS)
#define TAPE_VALUE(b) (TAPE_RECTIFIED(b) + 2 * UNITS)
#define TAPE_HIDDEN TAPE_RECTIFIED(BLOCKS)
#define TAPE_LOGITS (TAPE_HIDDEN + UNITS)
#define TAPE_FEATURES (TAPE_LOGITS + LOGITS)
// A tile's tape ends with z.
#define TAPE_TILE ((LAYERS * TAPE_FEATURES + DIM) * ROWS)

// x's part of a layer: what the first map owes to it, and the gates of the blocks.
#define CONTEXT_WIDTH ((1 + BLOCKS) * UNITS_PADDED)

#ifndef EMULATED
extern __shared__ float4 shared_memory[];
#endif

// Stages of weights, layer after layer, in either direction.
struct ForwardPipe {
    const float *image;
    float *ring;
    int stage, slot, step;

    __device__ void issue(int ahead) {
        if (ahead < LAYERS * FORWARD_STAGES) {
            int layer = ahead / FORWARD_STAGES, within = ahead % FORWARD_STAGES;
            layer = step > 0 ? layer : LAYERS - 1 - layer;
            const float *from = image + layer * FORWARD_FLOATS + FORWARD_OFFSET[within];
            float *to = ring + ahead % 3 * RING_SLOT;
            int quads = (FORWARD_OFFSET[within + 1] - FORWARD_OFFSET[within]) / 4;
            for (int q = threadIdx.x; q < quads; q += THREADS) copy_quad(to + 4 * q, from + 4 * q);
        }
        commit_copies();
    }

    __device__ void start() {
        stage = slot = 0;
        issue(0);
        issue(1);
    }

    // The next stage's weights; all threads are done with the stage before.
    __device__ const float *next() {
        wait_for_copies();
        __syncthreads();
        issue(stage + 2);
        const float *weights = ring + slot * RING_SLOT;
        ++stage;
        slot = slot == 2 ? 0 : slot + 1;
        return weights;
    }
};

// sums += matrixᵀ input, for a matrix that comes in slabs; returns what follows it in its last slab.
template <int COLUMNS, int INNER, int SLAB, typename Pipe>
__device__ __forceinline__ const float *staged_product(Sums<COLUMNS> &sums, Pipe &pipe, const float *input) {
    const float *weights = nullptr;
    int rows = 0;
    for (int start = 0; start < INNER; start += SLAB) {
        weights = pipe.next();
        rows = INNER - start < SLAB ? INNER - start : SLAB;
        if (INNER <= SLAB) {
            add_product<COLUMNS>(sums, weights, input, INNER);
        } else {
            add_product<COLUMNS>(sums, weights, input + start * STRIDE, rows);
        }
    }
    return weights + rows * COLUMNS;
}

// A tile at work.
struct ForwardTile {
    float *z, *next_z, *left, *right, *logits, *log_det, *log_q;
    int first, rows;
    // For each of this thread's rows, x's part of the first layer.
    const float *context[ROWS_PER_THREAD];
    float *tape;
    ForwardPipe pipe;

    __device__ void place(const Job &job, int step) {
        float *free = (float *)shared_memory;
        pipe.image = job.forward_image;
        pipe.step = step;
        pipe.ring = free;
        free += 3 * RING_SLOT;
        z = free;
        free += DIM * STRIDE;
        next_z = free;
        free += DIM * STRIDE;
        left = free;
        free += UNITS * STRIDE;
        right = free;
        free += UNITS * STRIDE;
        logits = free;
        free += LOGITS_PADDED * STRIDE;
        log_det = free;
        free += SPLINES * STRIDE;
        log_q = free;
    }

    __device__ void enter(const Job &job, int tile) {
        first = tile * ROWS;
        rows = min(ROWS, (int)job.plan->rows - first);
        for (int r = 0; r < ROWS_PER_THREAD; ++r) {
            int row = first + min(first_row() + r, rows - 1);
            context[r] = job.contexts + (u64)job.row_group[row] * LAYERS * CONTEXT_WIDTH;
        }
    }

    __device__ void to_tape(int layer, int feature, int row, float value) const {
        tape[(layer * TAPE_FEATURES + feature) * ROWS + row] = value;
    }
};

// This thread's rows of 4 columns, to shared memory and to the tape.
template <bool TAPE>
__device__ __forceinline__ void put_column(ForwardTile &tile, float *to, int layer, int feature, int column,
                                           const float *values) {
    if (to) store_rows(to + column * STRIDE + first_row(), values);
    if (TAPE) store_rows(tile.tape + (layer * TAPE_FEATURES + feature + column) * ROWS + first_row(), values);
}

// Spline logits of the tile, into `tile.logits`. The caller has waited for the layer's first stage, the part of the
// first map that reads theta.
template <bool TAPE> __device__ __forceinline__ void conditioner(ForwardTile &tile, int layer, const float *initial) {
    Sums<UNITS_PADDED> hidden, sums;
    int known = known_of(layer);
    hidden.clear();
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p) {
        int column = first_column(p);
        if (column >= UNITS_PADDED) break;
        for (int r = 0; r < ROWS_PER_THREAD; ++r) {
            float4 from_x = *(const float4 *)(tile.context[r] + layer * CONTEXT_WIDTH + column);
            hidden.of[p][0][r] = from_x.x;
            hidden.of[p][1][r] = from_x.y;
            hidden.of[p][2][r] = from_x.z;
            hidden.of[p][3][r] = from_x.w;
        }
        for (int i = 0; i < known; ++i) {
            float x[ROWS_PER_THREAD];
            load_rows(x, tile.z + identity_feature(layer, i) * STRIDE + first_row());
            for (int j = 0; j < 4; ++j)
                for (int r = 0; r < ROWS_PER_THREAD; ++r)
                    hidden.of[p][j][r] += initial[i * UNITS_PADDED + column + j] * x[r];
        }
        for (int j = 0; j < 4; ++j) {
            float value[ROWS_PER_THREAD];
            for (int r = 0; r < ROWS_PER_THREAD; ++r)
                value[r] = BLOCKS > 0 ? fmaxf(hidden.of[p][j][r], 0.0f) : hidden.of[p][j][r];
            if (column + j < UNITS) put_column<TAPE>(tile, tile.left, layer, TAPE_RECTIFIED(0), column + j, value);
        }
    }
    for (int b = 0; b < BLOCKS; ++b) {
        sums.clear();
        const float *bias = staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile.pipe, tile.left);
#pragma unroll
        for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
            for (int j = 0; j < 4; ++j) {
                int column = first_column(p) + j;
                if (column >= UNITS) break;
                float value[ROWS_PER_THREAD];
                for (int r = 0; r < ROWS_PER_THREAD; ++r) value[r] = fmaxf(sums.of[p][j][r] + bias[column], 0.0f);
                put_column<TAPE>(tile, tile.right, layer, TAPE_INNER(b), column, value);
            }
        float4 gates[PASSES(UNITS_PADDED)][ROWS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
            for (int r = 0; r < ROWS_PER_THREAD; ++r)
                if (first_column(p) < UNITS_PADDED)
                    gates[p][r] = *(const float4 *)(tile.context[r] + layer * CONTEXT_WIDTH + (1 + b) * UNITS_PADDED +
                                                    first_column(p));
        sums.clear();
        bias = staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile.pipe, tile.right);
#pragma unroll
        for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                int column = first_column(p) + j;
                if (column >= UNITS) break;
                float value[ROWS_PER_THREAD], out[ROWS_PER_THREAD];
                for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                    float4 quad = gates[p][r];
                    float gate = j == 0 ? quad.x : j == 1 ? quad.y : j == 2 ? quad.z : quad.w;
                    value[r] = sums.of[p][j][r] + bias[column];
                    hidden.of[p][j][r] += gate * value[r];
                    out[r] = b + 1 < BLOCKS ? fmaxf(hidden.of[p][j][r], 0.0f) : hidden.of[p][j][r];
                }
                put_column<TAPE>(tile, nullptr, layer, TAPE_VALUE(b), column, value);
                put_column<TAPE>(tile, tile.left, layer, TAPE_RECTIFIED(b + 1), column, out);
            }
    }
}

// The last map, whose stage ends with the linear layer: returns that.
__device__ __forceinline__ const float *last_map(ForwardTile &tile) {
    Sums<LOGITS_PADDED> sums;
    sums.clear();
    const float *bias = staged_product<LOGITS_PADDED, UNITS, SLAB_LOGITS>(sums, tile.pipe, tile.left);
#pragma unroll
    for (int p = 0; p < PASSES(LOGITS_PADDED); ++p)
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= LOGITS) break;
            float value[ROWS_PER_THREAD];
            for (int r = 0; r < ROWS_PER_THREAD; ++r) value[r] = sums.of[p][j][r] + bias[column];
            store_rows(tile.logits + column * STRIDE + first_row(), value);
        }
    return bias + LOGITS_PADDED;
}

template <bool TAPE, bool INVERSE> __device__ __forceinline__ void splines(ForwardTile &tile, int layer) {
    int count = DIM - known_of(layer);
    for (int at = threadIdx.x; at < count * ROWS; at += THREADS) {
        int row = at % ROWS, s = at / ROWS;
        float *logits = tile.logits + s * SPLINE_LOGITS * STRIDE + row;
        float *value = tile.z + transformed_feature(layer, s) * STRIDE + row;
        float log_det = 0.0f;
        *value = spline<INVERSE>(logits, *value, log_det);
        tile.log_det[s * STRIDE + row] = log_det;
        if (TAPE)
            for (int j = 0; j < SPLINE_LOGITS; ++j)
                tile.to_tape(layer, TAPE_LOGITS + s * SPLINE_LOGITS + j, row, logits[j * STRIDE]);
    }
}

__device__ void swap_z(ForwardTile &tile) {
    float *before = tile.z;
    tile.z = tile.next_z;
    tile.next_z = before;
}

// y = L U z + b, and the logarithms of all slopes.
template <bool TAPE> __device__ __forceinline__ void linear(ForwardTile &tile, int layer, const float *linear) {
    const float *product = linear, *bias = product + DIM * DIM, log_det = bias[DIM];
    for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
        int row = at % ROWS, f = at / ROWS;
        float sum = bias[f];
        for (int g = 0; g < DIM; ++g) sum += product[f * DIM + g] * tile.z[g * STRIDE + row];
        tile.next_z[f * STRIDE + row] = sum;
        if (TAPE) tile.to_tape(layer, TAPE_COUPLED + f, row, tile.z[f * STRIDE + row]);
        if (f == 0) {
            float total = log_det;
            for (int s = 0; s < DIM - known_of(layer); ++s) total += tile.log_det[s * STRIDE + row];
            tile.log_q[row] += total;
        }
    }
    swap_z(tile);
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
        for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
            int row = at / DIM, f = at % DIM;
            tile.z[f * STRIDE + row] = row < tile.rows ? job.theta[(u64)atoms[tile.first + row] * DIM + f] : 0.0f;
            if (f == 0) tile.log_q[row] = 0.0f;
        }
        for (int layer = 0; layer < LAYERS; ++layer) {
            const float *initial = tile.pipe.next();
            if (TAPE)
                for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS)
                    tile.to_tape(layer, TAPE_INPUT + at / ROWS, at % ROWS, tile.z[at / ROWS * STRIDE + at % ROWS]);
            conditioner<TAPE>(tile, layer, initial);
            const float *rest = last_map(tile);
            __syncthreads();
            splines<TAPE, false>(tile, layer);
            __syncthreads();
            linear<TAPE>(tile, layer, rest);
        }
        __syncthreads();
        for (int row = threadIdx.x; row < tile.rows; row += THREADS)
            job.log_q[tile.first + row] = tile.log_q[row] + base_log_density(job, tile, row);
        if (TAPE)
            for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS)
                tile.tape[LAYERS * TAPE_FEATURES * ROWS + at] = tile.z[at / ROWS * STRIDE + at % ROWS];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) forward_with_tape(Job job) {
    forward_tiles<true>(job);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) forward(Job job) {
    forward_tiles<false>(job);
}

// U⁻¹ L⁻¹ (z − b), a thread a row.
__device__ __forceinline__ void solve(ForwardTile &tile, const float *lower, const float *upper, const float *bias) {
    for (int row = threadIdx.x; row < ROWS; row += THREADS) {
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
extern "C" __global__ void __launch_bounds__(THREADS, 1) inverse(Job job) {
    ForwardTile tile;
    tile.place(job, -1);
    int tiles = tiles_of(job.plan);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        __syncthreads();
        tile.pipe.start();
        tile.enter(job, t);
        for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
            int row = at / DIM, f = at % DIM;
            tile.z[f * STRIDE + row] = row < tile.rows ? job.theta[(u64)(tile.first + row) * DIM + f] : 0.0f;
        }
        __syncthreads();
        for (int row = threadIdx.x; row < ROWS; row += THREADS) tile.log_q[row] = base_log_density(job, tile, row);
        for (int layer = LAYERS - 1; layer >= 0; --layer) {
            const float *initial = tile.pipe.next();
            const float *factors = initial + KNOWN * UNITS_PADDED;
            solve(tile, factors, factors + DIM * DIM, factors + 2 * DIM * DIM);
            __syncthreads();
            conditioner<false>(tile, layer, initial);
            const float *rest = last_map(tile);
            __syncthreads();
            splines<false, true>(tile, layer);
            __syncthreads();
            for (int row = threadIdx.x; row < ROWS; row += THREADS) {
                float total = rest[DIM * DIM + DIM];
                for (int s = 0; s < DIM - known_of(layer); ++s) total += tile.log_det[s * STRIDE + row];
                tile.log_q[row] += total;
            }
        }
        __syncthreads();
        for (int at = threadIdx.x; at < DIM * tile.rows; at += THREADS)
            job.z[(u64)tile.first * DIM + at] = tile.z[at % DIM * STRIDE + at / DIM];
        for (int row = threadIdx.x; row < tile.rows; row += THREADS) job.log_q[tile.first + row] = tile.log_q[row];
    }
}
