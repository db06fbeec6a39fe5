package cluster

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// never is the time of what has not happened.
const never time.Duration = -1

// A Report is the result of a simulation. Equal configurations give equal reports, byte for
// byte, on every machine.
type Report struct {
	Seed     uint64
	Duration time.Duration // simulated; less than Config.Duration if Run was canceled

	Pods    []*PodResult  // in the order of their creation, replacements included
	Nodes   []*NodeResult // in the order of Config.Nodes
	Samples []Sample      // in the order of time
}

// A PodResult is the history of one pod. Times are since the start of the simulation; -1 means
// that it has not happened.
type PodResult struct {
	Name     string
	Priority int32
	Node     string // empty: the pod was not scheduled

	Created, Scheduled time.Duration
	Started, Finished  time.Duration // of the first container instance, of the pod

	Phase  v1.PodPhase // at the end of the simulation
	Reason string      // of a pod that has terminated: Completed, Error, OOMKilled or Evicted
	Signal string      // of an evicted pod: the eviction signal

	Restarts, OOMKills int

	// Ran is how long containers of the pod ran. Lost is how long those ran that were
	// killed for lack of memory or evicted, without the time that they took to stop.
	Ran, Lost time.Duration

	PeakMemory int64 // the highest measured working set in bytes
}

// A NodeResult is the history of one node.
type NodeResult struct {
	Name                 string
	Pods                 int // that were scheduled to it
	Evictions, OOMKills  int
	Pulls, ImagesRemoved int
	PulledBytes          int64
	PeakMemory, PeakDisk int64         // the highest measured usage in bytes, Reserved included
	Pressure             time.Duration // with a pressure condition
}

// A Sample is the state of the cluster at one time. Pods are those that exist at that time;
// Succeeded and later counts are totals since the start.
type Sample struct {
	At time.Duration

	// Pods by state: waiting for a node, for an image, running, waiting for a restart,
	// being stopped.
	Pending, Starting, Running, Restarting, Stopping int

	Succeeded, Failed, Evictions, OOMKills, Restarts, Pulls, ImagesRemoved int

	PressuredNodes int // with a pressure condition

	// Requested are the requests of the pods on all nodes, Used the last measured usage of
	// memory and disk, and Capacity the capacity of the nodes.
	Requested, Used, Capacity Resources
}

// String returns the sample as a line of text, for progress.
func (s Sample) String() string {
	return fmt.Sprintf("%v: %d running, %d pending, %d evicted, %d OOM-killed, memory %d%%",
		s.At, s.Running, s.Pending, s.Evictions, s.OOMKills, percent(s.Used.Memory, s.Capacity.Memory))
}

// percent returns part of whole in percent, zero if whole is.
func percent(part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	return part * 100 / whole
}

// sample adds a sample to the report and schedules the next one.
func (c *Cluster) sample() {
	n := &c.counts
	s := Sample{
		At: c.now, Pending: n.states[pending], Starting: n.states[starting], Running: n.states[running],
		Restarting: n.states[restarting], Stopping: n.states[stopping],
		Succeeded: n.succeeded, Failed: n.failed, Evictions: n.evicted, OOMKills: n.oomKills, Restarts: n.restarts,
		Pulls: n.pulls, ImagesRemoved: n.imagesRemoved,
	}
	for _, node := range c.nodes {
		s.Requested = s.Requested.plus(node.info.Requested)
		s.Used = s.Used.plus(node.info.Used)
		s.Capacity = s.Capacity.plus(node.spec.Capacity)
		if len(node.info.Conditions) > 0 {
			s.PressuredNodes++
		}
	}
	s.Used.CPU = 0 // not measured
	c.report.Samples = append(c.report.Samples, s)
	c.cfg.Hooks.Sample(s)
	c.after(c.cfg.Interval, c.sample)
}

// finish completes the results of what is in progress at the end.
func (c *Cluster) finish() {
	c.report.Duration = c.now
	for _, n := range c.nodes {
		if len(n.info.Conditions) > 0 {
			n.result.Pressure += c.now - n.pressured
		}
		for _, p := range n.pods {
			if p.live() {
				p.result.Ran += p.age()
			}
		}
	}
}
