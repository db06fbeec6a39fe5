package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	oci "github.com/opencontainers/cgroups"
	ocifs "github.com/opencontainers/cgroups/fs"
	ocifs2 "github.com/opencontainers/cgroups/fs2"
	ocisystemd "github.com/opencontainers/cgroups/systemd"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A Tree is the cgroup hierarchy of this machine. Safe for concurrent use; calls for one
// cgroup should not overlap.
type Tree struct {
	driver  cgroups.Driver
	root    string
	version int
	at      map[string]string // mounts by controller; key "" with v2
	order   []string          // the keys of at, sorted
	facts   cgroups.Facts
	sizes   []int64 // huge page sizes that can be limited
	log     *slog.Logger
}

// New returns the cgroup hierarchy of this machine. It creates no cgroups.
func New(cfg Config) (*Tree, error) {
	if cfg.Driver == "" {
		cfg.Driver = cgroups.Cgroupfs
	}
	if _, err := cgroups.ParseDriver(string(cfg.Driver)); err != nil {
		return nil, err
	}
	if cfg.Driver == cgroups.Systemd && !ocisystemd.IsRunningSystemd() {
		return nil, errors.New("host: driver systemd: systemd does not run; use cgroupfs")
	}
	version, at, err := mounts()
	if err != nil {
		return nil, err
	}
	t := &Tree{driver: cfg.Driver, root: filepath.Clean("/" + cfg.Root), version: version, at: at, order: slices.Sorted(maps.Keys(at)), log: cfg.Logger}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if err := t.readFacts(); err != nil {
		return nil, err
	}
	if t.facts.Has("hugetlb") {
		for _, size := range oci.HugePageSizes() {
			if bytes := pageSize(size); bytes > 0 {
				t.sizes = append(t.sizes, bytes)
			}
		}
	}
	return t, nil
}

// Facts returns the cgroup features of the machine.
func (t *Tree) Facts() cgroups.Facts { return t.facts }

// Apply creates the cgroup and its ancestors if necessary, and sets r. Values of missing
// controllers are omitted.
func (t *Tree) Apply(ctx context.Context, name cgroups.Name, r cgroups.Resources) error {
	if err := name.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("host: make %s: %w", name, err)
	}
	res := t.resources(t.facts.Only(r))
	m, err := t.manager(name, res)
	if err != nil {
		return fmt.Errorf("host: make %s: %w", name, err)
	}
	if !t.exists(name) {
		if err := m.Apply(-1); err != nil {
			return fmt.Errorf("host: make %s: %w", name, explain(err))
		}
	}
	if err := m.Set(res); err != nil {
		return fmt.Errorf("host: set limits of %s: %w", name, explain(err))
	}
	return nil
}

// Read returns the resources of the cgroup. It returns fs.ErrNotExist if the cgroup does
// not exist or lacks a needed controller that the machine has.
func (t *Tree) Read(name cgroups.Name) (cgroups.Resources, error) {
	if err := name.Check(); err != nil {
		return cgroups.Resources{}, err
	}
	if !t.exists(name) {
		return cgroups.Resources{}, fmt.Errorf("host: %s: %w", name, fs.ErrNotExist)
	}
	r, err := t.facts.Read(t.sizes, t.files(name))
	if err != nil {
		return r, fmt.Errorf("host: read %s: %w", name, err)
	}
	return r, nil
}

// Stats returns the usage of the cgroup; fs.ErrNotExist if it does not exist.
func (t *Tree) Stats(name cgroups.Name) (cgroups.Stats, error) {
	if err := name.Check(); err != nil {
		return cgroups.Stats{}, err
	}
	s, err := cgroups.ReadStats(t.version, time.Now(), t.files(name))
	if err != nil {
		return s, fmt.Errorf("host: stats of %s: %w", name, err)
	}
	return s, nil
}

