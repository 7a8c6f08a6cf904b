package main

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// telling counts the notifications of all informers, and calls what is armed.
type telling struct {
	fields  bool
	count   atomic.Int64
	target  atomic.Int64
	reached chan struct{}
	// also is called with each received object, before it is counted. It may be called by several
	// informers at a time.
	also atomic.Pointer[func(*corev1.Pod)]
	// read is what was read from the objects, so that reading is not optimised away.
	read atomic.Int64
}

func newTelling(fields bool) *telling {
	return &telling{fields: fields, reached: make(chan struct{}, 1)}
}

// arm makes reached receive after this many more objects. also may be nil.
func (t *telling) arm(more int, also func(*corev1.Pod)) {
	if also == nil {
		t.also.Store(nil)
	} else {
		t.also.Store(&also)
	}
	t.target.Store(t.count.Load() + int64(more))
	if more == 0 {
		t.reached <- struct{}{}
	}
}

func (t *telling) tell(pod *corev1.Pod) {
	if t.fields {
		t.read.Add(readFields(pod))
	}
	if also := t.also.Load(); also != nil {
		(*also)(pod)
	}
	if t.count.Add(1) == t.target.Load() {
		t.reached <- struct{}{}
	}
}

// readFields reads node name, phase and all labels; it returns how long they are in all.
func readFields(pod *corev1.Pod) int64 {
	length := len(pod.Spec.NodeName) + len(pod.Status.Phase)
	for key, value := range pod.Labels {
		length += len(key) + len(value)
	}
	return int64(length)
}

// handler is the one handler of an informer.
type handler struct {
	telling *telling
	// relisted is called once when it is set and the informer's store was replaced by a new list.
	relisted atomic.Pointer[func()]
}

func (h *handler) OnAdd(obj any, _ bool) {
	h.telling.tell(obj.(*corev1.Pod))
}

// OnUpdate counts changes. client-go also tells of each object that a new list found unchanged:
// the same version in another object. No event of a watch looks like that, and handlers are
// expected to ignore it, so it is not counted. Since the store is replaced as a whole before the
// first notification (AtomicFIFO), the first of them says that all of the list is in the cache.
func (h *handler) OnUpdate(old, obj any) {
	pod := obj.(*corev1.Pod)
	if old.(*corev1.Pod).ResourceVersion == pod.ResourceVersion {
		if relisted := h.relisted.Swap(nil); relisted != nil {
			(*relisted)()
		}
		return
	}
	h.telling.tell(pod)
}

// OnDelete counts too; obj is the last known pod or a cache.DeletedFinalStateUnknown.
func (h *handler) OnDelete(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		h.telling.tell(pod)
	}
}
