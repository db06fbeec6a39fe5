package scheduler

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A Cluster is the state that placement depends on: nodes, the pods on them, and the labels
// of namespaces. NewCluster returns an empty one. It must not be used concurrently.
type Cluster struct {
	nodes      []*node // those with an object, by name
	byName     map[string]*node
	pods       map[types.UID]*placed
	groups     map[groupKey]*group
	namespaces map[string]labels.Set
}

// A node is a node with the sums over its pods. Its object is nil if only its pods are
// known.
type node struct {
	object      *v1.Node
	allocatable amounts
	used        amounts
	scored      amounts // used, with defaults for containers without requests
	maxPods     int64
	pods        int64
	ports       map[hostPort]int
	taints      []v1.Taint // that prevent the placement of pods
	softTaints  []v1.Taint // of effect PreferNoSchedule
}

// A placed is a pod on a node.
type placed struct {
	name   string // of the node
	node   *node
	group  *group
	demand demand
}

// NewCluster returns a cluster without nodes.
func NewCluster() *Cluster {
	return &Cluster{
		byName: map[string]*node{}, pods: map[types.UID]*placed{}, groups: map[groupKey]*group{}, namespaces: map[string]labels.Set{},
	}
}

// SetNode adds a node, or replaces the node with its name. The object must not be modified
// afterwards.
func (c *Cluster) SetNode(object *v1.Node) {
	n := c.node(object.Name)
	if n.object == nil {
		at, _ := slices.BinarySearchFunc(c.nodes, object.Name, func(n *node, name string) int { return cmp.Compare(n.object.Name, name) })
		c.nodes = slices.Insert(c.nodes, at, n)
	}
	n.object = object
	n.allocatable = amountsOf(object.Status.Allocatable)
	n.maxPods = object.Status.Allocatable.Pods().Value()
	n.taints, n.softTaints = nil, nil
	for _, t := range object.Spec.Taints {
		if t.Effect == v1.TaintEffectPreferNoSchedule {
			n.softTaints = append(n.softTaints, t)
		} else {
			n.taints = append(n.taints, t)
		}
	}
}

// RemoveNode removes a node. Its pods remain, and are on the node if it is added again.
func (c *Cluster) RemoveNode(name string) {
	n := c.byName[name]
	if n == nil || n.object == nil {
		return
	}
	n.object = nil
	c.nodes = slices.DeleteFunc(c.nodes, func(other *node) bool { return other == n })
	c.forget(name, n)
}

// SetPod adds a pod to the node with a name, or updates it, for example after its resize.
// The node need not exist. A pod that has terminated is removed. The object must not be
// modified afterwards.
func (c *Cluster) SetPod(pod *v1.Pod, nodeName string) {
	c.RemovePod(pod.UID)
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return
	}
	p := &placed{name: nodeName, node: c.node(nodeName), group: c.group(pod), demand: demandOf(pod)}
	c.pods[pod.UID] = p
	p.group.on[p.node]++
	p.node.add(&p.demand, 1)
}

// RemovePod removes the pod with a UID. An unknown UID has no effect.
func (c *Cluster) RemovePod(uid types.UID) {
	p := c.pods[uid]
	if p == nil {
		return
	}
	delete(c.pods, uid)
	p.node.add(&p.demand, -1)
	if p.group.on[p.node]--; p.group.on[p.node] == 0 {
		delete(p.group.on, p.node)
	}
	if len(p.group.on) == 0 {
		delete(c.groups, p.group.key)
	}
	c.forget(p.name, p.node)
}

// SetNamespace sets the labels of a namespace, which the namespaceSelector of pod affinity
// terms selects. The labels of other namespaces are empty, except for
// kubernetes.io/metadata.name.
func (c *Cluster) SetNamespace(name string, of map[string]string) { c.namespaces[name] = of }

// RemoveNamespace removes the labels of a namespace.
func (c *Cluster) RemoveNamespace(name string) { delete(c.namespaces, name) }

func (c *Cluster) namespaceLabels(name string) labels.Set {
	if of, ok := c.namespaces[name]; ok {
		return of
	}
	return labels.Set{v1.LabelMetadataName: name}
}

// node returns the node with a name, which it adds without an object if there is none.
func (c *Cluster) node(name string) *node {
	n := c.byName[name]
	if n == nil {
		n = &node{ports: map[hostPort]int{}}
		c.byName[name] = n
	}
	return n
}

// forget removes a node without object and pods.
func (c *Cluster) forget(name string, n *node) {
	if n.object == nil && n.pods == 0 {
		delete(c.byName, name)
	}
}

// add adds the demand of a pod to the sums of the node, or subtracts it if sign is -1.
func (n *node) add(d *demand, sign int64) {
	n.pods += sign
	n.used.add(&d.requests, sign)
	n.scored.add(&d.scored, sign)
	for _, p := range d.ports {
		if n.ports[p] += int(sign); n.ports[p] == 0 {
			delete(n.ports, p)
		}
	}
}
