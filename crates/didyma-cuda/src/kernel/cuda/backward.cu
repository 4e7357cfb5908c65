// Tiles back through the flow: from the weights of the log-densities to a gradient for each block.
//
// Weights come in stages as on the way forward, and with the first stage of each matrix the activations that its
// gradient needs, from the tape. The first THREADS threads take the gradient of the rows from stage to stage. The helpers
// bring what is needed ahead, and compute the gradients of a stage's weights while the others are at the next stage.
// A block adds the gradients of its tiles, in their order, into memory of its own.

// Activations of the tape that are at hand at once: for each matrix on its way, at work or with the helpers, two of these.
#define KEPT (UNITS * STRIDE)

__device__ void first_gradients(int layer, int d_stacked, int theta, int x, int ones, float *gradient, bool accumulate);

struct BackwardTile {
    float *ring, *kept, *soft, *input, *coupled, *d_z, *next_d_z, *d_value, *d_inner, *d_stacked, *inputs, *d_log_q, *ones;
    float *d_product, *total;
    const float *image, *tape;
    float *gradient;
    // The stage to be issued next, its layer and matrix; and where those at hand lie.
    int first, rows, within, layer, left, issue_slot, issue_matrix, slot, matrix;
    bool accumulate;
    const float *context[ROWS_PER_THREAD];

    __device__ float *d_value_of(int block) const {
        return d_value + block % 2 * KEPT;
    }
    __device__ float *d_inner_of(int block) const {
        return d_inner + block % 2 * KEPT;
    }

    __device__ void place(const Job &job) {
        float *free = shared_floats;
        image = job.backward_image;
        ring = free;
        free += (AHEAD + 1) * RING_SLOT;
        kept = free;
        free += 2 * (AHEAD + 2) * KEPT;
        soft = free;
        free += 2 * LOGITS * STRIDE;
        input = free;
        free += 2 * DIM * STRIDE;
        coupled = free;
        free += 2 * DIM * STRIDE;
        d_z = free;
        free += DIM * STRIDE;
        next_d_z = free;
        free += DIM * STRIDE;
        d_value = free;
        free += 2 * KEPT;
        d_inner = free;
        free += 2 * KEPT;
        d_stacked = free;
        free += (1 + BLOCKS) * UNITS * STRIDE;
        inputs = free;
        free += CONTEXT * STRIDE;
        d_log_q = free;
        free += STRIDE;
        ones = free;
        free += STRIDE;
        d_product = free;
        free += DIM * DIM + DIM;
        total = free;
    }

    // Features of a layer's tape into shared memory.
    __device__ void fetch(int layer, int feature, int count, float *to) {
        const float *from = tape + (layer * TAPE_FEATURES + feature) * ROWS;
        copy_features(to, from, count, threadIdx.x - THREADS, BACKWARD_HELPERS);
    }

    __device__ void issue() {
        if (left > 0) {
            const float *from = image + layer * BACKWARD_FLOATS + BACKWARD_OFFSET[within];
            float *to = ring + issue_slot * RING_SLOT;
            int quads = (BACKWARD_OFFSET[within + 1] - BACKWARD_OFFSET[within]) / 4;
            copy_quads(to, from, quads, threadIdx.x - THREADS, BACKWARD_HELPERS);
            fetch_activations();
            --left;
            if (++within == BACKWARD_STAGES) {
                within = 0;
                --layer;
            }
            issue_slot = issue_slot == AHEAD ? 0 : issue_slot + 1;
        }
        commit_copies();
    }

