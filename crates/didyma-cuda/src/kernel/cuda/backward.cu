// Tiles back through the flow: from the weights of the log-densities to a gradient for each block.
//
// Weights come in stages as on the way forward, and with the first stage of each matrix the activations that its
// gradient needs, from the tape. A block adds the gradients of its tiles, in their order, into memory of its own.

// Activations of the tape that are at hand at once: for three matrices, two of each.
#define KEPT (UNITS * STRIDE)

struct BackwardTile {
    float *ring, *kept, *soft, *input, *coupled, *d_z, *next_d_z, *d_value, *d_inner, *d_stacked, *inputs, *d_log_q;
    float *d_product, *total;
    const float *image, *tape;
    float *gradient;
    int first, rows, stage, slot, matrix;
    bool accumulate;
    const float *context[ROWS_PER_THREAD];

    __device__ void place(const Job &job) {
        float *free = (float *)shared_memory;
        image = job.backward_image;
        ring = free;
        free += 3 * RING_SLOT;
        kept = free;
        free += 6 * KEPT;
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
        free += UNITS * STRIDE;
        d_inner = free;
        free += UNITS * STRIDE;
        d_stacked = free;
        free += (1 + BLOCKS) * UNITS * STRIDE;
        inputs = free;
        free += (KNOWN + CONTEXT) * STRIDE;
        d_log_q = free;
        free += STRIDE;
        d_product = free;
        free += DIM * DIM + DIM;
        total = free;
    }

    // Features of a layer's tape into shared memory.
    __device__ void fetch(int layer, int feature, int count, float *to) {
        const float *from = tape + (layer * TAPE_FEATURES + feature) * ROWS;
        for (int q = threadIdx.x; q < count * (ROWS / 4); q += THREADS)
            copy_quad(to + q / (ROWS / 4) * STRIDE + q % (ROWS / 4) * 4, from + 4 * q);
    }

    __device__ void issue(int ahead) {
        if (ahead < LAYERS * BACKWARD_STAGES) {
            int layer = LAYERS - 1 - ahead / BACKWARD_STAGES, within = ahead % BACKWARD_STAGES;
            const float *from = image + layer * BACKWARD_FLOATS + BACKWARD_OFFSET[within];
            float *to = ring + ahead % 3 * RING_SLOT;
            int quads = (BACKWARD_OFFSET[within + 1] - BACKWARD_OFFSET[within]) / 4;
            for (int q = threadIdx.x; q < quads; q += THREADS) copy_quad(to + 4 * q, from + 4 * q);
            fetch_activations(layer, within);
        }
        commit_copies();
    }

    // What the matrix that begins with this stage needs.
    __device__ void fetch_activations(int layer, int within) {
        if (within == 0) {
            int side = layer % 2;
            fetch(layer, TAPE_LOGITS, LOGITS, soft + side * LOGITS * STRIDE);
            fetch(layer, TAPE_INPUT, DIM, input + side * DIM * STRIDE);
            fetch(layer, TAPE_COUPLED, DIM, coupled + side * DIM * STRIDE);
            return;
        }
        int m = BACKWARD_MATRIX[within];
        if (m < 0) return;
        float *to = kept + ((LAYERS - 1 - layer) * (1 + 2 * BLOCKS) + m) % 3 * 2 * KEPT;
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
        stage = slot = matrix = 0;
        issue(0);
        issue(1);
    }

    __device__ const float *next() {
        wait_for_copies();
        __syncthreads();
        issue(stage + 2);
        const float *weights = ring + slot * RING_SLOT;
        ++stage;
        slot = slot == 2 ? 0 : slot + 1;
        return weights;
    }

    // The activations of the matrix at hand; the next call is about the next matrix.
    __device__ const float *next_kept() {
        const float *found = kept + matrix * 2 * KEPT;
        matrix = matrix == 2 ? 0 : matrix + 1;
        return found;
    }

    __device__ void put(int at, float value) {
        gradient[at] = accumulate ? gradient[at] + value : value;
    }
};

// Gradient of an affine map with UNITS inputs.
__device__ __forceinline__ void map_gradient(BackwardTile &tile, const float *d, int outputs, const float *input, int weight,
                                             int bias) {
    auto row = [&](int i) { return input + i * STRIDE; };
    auto put = [&](int o, int i, float value) { tile.put(i == UNITS ? bias + o : weight + o * UNITS + i, value); };
    outer_product(d, outputs, row, UNITS, put);
}

