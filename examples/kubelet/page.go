package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	pages "github.com/kubeparts/kubeparts/examples/kubelet/page"
	"github.com/kubeparts/kubeparts/imagegc"
)

// A people is what the page for people is filled from.
type people struct {
	*assembly
	g       ground
	k       knowledge
	c       care
	checks  []check
	started time.Time

	// Of the last look at the images, which takes the runtime some work. The page
	// asks for one Node at a time.
	images   pages.Images
	imagesAt time.Time
}

// forPeople makes the page of what runs here now.
func (a *assembly) forPeople(g ground, k knowledge, c care, checks []check) (page, error) {
	p := &people{assembly: a, g: g, k: k, c: c, checks: checks, started: time.Now()}
	h, err := pages.New(pages.Config{Node: p.node})
	if err != nil {
		return page{}, err
	}
	return page{"/", h.ServeHTTP}, nil
}

// How long the page waits for what others have to measure.
const (
	pageWait    = 2 * time.Second
	imagesFresh = 10 * time.Second
)

// node is what runs here now. What can't be had in time is left out, and said.
func (p *people) node(ctx context.Context) pages.Node {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	n := pages.Node{
		Name: p.opts.nodeName, Runtime: p.g.rt.name, At: time.Now(), Started: p.started, Agent: ownMemory(),
	}
	for _, c := range p.checks {
		shown := pages.Check{Name: c.name}
		if err := c.ask(); err != nil {
			shown.Err = err.Error()
		}
		n.Checks = append(n.Checks, shown)
	}
	for _, c := range p.g.evictions.Conditions() {
		n.Conditions = append(n.Conditions, string(c))
	}
	used := map[string]statsapi.PodStats{}
	switch summary, err := p.g.usage.Summary(ctx, false); {
	case summary != nil:
		for _, s := range summary.Pods {
			used[s.PodRef.UID] = s
		}
	case err != nil:
		n.Problems = append(n.Problems, "What pods use is not known: "+err.Error())
	}
	hiders := map[string]func(string) string{} // by UID
	for _, s := range p.pods.workers.States() {
		pod := p.podOf(s, used)
		if pod == nil {
			continue
		}
		if s.Pod != nil {
			hide := hiderOf(s.Pod)
			hiders[pod.UID], *pod = hide, mapText(*pod, hide)
		}
		n.Pods = append(n.Pods, *pod)
	}
	var unseen error
	if n.Events, n.Signals, unseen = p.seen.history(); unseen != nil {
		n.Problems = append(n.Problems, "What is left of the node could not be measured: "+unseen.Error())
	}
	for i := range n.Events {
		if hide := hiders[n.Events[i].UID]; hide != nil {
			n.Events[i].Message = hide(n.Events[i].Message)
		}
	}
	n.Images = p.imagesOf(ctx, n.At)
	return n
}

// imagesOf is what a collection of images would do now.
func (p *people) imagesOf(ctx context.Context, now time.Time) pages.Images {
	if p.g.images == nil {
		return pages.Images{None: "Pods are plain processes here, and programs those of this machine: there are no images."}
	}
	if !p.imagesAt.IsZero() && now.Sub(p.imagesAt) < imagesFresh {
		return p.images
	}
	plan, err := p.g.images.gc.DryRun(ctx)
	if err != nil {
		return pages.Images{None: "What becomes of images is not known: " + err.Error()}
	}
	p.images, p.imagesAt = imagesShown(plan, imagePolicy(&p.opts.kubelet, nil)), now
	return p.images
}

// imagesShown puts a plan of the images in words.
func imagesShown(plan imagegc.Plan, policy imagegc.Policy) pages.Images {
	var out pages.Images
	goes := 0
	for _, d := range plan.Decisions {
		i := pages.Image{Name: d.Record.Image.ID, Bytes: d.Record.Image.Size, Goes: d.Goes, Verdict: string(d.Verdict), Why: d.Why}
		if names := slices.Concat(d.Record.Image.Tags, d.Record.Image.Digests); len(names) > 0 {
			i.Name = names[0]
		}
		if d.Goes {
			goes++
		}
		out.Bytes += i.Bytes
		out.List = append(out.List, i)
	}
	high, low := int32(imagegc.DefaultHighPercent), int32(imagegc.DefaultLowPercent)
	if policy.HighPercent != nil {
		high = *policy.HighPercent
	}
	if policy.LowPercent != nil {
		low = *policy.LowPercent
	}
	out.Disk = fmt.Sprintf("The disk of the images is %d %% full; from %d %% on images go, until it is %d %%.", plan.UsagePercent, high, low)
	if high >= 100 {
		out.Disk = fmt.Sprintf("The disk of the images is %d %% full, which is no reason to remove any.", plan.UsagePercent)
	}
	switch goes {
	case 0:
		out.Goes = "None would go now."
	case 1:
		out.Goes = "One would go now."
	default:
		out.Goes = fmt.Sprintf("%d would go now.", goes)
	}
	return out
}

// ownMemory says how much memory this process has; "" where that is not told.
func ownMemory() string {
	statm, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(statm)); err == nil && len(fields) > 1 {
		if resident, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return fmt.Sprintf("%d MiB of memory", resident*int64(os.Getpagesize())>>20)
		}
	}
	return ""
}

// usedBy is what the volumes of a pod hold, by the pod's names of them.
func (p *people) usedBy(uid types.UID) map[string]*uint64 {
	used := map[string]*uint64{}
	for _, s := range p.g.volumes.Stats(uid) {
		used[s.Name] = s.UsedBytes
	}
	return used
}

// volumesOf are the volumes of a pod.
func (p *people) volumesOf(uid types.UID) (all []pages.Volume) {
	used := p.usedBy(uid)
	for _, h := range p.g.volumes.Held(uid) {
		v := pages.Volume{
			Name: cmp.Or(strings.Join(h.Names, ", "), h.Place.Name), Kind: h.Place.Plugin[strings.LastIndexByte(h.Place.Plugin, '/')+1:],
			State: h.State.String(), Path: h.Path, Doing: h.Doing, Err: h.Err, RetryAt: h.RetryAt, Since: h.Since,
		}
		if !h.Wanted {
			v.State += ", to be removed"
		}
		for _, name := range h.Names {
			if v.Used == nil {
				v.Used = used[name]
			}
		}
		all = append(all, v)
	}
	return all
}