    // What the matrix that begins with this stage needs.
    __device__ void fetch_activations() {
        if (within == 0) {
            int side = layer % 2;
            fetch(layer, TAPE_LOGITS, LOGITS, soft + side * LOGITS * STRIDE);
            fetch(layer, TAPE_INPUT, DIM, input + side * DIM * STRIDE);
            fetch(layer, TAPE_COUPLED, DIM, coupled + side * DIM * STRIDE);
            return;
        }
        int m = BACKWARD_MATRIX[within];
        if (m < 0) return;
        float *to = kept + issue_matrix * 2 * KEPT;
        issue_matrix = issue_matrix == AHEAD + 1 ? 0 : issue_matrix + 1;
        int block = BLOCKS - 1 - (m - 1) / 2;
        if (m == 0) {
            fetch(layer, TAPE_HIDDEN, UNITS, to);
            if (BLOCKS > 0) fetch(layer, TAPE_VALUE(BLOCKS - 1), UNITS, to + KEPT);
        } else if (m % 2 == 1) {
            fetch(layer, TAPE_INNER(block), UNITS, to);
        } else {
            fetch(layer, TAPE_RECTIFIED(block), UNITS, to);
            if (block > 0) fetch(layer, TAPE_VALUE(block - 1), UNITS, to + KEPT);
        }
    }

    __device__ void start() {
        within = issue_slot = issue_matrix = slot = matrix = 0;
        left = LAYERS * BACKWARD_STAGES;
        layer = LAYERS - 1;
        for (int i = 0; i < AHEAD && is_helper(); ++i) issue();
    }

    __device__ const float *next() {
        if (is_helper()) wait_for_copies();
        __syncthreads();
        if (is_helper()) issue();
        const float *weights = ring + slot * RING_SLOT;
        slot = slot == AHEAD ? 0 : slot + 1;
        return weights;
    }

    // The activations of the matrix at hand; the next call is about the next matrix.
    __device__ const float *next_kept() {
        const float *found = kept + matrix * 2 * KEPT;
        matrix = matrix == AHEAD + 1 ? 0 : matrix + 1;
        return found;
    }

    __device__ void first_gradients_of(int layer) {
        const float *theta = input + layer % 2 * DIM * STRIDE;
        first_gradients(layer, d_stacked - shared_floats, theta - shared_floats, inputs - shared_floats, ones - shared_floats,
                        gradient, accumulate);
    }

    __device__ void swap_d_z() {
        float *before = d_z;
        d_z = next_d_z;
        next_d_z = before;
    }

    __device__ void put(int at, float value) {
        if (accumulate) {
            put_number<true>(global(gradient + at), value);
        } else {
            put_number<false>(global(gradient + at), value);
        }
    }
};

// Gradient of an affine map with UNITS inputs. `d` and `input` are places in shared memory, which a pointer would hide from
// the compiler.
__device__ __noinline__ void map_gradient(int d, int outputs, int input, int ones, float *weights, float *bias,
                                          bool accumulate) {
    auto row = [&](int i) { return i < UNITS ? input + i * STRIDE : ones; };
    auto to = [&](int o) { return Destination{weights + o * UNITS, bias + o, 0}; };
    outer_product(d, outputs, row, UNITS, accumulate, to);
}

// The gradient of L U, and of z.
__device__ __forceinline__ void linear_gradient(BackwardTile &tile, int layer, const float *product) {
    const float *coupled = tile.coupled + layer % 2 * DIM * STRIDE;
    for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
        int row = at % ROWS, f = at / ROWS;
        float sum = 0.0f;
        for (int g = 0; g < DIM; ++g) sum += product[g * DIM + f] * tile.d_z[g * STRIDE + row];
        tile.next_d_z[f * STRIDE + row] = sum;
    }
    // The last threads, of which there is nothing asked above.
    for (int at = THREADS - 1 - threadIdx.x; at < DIM * DIM + DIM; at += THREADS) {
        const float *d = tile.d_z + (at < DIM * DIM ? at / DIM : at - DIM * DIM) * STRIDE;
        const float *z = coupled + at % DIM * STRIDE;
        float sum = 0.0f;
#pragma unroll 4
        for (int r = 0; r < ROWS; r += 4) {
            float4 left = *(const float4 *)(d + r);
            float4 right = at < DIM * DIM ? *(const float4 *)(z + r) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
            sum += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
        }
        tile.d_product[at] = sum;
    }
}