// The gradient of L U z + b: of its factors, and of z.
__device__ __forceinline__ void linear_gradient(BackwardTile &tile, int layer, const float *factors) {
    const float *product = factors, *lower = product + DIM * DIM, *upper = lower + DIM * DIM, *slope = upper + DIM * DIM;
    const float *coupled = tile.coupled + layer % 2 * DIM * STRIDE;
    for (int at = threadIdx.x; at < DIM * DIM + DIM; at += THREADS) {
        const float *d = tile.d_z + (at < DIM * DIM ? at / DIM : at - DIM * DIM) * STRIDE;
        const float *z = coupled + at % DIM * STRIDE;
        float sum = 0.0f;
        for (int r = 0; r < ROWS; ++r) sum += at < DIM * DIM ? d[r] * z[r] : d[r];
        tile.d_product[at] = sum;
    }
    for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
        int row = at % ROWS, f = at / ROWS;
        float sum = 0.0f;
        for (int g = 0; g < DIM; ++g) sum += product[g * DIM + f] * tile.d_z[g * STRIDE + row];
        tile.next_d_z[f * STRIDE + row] = sum;
    }
    float *before = tile.d_z;
    tile.d_z = tile.next_d_z;
    tile.next_d_z = before;
    __syncthreads();
    const float *d = tile.d_product;
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
    int known = known_of(layer);
    const float *input = tile.input + layer % 2 * DIM * STRIDE;
    float *soft = tile.soft + layer % 2 * LOGITS * STRIDE;
    for (int at = threadIdx.x; at < (DIM - known) * ROWS; at += THREADS) {
        int row = at % ROWS, s = at / ROWS, f = transformed_feature(layer, s) * STRIDE + row;
        tile.d_z[f] = spline_gradient(soft + s * SPLINE_LOGITS * STRIDE + row, input[f], tile.d_z[f], tile.d_log_q[row]);
    }
    // The conditioner's input, for the gradient of its first map.
    for (int at = threadIdx.x; at < known * ROWS; at += THREADS) {
        int row = at % ROWS, i = at / ROWS;
        tile.inputs[i * STRIDE + row] = input[identity_feature(layer, i) * STRIDE + row];
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
                float gate = j == 0 ? gates[r].x : j == 1 ? gates[r].y : j == 2 ? gates[r].z : gates[r].w;
                d_value[r] = d_hidden.of[p][j][r] * gate;
                d_gate[r] = d_hidden.of[p][j][r] * v[r] * gate * (1.0f - gate);
            }
            store_rows(tile.d_value + column * STRIDE + first_row(), d_value);
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

// What lies before the first map: its gradient, that of the gates' maps, and that of theta.
__device__ __forceinline__ void initial_gradient(BackwardTile &tile, int layer, const float *weights) {
    const Places &places = PLACES[layer];
    int known = known_of(layer);
    const float *d_hidden = tile.d_stacked + BLOCKS * UNITS * STRIDE;
    for (int at = threadIdx.x; at < known * ROWS; at += THREADS) {
        int row = at % ROWS, i = at / ROWS;
        float sum = 0.0f;
#pragma unroll 10
        for (int u = 0; u < UNITS; ++u) sum += weights[u * KNOWN_PADDED + i] * d_hidden[u * STRIDE + row];
        tile.d_z[identity_feature(layer, i) * STRIDE + row] += sum;
    }
    auto row = [&](int i) { return tile.inputs + (i < known ? i : i - known + KNOWN) * STRIDE; };
    auto put = [&](int o, int i, float value) {
        int map = o / UNITS, unit = o % UNITS;
        if (map == BLOCKS) {
            tile.put(i == known + CONTEXT ? places.initial_bias + unit : places.initial + unit * (known + CONTEXT) + i, value);
        } else if (i >= known) {
            i -= known;
            tile.put(i == CONTEXT ? places.context_bias[map] + unit : places.context[map] + unit * CONTEXT + i, value);
        }
    };
    outer_product(tile.d_stacked, (1 + BLOCKS) * UNITS, row, known + CONTEXT, put);
}

__device__ __forceinline__ void layer_gradient(BackwardTile &tile, int layer) {
    const Places &places = PLACES[layer];
    int logits = (DIM - known_of(layer)) * SPLINE_LOGITS;
    linear_gradient(tile, layer, tile.next());
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
    map_gradient(tile, soft, logits, kept, places.last, places.last_bias);
    for (int b = BLOCKS - 1; b >= 0; --b) {
        sums.clear();
        staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile, tile.d_value);
        kept = tile.next_kept();
        rectified_gradient<false>(sums, sums, kept, tile.d_inner);
        map_gradient(tile, tile.d_value, UNITS, kept, places.second[b], places.second_bias[b]);
        sums.clear();
        staged_product<UNITS_PADDED, UNITS, SLAB_UNITS>(sums, tile, tile.d_inner);
        kept = tile.next_kept();
        rectified_gradient<true>(sums, d_hidden, kept, nullptr);
        if (b > 0) gate_gradient(tile, d_hidden, layer, b - 1, kept + KEPT);
        map_gradient(tile, tile.d_inner, UNITS, kept, places.first[b], places.first_bias[b]);
    }
    store_stream(tile, d_hidden);
    initial_gradient(tile, layer, tile.next());
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
    for (int at = threadIdx.x; at < CONTEXT * ROWS; at += THREADS) {
        int row = at % ROWS, c = at / ROWS;
        u32 group = job.row_group[tile.first + min(row, tile.rows - 1)];
        tile.inputs[(KNOWN + c) * STRIDE + row] = job.x[(u64)groups[group].context * CONTEXT + c];
    }
    for (int at = threadIdx.x; at < DIM * ROWS; at += THREADS) {
        int row = at % ROWS, f = at / ROWS;
        float weight = row < tile.rows ? job.weights[tile.first + row] : 0.0f;
        tile.d_z[f * STRIDE + row] = -tile.tape[LAYERS * TAPE_FEATURES * ROWS + at] * weight;
        if (f == 0) tile.d_log_q[row] = weight;
    }
    if (threadIdx.x == 0) {
        double sum = 0.0;
        for (int row = 0; row < tile.rows; ++row) sum += job.weights[tile.first + row];
        *tile.total = (float)sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) backward(Job job) {
    BackwardTile tile;
    tile.place(job);
    tile.gradient = job.gradients + (u64)blockIdx.x * PARAMS;
    tile.accumulate = false;
    int tiles = tiles_of(job.plan);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        __syncthreads();
        tile.tape = job.tape + (u64)t * TAPE_TILE;
        tile.start();
        enter_backward(tile, job, t);
        for (int layer = LAYERS - 1; layer >= 0; --layer) layer_gradient(tile, layer);
        tile.accumulate = true;
    }
}
