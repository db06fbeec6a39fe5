package eviction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime"
)

// A world is a node in memory: its capacity, the usage of its pods, and a Manager over
// it. The usage of a pod ends when it terminates.
type world struct {
	mu    sync.Mutex
	began time.Time
	trace []string

	// Amounts by signal: the capacity, and the usage that is not of pods.
	capacity, other map[eviction.Signal]int64
	missing         map[eviction.Signal]bool
	cache           int64 // of the memory that is used
	measured        time.Time
	stale           bool          // measurements are not repeated
	summary         bool          // there is a summary
	silentAfter     bool          // there is none after the next one
	broken          bool          // a part of it is missing
	lag             time.Duration // for which a measurement is cached
	cached          *statsapi.Summary
	block           chan struct{} // kills wait for it
	pods            []*worldPod
	yields          map[string]map[eviction.Signal]int64 // the amount that a step frees, once
	failStep        map[string]bool
	takes           map[string]time.Duration
	layout          eviction.Layout
	noDisks         bool          // Config.Disks is nil
	noDevices       error         // of Devices
	late            time.Duration // how long terminated pods keep their resources
	alone           bool          // pods are measured only if they are needed
	config          eviction.Config
}

type worldPod struct {
	*v1.Pod
	stats     bool
	uses      map[eviction.Signal]int64
	volumes   map[string]int64
	logs      map[string]int64
	rootfs    map[string]int64
	total     *int64
	unkilled  bool // a kill fails
	ended     bool
	endedAt   time.Time
	imageSize int64
	spare     spare
}

func newWorld() *world {
	return &world{
		began: time.Now(), capacity: map[eviction.Signal]int64{}, other: map[eviction.Signal]int64{},
		missing: map[eviction.Signal]bool{}, yields: map[string]map[eviction.Signal]int64{},
		failStep: map[string]bool{}, takes: map[string]time.Duration{}, summary: true,
	}
}

func (w *world) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, line)
}

func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.trace
	w.trace = nil
	slices.SortStableFunc(lines, func(a, b string) int { // pods that are evicted concurrently
		if strings.HasPrefix(a, "evicted") && strings.HasPrefix(b, "evicted") {
			return strings.Compare(a, b)
		}
		return 0
	})
	return lines
}

func (w *world) manager() (*eviction.Manager, error) { return eviction.New(w.configured()) }

func (w *world) configured() eviction.Config {
	cfg := w.config
	cfg.Summary, cfg.Pods = w.measure, worldPods{w}
	if !w.noDisks {
		cfg.Disks = worldDisks{w}
	}
	cfg.Policy.Spare = func(pod *v1.Pod) (string, bool) {
		s := w.find(pod.Name).spare
		return s.Reason, s.Absolute
	}
	cfg.Node = v1.ObjectReference{Kind: "Node", Name: "node"}
	cfg.Record = func(e runtime.Event) {
		if e.Object.Kind == "Node" {
			w.note("event of the node: " + e.Reason + ": " + e.Message)
		}
	}
	var conditions []v1.NodeConditionType
	cfg.Hooks = cfg.Hooks.Join(eviction.Hooks{Planned: func(p *eviction.Plan) {
		for _, o := range p.Invalid {
			w.note("ignored: " + string(o.Signal) + ": " + o.Err.Error())
		}
		if !slices.Equal(conditions, p.Conditions) {
			conditions = p.Conditions
			w.note(fmt.Sprintf("conditions: %v", conditions))
		}
	}})
	return cfg
}

type worldPods struct{ w *world }

func (p worldPods) Running() []*v1.Pod                                 { return p.w.active() }
func (p worldPods) Evict(ctx context.Context, v eviction.Victim) error { return p.w.kill(ctx, v) }
func (p worldPods) Cleaned(uid types.UID) bool                         { return p.w.cleaned(uid) }

type worldDisks struct{ w *world }

func (d worldDisks) Devices(context.Context) (root, images, layers string, err error) {
	root, images, layers = d.w.layout.Devices()
	return root, images, layers, d.w.noDevices
}