// From the gradient of L U to those of its factors.
__device__ __forceinline__ void factors_gradient(BackwardTile &tile, int layer, const float *factors) {
    const float *lower = factors + DIM * DIM, *upper = lower + DIM * DIM, *slope = upper + DIM * DIM, *d = tile.d_product;
    const Places &places = PLACES[layer];
    // The last threads: the first are busy with splines.
    for (int at = THREADS - 1 - threadIdx.x; at < DIM * DIM + DIM; at += THREADS) {
        int i = at / DIM, j = at % DIM;
        float sum = 0.0f;
        if (at >= DIM * DIM) {
            tile.put(places.linear_bias + j, d[at]);
        } else if (j < i) {
            for (int k = j; k < DIM; ++k) sum += d[i * DIM + k] * upper[j * DIM + k];
            tile.put(places.lower + i * (i - 1) / 2 + j, sum);
        } else {
            for (int k = i; k < DIM; ++k) sum += lower[k * DIM + i] * d[k * DIM + j];
            if (i == j) {
                tile.put(places.diagonal + i, (sum + *tile.total / upper[i * DIM + i]) * slope[i]);
            } else {
                tile.put(places.upper + i * (2 * DIM - i - 1) / 2 + j - i - 1, sum);
            }
        }
    }
}

__device__ __forceinline__ void spline_gradients(BackwardTile &tile, int layer) {
    const float *input = tile.input + layer % 2 * DIM * STRIDE;
    float *soft = tile.soft + layer % 2 * LOGITS * STRIDE;
    for (int at = threadIdx.x; at < (DIM - known_of(layer)) * ROWS; at += THREADS) {
        int row = at % ROWS, s = at / ROWS, f = transformed_feature(layer, s) * STRIDE + row;
        tile.d_z[f] = spline_gradient(soft + s * SPLINE_LOGITS * STRIDE + row, input[f], tile.d_z[f], tile.d_log_q[row]);
    }
}

// Through a block's gate: the gradients of its value and, stacked for later, of its gate before the sigmoid.
__device__ __forceinline__ void gate_gradient(BackwardTile &tile, const Sums<UNITS_PADDED> &d_hidden, int layer, int block,
                                              const float *value) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p) {
        if (first_column(p) >= UNITS) break;
        float4 gates[ROWS_PER_THREAD];
        for (int r = 0; r < ROWS_PER_THREAD; ++r)
            gates[r] = *(const float4 *)(tile.context[r] + layer * CONTEXT_WIDTH + (1 + block) * UNITS_PADDED + first_column(p));
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= UNITS) break;
            float v[ROWS_PER_THREAD], d_value[ROWS_PER_THREAD], d_gate[ROWS_PER_THREAD];
            load_rows(v, value + column * STRIDE + first_row());
            for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                float gate = component(gates[r], j);
                d_value[r] = d_hidden.of[p][j][r] * gate;
                d_gate[r] = d_hidden.of[p][j][r] * v[r] * gate * (1.0f - gate);
            }
            store_rows(tile.d_value_of(block) + column * STRIDE + first_row(), d_value);
            store_rows(tile.d_stacked + (block * UNITS + column) * STRIDE + first_row(), d_gate);
        }
    }
}

// Back through a relu, whose output is `rectified`: added to `to`, and stored as rows where they are asked for.
template <bool ADD>
__device__ __forceinline__ void rectified_gradient(const Sums<UNITS_PADDED> &d, Sums<UNITS_PADDED> &to, const float *rectified,
                                                   float *rows) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column >= UNITS) break;
            float mask[ROWS_PER_THREAD];
            load_rows(mask, rectified + column * STRIDE + first_row());
            for (int r = 0; r < ROWS_PER_THREAD; ++r) {
                float passed = mask[r] > 0.0f ? d.of[p][j][r] : 0.0f;
                to.of[p][j][r] = ADD ? to.of[p][j][r] + passed : passed;
            }
            if (rows) store_rows(rows + column * STRIDE + first_row(), to.of[p][j]);
        }
}

