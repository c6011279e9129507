/* Calls of kernels from Python. The generated part follows this file: for each kernel a function that unpacks its
 * arguments, calls machine code made by numba for one level of instructions, and packs what that returns. */

#define Py_LIMITED_API 0x030b0000
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Memory that a kernel allocates, as numba's code expects it: counted references and the address of the data. */
typedef struct {
    size_t references;
    void *unused[2];
    void *data;
    size_t size;
} Memory;

enum { ALIGNMENT = 64 }; /* as Arrow recommends */

__attribute__((visibility("hidden"))) Memory *NRT_MemInfo_alloc_aligned(size_t size, unsigned align)
{
    size_t alignment = align > ALIGNMENT ? align : ALIGNMENT;
    char *block = malloc(sizeof(Memory) + alignment + size);
    if (block == NULL)
        return NULL;
    Memory *memory = (Memory *)block;
    uintptr_t after = (uintptr_t)(block + sizeof(Memory));
    memory->references = 1;
    memory->data = (void *)((after + alignment - 1) / alignment * alignment);
    memory->size = size;
    return memory;
}

/* The last reference is gone. */
__attribute__((visibility("hidden"))) void NRT_MemInfo_call_dtor(Memory *memory) { free(memory); }

/* An array as numba's code takes it apart. */
typedef struct {
    int64_t items, width;
    char *data;
    int64_t shape[2], strides[2];
} Array;

#define ARRAY_1(a) NULL, NULL, (a).items, (a).width, (a).data, (a).shape[0], (a).strides[0]
#define ARRAY_2(a) \
    NULL, NULL, (a).items, (a).width, (a).data, (a).shape[0], (a).shape[1], (a).strides[0], (a).strides[1]
#define TAKES_1 void *, void *, int64_t, int64_t, char *, int64_t, int64_t
#define TAKES_2 void *, void *, int64_t, int64_t, char *, int64_t, int64_t, int64_t, int64_t

/* An array of one dimension as numba's code returns it; its memory is ours. */
typedef struct {
    Memory *memory;
    void *parent;
    int64_t items, width;
    char *data;
    int64_t shape, stride;
} Returned;

static int counted(const char *kernel, Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", kernel, wanted, given);
    return 0;
}

static int integer(PyObject *given, int64_t *taken)
{
    *taken = PyLong_AsLongLong(given);
    return *taken != -1 || PyErr_Occurred() == NULL;
}

static int array(const char *kernel, int at, PyObject *given, int dimensions, char kind, int width, int filled,
                 Array *taken)
{
    int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (filled ? NPY_ARRAY_WRITEABLE : 0);
    PyArrayObject *own = (PyArrayObject *)given;
    if (!PyArray_Check(given) || PyArray_NDIM(own) != dimensions || PyArray_DESCR(own)->kind != kind ||
        PyArray_ITEMSIZE(own) != width || !PyArray_CHKFLAGS(own, wanted) || !PyArray_ISNOTSWAPPED(own)) {
        PyErr_Format(PyExc_TypeError, "argument %d of %s must be %s contiguous array of %d dimensions and type %c%d",
                     at + 1, kernel, filled ? "a writable" : "a", dimensions, kind, width);
        return 0;
    }
    taken->width = width;
    taken->items = 1;
    taken->data = PyArray_BYTES(own);
    for (int d = 0; d < dimensions; d++) {
        taken->items *= taken->shape[d] = PyArray_DIM(own, d);
        taken->strides[d] = PyArray_STRIDE(own, d);
    }
    return 1;
}

static void let_go(PyObject *owner) { NRT_MemInfo_call_dtor(PyCapsule_GetPointer(owner, NULL)); }

static PyObject *packed_array(Returned *returned, int type)
{
    npy_intp length = returned->shape;
    PyObject *owner = PyCapsule_New(returned->memory, NULL, let_go);
    if (owner == NULL)
        return NULL;
    PyObject *own = PyArray_SimpleNewFromData(1, &length, type, returned->data);
    if (own == NULL) {
        Py_DECREF(owner);
        return NULL;
    }
    return PyArray_SetBaseObject((PyArrayObject *)own, owner) < 0 ? NULL : own;
}

/* A tuple of values that may be NULL where they could not be packed; takes them over. */
static PyObject *packed(Py_ssize_t count, PyObject **values)
{
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (values[at] == NULL)
            Py_CLEAR(all);
        if (all != NULL)
            PyTuple_SetItem(all, at, values[at]);
        else
            Py_XDECREF(values[at]);
    }
    return all;
}

static PyObject *failed(const char *kernel)
{
    PyErr_Format(PyExc_MemoryError, "%s could not allocate memory", kernel);
    return NULL;
}

/* Whether this processor has the instructions of a level. */
static int supports(const char *level)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (strcmp(level, "x86-64-v3") == 0)
        return __builtin_cpu_supports("x86-64-v3");
    if (strcmp(level, "x86-64-v4") == 0)
        return __builtin_cpu_supports("x86-64-v4");
#endif
    return 1;
}

typedef struct {
    PyMethodDef method;
    const char *level;
    void *code;
} Kernel;

/* The names of the levels that this processor has, the fastest one last. */
static PyObject *levels_of(const char *const *names)
{
    PyObject *found = PyList_New(0);
    for (; found != NULL && *names != NULL; names++) {
        if (!supports(*names))
            continue;
        PyObject *name = PyUnicode_FromString(*names);
        if (name == NULL || PyList_Append(found, name) < 0)
            Py_CLEAR(found);
        Py_XDECREF(name);
    }
    return found;
}

/* The functions of one level by name. */
static PyObject *kernels_of(Kernel *kernels, PyObject *level)
{
    const char *wanted = PyUnicode_AsUTF8AndSize(level, NULL);
    PyObject *found = wanted == NULL ? NULL : PyDict_New();
    for (Kernel *kernel = kernels; found != NULL && kernel->level != NULL; kernel++) {
        if (strcmp(kernel->level, wanted) != 0)
            continue;
        PyObject *code = PyCapsule_New(kernel->code, NULL, NULL);
        PyObject *function = code == NULL ? NULL : PyCFunction_NewEx(&kernel->method, code, NULL);
        if (function == NULL || PyDict_SetItemString(found, kernel->method.ml_name, function) < 0)
            Py_CLEAR(found);
        Py_XDECREF(function);
        Py_XDECREF(code);
    }
    return found;
}