func (d worldDisks) ImageBytes(_ context.Context, pod *v1.Pod) int64 {
	return d.w.find(pod.Name).imageSize
}

func (d worldDisks) DeleteUnusedContainers(context.Context) error {
	return d.w.step(eviction.DeleteUnusedContainers)
}

func (d worldDisks) DeleteUnusedImages(context.Context) error {
	return d.w.step(eviction.DeleteUnusedImages)
}

func (w *world) step(s string) error {
	w.note("step: " + string(s))
	time.Sleep(w.takes[s])
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failStep[s] {
		return errors.New("it fails")
	}
	for signal, n := range w.yields[s] {
		w.other[signal] -= n
	}
	delete(w.yields, s)
	return nil
}

func (w *world) find(name string) *worldPod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.pods, func(p *worldPod) bool { return p.Name == name }); i >= 0 {
		return w.pods[i]
	}
	return nil
}

func (w *world) active() (pods []*v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if !p.ended {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

func (w *world) kill(_ context.Context, e eviction.Victim) error {
	if w.block != nil {
		<-w.block
	}
	p := w.find(e.Pod.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.unkilled {
		w.trace = append(w.trace, "kill of "+p.Name+" fails")
		return errors.New("it does not end")
	}
	p.ended, p.endedAt = true, time.Now()
	line := "evicted " + p.Name + " for " + e.Signal + ", grace " + (time.Duration(e.GracePeriodSeconds) * time.Second).String() + ": " + strings.TrimSpace(e.Message)
	if !e.Disruption {
		line += " (no disruption)"
	}
	w.trace = append(w.trace, line)
	return nil
}

func (w *world) cleaned(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pods, func(p *worldPod) bool { return p.UID == uid })
	return w.goneLocked(w.pods[i])
}

func (w *world) goneLocked(p *worldPod) bool { return p.ended && time.Since(p.endedAt) >= w.late }

// usedLocked is the usage of a signal by pods and others.
func (w *world) usedLocked(s eviction.Signal) int64 {
	s = w.alias(s)
	n := w.other[s]
	if s == eviction.AllocatableMemoryAvailable {
		s = eviction.MemoryAvailable
	}
	for _, p := range w.pods {
		if !w.goneLocked(p) {
			n += p.uses[s]
		}
	}
	return n
}

// alias is the signal of the file system that s belongs to.
func (w *world) alias(s eviction.Signal) eviction.Signal {
	fs, what, ok := strings.Cut(string(s), "fs.")
	switch {
	case !ok:
		return s
	case w.layout == eviction.SingleFS, w.layout == eviction.SplitImageFS && fs == "container":
		return eviction.Signal("nodefs." + what)
	case fs == "container":
		return eviction.Signal("imagefs." + what)
	default:
		return s
	}
}

func (w *world) measure(_ context.Context, pods bool) (*statsapi.Summary, error) {
	full, err := w.measureAll()
	if full == nil || pods || !w.alone {
		return full, err
	}
	return &statsapi.Summary{Node: full.Node}, err
}

func (w *world) measureAll() (*statsapi.Summary, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.summary {
		return nil, errors.New("no response")
	}
	w.summary = !w.silentAfter
	if w.measured.IsZero() || !w.stale && time.Since(w.measured) >= w.lag {
		w.measured = time.Now()
		w.cached = nil
	}
	if w.lag > 0 && w.cached != nil {
		return w.cached, nil
	}
	at := metav1.NewTime(w.measured)
	has := func(s eviction.Signal) bool {
		_, ok := w.capacity[w.alias(s)]
		return ok && !w.missing[w.alias(s)]
	}
	u := func(n int64) *uint64 { v := uint64(n); return &v }
	memory := func(s eviction.Signal) *statsapi.MemoryStats {
		if !has(s) {
			return nil
		}
		used := w.usedLocked(s)
		return &statsapi.MemoryStats{Time: at, AvailableBytes: u(w.capacity[s] - used), WorkingSetBytes: u(used), UsageBytes: u(used + w.cache)}
	}
	fs := func(bytes, inodes eviction.Signal) *statsapi.FsStats {
		f := &statsapi.FsStats{Time: at}
		if has(bytes) {
			f.AvailableBytes, f.CapacityBytes = u(w.capacity[w.alias(bytes)]-w.usedLocked(bytes)), u(w.capacity[w.alias(bytes)])
		}
		if has(inodes) {
			f.InodesFree, f.Inodes = u(w.capacity[w.alias(inodes)]-w.usedLocked(inodes)), u(w.capacity[w.alias(inodes)])
		}
		return f
	}
	sum := &statsapi.Summary{Node: statsapi.NodeStats{Memory: memory(eviction.MemoryAvailable), Fs: fs(eviction.NodeFSAvailable, eviction.NodeFSInodesFree)}}
	sum.Node.Runtime = &statsapi.RuntimeStats{
		ImageFs:     fs(eviction.ImageFSAvailable, eviction.ImageFSInodesFree),
		ContainerFs: fs(eviction.ContainerFSAvailable, eviction.ContainerFSInodesFree),
	}
	if m := memory(eviction.AllocatableMemoryAvailable); m != nil {
		sum.Node.SystemContainers = []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods, Memory: m}}
	}
	if s := eviction.PIDAvailable; has(s) {
		most, running := w.capacity[s], w.usedLocked(s)
		sum.Node.Rlimit = &statsapi.RlimitStats{Time: at, MaxPID: &most, NumOfRunningProcesses: &running}
	}
	for _, p := range w.pods {
		if p.stats && !w.goneLocked(p) {
			sum.Pods = append(sum.Pods, p.measured(at))
		}
	}
	w.cached = sum
	if w.broken {
		return sum, errors.New("a part of it is missing")
	}
	return sum, nil
}

