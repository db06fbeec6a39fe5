package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrReadOnly is returned if cgroups can be read but not changed.
var ErrReadOnly = errors.New("cgroups: read-only")

// A Tree contains cgroups in memory, for tests on any machine. Like the kernel it has
// files with rounded values, processes and usage. Use NewTree; the zero value is not
// usable. Safe for concurrent use.
type Tree struct {
	facts Facts

	// mu guards the fields below.
	mu     sync.Mutex
	groups map[string]*group
	fault  func(op string, name Name) error
	writes int
}

type group struct {
	has   Resources
	pids  []int
	stuck bool
	stats Stats
}

// NewTree returns a tree that contains only the root.
func NewTree(f Facts) *Tree {
	return &Tree{facts: f, groups: map[string]*group{"/": {}}}
}

// Facts returns the features of the tree.
func (t *Tree) Facts() Facts { return t.facts }

// Apply creates the cgroup and its ancestors, and sets r.
func (t *Tree) Apply(ctx context.Context, name Name, r Resources) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("apply", name); err != nil {
		return err
	}
	for i := range name {
		if above := name[:i+1]; t.groups[above.String()] == nil {
			t.groups[above.String()] = &group{has: t.fresh()}
		}
	}
	g := t.groups[name.String()]
	if g.stats.Memory != nil && r.Memory != nil && *r.Memory >= 0 && t.facts.Version == 1 && uint64(*r.Memory) < g.stats.Memory.Usage {
		return fmt.Errorf("cgroups: set memory limit of %s: device or resource busy", name)
	}
	g.has = t.facts.AsRead(r).Or(g.has)
	t.writes++
	return nil
}

// fresh returns the resources of a new cgroup.
func (t *Tree) fresh() Resources {
	r := Resources{CPUQuota: new(int64(Unlimited)), CPUPeriod: new(int64(DefaultPeriod)), Memory: new(int64(Unlimited)), Pids: new(int64(Unlimited))}
	if t.facts.Version == 2 {
		r.CPUWeight = new(int64(100))
		r.MemoryMin, r.MemoryLow, r.MemoryHigh = new(int64(0)), new(int64(0)), new(int64(Unlimited))
	} else {
		r.CPUShares = new(int64(sharesPerCPU))
	}
	return t.facts.AsRead(r)
}

// Read returns the resources of the cgroup; fs.ErrNotExist if there is no such cgroup.
func (t *Tree) Read(name Name) (Resources, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("read", name); err != nil {
		return Resources{}, err
	}
	g := t.groups[name.String()]
	if g == nil {
		return Resources{}, gone(name)
	}
	return Resources{}.Or(g.has), nil
}

// Children returns the names of the direct children, sorted; fs.ErrNotExist if there is
// no such cgroup.
func (t *Tree) Children(name Name) ([]Name, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("children", name); err != nil {
		return nil, err
	}
	if t.groups[name.String()] == nil {
		return nil, gone(name)
	}
	var out []Name
	for _, path := range slices.Sorted(maps.Keys(t.groups)) {
		if child := ParsePath(path, Cgroupfs); len(child) == len(name)+1 && slices.Equal(child.Parent(), name) {
			out = append(out, child)
		}
	}
	return out, nil
}

// Exists reports whether the cgroup exists. If the operation "exists" fails, it does.
func (t *Tree) Exists(name Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.check("exists", name) != nil || t.groups[name.String()] != nil
}

// Remove kills the processes in the cgroup and its descendants and removes these. It is
// not an error if the cgroup does not exist.
func (t *Tree) Remove(ctx context.Context, name Name) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("remove", name); err != nil {
		return err
	}
	for path, g := range t.groups {
		if below(path, name) && g.stuck && len(g.pids) > 0 {
			return fmt.Errorf("cgroups: remove %s: processes %v do not end", name, g.pids)
		}
	}
	maps.DeleteFunc(t.groups, func(path string, _ *group) bool { return below(path, name) })
	return nil
}

