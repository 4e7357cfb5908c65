// The gradients of a layer's parts.

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
