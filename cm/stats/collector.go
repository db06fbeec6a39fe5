package stats

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Summary returns what the node and its pods use. What it has of pods and disks is
// no older than Config.MaxAge, and half of that while Run renews it. With fresh the node's own numbers and those of all pods
// together are read now (st-4): an eviction is decided by them.
//
// The error joins what could not be had; the summary has the rest.
func (c *Collector) Summary(ctx context.Context, fresh bool) (*statsapi.Summary, error) {
	got, err := c.collect(ctx)
	if err != nil {
		return nil, err
	}
	if !fresh || time.Since(got.at) <= 0 {
		return got.summary, got.err
	}
	node := got.summary.Node
	c.readNode(&node, time.Now())
	return &statsapi.Summary{Node: node, Pods: got.summary.Pods}, got.err
}

// CPUAndMemory returns what ?only_cpu_and_memory=true shows: CPU, memory and swap,
// no disks, volumes, networks (st-3). The caller owns it.
func (c *Collector) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) {
	full, err := c.Summary(ctx, true)
	if full == nil {
		return nil, err
	}
	containers := func(list []statsapi.ContainerStats) []statsapi.ContainerStats {
		var out []statsapi.ContainerStats
		for _, s := range list {
			out = append(out, statsapi.ContainerStats{Name: s.Name, StartTime: s.StartTime, CPU: s.CPU, Memory: s.Memory, Swap: s.Swap})
		}
		return out
	}
	n := full.Node
	out := &statsapi.Summary{
		Node: statsapi.NodeStats{
			NodeName: n.NodeName, StartTime: n.StartTime, CPU: n.CPU, Memory: n.Memory, Swap: n.Swap, SystemContainers: containers(n.SystemContainers),
		},
		Pods: make([]statsapi.PodStats, 0, len(full.Pods)),
	}
	for _, p := range full.Pods {
		out.Pods = append(out.Pods, statsapi.PodStats{
			PodRef: p.PodRef, StartTime: p.StartTime, CPU: p.CPU, Memory: p.Memory, Swap: p.Swap, Containers: containers(p.Containers),
		})
	}
	return out, err
}

// Run keeps the cache warm until ctx ends, and returns nil: readers then don't wait
// for the runtime, and rates are there (st-6).
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(c.cfg.MaxAge)
	defer tick.Stop()
	for {
		if got, err := c.renew(ctx, true); err == nil && got.err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("stats are not complete", "err", got.err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// collect returns what is cached, if it is young enough, or collects anew.
func (c *Collector) collect(ctx context.Context) (*collected, error) {
	if got := c.young(); got != nil {
		return got, nil
	}
	return c.renew(ctx, false)
}

// young allows for the pass of Run that is under way when the last one's numbers
// reach their age.
func (c *Collector) young() *collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached == nil || time.Since(c.cached.at) > c.cfg.MaxAge+c.cfg.MaxAge/2 {
		return nil
	}
	return c.cached
}

// renew collects, or takes what somebody else has collected while it waited: with
// anyway only if that was begun later.
func (c *Collector) renew(ctx context.Context, anyway bool) (*collected, error) {
	asked := time.Now()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("stats: %w", ctx.Err())
	}
	if got := c.young(); got != nil && (!anyway || got.at.After(asked)) {
		return got, nil
	}
	now := time.Now()
	got := &collected{at: now, summary: &statsapi.Summary{Pods: []statsapi.PodStats{}}}
	node := &got.summary.Node
	node.NodeName, node.StartTime = c.cfg.NodeName, metav1.NewTime(c.started)
	nodeErr := c.readNode(node, now)
	disks := c.readDisks(ctx, node, now)
	pods, podsErr := c.readPods(ctx, node.Fs)
	got.summary.Pods = append(got.summary.Pods, pods...)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("stats: %w", ctx.Err()) // half a summary reads as pods that use nothing
	}
	got.err = errors.Join(nodeErr, disks, podsErr)
	c.rates.forget(now)
	c.mu.Lock()
	c.cached = got
	c.mu.Unlock()
	return got, nil
}
