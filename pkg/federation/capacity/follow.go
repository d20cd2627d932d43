package capacity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// pageSize is how many objects a request lists.
	pageSize = 500
	// pageTimeout bounds the request for one page.
	pageTimeout = 30 * time.Second
	// watchPeriod is how long a watch lasts at least; the server ends it then, so that it is never lost unnoticed for
	// longer.
	watchPeriod = 5 * time.Minute
	// maxSummed bounds what is read of a cluster that is too large for an Account.
	maxSummed = 5_000_000
	// unfinished leaves out pods that take nothing any more.
	unfinished = "status.phase!=Succeeded,status.phase!=Failed"
)

// Follower keeps an Account up to date with a cluster.
type Follower struct {
	core    typedcorev1.CoreV1Interface
	account *Account
	// SumInterval is between two looks at a cluster that is too large for an Account.
	SumInterval time.Duration
	// MaxDelay is the longest wait before something that failed is tried again.
	MaxDelay time.Duration

	mu     sync.Mutex
	errs   map[string]error
	synced map[string]bool
	sums   *Report
}

// NewFollower reads through a client for the cluster. Nothing happens before Run.
func NewFollower(core typedcorev1.CoreV1Interface, limits Limits) *Follower {
	return &Follower{
		core: core, account: NewAccount(limits), SumInterval: time.Minute, MaxDelay: 30 * time.Second,
		errs: map[string]error{}, synced: map[string]bool{},
	}
}

// ErrNotSynced tells that not everything was read yet.
var ErrNotSynced = errors.New("nodes and pods are being read for the first time")

// Report gives what is known now; with an error, what was known when there was none, or nil.
func (f *Follower) Report() (*Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.errs["nodes"], f.errs["pods"])
	switch {
	case f.sums != nil:
		return f.sums, err
	case f.synced["nodes"] && f.synced["pods"]:
		return f.account.Report(), err
	case err != nil:
		return nil, err
	}
	return nil, ErrNotSynced
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		round, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		for _, what := range []feed{f.nodeFeed(), f.podFeed()} {
			group.Go(func() {
				defer stop()
				f.follow(round, what)
			})
		}
		group.Wait()
		stop()
		for ctx.Err() == nil && !f.sumUp(ctx) {
		}
	}
}

// feed is a resource that is followed.
type feed struct {
	name  string
	list  func(context.Context, metav1.ListOptions) (metav1.ListInterface, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	event func(kind watch.EventType, object any) (resourceVersion string)
	end   func(round uint32)
}

func (f *Follower) nodeFeed() feed {
	nodes := f.core.Nodes()
	return feed{
		name: "nodes", watch: nodes.Watch, end: f.account.EndNodes,
		list: func(ctx context.Context, options metav1.ListOptions) (metav1.ListInterface, error) {
			list, err := nodes.List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				f.account.SetNode(&list.Items[i])
			}
			return list, nil
		},
		event: func(kind watch.EventType, object any) string {
			node, ok := object.(*corev1.Node)
			switch {
			case !ok:
				return ""
			case kind == watch.Deleted:
				f.account.DeleteNode(node.Name)
			case kind == watch.Added || kind == watch.Modified:
				f.account.SetNode(node)
			}
			return node.ResourceVersion
		},
	}
}

func (f *Follower) podFeed() feed {
	pods := f.core.Pods(metav1.NamespaceAll)
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = unfinished
		return options
	}
	return feed{
		name: "pods", end: f.account.EndPods,
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, selected(options))
		},
		list: func(ctx context.Context, options metav1.ListOptions) (metav1.ListInterface, error) {
			list, err := pods.List(ctx, selected(options))
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				f.account.SetPod(&list.Items[i])
			}
			return list, nil
		},
		event: func(kind watch.EventType, object any) string {
			pod, ok := object.(*corev1.Pod)
			switch {
			case !ok:
				return ""
			case kind == watch.Deleted:
				f.account.DeletePod(pod)
			case kind == watch.Added || kind == watch.Modified:
				f.account.SetPod(pod)
			}
			return pod.ResourceVersion
		},
	}
}

// follow lists and watches, again and again, until ctx ends or there is too much of it.
func (f *Follower) follow(ctx context.Context, what feed) {
	delay := time.Duration(0)
	version := ""
	for sleep(ctx, delay) {
		var err error
		if version == "" {
			version, err = f.listAll(ctx, what)
		}
		if f.account.Overflow() {
			return
		}
		if err == nil {
			f.note(what.name, nil)
			version, err = f.watchFrom(ctx, what, version)
		}
		if f.account.Overflow() || ctx.Err() != nil {
			return
		}
		if err == nil {
			delay = 0
			continue
		}
		f.note(what.name, fmt.Errorf("reading %s: %w", what.name, err))
		delay = min(max(2*delay, 500*time.Millisecond), f.MaxDelay)
	}
}