// ContainerStats returns the usage of a container in the pod's cgroup: that of the cgroup
// named like the container's ID, or of the systemd scope "cri-containerd-ID.scope" or
// "crio-ID.scope". It returns fs.ErrNotExist if there is none.
func (t *Tree) ContainerStats(pod cgroups.Name, id string) (cgroups.Stats, error) {
	if err := pod.Check(); err != nil {
		return cgroups.Stats{}, err
	}
	name := id
	if t.driver == cgroups.Systemd {
		name = ""
		entries, err := os.ReadDir(t.dir(t.lead(), pod))
		if err != nil {
			return cgroups.Stats{}, fmt.Errorf("host: list %s: %w", pod, explain(err))
		}
		for _, e := range entries {
			if e.IsDir() && isScopeOf(e.Name(), id) {
				name = e.Name()
			}
		}
	}
	if name == "" || strings.Contains(id, "/") {
		return cgroups.Stats{}, fmt.Errorf("host: container %q in %s: %w", id, pod, fs.ErrNotExist)
	}
	s, err := cgroups.ReadStats(t.version, time.Now(), t.filesBelow(pod, name))
	if err != nil {
		return s, fmt.Errorf("host: stats of container %q in %s: %w", id, pod, err)
	}
	return s, nil
}

// isScopeOf reports whether name is the name of a container's cgroup.
func isScopeOf(name, id string) bool {
	if name == id {
		return true
	}
	scope, ok := strings.CutSuffix(name, ".scope")
	return ok && id != "" && (scope == id || strings.HasSuffix(scope, "-"+id))
}

// Children returns the direct children, sorted. Those that are not named in the notation
// of the driver are omitted.
func (t *Tree) Children(name cgroups.Name) ([]cgroups.Name, error) {
	entries, err := os.ReadDir(t.dir(t.lead(), name))
	if err != nil {
		return nil, fmt.Errorf("host: list %s: %w", name, explain(err))
	}
	var out []cgroups.Name
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		child := name.Child(e.Name())
		if t.driver == cgroups.Systemd {
			child = cgroups.ParsePath(e.Name(), t.driver)
			if len(child) != len(name)+1 {
				continue // a scope, a service
			}
		}
		out = append(out, child)
	}
	return out, nil
}

// Exists reports whether the cgroup exists, in one hierarchy with version 1. One that cannot be
// accessed counts as existing.
func (t *Tree) Exists(name cgroups.Name) bool {
	_, err := os.Lstat(t.dir(t.lead(), name))
	return !errors.Is(err, fs.ErrNotExist)
}

// dir returns the directory of the cgroup in the hierarchy of a controller.
func (t *Tree) dir(controller string, name cgroups.Name) string {
	if t.version == 2 {
		controller = ""
	}
	return filepath.Join(t.at[controller], t.root, name.Path(t.driver))
}

// lead returns the hierarchy that is read where one is sufficient.
func (t *Tree) lead() string {
	for _, controller := range []string{"memory", "pids", "cpu", "systemd"} {
		if t.at[controller] != "" {
			return controller
		}
	}
	return t.order[0]
}

func (t *Tree) files(name cgroups.Name) cgroups.Files { return t.filesBelow(name, "") }

// filesBelow returns the files of a cgroup or of a directory in it.
func (t *Tree) filesBelow(name cgroups.Name, below string) cgroups.Files {
	return func(controller, file string) ([]byte, error) {
		if t.version == 1 && t.at[controller] == "" {
			return nil, fs.ErrNotExist
		}
		text, err := os.ReadFile(filepath.Join(t.dir(controller, name), below, file))
		return text, explain(err)
	}
}

