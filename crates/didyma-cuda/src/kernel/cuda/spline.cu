// The monotone rational-quadratic spline of one row: forward, inverse and gradient.
//
// The formulas are those of the library's `kernel::scalar`. Logits lie STRIDE apart: BINS widths, BINS heights and
// BINS − 1 inner derivatives.

// The bin that a value falls into, and what the curve is made of there.
struct Bin {
    int index;
    float x, w, y, h, logit0, logit1, d0, d1;
};

// Numerator, denominator and the derivative's numerator at ξ.
struct Point {
    float n, d, e;
};

// Replaces BINS logits by their softmax.
__device__ __forceinline__ void softmax(float *logits) {
    float share[BINS], top = logits[0], sum = 0.0f;
    for (int j = 1; j < BINS; ++j) top = fmaxf(top, logits[j * STRIDE]);
#pragma unroll
    for (int j = 0; j < BINS; ++j) {
        share[j] = expf((logits[j * STRIDE] - top) * LOGIT_SCALE);
        sum += share[j];
    }
    float scale = 1.0f / sum;
#pragma unroll
    for (int j = 0; j < BINS; ++j) logits[j * STRIDE] = share[j] * scale;
}

// `by_height`: the value is an output of the spline, not an input.
__device__ __forceinline__ Bin find_bin(const float *logits, float value, bool by_height) {
    const float *widths = logits, *heights = logits + BINS * STRIDE, *derivatives = logits + 2 * BINS * STRIDE;
    float x = -BOUND, y = -BOUND, w = SLOPE * widths[0] + FLOOR, h = SLOPE * heights[0] + FLOOR;
    Bin bin = {0, x, w, y, h, 0.0f, 0.0f, 1.0f, 1.0f};
#pragma unroll
    for (int j = 1; j < BINS; ++j) {
        x += w;
        y += h;
        w = SLOPE * widths[j * STRIDE] + FLOOR;
        h = SLOPE * heights[j * STRIDE] + FLOOR;
        if (!((by_height ? y : x) > value)) {
            bin.index = j;
            bin.x = x;
            bin.w = w;
            bin.y = y;
            bin.h = h;
        }
    }
    if (bin.index > 0) {
        bin.logit0 = derivatives[(bin.index - 1) * STRIDE];
        bin.d0 = MIN_DERIVATIVE + softplus(bin.logit0);
    }
    if (bin.index < BINS - 1) {
        bin.logit1 = derivatives[bin.index * STRIDE];
        bin.d1 = MIN_DERIVATIVE + softplus(bin.logit1);
    }
    return bin;
}

__device__ __forceinline__ Point at(const Bin &bin, float slope, float xi) {
    float rest = 1.0f - xi, eta = xi * rest, square = xi * xi;
    Point point;
    point.n = slope * square + bin.d0 * eta;
    point.d = slope * (1.0f - 2.0f * eta) + (bin.d0 + bin.d1) * eta;
    point.e = bin.d1 * square + 2.0f * slope * eta + bin.d0 * rest * rest;
    return point;
}

__device__ __forceinline__ float clamp01(float a) {
    return fminf(fmaxf(a, 0.0f), 1.0f);
}

__device__ __forceinline__ float log_slope(float slope, const Point &point) {
    float ratio = slope / point.d;
    return logf(ratio * ratio * point.e);
}

__device__ __forceinline__ float spline_inverse_at(const Bin &bin, float y) {
    float slope = bin.h / bin.w, twice = 2.0f * slope;
    float t = clamp01((y - bin.y) / bin.h);
    float bend = bin.d0 + bin.d1 - twice;
    float b = bin.d0 - t * bend;
    float off = b - twice * t;
    float root = sqrtf(off * off + twice * twice * (t * (1.0f - t)));
    float xi = b < 0.0f ? (root - b) / (2.0f * (slope - b)) : twice * t / fmaxf(b + root, 1.17549435e-38f);
    return clamp01(xi);
}

