package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
)

// Config configures a [Cluster].
type Config struct {
	// Seed determines everything that the other fields leave open: at which second of its
	// period each node is measured, and which of several equally good nodes a pod gets.
	Seed uint64

	// Nodes are the nodes, at least one. Equal nodes are
	// slices.Repeat([]cluster.Node{node}, 100).
	Nodes []Node

	// Pods are the pods, in any order. They are not modified.
	Pods []Pod

	// Images is the size of each image in bytes. An image that it lacks needs no space
	// and no time to pull.
	Images map[string]int64

	// Duration is the simulated time. It must be positive.
	Duration time.Duration

	// Kubelet has the settings of all nodes.
	Kubelet Kubelet

	// Policies replace decisions. The zero value is Kubernetes' behavior.
	Policies Policies

	// Interval is the time between two samples of the report. Zero means 5 minutes.
	Interval time.Duration

	// Hooks are called while the simulation runs.
	Hooks Hooks
}

// Kubelet has the settings of the kubelet of each node.
type Kubelet struct {
	// Eviction is the eviction policy. If its Thresholds are nil, the kubelet's default
	// hard thresholds are used; a threshold of memory or of nodefs applies only to nodes
	// with that resource. Signals of inodes and process IDs are never met.
	Eviction eviction.Policy

	// ImageGC is the policy of image garbage collection, which runs every 5 minutes.
	ImageGC imagegc.Policy

	// Period is the interval at which a node is measured. Memory and disk usage between
	// two measurements is not observed. Zero means 10 seconds.
	Period time.Duration

	// PullBandwidth is the rate at which a node pulls images, one at a time, in bytes per
	// second. Zero means 100 MiB/s.
	PullBandwidth int64
}

// Policies are decisions as functions. A function must depend on its arguments only, must not
// modify them, and is not called concurrently. A [Pod] that it gets has all fields filled in:
// its name, effective requests and restart policy. If a function is nil, the decision is
// Kubernetes'. The ranks of pods and images for removal are those of Kubelet.Eviction and
// Kubelet.ImageGC.
type Policies struct {
	// Backoff returns the delay between the exit of a container and its restart. A
	// negative delay counts as zero. The default is plan.Backoff: no delay for the
	// first restart, then 10 seconds, doubled for each further one up to 5 minutes.
	Backoff func(Restart) time.Duration

	// Filter reports whether a pod may run on a node, in addition to the resources, taints,
	// node selector and node affinity, which always apply.
	Filter func(pod *Pod, node *NodeInfo) bool

	// Score rates a node for a pod, among those where it may run; the highest score wins.
	// The default is [LeastAllocated].
	Score func(pod *Pod, node *NodeInfo) int64
}

// A Restart is the restart of a container that has exited.
type Restart struct {
	Pod      *Pod
	Restarts int32         // earlier restarts of the container
	Ran      time.Duration // of the instance that exited
	ExitCode int32
}

// Hooks are called on the goroutine of [Cluster.Run], in the order of simulated time. They
// must not block. Any may be nil.
type Hooks struct {
	// Event is called for each change of a pod or node.
	Event func(Event)

	// Sample is called for each sample of the report, for example to show progress.
	Sample func(Sample)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Event, o.Event)
		compose.Add(&h.Sample, o.Sample)
	}
	return h
}

const (
	defaultInterval      = 5 * time.Minute
	defaultPeriod        = 10 * time.Second
	defaultPullBandwidth = 100 << 20
	defaultMaxPods       = 110 // the kubelet's maxPods
)

// maxAmount bounds amounts of resources, so that sums over a cluster do not overflow.
const maxAmount = 1 << 50

// check returns an error that names every missing or invalid field.
func (c *Config) check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Nodes) == 0 {
		fail("Config.Nodes is empty")
	}
	if c.Duration <= 0 {
		fail("Config.Duration %v is not positive", c.Duration)
	}
	if c.Interval < 0 || c.Kubelet.Period < 0 || c.Kubelet.PullBandwidth < 0 {
		fail("negative Interval %v, Kubelet.Period %v or Kubelet.PullBandwidth %d", c.Interval, c.Kubelet.Period, c.Kubelet.PullBandwidth)
	}
	names := map[string]bool{}
	for i := range c.Nodes {
		name := c.Nodes[i].name(i)
		if err := c.Nodes[i].check(); err != nil {
			fail("node %s: %w", name, oneLine(err))
		}
		if names[name] {
			fail("node %s: name is not unique", name)
		}
		names[name] = true
	}
	clear(names)
	for i := range c.Pods {
		name := c.Pods[i].name(i)
		if err := c.Pods[i].check(); err != nil {
			fail("pod %s: %w", name, oneLine(err))
		}
		if names[name] {
			fail("pod %s: name is not unique", name)
		}
		names[name] = true
	}
	for _, image := range slices.Sorted(maps.Keys(c.Images)) {
		if size := c.Images[image]; size < 0 || size > maxAmount {
			fail("image %s: invalid size %d", image, size)
		}
	}
	if err := c.Kubelet.Eviction.Validate(); err != nil {
		fail("Kubelet.Eviction: %w", err)
	}
	if _, err := (imagegc.Inputs{Policy: c.Kubelet.ImageGC}).Plan(); err != nil {
		fail("Kubelet.ImageGC: %w", err)
	}
	return errors.Join(errs...)
}

// oneLine joins the texts of joined errors by semicolons, so that each is beside the name of
// what it is about.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// setDefaults fills in zero values. c must have passed check.
func (c *Config) setDefaults() error {
	c.Pods = slices.Clone(c.Pods)
	for i := range c.Pods {
		c.Pods[i].setDefaults(i)
	}
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Kubelet.Period == 0 {
		c.Kubelet.Period = defaultPeriod
	}
	if c.Kubelet.PullBandwidth == 0 {
		c.Kubelet.PullBandwidth = defaultPullBandwidth
	}
	if c.Kubelet.Eviction.Thresholds == nil {
		thresholds, err := eviction.Settings{}.WithDefaults("linux", false).Parse()
		if err != nil {
			return err
		}
		c.Kubelet.Eviction.Thresholds = thresholds
	}
	if c.Policies.Score == nil {
		c.Policies.Score = LeastAllocated
	}
	if c.Hooks.Event == nil {
		c.Hooks.Event = func(Event) {}
	}
	if c.Hooks.Sample == nil {
		c.Hooks.Sample = func(Sample) {}
	}
	return nil
}
