package csrapprover

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const (
	// retryErrors is how long a request is looked at again when a question about it, or its approval, fails.
	retryErrors = 10 * time.Minute
	// retryWatch is the pause before a watch that could not be opened is opened again.
	retryWatch = 2 * time.Second
	// retryRoom is the pause before requests that were left out are asked for.
	retryRoom = 10 * time.Second
	// watchSeconds ends a watch from the server's side, so that a dead connection does not go unnoticed for ever.
	watchSeconds = 600
)

// Reconciler keeps one watch on the certificate signing requests of each shoot's kubelets, and one on those of each
// fleet's agents. Its own requests are namespaces' Secrets `gardener-internal`.
type Reconciler struct {
	// Seed reads Machines and Secrets of the seed.
	Seed client.Reader
	// Targets leads to the shoots.
	Targets *target.Registry
	// Context ends all watches.
	Context context.Context
	// Again asks for another Reconcile of a namespace, whose watch has ended with its target. The Secret need not
	// change for that: an event of an older version of it, told late, has a newer target forgotten as well.
	Again func(namespace string)

	mu       sync.Mutex
	watching map[watched]*running
}

// watched says whose requests are watched.
type watched struct{ namespace, who string }

// running is a watch of the cluster of a target.
type running struct {
	target *target.Target
	stop   context.CancelFunc
}

// Reconcile starts the watches of a shoot that are not running. They end by themselves when the target is forgotten,
// and ask for the next ones.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t, err := r.Targets.Shoot(ctx, req.Namespace)
	if errors.Is(err, target.ErrNoTarget) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := t.Ready(ctx); err != nil {
		return ctrl.Result{RequeueAfter: 5 * t.RetryAfter()}, nil
	}
	fleet, err := r.isFleet(ctx, req.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.start(req.Namespace, t, kubelets(req.Namespace, r.Seed, t.Client))
	if fleet {
		r.start(req.Namespace, t, agents(t.Client))
	} else {
		r.end(watched{req.Namespace, agentsOfFleets})
	}
	return ctrl.Result{}, nil
}

// isFleet tells whether a federation process gets tokens of the shoot.
func (r *Reconciler) isFleet(ctx context.Context, namespace string) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fleetv1alpha1.AccessSecret}, secret)
	return err == nil, client.IgnoreNotFound(err)
}

// start a watch unless it is running.
func (r *Reconciler) start(namespace string, t *target.Target, of requesters) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := watched{namespace, of.who}
	if before := r.watching[key]; before != nil && before.target == t {
		return
	}
	if r.watching == nil {
		r.watching = map[watched]*running{}
	}
	ctx, stop := context.WithCancel(r.Context)
	this := &running{target: t, stop: stop}
	r.watching[key] = this
	approver := newApprover(namespace, t, of)
	go func() {
		defer stop()
		approver.run(ctx)
		r.stopped(key, this)
		if ctx.Err() == nil {
			r.Again(namespace)
		}
	}()
}

// end a watch if it is running.
func (r *Reconciler) end(key watched) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.watching[key]; before != nil {
		before.stop()
		delete(r.watching, key)
	}
}

// stopped forgets a watch that ended.
func (r *Reconciler) stopped(key watched, ended *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching[key] == ended {
		delete(r.watching, key)
	}
}

// requesters are those whose requests an approver decides about.
type requesters struct {
	who string
	// signer whom they ask, and a label that their requests have; empty for none.
	signer, label string
	// patience is how long a request is looked at again that may not be approved yet.
	patience time.Duration
	// approval says to people why requests are approved.
	approval string
	// check checks everything that a request says about itself. An error says what is wrong; such a request is never
	// approved. Without a question it is left to others.
	check func(*certificatesv1.CertificateSigningRequest) (question, error)
}

// question asks why a checked request may not be approved, or not yet; the answer is empty when it may.
type question func(context.Context) (string, error)

