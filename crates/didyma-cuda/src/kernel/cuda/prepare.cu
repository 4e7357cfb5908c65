// What a step needs before its rows: the linear layers' products, and everything that depends on x alone.

// L U of a layer, its factors and log |det|, into the stages that need them.
__device__ void factor(const Job &job, int layer) {
    __shared__ float lower[DIM * DIM], upper[DIM * DIM];
    const Places &places = PLACES[layer];
    float *solving = job.forward_image + layer * FORWARD_FLOATS + FORWARD_FACTORS;
    float *linear = job.forward_image + layer * FORWARD_FLOATS + FORWARD_LINEAR;
    float *back = job.backward_image + layer * BACKWARD_FLOATS;
    for (int at = threadIdx.x; at < DIM * DIM; at += blockDim.x) {
        int i = at / DIM, j = at % DIM;
        lower[at] = i == j ? 1.0f : i > j ? job.params[places.lower + i * (i - 1) / 2 + j] : 0.0f;
        upper[at] = i == j  ? MIN_DERIVATIVE + softplus(job.params[places.diagonal + i])
                    : i < j ? job.params[places.upper + i * (2 * DIM - i - 1) / 2 + j - i - 1]
                            : 0.0f;
    }
    __syncthreads();
    for (int at = threadIdx.x; at < DIM * DIM; at += blockDim.x) {
        int i = at / DIM, j = at % DIM;
        float sum = 0.0f;
        for (int k = 0; k <= min(i, j); ++k) sum += lower[i * DIM + k] * upper[k * DIM + j];
        linear[at] = back[at] = sum;
        solving[at] = back[DIM * DIM + at] = lower[at];
        solving[DIM * DIM + at] = back[2 * DIM * DIM + at] = upper[at];
    }
    for (int i = threadIdx.x; i < DIM; i += blockDim.x) {
        linear[DIM * DIM + i] = solving[2 * DIM * DIM + i] = job.params[places.linear_bias + i];
        back[3 * DIM * DIM + i] = sigmoid(job.params[places.diagonal + i]);
    }
    if (threadIdx.x == 0) {
        float log_det = 0.0f;
        for (int i = 0; i < DIM; ++i) log_det += logf(upper[i * DIM + i]);
        linear[DIM * DIM + DIM] = log_det;
    }
}

// The part of a layer's first map that reads x, and its gates; by the first layer, each row's group.
__device__ void context(const Job &job, int number, int layer) {
    __shared__ float x[CONTEXT];
    Group group = plan_groups(job.plan)[number];
    for (int c = threadIdx.x; c < CONTEXT; c += blockDim.x) x[c] = job.x[(u64)group.context * CONTEXT + c];
    if (layer == 0)
        for (int i = threadIdx.x; i < group.pairs; i += blockDim.x) job.row_group[group.first + i] = number;
    __syncthreads();
    float *to = job.contexts + ((u64)number * LAYERS + layer) * CONTEXT_WIDTH;
    for (int column = threadIdx.x; column < CONTEXT_WIDTH; column += blockDim.x) {
        const float *weights = job.context_image + layer * CONTEXT_FLOATS + column;
        float sum = weights[CONTEXT * CONTEXT_WIDTH];
#pragma unroll 16
        for (int c = 0; c < CONTEXT; ++c) sum += weights[c * CONTEXT_WIDTH] * x[c];
        to[column] = column < UNITS_PADDED ? sum : sigmoid(sum);
    }
}

extern "C" __global__ void prepare(Job job) {
    int at = blockIdx.x - LAYERS;
    if (at < 0) {
        factor(job, blockIdx.x);
    } else if (at / LAYERS < job.plan->groups) {
        context(job, at / LAYERS, at % LAYERS);
    }
}
