package fakenode

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/sim/scheduler"
	"github.com/kubeparts/kubeparts/status"
)

const (
	retryPeriod = time.Second // between two attempts to place pods that fit no node
	retryAnyway = time.Minute // after which they are tried again although nothing has changed
	bindings    = 8           // requests in progress
)

// A binder binds pods to nodes, in place of a scheduler.
type binder struct {
	of     *Nodes
	events *client.Events // nil if disabled
	due    chan struct{}  // capacity 1; there are changes

	mu      sync.Mutex          // guards the fields below
	changes []change            // that run has not applied, in order
	latest  map[string]*v1.Node // as observed
	seen    chan struct{}       // closed and replaced with each observed node

	// Used by run only.
	cluster       *scheduler.Cluster
	nodeOf        map[types.UID]string // of bound pods that have not terminated
	waiting       map[types.UID]*v1.Pod
	unschedulable map[types.UID]string // last message of waiting pods that fit no node
	freed         bool                 // since the last attempt of all waiting pods: one of them may fit now
	lastAttempt   time.Time            // of all waiting pods
	nodes         map[string]*v1.Node
	byNamespace   bool // a pod selects namespaces by their labels
}

// A change is an observed pod or node.
type change struct {
	pod     *v1.Pod
	node    *v1.Node
	deleted bool
}

func newBinder(of *Nodes) (b *binder, err error) {
	b = &binder{
		of: of, due: make(chan struct{}, 1), latest: map[string]*v1.Node{}, seen: make(chan struct{}), cluster: scheduler.NewCluster(),
		nodeOf: map[types.UID]string{}, waiting: map[types.UID]*v1.Pod{}, unschedulable: map[types.UID]string{}, nodes: map[string]*v1.Node{},
	}
	if !of.cfg.API.NoEvents {
		b.events, err = client.NewEvents(client.EventsConfig{
			Client: of.conn.Events, NodeName: of.cfg.Nodes[0].Name, Component: "fakenode-scheduler", Logger: of.cfg.Logger,
		})
	}
	return b, err
}

// podObserved is called with every pod of the cluster.
func (b *binder) podObserved(pod *v1.Pod, deleted bool) {
	b.observed(change{pod: pod, deleted: deleted})
}

// nodeObserved is called with every node of the cluster.
func (b *binder) nodeObserved(node *v1.Node, deleted bool) {
	if b.of.byName[node.Name] != nil {
		b.observed(change{node: node, deleted: deleted})
	}
}

func (b *binder) observed(c change) {
	b.mu.Lock()
	b.changes = append(b.changes, c)
	if c.node != nil {
		b.latest[c.node.Name] = c.node
		close(b.seen)
		b.seen = make(chan struct{})
	}
	b.mu.Unlock()
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// wait blocks until a node was observed in a state; pods that are created afterwards are
// placed accordingly.
func (b *binder) wait(ctx context.Context, node string, in func(*v1.Node) bool) error {
	for {
		b.mu.Lock()
		n, seen := b.latest[node], b.seen
		b.mu.Unlock()
		if n != nil && in(n) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-seen:
		}
	}
}

// needsNode reports whether the pod has to be bound.
func needsNode(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !isTerminal(pod) &&
		(pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == v1.DefaultSchedulerName)
}

func isTerminal(pod *v1.Pod) bool { return status.Terminal(pod.Status.Phase) }

// run binds pods until ctx is done.
func (b *binder) run(ctx context.Context) error {
	runs := []func(context.Context) error{b.schedule, b.untaint}
	if b.events != nil {
		runs = append(runs, b.events.Run)
	}
	return runAll(ctx, runs...)
}

