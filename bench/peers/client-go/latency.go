package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const sentAnnotation = "bench.example.com/sent"

// latencies takes the time from the stamp in an object to the handler, in nanoseconds.
type latencies struct {
	taken  []int64
	next   atomic.Int64
	broken atomic.Pointer[string]
}

func (l *latencies) take(pod *corev1.Pod) {
	stamp := pod.Annotations[sentAnnotation]
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		l.broken.Store(&stamp)
		return
	}
	if n := l.next.Add(1); n <= int64(len(l.taken)) {
		l.taken[n-1] = time.Now().UnixNano() - sent
	}
}

// percentile returns the value at the nearest rank; sorted must not be empty.
func percentile(sorted []int64, share float64) int64 {
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func (p *peer) latency(c *conversation, events int) error {
	if events < 1 {
		return fmt.Errorf("%d events, expected at least one", events)
	}
	l := &latencies{taken: make([]int64, events)}
	p.telling.arm(events, l.take)
	if err := c.answer(answer{"expecting": events}); err != nil {
		return err
	}
	if err := p.delivered(c, events); err != nil {
		return err
	}
	if broken := l.broken.Load(); broken != nil {
		return fmt.Errorf("the annotation %s is %q, expected a number", sentAnnotation, *broken)
	}
	slices.Sort(l.taken)
	return c.answer(answer{
		"delivered": events,
		"p50":       percentile(l.taken, 0.5),
		"p99":       percentile(l.taken, 0.99),
		"p999":      percentile(l.taken, 0.999),
		"max":       l.taken[len(l.taken)-1],
	})
}
