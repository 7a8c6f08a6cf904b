package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// tries is how often the short reads are measured; the best is reported.
	tries = 3
	// lists is how often the long reads are made; the median is reported.
	lists = 5
)

// lookup measures reads of the cache as a program makes them, through the lister and the indexer.
//
// key_ns is the indexer's GetByKey with the key as a worker gets it from its queue; lister_get_ns is
// the lister's Get by namespace and name, which joins them to that key. index_objects is how many a
// lookup by index found, on average.
func (p *peer) lookup(c *conversation, rounds int) error {
	indexer := p.onlyIndexer()
	if indexer == nil {
		return c.answer(answer{"unsupported": true})
	}
	if rounds < 1 {
		return fmt.Errorf("%d rounds, expected at least one", rounds)
	}
	runtime.GC() // What was done before is not collected within the time of what follows.
	lister := listers.NewPodLister(indexer)
	everything, err := timeList(lister, labels.Everything())
	if err != nil {
		return err
	}
	if everything.found == 0 {
		return errors.New("the cache is empty")
	}
	backend, err := timeList(lister, labels.SelectorFromSet(labels.Set{"tier": "backend"}))
	if err != nil {
		return err
	}
	names, keys, err := someNames(indexer, rounds)
	if err != nil {
		return err
	}
	key, err := timeKeys(indexer, keys)
	if err != nil {
		return err
	}
	joined, err := timeGets(lister, names)
	if err != nil {
		return err
	}
	index, found, err := timeIndex(indexer, rounds)
	if err != nil {
		return err
	}
	return c.answer(answer{
		"key_ns": key, "lister_get_ns": joined, "index_ns": index, "index_objects": found,
		"list_ms": everything.ms, "list_objects": everything.found,
		"selector_ms": backend.ms, "selector_objects": backend.found,
	})
}

// spread returns rounds values in an order of its own, the same each time; all before any again.
func spread(values []string, rounds int) []string {
	slices.Sort(values)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	chosen := make([]string, rounds)
	for n := range chosen {
		chosen[n] = values[n%len(values)]
	}
	return chosen
}

func someNames(indexer cache.Indexer, rounds int) ([]cache.ObjectName, []string, error) {
	keys := spread(indexer.ListKeys(), rounds)
	names := make([]cache.ObjectName, rounds)
	for n, key := range keys {
		namespace, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return nil, nil, err
		}
		names[n] = cache.ObjectName{Namespace: namespace, Name: name}
	}
	return names, keys, nil
}

func timeKeys(indexer cache.Indexer, keys []string) (float64, error) {
	return quickest(keys, func(key string) error {
		if _, exists, err := indexer.GetByKey(key); err != nil || !exists {
			return fmt.Errorf("key %q is not in the cache: %w", key, err)
		}
		return nil
	})
}

func timeGets(lister listers.PodLister, names []cache.ObjectName) (float64, error) {
	return quickest(names, func(name cache.ObjectName) error {
		_, err := lister.Pods(name.Namespace).Get(name.Name)
		return err
	})
}

// timeIndex returns the time of a lookup and how many objects it found on average.
func timeIndex(indexer cache.Indexer, rounds int) (float64, float64, error) {
	found, looked := 0, 0
	nodes := spread(indexer.ListIndexFuncValues(byNode), rounds)
	took, err := quickest(nodes, func(node string) error {
		objects, err := indexer.ByIndex(byNode, node)
		found += len(objects)
		looked++
		return err
	})
	return took, float64(found) / float64(looked), err
}

// quickest returns the nanoseconds that look took for each value, in the best of a few rounds.
func quickest[T any](values []T, look func(T) error) (float64, error) {
	best := math.Inf(1)
	for range tries {
		began := time.Now()
		for _, value := range values {
			if err := look(value); err != nil {
				return 0, err
			}
		}
		best = min(best, float64(time.Since(began).Nanoseconds())/float64(len(values)))
	}
	return best, nil
}

type timed struct {
	ms    float64
	found int
}

func timeList(lister listers.PodLister, selector labels.Selector) (timed, error) {
	took := make([]int64, lists)
	var pods []*corev1.Pod
	for n := range took {
		began := time.Now()
		var err error
		if pods, err = lister.List(selector); err != nil {
			return timed{}, err
		}
		took[n] = time.Since(began).Nanoseconds()
	}
	slices.Sort(took)
	return timed{ms: float64(took[lists/2]) / 1e6, found: len(pods)}, nil
}
