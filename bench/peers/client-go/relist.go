package main

import (
	"sync"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
)

// relisted answers as soon as each informer's store was replaced by a list newer than the command.
// What client-go tells the handler of afterwards, about objects that did not change, is not waited
// for.
func (p *peer) relisted(c *conversation) error {
	if !features.FeatureGates().Enabled(features.AtomicFIFO) {
		return c.answer(answer{"unsupported": true})
	}
	var waiting sync.WaitGroup
	for _, informer := range p.informers {
		waiting.Add(1)
		once := waiting.Done
		informer.handler.relisted.Store(&once)
	}
	if err := c.answer(answer{"expecting": "relist"}); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		waiting.Wait()
		close(done)
	}()
	if err := c.wait(done, named("a relist of every informer")); err != nil {
		return err
	}
	return c.answer(answer{"relisted": true, "objects": p.objects()})
}

// join adds a second handler to each informer and waits until it has received all existing objects.
func (p *peer) join(c *conversation) error {
	second := newTelling(p.telling.fields)
	second.target.Store(-1)
	began := time.Now()
	registrations := make([]cache.ResourceEventHandlerRegistration, len(p.informers))
	for n, informer := range p.informers {
		registration, err := informer.shared.AddEventHandler(&handler{telling: second})
		if err != nil {
			return err
		}
		registrations[n] = registration
	}
	for _, registration := range registrations {
		done := registration.HasSyncedChecker().Done()
		if err := c.wait(done, named("the second handler to sync")); err != nil {
			return err
		}
	}
	took := time.Since(began)
	return c.answer(answer{
		"joined_ms": float64(took.Nanoseconds()) / 1e6, "delivered": second.count.Load(),
	})
}