// The stream's gradient before the first block, stacked under those of the gates.
__device__ __forceinline__ void store_stream(BackwardTile &tile, const Sums<UNITS_PADDED> &d_hidden) {
#pragma unroll
    for (int p = 0; p < PASSES(UNITS_PADDED); ++p)
        for (int j = 0; j < 4; ++j) {
            int column = first_column(p) + j;
            if (column < UNITS)
                store_rows(tile.d_stacked + (BLOCKS * UNITS + column) * STRIDE + first_row(), d_hidden.of[p][j]);
        }
}

// The gradient of the features of theta that the first map reads.
__device__ __forceinline__ void identity_gradient(BackwardTile &tile, int layer, const float *weights) {
    const float *d_hidden = tile.d_stacked + BLOCKS * UNITS * STRIDE;
    for (int at = threadIdx.x; at < known_of(layer) * ROWS; at += THREADS) {
        int row = at % ROWS, i = at / ROWS;
        float sum = 0.0f;
#pragma unroll 10
        for (int u = 0; u < UNITS; ++u) sum += weights[u * KNOWN_PADDED + i] * d_hidden[u * STRIDE + row];
        tile.d_z[identity_feature(layer, i) * STRIDE + row] += sum;
    }
}

// The gradients of the first map and of those of the gates, all of which read x.
__device__ __noinline__ void first_gradients(int layer, int d_stacked, int theta, int x, int ones, float *gradient, bool accumulate) {
    const Places &places = PLACES[layer];
    int known = known_of(layer);
    auto row = [&](int i) {
        if (i == known + CONTEXT) return ones;
        return i < known ? theta + identity_feature(layer, i) * STRIDE : x + (i - known) * STRIDE;
    };
    auto to = [&](int o) {
        int map = o / UNITS, unit = o % UNITS;
        if (map == BLOCKS)
            return Destination{gradient + places.initial + unit * (known + CONTEXT), gradient + places.initial_bias + unit, 0};
        return Destination{gradient + places.context[map] + unit * CONTEXT - known, gradient + places.context_bias[map] + unit,
                           known};
    };
    outer_product(d_stacked, (1 + BLOCKS) * UNITS, row, known + CONTEXT, accumulate, to);
}

// A layer of the gradient of the rows: the first threads' work.
__device__ __forceinline__ void rows_gradient(BackwardTile &tile, int layer) {
    int logits = (DIM - known_of(layer)) * SPLINE_LOGITS;
    const float *factors = tile.next();
    linear_gradient(tile, layer, factors);
    tile.swap_d_z();
    __syncthreads();
    factors_gradient(tile, layer, factors);
    spline_gradients(tile, layer);
    Sums<UNITS_PADDED> d_hidden, sums;
    d_hidden.clear();
    const float *soft = tile.soft + layer % 2 * LOGITS * STRIDE;
    for (int start = 0; start < LOGITS; start += SLAB_UNITS) {
        const float *weights = tile.next();
        add_product<UNITS_PADDED>(d_hidden, weights, soft + start * STRIDE, min(logits - start, SLAB_UNITS));
    }
    const float *kept = tile.next_kept();
    if (BLOCKS > 0) gate_gradient(tile, d_hidden, layer, BLOCKS - 1, kept + KEPT);
#pragma unroll 1
    for (int b = BLOCKS - 1; b >= 0; --b) {
        sums.clear();
        staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile, tile.d_value_of(b));
        kept = tile.next_kept();
        rectified_gradient<false>(sums, sums, kept, tile.d_inner_of(b));
        sums.clear();
        staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile, tile.d_inner_of(b));
        kept = tile.next_kept();
        rectified_gradient<true>(sums, d_hidden, kept, nullptr);
        if (b > 0) gate_gradient(tile, d_hidden, layer, b - 1, kept + KEPT);
    }
    store_stream(tile, d_hidden);
    identity_gradient(tile, layer, tile.next());
}

