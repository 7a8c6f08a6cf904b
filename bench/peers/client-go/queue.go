package main

import (
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
	)
}

// queue puts distinct keys through a work queue: all are added, then each is got and done.
func queue(c *conversation, items int) error {
	keys := make([]string, items)
	for n := range keys {
		keys[n] = fmt.Sprintf("namespace-%d/pod-%d", n%100, n)
	}
	q := newQueue()
	defer q.ShutDown()
	cpu, began := cpuTime(), time.Now()
	for _, key := range keys {
		q.Add(key)
	}
	for range keys {
		key, _ := q.Get()
		q.Done(key)
	}
	wall, used := time.Since(began), cpuTime()-cpu
	return c.answer(answer{
		"items": items, "wall_ns": wall.Nanoseconds(), "cpu_ns": used.Nanoseconds(),
	})
}

// cpuTime returns the CPU time of this process so far, its own and the system's for it.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // Only for a bad argument.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// controller takes events through handler, work queue and one worker that does nothing.
//
// A key that is added while it waits is worked on once, so there may be fewer reconciles than
// events. It is done when the handler has received all and the queue has nothing left.
func (p *peer) controller(c *conversation, events int) error {
	q := newQueue()
	p.telling.arm(events, func(pod *corev1.Pod) {
		q.Add(cache.MetaObjectToName(pod).String())
	})
	reconciled := make(chan int, 1)
	go func() { reconciled <- work(q) }()
	if err := c.answer(answer{"expecting": events}); err != nil {
		return err
	}
	if err := p.delivered(c, events); err != nil {
		return err
	}
	p.telling.also.Store(nil)
	drained := make(chan struct{})
	go func() {
		q.ShutDownWithDrain()
		close(drained)
	}()
	if err := c.wait(drained, named("the work queue to drain")); err != nil {
		return err
	}
	return c.answer(answer{"done": events, "reconciled": <-reconciled})
}

// work does nothing for each key until the queue is shut down, and returns for how many.
func work(q workqueue.TypedRateLimitingInterface[string]) int {
	worked := 0
	for {
		key, shutdown := q.Get()
		if shutdown {
			return worked
		}
		worked++
		q.Forget(key)
		q.Done(key)
	}
}
