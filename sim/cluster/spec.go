package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Resources are amounts of a node's resources.
type Resources struct {
	CPU    int64 // thousandths of a CPU
	Memory int64 // bytes
	Disk   int64 // bytes of ephemeral storage
}

func (r Resources) plus(o Resources) Resources {
	return Resources{r.CPU + o.CPU, r.Memory + o.Memory, r.Disk + o.Disk}
}

func (r Resources) minus(o Resources) Resources {
	return Resources{r.CPU - o.CPU, r.Memory - o.Memory, r.Disk - o.Disk}
}

func (r Resources) max(o Resources) Resources {
	return Resources{max(r.CPU, o.CPU), max(r.Memory, o.Memory), max(r.Disk, o.Disk)}
}

// covers reports whether no amount of o exceeds that of r.
func (r Resources) covers(o Resources) bool {
	return o.CPU <= r.CPU && o.Memory <= r.Memory && o.Disk <= r.Disk
}

func (r Resources) check() error {
	if low := (Resources{}); !r.covers(low) {
		return fmt.Errorf("negative amount in %+v", r)
	}
	if high := (Resources{maxAmount, maxAmount, maxAmount}); !high.covers(r) {
		return fmt.Errorf("amount in %+v exceeds %d", r, int64(maxAmount))
	}
	return nil
}

// list returns the amounts that are not zero.
func (r Resources) list() v1.ResourceList {
	list := v1.ResourceList{}
	if r.CPU > 0 {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(r.CPU, resource.DecimalSI)
	}
	if r.Memory > 0 {
		list[v1.ResourceMemory] = *resource.NewQuantity(r.Memory, resource.BinarySI)
	}
	if r.Disk > 0 {
		list[v1.ResourceEphemeralStorage] = *resource.NewQuantity(r.Disk, resource.BinarySI)
	}
	return list
}

// A Node is one node of a cluster.
type Node struct {
	// Name of the node. If empty, it is "node-" and its index.
	Name string

	// Capacity of the node. A resource that is zero is not limited and not measured.
	Capacity Resources

	// Reserved is used by the system at all times and not available to pods.
	Reserved Resources

	// MaxPods is the maximum number of pods. Zero means 110.
	MaxPods int

	Labels map[string]string
	Taints []v1.Taint
}

func (n *Node) name(index int) string {
	if n.Name == "" {
		return fmt.Sprintf("node-%d", index)
	}
	return n.Name
}

func (n *Node) check() error {
	err := errors.Join(n.Capacity.check(), n.Reserved.check())
	if n.MaxPods < 0 {
		err = errors.Join(err, fmt.Errorf("negative MaxPods %d", n.MaxPods))
	}
	unlimited := n.Capacity.orUnlimited()
	if err == nil && !unlimited.covers(n.Reserved) {
		err = fmt.Errorf("the Reserved %+v exceed the Capacity %+v", n.Reserved, n.Capacity)
	}
	return err
}

// orUnlimited replaces the amounts that are zero by one that exceeds the sum of all others.
func (r Resources) orUnlimited() Resources {
	const unlimited = 1 << 60
	for _, amount := range []*int64{&r.CPU, &r.Memory, &r.Disk} {
		if *amount == 0 {
			*amount = unlimited
		}
	}
	return r
}

// A Pod is a pod with one container, and the behavior of that container.
type Pod struct {
	// Name of the pod. If empty, it is "pod-" and its index. The pods that replace it have
	// the suffixes ".1", ".2" and so on.
	Name string

	// Arrival is when the pod is created, since the start of the simulation.
	Arrival time.Duration

	// Requests and Limits of the container. A limit that is zero is none; a request that
	// is zero is the limit, as in Kubernetes.
	Requests, Limits Resources

	// Memory is the working set and Disk the local storage that the container uses. If nil,
	// they are the requests.
	Memory, Disk Usage

	// Image of the container. If empty, nothing is pulled.
	Image string

	// RunTime is how long the container runs until it exits with ExitCode. Zero means that
	// it runs until it is stopped.
	RunTime  time.Duration
	ExitCode int32

	// RestartPolicy of the pod. Empty means Always.
	RestartPolicy v1.RestartPolicy

	// Recreate replaces the pod a second after it failed or was evicted, as a ReplicaSet
	// does. A pod that succeeded is not replaced.
	Recreate bool

	// StopTime is how long the container takes to exit when it is stopped. It is killed at
	// the end of its grace period, which is 30 seconds unless an eviction shortens it.
	StopTime time.Duration

	// Priority of the pod, for its eviction and for its order in the scheduling queue.
	Priority int32

	Labels       map[string]string
	NodeSelector map[string]string
	NodeAffinity *v1.NodeSelector // required during scheduling
	Tolerations  []v1.Toleration
}

func (p *Pod) name(index int) string {
	if p.Name == "" {
		return fmt.Sprintf("pod-%d", index)
	}
	return p.Name
}

func (p *Pod) check() error {
	err := errors.Join(p.Requests.check(), p.Limits.check())
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Arrival", p.Arrival}, {"RunTime", p.RunTime}, {"StopTime", p.StopTime}} {
		if d.value < 0 {
			err = errors.Join(err, fmt.Errorf("negative %s %v", d.field, d.value))
		}
	}
	if limits := p.Limits.orUnlimited(); err == nil && !limits.covers(p.Requests) {
		err = fmt.Errorf("the Requests %+v exceed the Limits %+v", p.Requests, p.Limits)
	}
	if p.NodeAffinity != nil {
		if _, affinityErr := nodeaffinity.NewNodeSelector(p.NodeAffinity); affinityErr != nil {
			err = errors.Join(err, fmt.Errorf("NodeAffinity: %w", affinityErr))
		}
	}
	switch p.RestartPolicy {
	case "", v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever:
	default:
		err = errors.Join(err, fmt.Errorf("unknown RestartPolicy %q", p.RestartPolicy))
	}
	return err
}

// setDefaults fills in the name, the effective requests and the restart policy.
func (p *Pod) setDefaults(index int) {
	p.Name = p.name(index)
	p.RestartPolicy = cmp.Or(p.RestartPolicy, v1.RestartPolicyAlways)
	p.Requests = Resources{
		CPU:    cmp.Or(p.Requests.CPU, p.Limits.CPU),
		Memory: cmp.Or(p.Requests.Memory, p.Limits.Memory),
		Disk:   cmp.Or(p.Requests.Disk, p.Limits.Disk),
	}
}

// containerName is the name of the container of each pod.
const containerName = "main"

// defaultGrace is the grace period of a pod in seconds.
const defaultGrace = 30

// Object returns the API object of the pod, with a name that is also its UID, in the namespace
// default. A Cluster has set the defaults of the fields before.
func (p *Pod) Object(name string, created time.Time) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			Labels: p.Labels, CreationTimestamp: metav1.NewTime(created),
		},
		Spec: v1.PodSpec{
			Priority: &p.Priority, RestartPolicy: p.RestartPolicy, NodeSelector: p.NodeSelector, Tolerations: p.Tolerations,
			TerminationGracePeriodSeconds: new(int64(defaultGrace)),
			Containers: []v1.Container{{
				Name: containerName, Image: p.Image,
				Resources: v1.ResourceRequirements{Requests: p.Requests.list(), Limits: p.Limits.list()},
			}},
		},
	}
	if p.NodeAffinity != nil {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.NodeAffinity}}
	}
	return pod
}
