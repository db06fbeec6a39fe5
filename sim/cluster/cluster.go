package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A Cluster is a simulated cluster.
type Cluster struct {
	cfg Config
	ran runonce.Guard

	now     time.Duration
	queue   queue
	nodes   []*node
	sched   scheduler
	backoff plan.Delays
	table   *plan.Backoff // backoff, or nil with Policies.Backoff

	report   *Report
	byName   map[string]*pod // by name of the object: the pods that have not terminated
	replaced []int           // by index of Config.Pods: how often the pod was replaced
	reserved map[string]bool // names of pods
	counts   counts
}

// counts are the totals that samples contain.
type counts struct {
	states [terminated + 1]int // pods by state

	succeeded, failed, evicted, oomKills, restarts, pulls, imagesRemoved int
}

// epoch is the time at which every simulation starts.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a Cluster, or an error that names every missing or invalid field of cfg.
func New(cfg Config) (*Cluster, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c := &Cluster{cfg: cfg, report: &Report{Seed: cfg.Seed, Duration: cfg.Duration}, byName: map[string]*pod{}, replaced: make([]int, len(cfg.Pods)), reserved: map[string]bool{}}
	for i := range cfg.Pods {
		c.reserved[cfg.Pods[i].Name] = true
	}
	if cfg.Policies.Backoff != nil {
		c.backoff = customBackoff{c}
	} else {
		var err error
		if c.table, err = plan.NewBackoff(plan.BackoffConfig{}); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		c.backoff = c.table
	}
	for i := range cfg.Nodes {
		c.nodes = append(c.nodes, newNode(c, i, &cfg.Nodes[i]))
	}
	c.sched.cluster = c
	return c, nil
}

// Run simulates the cluster for Config.Duration and returns the report. If ctx is done
// earlier, it returns the report up to then, and ctx.Err(). A second call returns an error.
func (c *Cluster) Run(ctx context.Context) (*Report, error) {
	if err := c.ran.Enter("cluster: Cluster"); err != nil {
		return nil, err
	}
	for i := range c.cfg.Pods {
		if at := c.cfg.Pods[i].Arrival; at <= c.cfg.Duration {
			c.queue.add(at, func() { c.create(i) })
		}
	}
	for _, n := range c.nodes {
		n.start()
	}
	c.queue.add(0, c.sample)
	for events := 0; ; events++ {
		if events%1024 == 0 && ctx.Err() != nil {
			break
		}
		e, ok := c.queue.next(c.cfg.Duration)
		if !ok {
			c.now = c.cfg.Duration
			break
		}
		c.now = e.at
		e.do()
	}
	c.finish()
	return c.report, ctx.Err()
}

// after adds an event.
func (c *Cluster) after(d time.Duration, do func()) { c.queue.add(c.now+d, do) }

// time returns the current time as the packages of the kubelet use it.
func (c *Cluster) time() time.Time { return epoch.Add(c.now) }

// emit passes an event to the hook.
func (c *Cluster) emit(kind EventKind, pod, node, message string) {
	c.cfg.Hooks.Event(Event{At: c.now, Kind: kind, Pod: pod, Node: node, Message: message})
}

// create creates the pod of an index of Config.Pods.
func (c *Cluster) create(index int) { c.add(index, c.cfg.Pods[index].Name) }

// replace creates the next replacement of the pod of an index. It has the name of no other
// pod, of which one of Config.Pods may be called like a replacement.
func (c *Cluster) replace(index int) {
	for {
		c.replaced[index]++
		name := fmt.Sprintf("%s.%d", c.cfg.Pods[index].Name, c.replaced[index])
		if !c.reserved[name] {
			c.reserved[name] = true
			c.add(index, name)
			return
		}
	}
}

// add creates a pod with the specification of an index of Config.Pods.
func (c *Cluster) add(index int, name string) {
	p := newPod(c, index, &c.cfg.Pods[index], name)
	c.byName[name] = p
	c.report.Pods = append(c.report.Pods, p.result)
	c.emit(PodCreated, name, "", "")
	c.sched.add(p)
}

// hash returns a number that depends on the seed and the arguments.
func (c *Cluster) hash(a, b uint64) uint64 {
	x := c.cfg.Seed
	for _, v := range [...]uint64{a, b} { // SplitMix64
		x += v + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}
