package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// peer is the informers and the state of the handler.
type peer struct {
	informers []*informer
	telling   *telling
	versions  map[string]string
	// journal is nil unless it was asked for.
	journal *journal
	cancel  context.CancelFunc
}

func newPeer(o options) (*peer, error) {
	if err := o.chooseLists(); err != nil {
		return nil, err
	}
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &peer{telling: newTelling(o.fields), versions: versions()}
	if o.journal {
		p.journal = &journal{}
	}
	for _, namespace := range o.watched() {
		informer, err := newInformer(client, namespace, p.telling)
		if err != nil {
			return nil, err
		}
		if p.journal != nil {
			if err := p.journal.follow(informer); err != nil {
				return nil, err
			}
		}
		p.informers = append(p.informers, informer)
	}
	return p, nil
}

// watched returns the namespaces to watch, "" for all of them.
func (o options) watched() []string {
	if o.namespaces == 0 {
		return []string{corev1.NamespaceAll}
	}
	names := make([]string, o.namespaces)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%d", i)
	}
	return names
}

func versions() map[string]string {
	found := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				found["client-go"] = strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return found
}

// serve reports that it is ready and executes commands until quit, or until stdin ends.
func (p *peer) serve(c *conversation) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.cancel = cancel
	if err := c.answer(answer{"ready": true, "versions": p.versions}); err != nil {
		return err
	}
	for {
		cmd, err := c.next()
		if errors.Is(err, io.EOF) || cmd.Do == "quit" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.do(ctx, c, cmd); err != nil {
			return fmt.Errorf("%s: %w", cmd.Do, err)
		}
	}
}

func (p *peer) do(ctx context.Context, c *conversation, cmd command) error {
	switch cmd.Do {
	case "start":
		return p.start(ctx, c, cmd.Objects)
	case "expect":
		return p.expect(c, cmd.Events)
	case "latency":
		return p.latency(c, cmd.Events)
	case "lookup":
		return p.lookup(c, cmd.Rounds)
	case "join":
		return p.join(c)
	case "release":
		runtime.GC() // The first collection moves what pools hold aside, the second frees it.
		debug.FreeOSMemory()
		return c.answer(answer{"released": true})
	case "relisted":
		return p.relisted(c)
	case "queue":
		return queue(c, cmd.Items)
	case "content":
		return p.content(c, cmd.Delivered)
	case "stop":
		return p.stop(c)
	case "controller":
		return p.controller(c, cmd.Items)
	}
	return c.answer(answer{"unsupported": true})
}

// start answers when all informers have synced and the handler has received all objects. An object
// is in the store before the handler receives it.
func (p *peer) start(ctx context.Context, c *conversation, objects int) error {
	p.telling.arm(objects, nil)
	for _, informer := range p.informers {
		informer.start(ctx)
	}
	if err := p.delivered(c, objects); err != nil {
		return err
	}
	for _, informer := range p.informers {
		if err := c.wait(informer.synced(), named("the informers to sync")); err != nil {
			return err
		}
	}
	return c.answer(answer{"synced": true, "objects": p.objects(), "delivered": p.telling.count.Load()})
}

func (p *peer) expect(c *conversation, events int) error {
	p.telling.arm(events, nil)
	if err := c.answer(answer{"expecting": events}); err != nil {
		return err
	}
	if err := p.delivered(c, events); err != nil {
		return err
	}
	return c.answer(answer{"delivered": events})
}

// delivered waits until the handler has received as many events as armed.
func (p *peer) delivered(c *conversation, events int) error {
	return c.wait(p.telling.reached, func() string {
		missing := p.telling.target.Load() - p.telling.count.Load()
		return fmt.Sprintf(
			"%d notifications, of which %d did not come (%d objects in the cache)",
			events, missing, p.objects(),
		)
	})
}

func (p *peer) objects() int {
	objects := 0
	for _, informer := range p.informers {
		objects += len(informer.shared.GetStore().ListKeys())
	}
	return objects
}

// onlyIndexer returns the indexer if there is one informer, nil if there are several.
func (p *peer) onlyIndexer() cache.Indexer {
	if len(p.informers) != 1 {
		return nil
	}
	return p.informers[0].shared.GetIndexer()
}
