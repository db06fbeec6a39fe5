package cluster

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// NodeInfo is a node as the scheduler and the policies of placement observe it. Resources
// that are not limited are 1<<60.
type NodeInfo struct {
	Index       int // of Config.Nodes
	Name        string
	Labels      map[string]string
	Allocatable Resources
	Requested   Resources // by the pods on the node
	Used        Resources // Memory and Disk in the last measurement
	Pods        int
	MaxPods     int
	Conditions  []v1.NodeConditionType // pressure conditions that are true

	scored Resources // as Requested, with the default amounts of LeastAllocated
}

// free returns the resources that are not requested.
func (i *NodeInfo) free() Resources { return i.Allocatable.minus(i.Requested) }

// LeastAllocated is the default of [Policies.Score]: the mean of the percentages of CPU and
// memory that are not requested once the pod runs on the node, as in kube-scheduler's
// strategy of that name. A container without a request counts as 100 thousandths of a CPU
// and 200 MiB. A resource that the node does not limit does not count.
func LeastAllocated(pod *Pod, node *NodeInfo) int64 {
	after := node.scored.plus(scoredRequest(pod))
	var sum, count int64
	for _, r := range [...]struct{ allocatable, requested int64 }{
		{node.Allocatable.CPU, after.CPU}, {node.Allocatable.Memory, after.Memory},
	} {
		if r.allocatable <= 0 || r.allocatable > maxAmount {
			continue
		}
		sum += max(r.allocatable-r.requested, 0) * 100 / r.allocatable
		count++
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// scoredRequest returns the requests of a pod as LeastAllocated counts them.
func scoredRequest(p *Pod) Resources {
	r := p.Requests
	if r.CPU == 0 {
		r.CPU = 100
	}
	if r.Memory == 0 {
		r.Memory = 200 << 20
	}
	return r
}

// A scheduler assigns pods to nodes.
type scheduler struct {
	cluster *Cluster
	queue   []*pod // by priority, then by creation
	planned bool   // a round is scheduled
	next    time.Duration
}

// roundInterval is the least time between two rounds of the scheduler.
const roundInterval = time.Second

func (s *scheduler) add(p *pod) {
	i, _ := slices.BinarySearchFunc(s.queue, p, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(b.spec.Priority, a.spec.Priority), cmp.Compare(a.order, b.order))
	})
	s.queue = slices.Insert(s.queue, i, p)
	s.request()
}

// request schedules a round because a pod was added or a node has changed.
func (s *scheduler) request() {
	if s.planned || len(s.queue) == 0 {
		return
	}
	s.planned = true
	s.cluster.queue.add(max(s.cluster.now, s.next), s.round)
}

// round tries to schedule each pod of the queue.
func (s *scheduler) round() {
	s.planned, s.next = false, s.cluster.now+roundInterval
	var most Resources // an upper bound of what any node has free
	for _, n := range s.cluster.nodes {
		most = most.max(n.info.free())
	}
	failed := map[class]bool{}
	waiting := s.queue[:0]
	for _, p := range s.queue {
		if !most.covers(p.request) || failed[p.class()] {
			waiting = append(waiting, p)
			continue
		}
		n := s.place(p)
		if n == nil {
			failed[p.class()] = true
			waiting = append(waiting, p)
			continue
		}
		n.bind(p)
	}
	clear(s.queue[len(waiting):])
	s.queue = waiting
}

// A class has the properties of a pod that decide where it may run. If one pod of a class
// fits no node, none does.
type class struct {
	requests, limits Resources
	priority         int32
	index            int // of Config.Pods, if others matter; else -1
}

func (p *pod) class() class {
	k := class{p.request, p.spec.Limits, p.spec.Priority, -1}
	if p.requiresLabels() || len(p.spec.Tolerations) > 0 || p.cluster.cfg.Policies.Filter != nil {
		k.index = p.index
	}
	return k
}

func (p *pod) requiresLabels() bool {
	return len(p.spec.NodeSelector) > 0 || p.spec.NodeAffinity != nil
}

// place returns the node with the highest score among those where the pod may run. If
// several have it, the seed decides. Nil if there is none.
func (s *scheduler) place(p *pod) (best *node) {
	var bestScore int64
	var bestTie uint64
	for _, n := range s.cluster.nodes {
		if !s.fits(p, n) {
			continue
		}
		score, tie := s.cluster.cfg.Policies.Score(p.spec, &n.info), s.cluster.hash(uint64(p.order), uint64(n.info.Index))
		if best == nil || score > bestScore || score == bestScore && tie > bestTie {
			best, bestScore, bestTie = n, score, tie
		}
	}
	return best
}

// fits reports whether the pod may run on the node.
func (s *scheduler) fits(p *pod, n *node) bool {
	free := n.info.free()
	if n.info.Pods >= n.info.MaxPods || !free.covers(p.request) {
		return false
	}
	// A node under pressure has the taints of its conditions; they keep away the pods that
	// it would not admit.
	if s.cluster.cfg.Kubelet.Eviction.Admit(p.object, n.info.Conditions) != nil {
		return false
	}
	for _, taint := range n.spec.Taints {
		if taint.Effect != v1.TaintEffectPreferNoSchedule && !podspec.Tolerates(p.object, taint) {
			return false
		}
	}
	if p.requiresLabels() {
		required := nodeaffinity.GetRequiredNodeAffinity(p.object)
		if match, err := required.Match(n.object); err != nil || !match {
			return false
		}
	}
	filter := s.cluster.cfg.Policies.Filter
	return filter == nil || filter(p.spec, &n.info)
}