// schedule applies the observed changes and binds the pods that fit a node.
func (b *binder) schedule(ctx context.Context) error {
	for synced := false; ; {
		var later <-chan time.Time
		if !synced {
			synced = b.sync()
		}
		if synced {
			if wait, ok := b.pass(ctx); ok {
				later = time.After(wait)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.due:
		case <-later:
		}
	}
}

// sync applies all pods, once they were read: a decision with a part of them would be wrong.
func (b *binder) sync() bool {
	pods, synced := b.of.feed.Pods()
	for _, pod := range pods {
		b.apply(change{pod: pod})
	}
	return synced
}

// pass applies the observed changes and tries to place waiting pods: those that were not
// tried yet, and all of them if one may fit now. It returns the time until the next attempt;
// false if no pod waits.
func (b *binder) pass(ctx context.Context) (time.Duration, bool) {
	b.mu.Lock()
	changes := b.changes
	b.changes = nil
	b.mu.Unlock()
	for _, c := range changes {
		b.apply(c)
	}
	age := time.Since(b.lastAttempt)
	all := b.freed && age >= retryPeriod || age >= retryAnyway
	var queue []*v1.Pod
	for uid, pod := range b.waiting {
		if _, tried := b.unschedulable[uid]; all || !tried {
			queue = append(queue, pod)
		}
	}
	if all {
		b.freed, b.lastAttempt = false, time.Now()
	}
	if b.byNamespace && len(queue) > 0 {
		b.readNamespaces(ctx)
	}
	slices.SortFunc(queue, scheduler.Compare)
	b.place(ctx, queue)
	switch {
	case len(b.waiting) == 0:
		return 0, false
	case b.freed:
		return max(retryPeriod-time.Since(b.lastAttempt), 0), true
	}
	return max(retryAnyway-time.Since(b.lastAttempt), 0), true
}

// apply applies a change to the cluster.
func (b *binder) apply(c change) {
	if c.pod != nil {
		b.byNamespace = b.byNamespace || selectsNamespaces(c.pod)
	}
	switch {
	case c.node != nil && c.deleted:
		delete(b.nodes, c.node.Name)
		b.cluster.RemoveNode(c.node.Name)
	case c.node != nil:
		effective := effectiveNode(c.node)
		if was := b.nodes[c.node.Name]; was != nil && equality.Semantic.DeepEqual(was, effective) {
			return
		}
		b.nodes[c.node.Name] = effective
		b.cluster.SetNode(effective)
		b.freed = true
	case !c.deleted && needsNode(c.pod):
		if b.nodeOf[c.pod.UID] == "" { // else it was bound, which is not observed yet
			b.waiting[c.pod.UID] = c.pod
		}
	default:
		b.applyPod(c.pod, c.deleted || isTerminal(c.pod) || c.pod.Spec.NodeName == "")
	}
}

// applyPod adds or updates a pod that is bound, or removes one that needs no node.
func (b *binder) applyPod(pod *v1.Pod, remove bool) {
	delete(b.waiting, pod.UID)
	delete(b.unschedulable, pod.UID)
	was := b.nodeOf[pod.UID]
	if remove {
		delete(b.nodeOf, pod.UID)
		b.cluster.RemovePod(pod.UID)
		b.freed = b.freed || was != ""
		return
	}
	b.freed = b.freed || was != pod.Spec.NodeName // others may be affine to it
	b.nodeOf[pod.UID] = pod.Spec.NodeName
	b.cluster.SetPod(pod, pod.Spec.NodeName)
}

// selectsNamespaces reports whether a pod affinity term selects namespaces by their labels.
func selectsNamespaces(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	var terms []v1.PodAffinityTerm
	var weighted []v1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}

// place places pods and binds them. Each is placed with those before it on their nodes.
func (b *binder) place(ctx context.Context, queue []*v1.Pod) {
	var wg sync.WaitGroup
	limit := make(chan struct{}, bindings)
	failed := make([]bool, len(queue))
	for i, pod := range queue {
		to, err := b.cluster.Place(pod)
		if err != nil {
			b.setUnschedulable(ctx, pod, err.Error())
			continue
		}
		delete(b.waiting, pod.UID)
		delete(b.unschedulable, pod.UID)
		b.nodeOf[pod.UID] = to
		b.cluster.SetPod(pod, to)
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if err := b.bind(ctx, pod, to); err != nil {
				failed[i] = true
				if ctx.Err() == nil {
					b.of.cfg.Logger.Warn("Failed to bind pod; will retry", "pod", pod.Namespace+"/"+pod.Name, "node", to, "err", err)
				}
			}
		})
	}
	wg.Wait()
	for i, pod := range queue {
		if failed[i] {
			delete(b.nodeOf, pod.UID)
			b.cluster.RemovePod(pod.UID)
			b.waiting[pod.UID] = pod
			b.unschedulable[pod.UID] = "" // it is tried again after retryPeriod
			b.freed, b.lastAttempt = true, time.Now()
		}
	}
}
