// From the log-densities of a group to its loss and to the weights of its rows, in double precision.
//
// A warp takes a group. Sums are trees over the lanes, the same every time.

#define LANES 32

template <typename Join> __device__ double across(double value, double *scratch, Join join) {
#ifdef EMULATED
    __syncthreads();
    scratch[threadIdx.x] = value;
    for (int half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) scratch[threadIdx.x] = join(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
    return scratch[0];
#else
    for (int half = LANES / 2; half > 0; half /= 2) value = join(value, __shfl_xor_sync(0xffffffff, value, half));
    return value;
#endif
}

// Adds factor · softmax to the derivatives of a block of rows and the row that it shares with others, if any; returns
// factor · log-mean-exp. A block without any density gives an infinite loss, which no step survives.
__device__ double log_mean_exp(double factor, const double *u, double *d, int from, int size, bool shared, double *scratch) {
    // The same in both orders, as lanes that differ would wait for each other for ever: what is not a number is left out.
    auto larger = [](double a, double b) { return fmax(a, b); };
    auto plus = [](double a, double b) { return a + b; };
    int lane = threadIdx.x;
    bool own = shared && lane == 0;
    double top = -INFINITY_64;
    for (int i = lane; i < size; i += LANES) top = larger(top, u[from + i]);
    if (own) top = larger(top, u[0]);
    top = across(top, scratch, larger);
    if (top == -INFINITY_64) return factor * top;
    double sum = 0.0;
    for (int i = lane; i < size; i += LANES) sum += exp(u[from + i] - top);
    if (own) sum += exp(u[0] - top);
    sum = across(sum, scratch, plus);
    for (int i = lane; i < size; i += LANES) d[from + i] += factor / sum * exp(u[from + i] - top);
    if (own) d[0] += factor / sum * exp(u[0] - top);
    return factor * (top + log(sum / (size + (shared ? 1 : 0))));
}

// `d_log_q` holds the derivatives of all rows, and after them log g.
extern "C" __global__ void reduce(Job job) {
    __shared__ double scratch[LANES];
    const Plan *plan = job.plan;
    if (blockIdx.x >= plan->groups) return;
    Group group = plan_groups(plan)[blockIdx.x];
    const u32 *atoms = plan_atoms(plan) + group.first;
    double *d = job.d_log_q + group.first, *u = d + plan->rows;
    for (int i = threadIdx.x; i < group.pairs; i += LANES) {
        double log_g = (double)job.log_q[group.first + i] - job.log_prior[atoms[i]];
        if (plan->has_log_weights) log_g += plan_log_weights(plan)[group.first + i];
        u[i] = log_g;
        d[i] = 0.0;
    }
    __syncthreads();
    double loss = 0.0;
    int shared = group.shared ? 1 : 0;
    for (int t = 0; t < group.terms; ++t) {
        Term term = plan_terms(plan)[group.first_term + t];
        double factor = term.weight / term.blocks;
        for (int b = 0; b < term.blocks; ++b) {
            loss += log_mean_exp(factor, u, d, shared + b * term.size, term.size, shared, scratch);
            __syncthreads();
        }
    }
    if (threadIdx.x == 0) {
        if (group.own != 0.0) {
            loss -= group.own * (double)job.log_q[group.first];
            d[0] -= group.own;
        }
        job.group_losses[blockIdx.x] = loss;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < group.pairs; i += LANES) job.weights[group.first + i] = (float)d[i];
}
