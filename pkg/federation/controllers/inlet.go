package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// inlet is a source of requests that other parts of the process add to. What is added before the controller starts
// is dropped: at its start it looks at everything anyway.
type inlet[R comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[R]
}

// Start implements source.TypedSource.
func (i *inlet[R]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	return nil
}

func (i *inlet[R]) add(requests ...R) { i.addAfter(0, requests...) }

func (i *inlet[R]) addAfter(delay time.Duration, requests ...R) {
	i.mu.Lock()
	queue := i.queue
	i.mu.Unlock()
	if queue == nil {
		return
	}
	for _, request := range requests {
		queue.AddAfter(request, delay)
	}
}

// settleMember is how long after a change in a member its Work is looked at: many changes are our own, and by then the
// cache shows what was written about them.
const settleMember = 30 * time.Millisecond

// memberChanges wakes the Works of objects that change in members.
type memberChanges struct {
	inlet[reconcile.Request]
	client client.Reader
}

// report implements members.Changed.
func (m *memberChanges) report(cluster string, object client.Object) {
	if object == nil {
		m.add(worksOfCluster(context.Background(), m.client, cluster)...)
		return
	}
	annotations := object.GetAnnotations()
	key := types.NamespacedName{
		Namespace: annotations[workv1alpha1.NamespaceAnnotation], Name: annotations[workv1alpha1.NameAnnotation],
	}
	if of, ok := clusterv1alpha1.ClusterOf(key.Namespace); ok && of == cluster {
		m.addAfter(settleMember, reconcile.Request{NamespacedName: key})
	}
}
