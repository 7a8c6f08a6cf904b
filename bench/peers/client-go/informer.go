package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	podinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const byNode = "spec.nodeName"

// informer is the shared informer of a factory of its own, with the one handler.
type informer struct {
	factory informers.SharedInformerFactory
	shared  cache.SharedIndexInformer
	handler *handler
}

// newInformer returns an informer for the pods of a namespace, with one index.
//
// The factory's own pod informer would have a second index, by namespace; so the factory is given
// the constructor. There is no resync period and no transform.
func newInformer(client kubernetes.Interface, namespace string, t *telling) (*informer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, 0, informers.WithNamespace(namespace),
	)
	shared := factory.InformerFor(
		&corev1.Pod{},
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			indexers := cache.Indexers{byNode: nodeName}
			return podinformers.NewPodInformer(client, namespace, resync, indexers)
		},
	)
	handler := &handler{telling: t}
	if _, err := shared.AddEventHandler(handler); err != nil {
		return nil, err
	}
	return &informer{factory: factory, shared: shared, handler: handler}, nil
}

func nodeName(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
}

func (i *informer) start(ctx context.Context) {
	i.factory.StartWithContext(ctx)
}

// synced returns a channel that is closed when the first list is in the store.
func (i *informer) synced() <-chan struct{} {
	return i.shared.HasSyncedChecker().Done()
}
