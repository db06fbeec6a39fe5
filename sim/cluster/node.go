package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
)

// A node is one node of the simulation.
type node struct {
	cluster  *Cluster
	name     string
	spec     *Node
	capacity Resources // unlimited where the spec is zero
	info     NodeInfo
	object   *v1.Node // labels, for node affinity
	result   *NodeResult

	pods []*pod // in the order in which they were scheduled

	last       *eviction.Plan // nil before the first measurement
	pressured  time.Duration  // since when conditions is not empty
	stopping   int            // pods that are being evicted
	passes     int            // scheduled measurements; earlier ones are ignored
	images     []*image       // by name
	imageBytes int64          // of the images that are present
	pulls      []*image       // waiting to be pulled, the first one is being pulled
}

func newNode(c *Cluster, index int, spec *Node) *node {
	n := &node{cluster: c, name: spec.name(index), spec: spec, capacity: spec.Capacity.orUnlimited()}
	n.result = &NodeResult{Name: n.name}
	n.object = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: spec.Labels}}
	maxPods := spec.MaxPods
	if maxPods == 0 {
		maxPods = defaultMaxPods
	}
	n.info = NodeInfo{Index: index, Name: n.name, Labels: spec.Labels, MaxPods: maxPods, Allocatable: n.allocatable(c.cfg.Kubelet.Eviction.Thresholds)}
	n.info.Used = spec.Reserved
	c.report.Nodes = append(c.report.Nodes, n.result)
	return n
}

// allocatable returns the capacity less the reserved resources and the hard eviction
// thresholds, as the kubelet reports it.
func (n *node) allocatable(thresholds []eviction.Threshold) Resources {
	r := n.capacity.minus(n.spec.Reserved)
	for _, t := range thresholds {
		switch {
		case !t.Hard():
		case t.Signal == eviction.MemoryAvailable && n.spec.Capacity.Memory > 0:
			r.Memory -= t.Value.Of(n.capacity.Memory)
		case t.Signal == eviction.NodeFSAvailable && n.spec.Capacity.Disk > 0:
			r.Disk -= t.Value.Of(n.capacity.Disk)
		}
	}
	return r.max(Resources{})
}

// start schedules the first measurement and the first image garbage collection, at a part of
// their periods that depends on the seed.
func (n *node) start() {
	phase := func(period time.Duration, salt uint64) time.Duration {
		return time.Duration(n.cluster.hash(uint64(n.info.Index), salt) % uint64(period))
	}
	n.measureAt(phase(n.cluster.cfg.Kubelet.Period, 1))
	if n.spec.Capacity.Disk > 0 {
		n.cluster.queue.add(phase(imageGCPeriod, 2), n.collectPeriodically)
	}
}

// measureAt schedules the next measurement, in place of the one that is scheduled.
func (n *node) measureAt(at time.Duration) {
	n.passes++
	pass := n.passes
	n.cluster.queue.add(at, func() {
		if n.passes == pass {
			n.measureAt(n.cluster.now + n.cluster.cfg.Kubelet.Period)
			n.measure()
		}
	})
}

// measureAfterEviction schedules a measurement a second after the evicted pods have
// terminated, as the kubelet does.
func (n *node) measureAfterEviction() { n.measureAt(n.cluster.now + time.Second) }

// bind adds a scheduled pod to the node and starts it once its image is present.
func (n *node) bind(p *pod) {
	p.node = n
	n.pods = append(n.pods, p)
	n.info.Requested = n.info.Requested.plus(p.request)
	n.info.scored = n.info.scored.plus(scoredRequest(p.spec))
	n.info.Pods++
	n.result.Pods++
	p.result.Node, p.result.Scheduled = n.name, n.cluster.now
	p.become(starting)
	n.cluster.emit(PodScheduled, p.result.Name, n.name, "")
	if p.spec.Image == "" {
		p.sync()
		return
	}
	n.useImage(p)
}

// remove removes a terminated pod.
func (n *node) remove(p *pod) {
	n.released(p)
	i := slices.Index(n.pods, p)
	n.pods = slices.Delete(n.pods, i, i+1)
	n.info.Requested = n.info.Requested.minus(p.request)
	n.info.scored = n.info.scored.minus(scoredRequest(p.spec))
	n.info.Pods--
	if p.spec.Image != "" {
		n.releaseImage(p.spec.Image)
	}
}

// released subtracts the usage of a container that has exited.
func (n *node) released(p *pod) {
	n.info.Used.Memory -= p.memory
	n.info.Used.Disk -= p.disk
	p.memory, p.disk = 0, 0
}

// live reports whether the container of the pod runs.
func (p *pod) live() bool { return p.state == running || p.state == stopping }

// byUID returns the pod of an object.
func (n *node) byUID(uid types.UID) *pod {
	i := slices.IndexFunc(n.pods, func(p *pod) bool { return p.object.UID == uid })
	return n.pods[i]
}

// setConditions stores the pressure conditions of the last plan.
func (n *node) setConditions(conditions []v1.NodeConditionType) {
	if slices.Equal(n.info.Conditions, conditions) {
		return
	}
	c := n.cluster
	switch {
	case len(n.info.Conditions) == 0:
		n.pressured = c.now
	case len(conditions) == 0:
		n.result.Pressure += c.now - n.pressured
	}
	n.info.Conditions = conditions
	c.emit(NodeConditions, "", n.name, strings.Trim(fmt.Sprint(conditions), "[]"))
	c.sched.request()
}
