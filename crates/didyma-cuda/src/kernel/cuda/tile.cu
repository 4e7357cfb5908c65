// A tile on its way forward: its place in shared memory, its tape, and the stages of weights that it waits for.
//
// A block takes ROWS rows through all layers. Its first THREADS threads compute, with the residual stream in registers; the
// others, its helpers, bring the weights, which come in stages through a ring of buffers in shared memory ahead of their use,
// and write the tape. One barrier a stage serves both the weights and the activations of the stage before.

// Where features lie in a layer's tape, of which each is ROWS numbers.
#define TAPE_INPUT 0
#define TAPE_COUPLED DIM
#define TAPE_RECTIFIED(b) (2 * DIM + 3 * (b) * UNITS)
#define TAPE_INNER(b) (TAPE_RECTIFIED(b) + UNITS)
#define TAPE_VALUE(b) (TAPE_RECTIFIED(b) + 2 * UNITS)
#define TAPE_HIDDEN TAPE_RECTIFIED(BLOCKS)
#define TAPE_LOGITS (TAPE_HIDDEN + UNITS)
#define TAPE_FEATURES (TAPE_LOGITS + LOGITS)
// A tile's tape ends with z.
#define TAPE_TILE ((LAYERS * TAPE_FEATURES + DIM) * ROWS)

// x's part of a layer: what the first map owes to it, and the gates of the blocks.
#define CONTEXT_WIDTH ((1 + BLOCKS) * UNITS_PADDED)

__device__ bool is_helper() {
    return threadIdx.x >= THREADS;
}

// Stages of weights, layer after layer, in either direction.
struct ForwardPipe {
    const float *image;
    float *ring;
    // The stage to be issued next, and its layer; the slots to issue to and to read from.
    int within, layer, left, step, issue_slot, slot;

    __device__ void issue() {
        if (left > 0) {
            const float *from = image + layer * FORWARD_FLOATS + FORWARD_OFFSET[within];
            float *to = ring + issue_slot * RING_SLOT;
            int quads = (FORWARD_OFFSET[within + 1] - FORWARD_OFFSET[within]) / 4;
            copy_quads(to, from, quads, threadIdx.x - THREADS, FORWARD_HELPERS);
            --left;
            if (++within == FORWARD_STAGES) {
                within = 0;
                layer += step;
            }
            issue_slot = issue_slot == AHEAD ? 0 : issue_slot + 1;
        }
        commit_copies();
    }

    __device__ void start() {
        within = slot = issue_slot = 0;
        left = LAYERS * FORWARD_STAGES;
        layer = step > 0 ? 0 : LAYERS - 1;
        for (int i = 0; i < AHEAD && is_helper(); ++i) issue();
    }

    // The next stage's weights; all threads are done with the stage before.
    __device__ const float *next() {
        if (is_helper()) wait_for_copies();
        __syncthreads();
        if (is_helper()) issue();
        const float *weights = ring + slot * RING_SLOT;
        slot = slot == AHEAD ? 0 : slot + 1;
        return weights;
    }
};

// sums += matrixᵀ input, for a matrix that comes in slabs; returns what follows it in its last slab.
template <int COLUMNS, int INNER, int SLAB, typename Pipe>
__device__ __forceinline__ const float *staged_product(Sums<COLUMNS> &sums, Pipe &pipe, const float *input) {
    const float *weights = nullptr;
    int rows = 0;
    for (int start = 0; start < INNER; start += SLAB) {
        weights = pipe.next();
        rows = INNER - start < SLAB ? INNER - start : SLAB;
        if (is_helper()) continue;
        if (INNER <= SLAB) {
            add_product<COLUMNS>(sums, weights, input, INNER);
        } else {
            add_product<COLUMNS>(sums, weights, input + start * STRIDE, rows);
        }
    }
    return weights + rows * COLUMNS;
}

// A tile at work.
struct ForwardTile {
    float *z, *next_z, *left, *right, *logits, *log_det, *log_q;
    int first, rows;
    // For each of this thread's rows, x's part of the first layer.
    const float *context[ROWS_PER_THREAD];
    float *tape;
    ForwardPipe pipe;

    __device__ void place(const Job &job, int step) {
        float *free = shared_floats;
        pipe.image = job.forward_image;
        pipe.step = step;
        pipe.ring = free;
        free += (AHEAD + 1) * RING_SLOT;
        z = free;
        free += DIM * STRIDE;
        next_z = free;
        free += DIM * STRIDE;
        left = free;
        free += UNITS * STRIDE;
        right = free;
        free += UNITS * STRIDE;
        logits = free;
        free += LOGITS_PADDED * STRIDE;
        log_det = free;
        free += SPLINES * STRIDE;
        log_q = free;
    }

    __device__ void enter(const Job &job, int tile) {
        first = tile * ROWS;
        rows = min(ROWS, (int)job.plan->rows - first);
        for (int r = 0; r < ROWS_PER_THREAD; ++r) {
            int row = first + min(first_row() + r, rows - 1); // of helpers, some row that nobody uses
            context[r] = job.contexts + (u64)job.row_group[row] * LAYERS * CONTEXT_WIDTH;
        }
    }

    // Features that lie in shared memory, to the tape: a helper's work.
    __device__ void keep(int layer, int feature, int count, const float *from) const {
        float *to = tape + (layer * TAPE_FEATURES + feature) * ROWS;
#pragma unroll 1
        for (int q = threadIdx.x - THREADS; q < count * (ROWS / 4); q += FORWARD_HELPERS)
            *(float4 *)(to + 4 * q) = *(const float4 *)(from + q / (ROWS / 4) * STRIDE + q % (ROWS / 4) * 4);
    }
};