func (p *worldPod) measured(at metav1.Time) statsapi.PodStats {
	u := func(n int64) *uint64 { v := uint64(n); return &v }
	s := statsapi.PodStats{PodRef: statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)}}
	memory := p.uses[eviction.MemoryAvailable]
	s.Memory = &statsapi.MemoryStats{Time: at, WorkingSetBytes: u(memory)}
	s.ProcessStats = &statsapi.ProcessStats{ProcessCount: u(p.uses[eviction.PIDAvailable])}
	disk := p.uses[eviction.NodeFSAvailable] + p.uses[eviction.ImageFSAvailable]
	inodes := p.uses[eviction.NodeFSInodesFree] + p.uses[eviction.ImageFSInodesFree]
	for i, c := range p.Spec.Containers {
		stats := statsapi.ContainerStats{
			Name: c.Name, Memory: &statsapi.MemoryStats{WorkingSetBytes: u(0)},
			Rootfs: &statsapi.FsStats{UsedBytes: u(p.rootfs[c.Name]), InodesUsed: u(0)}, Logs: &statsapi.FsStats{UsedBytes: u(p.logs[c.Name]), InodesUsed: u(0)},
		}
		if i == 0 {
			stats.Memory.WorkingSetBytes = u(memory)
			*stats.Rootfs.UsedBytes += uint64(disk)
			stats.Rootfs.InodesUsed = u(inodes)
		}
		s.Containers = append(s.Containers, stats)
	}
	for _, v := range p.Spec.Volumes {
		if n, ok := p.volumes[v.Name]; ok {
			s.VolumeStats = append(s.VolumeStats, statsapi.VolumeStats{Name: v.Name, FsStats: statsapi.FsStats{UsedBytes: u(n)}})
		}
	}
	if p.total != nil {
		s.EphemeralStorage = &statsapi.FsStats{UsedBytes: u(*p.total)}
	}
	return s
}

// podOf returns a pod of that name, with one container.
func podOf(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name + "-uid")},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
}

func quantities(list v1.ResourceList, name v1.ResourceName, q resource.Quantity) v1.ResourceList {
	if list == nil {
		list = v1.ResourceList{}
	}
	list[name] = q
	return list
}
