// Asks cuDNN which engine it takes for convolutions, with which knobs and which workspace, without running one.
//
//     g++ -O1 -o cudnn cudnn.cpp -I CUDNN/include -I CUDA/include CUDNN/lib/libcudnn.so.9
//     ./cudnn config < questions > answers
//
// Reads lines of numbers: operation (0 forward, 1 gradient of the input, 2 gradient of the filter), type (6 float16, 7 bfloat16,
// 8 float32, 9 float64), channels last (0 or 1), dimensions; then input, filter, output, stride, padding, dilation.
// Writes a line for each: how many configurations came before the one taken, the workspace as the configuration and as the plan have
// it, the engine and its knobs. With "plan" the plan is built, as PyTorch does; with "config" it is not, which is five times faster and
// gave the same bytes for 134,592 convolutions. With "largest" all plans are built, as PyTorch does under torch.backends.cudnn.benchmark,
// and the one with the largest workspace is written.
#include <cudnn.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>
#include <sstream>
#include <iostream>

typedef cudnnBackendDescriptor_t D;
static cudnnHandle_t handle;

struct Desc {
    D d = nullptr;
    Desc() {}
    explicit Desc(cudnnBackendDescriptorType_t t) { cudnnBackendCreateDescriptor(t, &d); }
    Desc(const Desc&) = delete;
    Desc& operator=(const Desc&) = delete;
    Desc(Desc&& o) : d(o.d) { o.d = nullptr; }
    ~Desc() { if (d) cudnnBackendDestroyDescriptor(d); }
    cudnnStatus_t set(cudnnBackendAttributeName_t n, cudnnBackendAttributeType_t t, int64_t c, const void* v) {
        return cudnnBackendSetAttribute(d, n, t, c, v);
    }
    cudnnStatus_t fin() { return cudnnBackendFinalize(d); }
};

struct Fail { const char* what; int status; };
static void ok(cudnnStatus_t s, const char* what) { if (s != CUDNN_STATUS_SUCCESS) throw Fail{what, (int)s}; }

static cudnnDataType_t data_type(int t) {
    return t == 6 ? CUDNN_DATA_HALF : t == 7 ? CUDNN_DATA_BFLOAT16 : t == 9 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static void tensor(Desc& out, int64_t id, const std::vector<int64_t>& size, int type, bool last) {
    int n = size.size();
    std::vector<int64_t> stride(n), order;
    if (last) order.push_back(1);
    for (int d = n - 1; d > 1; d--) order.push_back(d);
    if (!last) order.push_back(1);
    order.push_back(0);
    int64_t z = 1;
    for (int64_t d : order) { stride[d] = z; z *= size[d]; }
    cudnnDataType_t t = data_type(type);
    int64_t align = 32;
    bool is_virtual = false;
    ok(out.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t), "type");
    ok(out.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, size.data()), "dims");
    ok(out.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, stride.data()), "strides");
    ok(out.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id), "id");
    ok(out.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align), "align");
    ok(out.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual), "virtual");
    ok(out.fin(), "tensor");
}

static bool down_converts(D config) {
    Desc engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t n = 0;
    ok(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine.d), "engine");
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    ok(cudnnBackendGetAttribute(engine.d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                &n, notes), "notes");
    for (int64_t i = 0; i < n; i++) if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return true;
    return false;
}

static void engine_of(D config, std::string& text) {
    Desc engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t n = 0, index = -1;
    cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine.d);
    cudnnBackendGetAttribute(engine.d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &index);
    text += std::to_string(index);
    std::vector<Desc> knobs;
    std::vector<D> raw;
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++) {
        knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        raw.push_back(knobs.back().d);
    }
    n = 0;
    cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &n,
                             raw.data());
    for (int64_t i = 0; i < n && i < CUDNN_KNOB_TYPE_COUNTS; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = -1, c = 0;
        cudnnBackendGetAttribute(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &c, &type);
        cudnnBackendGetAttribute(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &c, &value);
        text += " " + std::to_string((int)type) + ":" + std::to_string(value);
    }
}

static int64_t config_bytes(D config) {
    int64_t n = 0;
    int64_t wide = -1;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &wide) == CUDNN_STATUS_SUCCESS)
        return wide;
    int32_t narrow = -1;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT32, 1, &n, &narrow) == CUDNN_STATUS_SUCCESS)
        return narrow;
    return -1;
}

