// Tiles through the flow: log-densities, with or without a tape for the gradient, and the way back from the base.
//
// A block takes ROWS rows through all layers. Its first THREADS threads compute, with the residual stream in registers; the
// others, its helpers, bring the weights, which come in stages through a ring of buffers in shared memory ahead of their use,
// and write the tape. One barrier a stage serves both the weights and the activations of the stage before.

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

__device__ bool is_helper() {
    return threadIdx.x >= THREADS;
}

// Stages of weights, layer after layer, in either direction.
struct ForwardPipe {
    const float *image;
    float *ring;
    // The stage to be issued next, and its layer; the slots to issue to and to read from.
    int within, layer, left, step, issue_slot, slot;

    __device__ void issue() {
        if (left > 0) {
            const float *from = image + layer * FORWARD_FLOATS + FORWARD_OFFSET[within];
            float *to = ring + issue_slot * RING_SLOT;
            int quads = (FORWARD_OFFSET[within + 1] - FORWARD_OFFSET[within]) / 4;
            copy_quads(to, from, quads, threadIdx.x - THREADS, FORWARD_HELPERS);
            --left;
            if (++within == FORWARD_STAGES) {
                within = 0;
                layer += step;
            }
            issue_slot = issue_slot == AHEAD ? 0 : issue_slot + 1;
        }
        commit_copies();
    }

    __device__ void start() {
        within = slot = issue_slot = 0;
        left = LAYERS * FORWARD_STAGES;
        layer = step > 0 ? 0 : LAYERS - 1;
        for (int i = 0; i < AHEAD && is_helper(); ++i) issue();
    }

    // The next stage's weights; all threads are done with the stage before.
    __device__ const float *next() {
        if (is_helper()) wait_for_copies();
        __syncthreads();
        if (is_helper()) issue();
        const float *weights = ring + slot * RING_SLOT;
        slot = slot == AHEAD ? 0 : slot + 1;
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
        if (is_helper()) continue;
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
        float *free = shared_floats;
        pipe.image = job.forward_image;
        pipe.step = step;
        pipe.ring = free;
        free += (AHEAD + 1) * RING_SLOT;
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
            int row = first + min(first_row() + r, rows - 1); // of helpers, some row that nobody uses
            context[r] = job.contexts + (u64)job.row_group[row] * LAYERS * CONTEXT_WIDTH;
        }
    }

    // Features that lie in shared memory, to the tape: a helper's work.
    __device__ void keep(int layer, int feature, int count, const float *from) const {
        float *to = tape + (layer * TAPE_FEATURES + feature) * ROWS;
#pragma unroll 1
        for (int q = threadIdx.x - THREADS; q < count * (ROWS / 4); q += FORWARD_HELPERS)
            *(float4 *)(to + 4 * q) = *(const float4 *)(from + q / (ROWS / 4) * STRIDE + q % (ROWS / 4) * 4);
    }
};

// What the residual stream begins with: x's part of the first map.
__device__ __forceinline__ void load_context(const ForwardTile &tile, int layer, Sums<UNITS_PADDED> &hidden) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p) {
        int column = first_column(p);
        if (column >= UNITS_PADDED) break;
#pragma unroll
        for (int r = 0; r < ROWS_PER_THREAD; ++r) {
            float4 from_x = *(const float4 *)(tile.context[r] + layer * CONTEXT_WIDTH + column);
            hidden.of[p][0][r] = from_x.x;
            hidden.of[p][1][r] = from_x.y;
            hidden.of[p][2][r] = from_x.z;
            hidden.of[p][3][r] = from_x.w;
        }
    }
}

