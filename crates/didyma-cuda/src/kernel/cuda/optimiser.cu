// After the gradients of the blocks: their sum, its norm, clipping, Adam. All sums are in a fixed order.

#define SUM_THREADS 256

__device__ double block_sum(double value) {
    __shared__ double scratch[SUM_THREADS];
    scratch[threadIdx.x] = value;
    for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
    return scratch[0];
}

__device__ void sum_losses(const Job &job) {
    double sum = 0.0;
    for (u32 g = threadIdx.x; g < job.plan->groups; g += SUM_THREADS) sum += job.group_losses[g];
    sum = block_sum(sum);
    if (threadIdx.x == 0) job.state->loss = sum;
}

// The loss of a plan that is only evaluated.
extern "C" __global__ void total_loss(Job job) {
    sum_losses(job);
}

#define SUM_PARTS 8
#define SUM_QUADS (SUM_THREADS / SUM_PARTS)

// Each parameter's gradient over all blocks, and the norm of 4 SUM_QUADS of them; the last block sums the losses. A thread
// adds up every SUM_PARTS-th block's gradient of four parameters, and the parts are added in their order.
extern "C" __global__ void sum_gradients(Job job) {
    __shared__ double parts[SUM_PARTS][4 * SUM_QUADS];
    if (blockIdx.x == gridDim.x - 1) return sum_losses(job);
    int part = threadIdx.x / SUM_QUADS, quad = threadIdx.x % SUM_QUADS;
    int first = (blockIdx.x * SUM_QUADS + quad) * 4;
    int blocks = min(tiles_of(job.plan), GRADIENTS);
    double sums[4] = {};
    if (first < PARAMS) {
        const float *gradient = job.gradients + first;
#pragma unroll 8
        for (int b = part; b < blocks; b += SUM_PARTS) {
            float4 g = *(const float4 *)(gradient + (u64)b * GRADIENT_STRIDE);
            sums[0] += g.x;
            sums[1] += g.y;
            sums[2] += g.z;
            sums[3] += g.w;
        }
    }
    for (int j = 0; j < 4; ++j) parts[part][4 * quad + j] = sums[j];
    __syncthreads();
    int i = blockIdx.x * SUM_QUADS * 4 + threadIdx.x;
    double sum = 0.0;
    if (threadIdx.x < 4 * SUM_QUADS && i < PARAMS) {
        for (int p = 0; p < SUM_PARTS; ++p) sum += parts[p][threadIdx.x];
        job.gradient[i] = (float)sum;
    }
    double norm = block_sum(sum * sum);
    if (threadIdx.x == 0) job.norms[blockIdx.x] = norm;
}

// A number so small that it changes nothing is 0, as in the library's Adam.
__device__ float settled(float value, float least) {
    return fabsf(value) < least ? 0.0f : value;
}

// A parameter's places in the images that the other kernels read.
__device__ void publish(const Job &job, int i, float weight) {
    int2 to = job.places[i];
    if (to.x >= 0) job.forward_image[to.x] = weight;
    if (to.x < -1) job.context_image[-2 - to.x] = weight;
    if (to.y >= 0) job.backward_image[to.y] = weight;
}

// Parameters that came from elsewhere.
extern "C" __global__ void publish_all(Job job) {
    int i = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (i < PARAMS) publish(job, i, job.params[i]);
}

extern "C" __global__ void adam(Job job) {
    const Plan *plan = job.plan;
    State *state = job.state;
    double norm = 0.0;
    for (int b = threadIdx.x; b < NORMS; b += SUM_THREADS) norm += job.norms[b];
    norm = sqrt(block_sum(norm));
    // Another block may already have noted that this step failed: then it fails here, too.
    u64 reason = !isfinite(state->loss) ? 1 : !isfinite(norm) ? 2 : 0;
    bool failed = state->diverged != 0 || reason != 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (failed && state->diverged == 0) {
            state->diverged_value = reason == 1 ? state->loss : norm;
            state->diverged = reason;
        } else if (!failed) {
            state->loss_sum += state->loss;
            state->losses += 1;
        }
    }
    int i = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (failed || i >= PARAMS) return;
    double room = plan->clip / (norm + NORM_FLOOR);
    float scale = (float)(room < 1.0 ? room : 1.0);
    float weight = job.params[i], m = job.first_moments[i], v = job.second_moments[i];
    float g = settled(job.gradient[i] * scale + (float)plan->coupled_decay * weight, LEAST_FIRST);
    m = settled((float)plan->beta1 * m + (float)plan->rest1 * g, LEAST_FIRST);
    v = settled((float)plan->beta2 * v + (float)plan->rest2 * g * g, LEAST_SECOND);
    weight = (float)plan->shrink * weight - (float)plan->rate * m / (sqrtf(v * (float)plan->v_scale) + (float)plan->epsilon);
    job.params[i] = weight;
    job.first_moments[i] = m;
    job.second_moments[i] = v;
    publish(job, i, weight);
}