static std::string ask(const std::vector<int64_t>& v, bool with_plan, bool largest) {
    if (v.size() < 4) throw Fail{"line", 0};
    int64_t operation = v[0], type = v[1], dims = v[3];
    bool last = v[2] != 0;
    size_t at = 4;
    auto take = [&](int64_t n) {
        if (at + n > v.size()) throw Fail{"short", 0};
        std::vector<int64_t> out(v.begin() + at, v.begin() + at + n);
        at += n;
        return out;
    };
    auto x = take(dims + 2), w = take(dims + 2), y = take(dims + 2);
    auto stride = take(dims), padding = take(dims), dilation = take(dims);
    Desc xd(CUDNN_BACKEND_TENSOR_DESCRIPTOR), wd(CUDNN_BACKEND_TENSOR_DESCRIPTOR), yd(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor(xd, 'x', x, type, last);
    tensor(wd, 'w', w, type, last);
    tensor(yd, 'y', y, type, last);
    Desc conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnDataType_t compute = type == 9 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute), "comp");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode), "mode");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims), "spatial");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, dims, padding.data()), "pre");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, dims, padding.data()), "post");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, dims, stride.data()), "stride");
    ok(conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dims, dilation.data()), "dilation");
    ok(conv.fin(), "conv");
    static const cudnnBackendDescriptorType_t types[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const cudnnBackendAttributeName_t names[3][6] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    if (operation < 0 || operation > 2) throw Fail{"operation", 0};
    auto& name = names[operation];
    Desc op(types[operation]);
    ok(op.set(name[0], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &xd.d), "x");
    ok(op.set(name[1], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &wd.d), "w");
    ok(op.set(name[2], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &yd.d), "y");
    ok(op.set(name[3], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv.d), "c");
    float one = 1, zero = 0;
    double one_wide = 1, zero_wide = 0;
    bool wide = type == 9;
    ok(op.set(name[4], wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1, wide ? (void*)&one_wide : (void*)&one), "alpha");
    ok(op.set(name[5], wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1, wide ? (void*)&zero_wide : (void*)&zero), "beta");
    ok(op.fin(), "op");
    Desc graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    ok(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle), "handle");
    ok(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op.d), "ops");
    ok(graph.fin(), "graph");
    int before = 0;
    int64_t most_bytes = -1;
    std::string found;
    for (cudnnBackendHeurMode_t heur : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
        Desc heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        ok(heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph.d), "heurgraph");
        ok(heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &heur), "heurmode");
        if (heuristics.fin() != CUDNN_STATUS_SUCCESS) { before += 1000; continue; }
        int base = before;
        int64_t count = 0;
        if (cudnnBackendGetAttribute(heuristics.d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr)
            != CUDNN_STATUS_SUCCESS) { before += 1000; continue; }
        // The first ones are enough nearly always; all of them are asked for when they are not.
        for (int64_t most : {largest ? count : (int64_t)4, count}) {
            if (most > count) most = count;
            std::vector<Desc> configs;
            std::vector<D> raw;
            for (int64_t i = 0; i < most; i++) {
                configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
                raw.push_back(configs.back().d);
            }
            int64_t got = 0;
            ok(cudnnBackendGetAttribute(heuristics.d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &got, raw.data()),
               "results");
            for (int64_t i = 0; i < got && i < most; i++) {
                if (down_converts(raw[i])) continue;
                std::string text;
                int64_t of_plan = -1;
                if (with_plan) {
                    Desc plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
                    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
                    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw[i]);
                    if (plan.fin() != CUDNN_STATUS_SUCCESS) { before++; continue; }
                    int64_t n = 0;
                    cudnnBackendGetAttribute(plan.d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &of_plan);
                }
                int64_t bytes = largest ? of_plan : config_bytes(raw[i]);
                text = std::to_string(before) + " " + std::to_string(bytes) + " " + std::to_string(of_plan) + " ";
                if (!largest) {
                    engine_of(raw[i], text);
                    return text;
                }
                if (of_plan > most_bytes) {
                    engine_of(raw[i], text);
                    most_bytes = of_plan;
                    found = text;
                }
                before++;
            }
            if (most == count) break;
            before = base;
        }
        if (!largest) before += 100;
    }
    if (most_bytes >= 0) return found;
    return "none " + std::to_string(before);
}

int main(int argc, char** argv) {
    bool largest = argc > 1 && !strcmp(argv[1], "largest");
    bool with_plan = largest || (argc > 1 && !strcmp(argv[1], "plan"));
    double limit = argc > 2 ? atof(argv[2]) : 1e9;
    timespec t0, t;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    auto since = [&]() { clock_gettime(CLOCK_MONOTONIC, &t); return (t.tv_sec - t0.tv_sec) + 1e-9 * (t.tv_nsec - t0.tv_nsec); };
    cudnnStatus_t s = cudnnCreate(&handle);
    if (s != CUDNN_STATUS_SUCCESS) { fprintf(stderr, "cudnnCreate %d\n", (int)s); return 1; }
    double started = since();
    std::string line;
    long count = 0;
    bool is_cut = false;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        std::vector<int64_t> v;
        int64_t n;
        while (in >> n) v.push_back(n);
        try {
            puts(ask(v, with_plan, largest).c_str());
        } catch (Fail& f) {
            printf("fail %s %d\n", f.what, f.status);
        }
        count++;
        if (since() > limit) { is_cut = true; break; }
    }
    fflush(stdout);
    fprintf(stderr, "cudnn %zu, handle %.2f s, %ld queries in %.2f s%s\n", cudnnGetVersion(), started, count, since() - started,
            is_cut ? ", cut" : "");
    return 0;
}
