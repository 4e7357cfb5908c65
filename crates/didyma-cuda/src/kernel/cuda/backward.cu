// Tiles back through the flow: from the weights of the log-densities to a gradient for each block.

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
