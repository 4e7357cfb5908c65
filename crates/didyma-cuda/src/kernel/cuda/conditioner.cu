// The residual network that turns theta and x into the splines' logits.

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
