// A tile on its way back: its place in shared memory, and what it waits for.
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