// exists reports whether the cgroup exists with all needed controllers.
func (t *Tree) exists(name cgroups.Name) bool {
	if t.version == 2 {
		text, err := os.ReadFile(filepath.Join(t.dir("", name), "cgroup.controllers"))
		if err != nil {
			return false
		}
		has := strings.Fields(string(text))
		return !slices.ContainsFunc(t.facts.Needed(), func(c string) bool {
			// Systemd removes cpuset from slices that do not use it. Containers have it
			// nonetheless, because their scopes are delegated.
			given := c == "cpuset" && t.driver == cgroups.Systemd
			return t.facts.Has(c) && !slices.Contains(has, c) && !given
		})
	}
	for _, controller := range append(t.facts.Needed(), "hugetlb") {
		if t.at[controller] == "" {
			continue
		}
		if _, err := os.Stat(t.dir(controller, name)); err != nil {
			return false
		}
	}
	return true
}

// manager returns the library's manager of the cgroup.
func (t *Tree) manager(name cgroups.Name, res *oci.Resources) (oci.Manager, error) {
	cg := &oci.Cgroup{Resources: res}
	if t.driver == cgroups.Systemd && len(name) > 0 {
		cg.Systemd, cg.Name, cg.Parent = true, name.Slice(), name.Parent().Slice() // a unit, not a path
		if t.version == 2 {
			return ocisystemd.NewUnifiedManager(cg, t.dir("", name))
		}
		return ocisystemd.NewLegacyManager(cg, t.paths(name))
	}
	if t.version == 2 {
		return ocifs2.NewManager(cg, t.dir("", name))
	}
	return ocifs.NewManager(cg, t.paths(name))
}

// scope returns the library's manager of a systemd scope.
func (t *Tree) scope(cg *oci.Cgroup) (oci.Manager, error) {
	if t.version == 2 {
		return ocisystemd.NewUnifiedManager(cg, "")
	}
	return ocisystemd.NewLegacyManager(cg, nil)
}

// paths returns the directories of the cgroup by the library's names of hierarchies.
func (t *Tree) paths(name cgroups.Name) map[string]string {
	paths := make(map[string]string, len(t.order))
	for _, controller := range t.order {
		paths[ociName(controller)] = t.dir(controller, name)
	}
	return paths
}

// resources converts r into the library's type.
func (t *Tree) resources(r cgroups.Resources) *oci.Resources {
	value := func(v *int64) int64 {
		if v == nil {
			return 0
		}
		return *v
	}
	out := &oci.Resources{
		SkipDevices: true, SkipFreezeOnSet: true, // cm-10
		CpuQuota: value(r.CPUQuota), CpuPeriod: uint64(value(r.CPUPeriod)), Memory: value(r.Memory), PidsLimit: r.Pids,
		CpusetCpus: r.CPUs,
	}
	if t.version == 1 {
		out.CpuShares = uint64(value(r.CPUShares))
	} else {
		for _, s := range t.facts.Settings(cgroups.Resources{CPUShares: r.CPUShares, CPUWeight: r.CPUWeight}) {
			out.CpuWeight, _ = strconv.ParseUint(s.Value, 10, 64)
		}
		for _, s := range t.facts.Settings(cgroups.Resources{MemoryMin: r.MemoryMin, MemoryLow: r.MemoryLow, MemoryHigh: r.MemoryHigh}) {
			if out.Unified == nil {
				out.Unified = map[string]string{}
			}
			out.Unified[s.File] = s.Value
		}
	}
	for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
		if slices.Contains(t.sizes, size) {
			limit := r.HugePages[size]
			if limit < 0 {
				limit = 1 << 62 // cm-17
			}
			out.HugetlbLimit = append(out.HugetlbLimit, &oci.HugepageLimit{Pagesize: cgroups.PageSizeName(size), Limit: uint64(limit)})
		}
	}
	return out
}

// pageSize is the inverse of cgroups.PageSizeName; 0 if name is invalid.
func pageSize(name string) int64 {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if number, ok := strings.CutSuffix(name, unit.name); ok {
			n, _ := strconv.ParseInt(number, 10, 32)
			return n * unit.size
		}
	}
	return 0
}

// explain wraps kernel errors in the errors that callers test for.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENODEV): // the cgroup was removed while its file was open
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", err, cgroups.ErrReadOnly)
	}
	return err
}
