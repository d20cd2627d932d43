package capacity

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Limits bound what an Account keeps.
type Limits struct {
	Nodes, Pods int
}

// DefaultLimits are what production uses: at most some 60 MiB for a member, typically 3 MiB for 1,000 nodes and 20,000
// pods.
func DefaultLimits() Limits { return Limits{Nodes: 10_000, Pods: 200_000} }

// Account counts the nodes and pods of one cluster. Its methods may be called at the same time.
type Account struct {
	limits Limits

	mu      sync.Mutex
	nodes   map[string]*node
	pods    map[podKey]pod
	pending amounts
	// requests are those of pods, equal ones kept once.
	requests map[string]*request
	// strings keeps equal labels once.
	strings map[string]string
	// round tells objects that were listed last from those of before.
	round    uint32
	overflow bool
	report   *Report
}

// node is what is kept of a node. One that pods refer to and that is not known (yet) has no name.
type node struct {
	// key is the name that pods refer to.
	key         string
	name        string
	allocatable amounts
	used        amounts
	labels      map[string]string
	taints      []corev1.Taint
	ready       bool
	usable      bool
	problem     string
	pods        int
	round       uint32
}

// podKey is a hash of the pod's UID.
type podKey [16]byte

type pod struct {
	// node is nil for pods that have none yet.
	node    *node
	request *request
	round   uint32
}

type request struct {
	amounts amounts
	key     string
	users   int
}

// NewAccount is empty.
func NewAccount(limits Limits) *Account {
	l := &Account{limits: limits}
	l.Reset()
	return l
}

// Reset forgets everything.
func (l *Account) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes, l.pods, l.requests, l.strings = map[string]*node{}, map[podKey]pod{}, map[string]*request{},
		map[string]string{}
	l.pending, l.overflow, l.report = amounts{}, false, nil
}

// Overflow tells that there were more nodes or pods than the limits allow. The account is not right then.
func (l *Account) Overflow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overflow
}

// SetNode counts a node, or counts it anew.
func (l *Account) SetNode(object *corev1.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodeNamed(object.Name)
	if n == nil {
		return
	}
	n.name, n.round, n.problem = object.Name, l.round, ""
	n.ready = isReady(object)
	n.usable = n.ready && !object.Spec.Unschedulable
	n.labels = l.intern(object.Labels)
	n.taints = keepsAway(object.Spec.Taints)
	var err error
	if n.allocatable, err = claimed(object.Status.Allocatable); err != nil {
		n.usable, n.problem = false, fmt.Sprintf("node %s %s", shorten(object.Name), err)
	}
}

// DeleteNode forgets a node.
func (l *Account) DeleteNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleteNode(name)
}

func (l *Account) deleteNode(name string) {
	n, found := l.nodes[name]
	if !found {
		return
	}
	l.report = nil
	n.name, n.usable, n.ready, n.problem, n.allocatable, n.labels, n.taints = "", false, false, "", nil, nil, nil
	if n.pods == 0 {
		delete(l.nodes, name)
	}
}

// nodeNamed is nil when there are too many.
func (l *Account) nodeNamed(name string) *node {
	l.report = nil
	if n, found := l.nodes[name]; found {
		return n
	}
	if len(l.nodes) >= l.limits.Nodes {
		l.overflow = true
		return nil
	}
	n := &node{key: name, used: amounts{}, round: l.round}
	l.nodes[name] = n
	return n
}

// SetPod counts a pod, or counts it anew. Pods that are finished take nothing.
func (l *Account) SetPod(object *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := keyOf(object)
	if object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed {
		l.deletePod(key)
		return
	}
	before, found := l.pods[key]
	if !found && len(l.pods) >= l.limits.Pods {
		l.overflow = true
		return
	}
	var of *node
	if object.Spec.NodeName != "" {
		if of = l.nodeNamed(object.Spec.NodeName); of == nil {
			return
		}
	}
	now := pod{node: of, request: l.requestOf(&object.Spec), round: l.round}
	l.charge(now)
	if found {
		l.release(before)
	}
	l.pods[key] = now
}

// DeletePod forgets a pod.
func (l *Account) DeletePod(object *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deletePod(keyOf(object))
}

func (l *Account) deletePod(key podKey) {
	if before, found := l.pods[key]; found {
		l.release(before)
		delete(l.pods, key)
	}
}

func (l *Account) charge(p pod) {
	l.report = nil
	p.request.users++
	if p.node == nil {
		l.pending.add(p.request.amounts)
		return
	}
	p.node.pods++
	p.node.used.add(p.request.amounts)
}

func (l *Account) release(p pod) {
	l.report = nil
	if p.request.users--; p.request.users == 0 {
		delete(l.requests, p.request.key)
	}
	from := l.pending
	if p.node != nil {
		from = p.node.used
		if p.node.pods--; p.node.pods == 0 && p.node.name == "" {
			delete(l.nodes, p.node.key)
		}
	}
	for name, value := range p.request.amounts {
		if from[name] -= value; from[name] <= 0 {
			delete(from, name)
		}
	}
}

func (l *Account) requestOf(spec *corev1.PodSpec) *request {
	wanted := podRequest(spec)
	key := wanted.key()
	if known, found := l.requests[key]; found {
		return known
	}
	r := &request{amounts: wanted, key: key}
	l.requests[key] = r
	return r
}

// BeginList starts a list of all nodes or of all pods: EndNodes or EndPods forgets those that were not set since.
func (l *Account) BeginList() (round uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	return l.round
}

// EndNodes forgets the nodes that were not set since BeginList.
func (l *Account) EndNodes(round uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.nodes {
		if n.name != "" && n.round < round {
			l.deleteNode(name)
		}
	}
}

// EndPods forgets the pods that were not set since BeginList.
func (l *Account) EndPods(round uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, p := range l.pods {
		if p.round < round {
			l.deletePod(key)
		}
	}
}

// maxLabels bounds what is kept of a node's labels.
const maxLabels = 64

func (l *Account) intern(labels map[string]string) map[string]string {
	result := make(map[string]string, min(len(labels), maxLabels))
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), maxLabels)] {
		result[l.once(key)] = l.once(labels[key])
	}
	return result
}

// once also lets go of the object that the text was a part of.
func (l *Account) once(text string) string {
	if known, found := l.strings[text]; found {
		return known
	}
	if len(l.strings) > 4*l.limits.Nodes {
		clear(l.strings)
	}
	text = string([]byte(text))
	l.strings[text] = text
	return text
}

// keepsAway drops the taints that only make a node less welcome.
func keepsAway(taints []corev1.Taint) []corev1.Taint {
	var result []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			result = append(result, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return result
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func keyOf(object *corev1.Pod) podKey {
	h := fnv.New128a()
	text := string(object.UID)
	if text == "" {
		text = object.Namespace + "/" + object.Name
	}
	_, _ = h.Write([]byte(text))
	return podKey(h.Sum(nil))
}
