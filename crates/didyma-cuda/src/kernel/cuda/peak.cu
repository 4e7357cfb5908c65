// The device's rate of multiply-adds, for the fraction of it that training reaches.

#define CHAINS 16

// `blocks` × 256 threads × CHAINS × PEAK_LENGTH multiply-adds in registers.
extern "C" __global__ void peak(Job job) {
    float sums[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sums[c] = (float)(threadIdx.x + c);
    float factor = (float)job.log_constant;
#pragma unroll 1
    for (int i = 0; i < PEAK_LENGTH; ++i)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sums[c] = sums[c] * factor + 1.0f;
    float total = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) total += sums[c];
    // Never, but the compiler does not know.
    if (total == -1.0f) job.params[0] = total;
}
