package stats

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Summary returns the usage of the node and its pods. Values of pods and disks are at
// most one and a half times Config.MaxAge old.
//
// With fresh, the node, its file systems and the totals of all pods are read now, and the
// values of pods are at most Config.FreshAge old, as evictions require.
//
// The error joins the values that could not be read; the summary contains the others.
// Callers must not modify the summary.
func (c *Collector) Summary(ctx context.Context, fresh bool) (*statsapi.Summary, error) {
	age := c.readersAge()
	if fresh {
		age = c.cfg.FreshAge
	} else {
		c.requested()
	}
	got, err := c.collect(ctx, age)
	if err != nil {
		return nil, err
	}
	if !fresh || time.Since(got.at) <= 0 {
		return got.summary, got.err
	}
	node, err := c.nodeNow(got.disks)
	return &statsapi.Summary{Node: node, Pods: got.summary.Pods}, errors.Join(err, got.podsErr)
}

// Node returns the usage of the node, its file systems and the totals of all pods, read now, as
// Summary does with fresh, without the pods. It calls the runtime at most once a minute.
//
// The error joins the values that could not be read; the summary contains the others. The
// caller owns the summary.
func (c *Collector) Node(ctx context.Context) (*statsapi.Summary, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("stats: %w", ctx.Err())
	}
	disks := c.disksOf(ctx, time.Now())
	<-c.turn
	node, err := c.nodeNow(disks)
	return &statsapi.Summary{Node: node, Pods: []statsapi.PodStats{}}, err
}

// nodeNow reads the values of the node and its file systems.
func (c *Collector) nodeNow(disks disks) (node statsapi.NodeStats, err error) {
	now := time.Now()
	node.NodeName, node.StartTime = c.cfg.NodeName, metav1.NewTime(c.started)
	return node, errors.Join(c.readNode(&node, now), disks.err, c.readDisks(&node, disks, now))
}

// CPUAndMemory returns the summary for ?only_cpu_and_memory=true: CPU, memory and swap
// without disks, volumes and networks. The node is read now; the pods are as old as in
// Summary. The caller owns the result.
func (c *Collector) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) {
	c.requested()
	full, err := c.collect(ctx, c.readersAge())
	if err != nil {
		return nil, err
	}
	containers := func(list []statsapi.ContainerStats) []statsapi.ContainerStats {
		var out []statsapi.ContainerStats
		for _, s := range list {
			out = append(out, statsapi.ContainerStats{Name: s.Name, StartTime: s.StartTime, CPU: s.CPU, Memory: s.Memory, Swap: s.Swap})
		}
		return out
	}
	n := full.summary.Node
	nodeErr := full.nodeErr
	if now := time.Now(); now.After(full.at) {
		nodeErr = c.readNode(&n, now)
	}
	out := &statsapi.Summary{
		Node: statsapi.NodeStats{
			NodeName: n.NodeName, StartTime: n.StartTime, CPU: n.CPU, Memory: n.Memory, Swap: n.Swap, SystemContainers: containers(n.SystemContainers),
		},
		Pods: make([]statsapi.PodStats, 0, len(full.summary.Pods)),
	}
	for _, p := range full.summary.Pods {
		out.Pods = append(out.Pods, statsapi.PodStats{
			PodRef: p.PodRef, StartTime: p.StartTime, CPU: p.CPU, Memory: p.Memory, Swap: p.Swap, Containers: containers(p.Containers),
		})
	}
	return out, errors.Join(nodeErr, full.podsErr)
}

// requested records that there is a reader of cached values.
func (c *Collector) requested() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers = c.readers.read(time.Now())
}

// due reports whether Run has to refresh the cache at a tick: a read is expected before the next one,
// and no fresh summary has just refreshed it.
func (c *Collector) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readers.expected(now, now.Add(c.cfg.MaxAge)) && (c.cached == nil || now.Sub(c.cached.at) >= c.cfg.MaxAge*9/10)
}

// Run refreshes the cache once and then, while it is read periodically at least every two minutes,
// during the Config.MaxAge before each read, until ctx is done; then it returns nil. Those readers
// do not wait for the runtime, and CPU rates are available. Fresh summaries refresh the cache too. A second call
// returns an error.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.ran.Enter("stats: Collector"); err != nil {
		return err
	}
	tick := time.NewTicker(c.cfg.MaxAge)
	defer tick.Stop()
	for due := true; ; due = c.due(time.Now()) {
		if due {
			if got, err := c.renew(ctx, 0); err == nil && got.err != nil && ctx.Err() == nil {
				c.cfg.Logger.Warn("Failed to collect all stats; will retry", "err", got.err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readersAge is the maximum age for readers. It includes the duration of Run's current
// collection.
func (c *Collector) readersAge() time.Duration { return c.cfg.MaxAge + c.cfg.MaxAge/2 }

// collect returns the cached values if they are at most age old, and otherwise collects
// new ones.
func (c *Collector) collect(ctx context.Context, age time.Duration) (*collected, error) {
	if got := c.since(time.Now().Add(-age)); got != nil {
		return got, nil
	}
	return c.renew(ctx, age)
}

// since returns the cached values if their collection started at t or later.
func (c *Collector) since(t time.Time) *collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached == nil || c.cached.at.Before(t) {
		return nil
	}
	return c.cached
}

// renew collects new values, or returns those that a concurrent call collected while it
// waited if they are at most age older than the call.
func (c *Collector) renew(ctx context.Context, age time.Duration) (*collected, error) {
	asked := time.Now()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("stats: %w", ctx.Err())
	}
	if got := c.since(asked.Add(-age)); got != nil {
		return got, nil
	}
	now := time.Now()
	got := &collected{at: now, summary: &statsapi.Summary{Pods: []statsapi.PodStats{}}}
	node := &got.summary.Node
	node.NodeName, node.StartTime = c.cfg.NodeName, metav1.NewTime(c.started)
	got.nodeErr = c.readNode(node, now)
	got.disks = c.disksOf(ctx, now)
	disksErr := c.readDisks(node, got.disks, now)
	pods, err := c.readPods(ctx, node.Fs)
	got.podsErr = err
	if c.cfg.Root == nil && err == nil {
		for i := range pods {
			sumContainers(&pods[i])
		}
		c.total.add(node, pods)
	}
	got.summary.Pods = append(got.summary.Pods, pods...)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("stats: %w", ctx.Err()) // an incomplete summary would report pods without usage
	}
	got.err = errors.Join(got.nodeErr, got.disks.err, disksErr, got.podsErr)
	c.rates.forget(now)
	c.mu.Lock()
	c.cached = got
	c.mu.Unlock()
	return got, nil
}
