package main

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// journalLimit is how many entries are kept: a client that tells the same without end must not fill
// the memory.
const journalLimit = 20_000

// journal has the notifications of all informers: type, key, uid and version of each.
type journal struct {
	mutex   sync.Mutex
	entries [][4]string
}

func (j *journal) note(what string, obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if len(j.entries) < journalLimit {
		key := cache.MetaObjectToName(pod).String()
		j.entries = append(j.entries, [4]string{what, key, string(pod.UID), pod.ResourceVersion})
	}
}

// follow adds a handler that writes into the journal.
func (j *journal) follow(informer *informer) error {
	_, err := informer.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { j.note("add", obj) },
		UpdateFunc: func(_, obj any) { j.note("update", obj) },
		DeleteFunc: func(obj any) { j.note("delete", obj) },
	})
	return err
}

// content answers with version, uid and stamp of each object in the cache, and, if it is
// asked for, with the journal.
func (p *peer) content(c *conversation, delivered bool) error {
	kept := map[string][3]string{}
	for _, informer := range p.informers {
		for _, obj := range informer.shared.GetStore().List() {
			pod := obj.(*corev1.Pod)
			key := cache.MetaObjectToName(pod).String()
			stamp := pod.Annotations[sentAnnotation]
			kept[key] = [3]string{pod.ResourceVersion, string(pod.UID), stamp}
		}
	}
	answer := answer{"content": kept, "delivered": nil, "restarts": 0}
	if delivered && p.journal != nil {
		p.journal.mutex.Lock()
		defer p.journal.mutex.Unlock()
		answer["delivered"] = p.journal.entries
	}
	return c.answer(answer)
}

// stop ends all informers and answers when their goroutines have ended.
func (p *peer) stop(c *conversation) error {
	began := time.Now()
	p.cancel()
	for _, informer := range p.informers {
		informer.factory.Shutdown()
	}
	return c.answer(answer{"stopped_ms": float64(time.Since(began).Nanoseconds()) / 1e6})
}