// The spline at `value`, or its inverse, and the logarithm of the spline's slope there. The logits of widths and heights
// are their softmax already.
template <bool INVERSE> __device__ __forceinline__ float spline(const float *logits, float value, float &log_det) {
    log_det = 0.0f;
    if (!(fabsf(value) < BOUND)) return value;
    Bin bin = find_bin(logits, value, INVERSE);
    float slope = bin.h / bin.w;
    float xi = INVERSE ? spline_inverse_at(bin, value) : clamp01((value - bin.x) / bin.w);
    Point point = at(bin, slope, xi);
    log_det = log_slope(slope, point);
    return INVERSE ? bin.x + bin.w * xi : bin.y + bin.h * (point.n / point.d);
}

// Gradient of the logits of widths or heights, in place of their softmax: bins left of the row's bin move its knot,
// the bin itself its extent.
__device__ __forceinline__ void extents_gradient(float *logits, int bin, float d_knot, float d_extent) {
    float share[BINS], mean = 0.0f;
#pragma unroll
    for (int j = 0; j < BINS; ++j) {
        share[j] = logits[j * STRIDE];
        mean += share[j] * (j < bin ? d_knot : j == bin ? d_extent : 0.0f);
    }
#pragma unroll
    for (int j = 0; j < BINS; ++j) {
        float d = j < bin ? d_knot : j == bin ? d_extent : 0.0f;
        logits[j * STRIDE] = share[j] * (SLOPE * LOGIT_SCALE) * (d - mean);
    }
}

// From the gradients of the spline's value and of log slope at `x` to those of its logits, in place; returns that of x.
__device__ __forceinline__ float spline_gradient(float *logits, float x, float d_y, float d_l) {
    float *derivatives = logits + 2 * BINS * STRIDE;
    if (!(fabsf(x) < BOUND)) {
        for (int j = 0; j < 3 * BINS - 1; ++j) logits[j * STRIDE] = 0.0f;
        return d_y;
    }
    Bin bin = find_bin(logits, x, false);
    float per_width = 1.0f / bin.w, slope = bin.h * per_width;
    float xi = clamp01((x - bin.x) * per_width), rest = 1.0f - xi;
    Point point = at(bin, slope, xi);
    float eta = xi * rest, tilt = rest - xi, square = xi * xi, per_d = 1.0f / point.d;

    float d_n = d_y * bin.h * per_d;
    float d_d = -(d_n * point.n + 2.0f * d_l) * per_d;
    float d_e = d_l / point.e;
    float d_s = d_n * square + 2.0f * d_l / slope + 2.0f * d_e * eta + d_d * (1.0f - 2.0f * eta);
    float d_d0 = (d_n + d_d) * eta + d_e * rest * rest;
    float d_d1 = d_d * eta + d_e * square;
    float bend = bin.d0 + bin.d1 - 2.0f * slope;
    float through_n = 2.0f * slope * xi + bin.d0 * tilt;
    float through_e = bin.d1 * xi + slope * tilt - bin.d0 * rest;
    float d_xi = d_n * through_n + d_d * (bend * tilt) + 2.0f * d_e * through_e;

    float d_x = d_xi * per_width;
    float d_w = -(d_s * slope + d_xi * xi) * per_width;
    float d_h = d_y * point.n * per_d + d_s * per_width;
    extents_gradient(logits, bin.index, -d_x, d_w);
    extents_gradient(logits + BINS * STRIDE, bin.index, d_y, d_h);
    for (int j = 0; j < BINS - 1; ++j) derivatives[j * STRIDE] = 0.0f;
    if (bin.index > 0) derivatives[(bin.index - 1) * STRIDE] = d_d0 * sigmoid(bin.logit0);
    if (bin.index < BINS - 1) derivatives[bin.index * STRIDE] = d_d1 * sigmoid(bin.logit1);
    return d_x;
}