// The same layer for the helpers: at each stage, the gradient of the weights of the stage before.
__device__ __forceinline__ void weights_gradient(BackwardTile &tile, int layer) {
    const Places &places = PLACES[layer];
    float *gradient = tile.gradient;
    bool accumulate = tile.accumulate;
    tile.next();
    tile.swap_d_z();
    __syncthreads();
    if (layer + 1 < LAYERS) tile.first_gradients_of(layer + 1);
    for (int start = 0; start < LOGITS; start += SLAB_UNITS) tile.next();
    // The matrix before, and where its gradient goes: of one stage, while the next is computed.
    const float *d = tile.soft + layer % 2 * LOGITS * STRIDE, *kept = tile.next_kept();
    float *weights = gradient + places.last, *bias = gradient + places.last_bias;
    int outputs = (DIM - known_of(layer)) * SPLINE_LOGITS;
#pragma unroll 1
    for (int m = 0; m < 2 * BLOCKS; ++m) {
        for (int start = 0; start < UNITS; start += SLAB_UNITS) {
            tile.next();
            if (start == 0) map_gradient(d - shared_floats, outputs, kept - shared_floats, tile.ones - shared_floats, weights, bias, accumulate);
        }
        int b = BLOCKS - 1 - m / 2;
        bool second = m % 2 == 0;
        kept = tile.next_kept();
        d = second ? tile.d_value_of(b) : tile.d_inner_of(b);
        weights = gradient + (second ? places.second[b] : places.first[b]);
        bias = gradient + (second ? places.second_bias[b] : places.first_bias[b]);
        outputs = UNITS;
    }
    tile.next();
    map_gradient(d - shared_floats, outputs, kept - shared_floats, tile.ones - shared_floats, weights, bias, accumulate);
}

__device__ void enter_backward(BackwardTile &tile, const Job &job, int t) {
    tile.first = t * ROWS;
    tile.rows = min(ROWS, (int)job.plan->rows - tile.first);
    tile.tape = job.tape + (u64)t * TAPE_TILE;
    for (int r = 0; r < ROWS_PER_THREAD; ++r) {
        int row = tile.first + min(first_row() + r, tile.rows - 1);
        tile.context[r] = job.contexts + (u64)job.row_group[row] * LAYERS * CONTEXT_WIDTH;
    }
    const Group *groups = plan_groups(job.plan);
    for (int at = threadIdx.x; at < CONTEXT * ROWS; at += blockDim.x) {
        int row = at % ROWS, c = at / ROWS;
        u32 group = job.row_group[tile.first + min(row, tile.rows - 1)];
        tile.inputs[c * STRIDE + row] = job.x[(u64)groups[group].context * CONTEXT + c];
    }
    for (int at = threadIdx.x; at < DIM * ROWS; at += blockDim.x) {
        int row = at % ROWS, f = at / ROWS;
        float weight = row < tile.rows ? job.weights[tile.first + row] : 0.0f;
        tile.d_z[f * STRIDE + row] = -tile.tape[LAYERS * TAPE_FEATURES * ROWS + at] * weight;
        if (f == 0) {
            tile.d_log_q[row] = weight;
            tile.ones[row] = 1.0f;
        }
    }
    if (threadIdx.x == 0) {
        double sum = 0.0;
        for (int row = 0; row < tile.rows; ++row) sum += job.weights[tile.first + row];
        *tile.total = (float)sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + BACKWARD_HELPERS, 1) backward(Job job) {
    BackwardTile tile;
    tile.place(job);
    tile.gradient = job.gradients + (u64)blockIdx.x * GRADIENT_STRIDE;
    tile.accumulate = false;
    int tiles = tiles_of(job.plan);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        __syncthreads();
        tile.tape = job.tape + (u64)t * TAPE_TILE;
        tile.start();
        enter_backward(tile, job, t);
        if (is_helper()) {
#pragma unroll 1
            for (int layer = LAYERS - 1; layer >= 0; --layer) weights_gradient(tile, layer);
            tile.first_gradients_of(0);
        } else {
#pragma unroll 1
            for (int layer = LAYERS - 1; layer >= 0; --layer) rows_gradient(tile, layer);
        }
        tile.accumulate = true;
    }
}