// approver serves requesters of one shoot. Its watch puts requests into a queue, and one worker decides about them.
type approver struct {
	requesters
	target *target.Target
	queue  *queue
	log    logr.Logger
	// logged bounds what a shoot's owner can fill the seed's log with.
	logged flowcontrol.RateLimiter
}

func newApprover(namespace string, t *target.Target, of requesters) *approver {
	return &approver{
		requesters: of, target: t, queue: newQueue(),
		log:    ctrl.Log.WithName("csr-approver").WithValues("namespace", namespace),
		logged: flowcontrol.NewTokenBucketRateLimiter(1, 20),
	}
}

// run watches until the target is forgotten or ctx ends.
func (a *approver) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.target.Context(), cancel)
	defer stop()
	context.AfterFunc(ctx, a.queue.work.ShutDown)
	go a.work(ctx)
	for ctx.Err() == nil {
		if err := a.watch(ctx); err != nil && ctx.Err() == nil {
			a.log.V(1).Info("Watch of certificate signing requests ended", "error", err.Error())
			pause(ctx, retryWatch)
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, period time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(period):
	}
}

// watch opens one watch and handles its events, until there is place again for requests that had to be left out.
// Without a resource version the server first sends what exists.
func (a *approver) watch(ctx context.Context) error {
	seconds := int64(watchSeconds)
	w, err := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + a.signer, LabelSelector: a.label, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-a.queue.room:
			pause(ctx, retryRoom)
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := a.handle(event); err != nil {
				return err
			}
		}
	}
}

// handle queues what is new and forgets what is decided or gone.
func (a *approver) handle(event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	if event.Type == watch.Deleted || !a.pending(csr) {
		a.queue.forget(csr.Name)
		return nil
	}
	open, err := a.check(csr)
	if err != nil {
		a.refused(csr.Name, csr.Spec.Username, err.Error())
		return nil
	}
	if open != nil {
		a.queue.add(csr.Name, candidate{
			uid: csr.UID, requester: csr.Spec.Username, created: csr.CreationTimestamp.Time, open: open,
		})
	}
	return nil
}

// pending says whether nobody decided about a request yet.
func (a *approver) pending(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == a.signer && len(csr.Status.Conditions) == 0
}

// work decides about queued requests, one after the other, until the queue is shut down.
func (a *approver) work(ctx context.Context) {
	for {
		name, shutdown := a.queue.work.Get()
		if shutdown {
			return
		}
		if found, known := a.queue.get(name); known {
			if a.decide(ctx, name, found) {
				a.queue.forget(name)
			} else {
				a.queue.again(name)
			}
		}
		a.queue.work.Done(name)
	}
}

// decide approves a request, and says whether that was the last look at it for now.
func (a *approver) decide(ctx context.Context, name string, found candidate) (done bool) {
	reason, err := found.open(ctx)
	if err == nil && reason == "" {
		if err = a.approve(ctx, name, found); err == nil {
			return true
		}
	}
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return true
	}
	patience := a.patience
	if err != nil {
		reason, patience = err.Error(), retryErrors
	}
	if time.Since(found.created) < patience {
		return false
	}
	a.refused(name, found.requester, reason)
	return true
}

func (a *approver) refused(name, requester, reason string) {
	if a.logged.TryAccept() {
		a.log.Info("Not approving a certificate", "who", a.who, "csr", name, "requester", requester, "reason", reason)
	}
}

// approve writes the decision, if the request is still the one that was checked. A conflict means that someone else
// wrote one.
func (a *approver) approve(ctx context.Context, name string, found candidate) error {
	requests := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(ctx, name, metav1.GetOptions{})
	if err != nil || csr.UID != found.uid || !a.pending(csr) {
		return err
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "RequestApproved", Message: a.approval, LastUpdateTime: metav1.Now(),
	})
	_, err = requests.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	if err == nil {
		a.log.Info("Approved a certificate", "who", a.who, "csr", name, "requester", csr.Spec.Username)
	}
	return err
}