// The stream after the first map; what the first block reads of it.
__device__ __forceinline__ void first_map(ForwardTile &tile, int layer, const float *initial, Sums<UNITS_PADDED> &hidden) {
    int known = known_of(layer);
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p) {
        int column = first_column(p);
        if (column >= UNITS_PADDED) break;
        for (int i = 0; i < known; ++i) {
            float x[ROWS_PER_THREAD];
            load_rows(x, tile.z + identity_feature(layer, i) * STRIDE + first_row());
            float4 quad = *(const float4 *)(initial + i * UNITS_PADDED + column);
#pragma unroll
            for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                hidden.of[p][0][r] += quad.x * x[r];
                hidden.of[p][1][r] += quad.y * x[r];
                hidden.of[p][2][r] += quad.z * x[r];
                hidden.of[p][3][r] += quad.w * x[r];
            }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float value[ROWS_PER_THREAD];
            for (int r = 0; r < ROWS_PER_THREAD; ++r)
                value[r] = BLOCKS > 0 ? fmaxf(hidden.of[p][j][r], 0.0f) : hidden.of[p][j][r];
            if (column + j < UNITS) store_rows(tile.left + (column + j) * STRIDE + first_row(), value);
        }
    }
}

// relu(sums + bias).
__device__ __forceinline__ void put_rectified(const Sums<UNITS_PADDED> &sums, const float *bias, float *to) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= UNITS) break;
            float value[ROWS_PER_THREAD];
            for (int r = 0; r < ROWS_PER_THREAD; ++r) value[r] = fmaxf(sums.of[p][j][r] + bias[column], 0.0f);
            store_rows(to + column * STRIDE + first_row(), value);
        }
}

__device__ __forceinline__ void load_gates(const ForwardTile &tile, int layer, int block,
                                           float4 (&gates)[PASSES(UNITS_PADDED)][ROWS_PER_THREAD]) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
#pragma unroll
        for (int r = 0; r < ROWS_PER_THREAD; ++r)
            if (first_column(p) < UNITS_PADDED)
                gates[p][r] = *(const float4 *)(tile.context[r] + layer * CONTEXT_WIDTH + (1 + block) * UNITS_PADDED +
                                                first_column(p));
}

__device__ __forceinline__ float component(float4 quad, int j) {
    return j == 0 ? quad.x : j == 1 ? quad.y : j == 2 ? quad.z : quad.w;
}

// stream += gate ⊙ (sums + bias); what the next block, or the last map, reads of it.
template <bool TAPE>
__device__ __forceinline__ void add_block(ForwardTile &tile, int layer, int block, const Sums<UNITS_PADDED> &sums,
                                          const float *bias, const float4 (&gates)[PASSES(UNITS_PADDED)][ROWS_PER_THREAD],
                                          Sums<UNITS_PADDED> &hidden) {
    float *kept = tile.tape + (layer * TAPE_FEATURES + TAPE_VALUE(block)) * ROWS + first_row();
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= UNITS) break;
            float value[ROWS_PER_THREAD], out[ROWS_PER_THREAD];
#pragma unroll
            for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                value[r] = sums.of[p][j][r] + bias[column];
                hidden.of[p][j][r] += component(gates[p][r], j) * value[r];
                out[r] = block + 1 < BLOCKS ? fmaxf(hidden.of[p][j][r], 0.0f) : hidden.of[p][j][r];
            }
            if (TAPE) store_rows(kept + column * ROWS, value);
            store_rows(tile.left + column * STRIDE + first_row(), out);
        }
}

// The residual network up to its last map. The caller has waited for the layer's first stage, the part of the first map
// that reads theta.
template <bool TAPE>
__device__ __forceinline__ void conditioner(ForwardTile &tile, int layer, const float *initial, Sums<UNITS_PADDED> &hidden) {
    if (!is_helper()) first_map(tile, layer, initial, hidden);
    Sums<UNITS_PADDED> sums;
#pragma unroll 1
    for (int b = 0; b < BLOCKS; ++b) {
        sums.clear();
        const float *bias = staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile.pipe, tile.left);
        if (!is_helper()) {
            put_rectified(sums, bias, tile.right);
        } else if (TAPE) {
            tile.keep(layer, TAPE_RECTIFIED(b), UNITS, tile.left);
        }
        float4 gates[PASSES(UNITS_PADDED)][ROWS_PER_THREAD];
        if (!is_helper()) load_gates(tile, layer, b, gates);
        sums.clear();
        bias = staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile.pipe, tile.right);
        if (!is_helper()) {
            add_block<TAPE>(tile, layer, b, sums, bias, gates, hidden);
        } else if (TAPE) {
            tile.keep(layer, TAPE_INNER(b), UNITS, tile.right);
        }
    }
}

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