// Stats returns the usage that Use has set; fs.ErrNotExist if there is no such cgroup.
func (t *Tree) Stats(name Name) (Stats, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("stats", name); err != nil {
		return Stats{}, err
	}
	g := t.groups[name.String()]
	if g == nil {
		return Stats{}, gone(name)
	}
	s := g.stats
	if s.At.IsZero() {
		s.At = time.Now()
	}
	return s, nil
}

// ContainerStats returns the Stats of the child of the pod that is named after the container's ID.
func (t *Tree) ContainerStats(pod Name, id string) (Stats, error) { return t.Stats(pod.Child(id)) }

// Use sets the usage of the cgroup, which is created if necessary.
func (t *Tree) Use(name Name, s Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(name).stats = s
}

// Run adds processes to the cgroup, which is created if necessary. Stuck processes cannot
// be killed.
func (t *Tree) Run(name Name, stuck bool, pids ...int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.get(name)
	g.pids, g.stuck = append(g.pids, pids...), stuck
}

// Processes returns the processes in the cgroup and its descendants.
func (t *Tree) Processes(name Name) ([]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("processes", name); err != nil {
		return nil, err
	}
	var pids []int
	for path, g := range t.groups {
		if below(path, name) {
			pids = append(pids, g.pids...)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// CheckWritable returns the error of the operation "write".
func (t *Tree) CheckWritable(name Name) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.check("write", name)
}

// Inside reports whether the process is in the cgroup at the path, in the notation of the
// driver, or in a descendant.
func (t *Tree) Inside(path string, pid int) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		if err := t.fault("inside", ParsePath(path, t.facts.Driver)); err != nil {
			return false, err
		}
	}
	name := ParsePath(path, t.facts.Driver)
	for at, g := range t.groups {
		if slices.Contains(g.pids, pid) && below(at, name) {
			return len(name) > 0 || path == "/", nil
		}
	}
	return false, nil
}

// Strays returns the processes directly in the root.
func (t *Tree) Strays() ([]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("strays", nil); err != nil {
		return nil, err
	}
	return slices.Clone(t.groups["/"].pids), nil
}

// Move moves processes into the cgroup, which is created if necessary.
func (t *Tree) Move(ctx context.Context, name Name, pids ...int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check("move", name); err != nil {
		return err
	}
	for _, g := range t.groups {
		g.pids = slices.DeleteFunc(g.pids, func(pid int) bool { return slices.Contains(pids, pid) })
	}
	g := t.get(name)
	g.pids = append(g.pids, pids...)
	return nil
}

// Tamper changes the resources of a cgroup as another program would: Writes does not
// count it.
func (t *Tree) Tamper(name Name, r Resources) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.get(name)
	g.has = t.facts.AsRead(r).Or(g.has)
}

// Fail sets the function that decides which calls fail: "apply", "read", "children",
// "remove", "stats", "inside", "strays", "move", "processes", "write". Nil means none.
func (t *Tree) Fail(fault func(op string, name Name) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = fault
}

// Writes returns the number of successful calls of Apply.
func (t *Tree) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// String lists the cgroups with their resources, one per line, for golden files.
func (t *Tree) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t.groups)) {
		fmt.Fprintf(&b, "%s: %s\n", path, t.groups[path].has)
	}
	return b.String()
}

func (t *Tree) get(name Name) *group {
	for i := range name {
		if above := name[:i+1]; t.groups[above.String()] == nil {
			t.groups[above.String()] = &group{has: t.fresh()}
		}
	}
	return t.groups[name.String()]
}

func (t *Tree) check(op string, name Name) error {
	if err := name.Check(); err != nil {
		return err
	}
	if t.fault != nil {
		return t.fault(op, name)
	}
	return nil
}

func below(path string, name Name) bool {
	return path == name.String() || strings.HasPrefix(path, strings.TrimSuffix(name.String(), "/")+"/")
}

func gone(name Name) error { return fmt.Errorf("cgroups: %s: %w", name, fs.ErrNotExist) }
