package taskgraph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

const (
	// period is the least time between two writes about a shoot, but for the last one of a try.
	period = time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// longestPause is how long a write that has failed is put off at most.
	longestPause = 30 * time.Second
	// tries is how often a write is tried before it is dropped: it is there for a minute and a half. What changes
	// later is tried anew.
	tries = 7
)

// Writer writes the graphs of all shoots of a seed. Of each shoot it has one that is to be written, the newest, and a
// goroutine as long as there is one.
type Writer struct {
	// Garden reads and writes ConfigMaps at the garden's API server, without a cache.
	Garden client.Client

	mu     sync.Mutex
	queues map[client.ObjectKey]*queue
}

// queue is what there is to write about one shoot.
type queue struct {
	shoot *gardencorev1beta1.Shoot
	try   *Try
	// changed tells that the graph is another one than was written last.
	changed bool
	// running tells whether there is a goroutine for it.
	running bool
	// wake ends a pause between two writes: the try has ended, or nothing is to be written any more.
	wake chan struct{}
	// told tells that a failure was logged, of which one is enough for each try.
	told bool
}

// take makes a try the one that is told of a Shoot.
func (w *Writer) take(ctx context.Context, shoot *gardencorev1beta1.Shoot, f *flow.Flow) *Try {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = map[client.ObjectKey]*queue{}
	}
	key := client.ObjectKeyFromObject(shoot)
	q := w.queues[key]
	if q == nil {
		q = &queue{wake: make(chan struct{}, 1)}
		w.queues[key] = q
	}
	// An operation does not wait for the writes, and its end does not end them.
	ctx = context.WithoutCancel(ctx)
	try := newTry(shoot, f)
	try.changed = func() { w.changed(ctx, q, try) }
	q.shoot, q.try, q.told = shoot.DeepCopy(), try, false
	return try
}

// changed has a graph written soon, if its try is still the one that is told.
func (w *Writer) changed(ctx context.Context, q *queue, try *Try) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.try != try {
		return
	}
	q.changed = true
	if try.isOver() {
		q.wakeUp()
	}
	if !q.running {
		q.running = true
		go w.write(ctx, q)
	}
}

// Forget drops what is still to be written about a shoot, which is about to go with its ConfigMap.
func (w *Writer) Forget(shoot client.ObjectKey) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[shoot]; q != nil {
		q.try, q.changed = nil, false
		q.wakeUp()
		delete(w.queues, shoot)
	}
}

// IsIdle tells whether nothing is to be written, and nothing is being written.
func (w *Writer) IsIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queues {
		if q.running {
			return false
		}
	}
	return true
}

func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next is what is to be written now; nothing, and the goroutine ends.
func (w *Writer) next(q *queue) (*gardencorev1beta1.Shoot, *Try) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !q.changed {
		q.running = false
		if key := client.ObjectKeyFromObject(q.shoot); w.queues[key] == q && (q.try == nil || q.try.isOver()) {
			delete(w.queues, key)
		}
		return nil, nil
	}
	q.changed = false
	return q.shoot, q.try
}

// write writes until there is nothing to write.
func (w *Writer) write(ctx context.Context, q *queue) {
	var known *corev1.ConfigMap
	failures := 0
	for {
		shoot, try := w.next(q)
		if try == nil {
			return
		}
		written, err := w.writeOnce(ctx, shoot, try, known)
		known = written
		pause := period
		if err == nil {
			failures = 0
		} else {
			failures = min(failures+1, tries)
			w.failed(ctx, q, try, failures, err)
			pause = min(longestPause, period<<failures)
		}
		q.pause(pause, err == nil)
	}
}

// pause waits between two writes. The end of a try is written at once, unless writes fail.
func (q *queue) pause(long time.Duration, wakes bool) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	wake := q.wake
	if !wakes {
		wake = nil
	}
	select {
	case <-timer.C:
	case <-wake:
	}
}

// failed has a write tried again that failed, unless that was often enough or is in vain.
func (w *Writer) failed(ctx context.Context, q *queue, try *Try, failures int, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.try != try {
		return
	}
	again := failures < tries && !errors.Is(cause, operationgraph.ErrForeign)
	q.changed = q.changed || again
	if !q.told {
		q.told = true
		ctrl.LoggerFrom(ctx).Info("The garden is not told of the tasks of the operation, which goes on all the same",
			"error", cause.Error())
	}
}

// writeOnce writes the graph as it is now. known is the ConfigMap as it was written last, if it was.
func (w *Writer) writeOnce(ctx context.Context, shoot *gardencorev1beta1.Shoot, try *Try,
	known *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	text, err := try.text()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if known == nil {
		known = operationgraph.ConfigMap(shoot)
		err := w.Garden.Get(ctx, client.ObjectKeyFromObject(known), known)
		if apierrors.IsNotFound(err) {
			return w.create(ctx, shoot, text)
		}
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s of the garden: %w", client.ObjectKeyFromObject(known), err)
		}
	}
	return w.update(ctx, shoot, known, text)
}

func (w *Writer) create(ctx context.Context, shoot *gardencorev1beta1.Shoot, text string) (*corev1.ConfigMap, error) {
	configMap := operationgraph.ConfigMap(shoot)
	configMap.Data = map[string]string{operationgraph.DataKey: text}
	if err := w.Garden.Create(ctx, configMap); err != nil {
		return nil, fmt.Errorf("creating ConfigMap %s of the garden: %w", client.ObjectKeyFromObject(configMap), err)
	}
	return configMap, nil
}

// update writes over a ConfigMap that is gardenlet's, and is what it was read as: nobody else's is touched.
func (w *Writer) update(ctx context.Context, shoot *gardencorev1beta1.Shoot, known *corev1.ConfigMap,
	text string) (*corev1.ConfigMap, error) {
	key := client.ObjectKeyFromObject(known)
	if !operationgraph.IsMarked(known, shoot.Name) {
		return nil, fmt.Errorf("ConfigMap %s of the garden: %w: it is left alone", key, operationgraph.ErrForeign)
	}
	changed := known.DeepCopy()
	operationgraph.Mark(changed, shoot)
	changed.Data, changed.BinaryData = map[string]string{operationgraph.DataKey: text}, nil
	if maps.Equal(changed.Data, known.Data) && slices.Equal(changed.OwnerReferences, known.OwnerReferences) {
		return known, nil
	}
	if err := w.Garden.Update(ctx, changed); err != nil {
		return nil, fmt.Errorf("writing ConfigMap %s of the garden: %w", key, err)
	}
	return changed, nil
}