// listAll reads page by page, and gives the version to watch from.
func (f *Follower) listAll(ctx context.Context, what feed) (string, error) {
	round := f.account.BeginList()
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, cancel := context.WithTimeout(ctx, pageTimeout)
		list, err := what.list(page, options)
		cancel()
		if err != nil {
			return "", err
		}
		if f.account.Overflow() {
			return "", nil
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			what.end(round)
			return list.GetResourceVersion(), nil
		}
	}
}

// watchFrom follows changes until the watch ends. It gives the version to go on from, or none if everything has to be
// listed again.
func (f *Follower) watchFrom(ctx context.Context, what feed, version string) (string, error) {
	seconds := int64(watchPeriod.Seconds()) + utilrand.Int63nRange(0, int64(watchPeriod.Seconds()))
	events, err := what.watch(ctx,
		metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return "", nil
	}
	if err != nil {
		return version, err
	}
	defer events.Stop()
	began := time.Now()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return "", nil
			}
			return "", err
		}
		if seen := what.event(event.Type, event.Object); seen != "" {
			version = seen
		}
		if f.account.Overflow() {
			return "", nil
		}
	}
	if time.Since(began) < time.Second {
		return version, errors.New("the watch ended at once")
	}
	return version, nil
}

func (f *Follower) note(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[name] = err
	if err == nil {
		f.synced[name] = true
	}
}

// sumUp reads a cluster that is too large, and keeps nothing but the sums. True, after a while, says that it has become
// small.
func (f *Follower) sumUp(ctx context.Context) bool {
	f.account.Reset()
	report, err := f.sum(ctx)
	f.mu.Lock()
	f.synced = map[string]bool{}
	f.errs["nodes"], f.errs["pods"] = err, nil
	if err == nil {
		f.sums = report
	}
	f.mu.Unlock()
	if !sleep(ctx, f.SumInterval) || err != nil || !report.small(f.account.limits) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums = nil
	return true
}

// small tells whether the cluster would have fit with some room to spare.
func (r *Report) small(limits Limits) bool {
	return int(r.Nodes.TotalNum) < limits.Nodes*9/10 && r.pods < limits.Pods*9/10
}

func (f *Follower) sum(ctx context.Context) (*Report, error) {
	r := &Report{Summed: true}
	allocatable, allocated, allocating := amounts{}, amounts{}, amounts{}
	err := pages(ctx, "nodes", metav1.ListOptions{}, f.core.Nodes().List, func(list *corev1.NodeList) int {
		for i := range list.Items {
			r.countNode(&list.Items[i], allocatable)
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, err
	}
	err = pages(ctx, "pods", metav1.ListOptions{FieldSelector: unfinished}, f.core.Pods(metav1.NamespaceAll).List,
		func(list *corev1.PodList) int {
			for i := range list.Items {
				spec := &list.Items[i].Spec
				if spec.NodeName == "" {
					allocating.add(podRequest(spec))
				} else {
					allocated.add(podRequest(spec))
				}
			}
			r.pods += len(list.Items)
			return len(list.Items)
		})
	r.sums(allocatable, allocated, allocating)
	return r, err
}

func (r *Report) countNode(node *corev1.Node, allocatable amounts) {
	r.Nodes.TotalNum++
	if !isReady(node) {
		return
	}
	r.Nodes.ReadyNum++
	has, err := claimed(node.Status.Allocatable)
	if err != nil {
		r.addProblem(fmt.Sprintf("node %s %s", shorten(node.Name), err))
		return
	}
	if !node.Spec.Unschedulable {
		allocatable.add(has)
	}
}

// pages reads all pages, and gives up after maxSummed objects.
func pages[L metav1.ListInterface](ctx context.Context, what string, options metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (L, error), each func(L) int) error {
	options.Limit = pageSize
	for seen := 0; seen < maxSummed; {
		page, cancel := context.WithTimeout(ctx, pageTimeout)
		items, err := list(page, options)
		cancel()
		if err != nil {
			return fmt.Errorf("reading %s: %w", what, err)
		}
		seen += max(each(items), 1)
		if options.Continue = items.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("the cluster lists more than %d %s", maxSummed, what)
}

// sleep is false when ctx ended.
func sleep(ctx context.Context, delay time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
		return ctx.Err() == nil
	}
}
