package userns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A Mapping maps Length IDs in a pod, starting at ContainerID, to IDs of the host,
// starting at HostID.
type Mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// Mappings are the ID mappings of a pod's user namespace.
type Mappings struct {
	UIDs []Mapping `json:"uidMappings"`
	GIDs []Mapping `json:"gidMappings"`
}

// Config configures an [Allocator].
type Config struct {
	// RootDir is the kubelet's root directory, with a directory pods/<uid> per pod in
	// which the record is written. Required.
	RootDir string

	// Range is the range of host IDs for pods. The zero value means all IDs from
	// 65536 on. A block with the ID 2^32-1 is not allocated.
	Range Range

	// PerPod is the number of IDs per pod, a multiple of 65536. Zero means 65536.
	PerPod uint32

	// MaxPods is the maximum number of pods; the range must be large enough for
	// it. Zero means 110.
	MaxPods int
}

// An Allocator assigns blocks of IDs to pods. Safe for concurrent use.
type Allocator struct {
	cfg    Config
	blocks uint32 // number of blocks in the range

	mu      sync.Mutex // guards the fields below
	adopted map[types.UID]Mappings
	of      map[types.UID]uint32 // the block that Allocate returns
	used    map[uint32]types.UID // also blocks that a sandbox uses without a record
	next    uint32               // where the search for a free block starts
}

// New returns an Allocator for cfg. It returns an error if the range is invalid or too
// small (rule se-18). It does not access files.
func New(cfg Config) (*Allocator, error) {
	if cfg.RootDir == "" {
		return nil, errors.New("userns: Config.RootDir is empty")
	}
	if cfg.Range == (Range{}) {
		cfg.Range = Range{First: block, Length: 1<<32 - block}
	}
	if cfg.PerPod == 0 {
		cfg.PerPod = block
	}
	if cfg.MaxPods == 0 {
		cfg.MaxPods = 110
	}
	if cfg.PerPod%block != 0 {
		return nil, fmt.Errorf("userns: Config.PerPod %d is not a multiple of %d", cfg.PerPod, block)
	}
	if err := cfg.Range.check(int64(cfg.PerPod), cfg.MaxPods); err != nil {
		return nil, fmt.Errorf("userns: Config.Range: %w", err)
	}
	return &Allocator{
		cfg: cfg, blocks: uint32(cfg.Range.blocks(int64(cfg.PerPod))),
		adopted: map[types.UID]Mappings{}, of: map[types.UID]uint32{}, used: map[uint32]types.UID{},
	}, nil
}

// Load reads the records of all pods. Call it once, before the first Allocate. An error
// names the invalid file.
func (a *Allocator) Load() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	dirs, err := os.ReadDir(filepath.Join(a.cfg.RootDir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("userns: %w", err)
	}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		if _, err := a.readLocked(types.UID(d.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Allocate returns the mappings of the pod: existing ones, or new ones, which it writes
// to the pod's directory and syncs to disk. It returns an error if all blocks are in
// use.
func (a *Allocator) Allocate(pod types.UID) (Mappings, error) {
	if !plainName(pod) {
		return Mappings{}, fmt.Errorf("userns: invalid pod UID %q", pod)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.of[pod]
	if ok {
		return a.mappings(b), nil
	}
	b, err := a.readLocked(pod)
	if err == nil {
		return a.mappings(b), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Mappings{}, err
	}
	if b, err = a.freeLocked(); err != nil {
		return Mappings{}, err
	}
	if err := a.write(pod, a.mappings(b)); err != nil {
		return Mappings{}, fmt.Errorf("userns: record of pod %s: %w", pod, err)
	}
	a.of[pod], a.used[b], a.next = b, pod, b+1
	return a.mappings(b), nil
}

// Adopt keeps the IDs that a sandbox of the pod uses from other pods, and allocates them to the
// pod if it has none: its record may have been lost while the sandbox ran. Call it for each
// sandbox that the runtime reports. It returns an error if the IDs are allocated to another pod
// or the record can't be written; the next call with the same mappings returns nil.
func (a *Allocator) Adopt(pod types.UID, m Mappings) error {
	if !plainName(pod) || len(m.UIDs) == 0 {
		return fmt.Errorf("userns: pod %q: invalid UID, or no mapping of user IDs", pod)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, ok := a.of[pod]; ok && m.equal(a.mappings(b)) || m.equal(a.adopted[pod]) {
		return nil
	}
	a.adopted[pod] = m
	var conflict error
	for _, ids := range slices.Concat(m.UIDs, m.GIDs) {
		first, end := a.overlapping(ids)
		for b := first; b < end; b++ {
			if other, taken := a.used[b]; taken && other != pod {
				conflict = fmt.Errorf("userns: pod %s uses %d IDs from %d, of which some are allocated to pod %s", pod, ids.Length, ids.HostID, other)
				continue
			}
			a.used[b] = pod
		}
	}
	first, end := a.overlapping(m.UIDs[0])
	if _, has := a.of[pod]; has || first == end || a.used[first] != pod || !m.equal(a.mappings(first)) {
		return conflict
	}
	a.of[pod] = first
	if err := a.write(pod, m); err != nil {
		return fmt.Errorf("userns: record of pod %s: %w", pod, err)
	}
	return conflict
}

// overlapping returns the blocks from first to before end, which have IDs of m.
func (a *Allocator) overlapping(m Mapping) (first, end uint32) {
	perPod := int64(a.cfg.PerPod)
	from, to := int64(m.HostID)-a.cfg.Range.First, int64(m.HostID)+int64(m.Length)-a.cfg.Range.First
	if to <= 0 || m.Length == 0 {
		return 0, 0
	}
	return uint32(min(max(from, 0)/perPod, int64(a.blocks))), uint32(min((to+perPod-1)/perPod, int64(a.blocks)))
}

func (m Mappings) equal(other Mappings) bool {
	return slices.Equal(m.UIDs, other.UIDs) && slices.Equal(m.GIDs, other.GIDs)
}

// Release frees the pod's IDs. No container of the pod may be running. A pod without
// IDs is not an error.
func (a *Allocator) Release(pod types.UID) error {
	if !plainName(pod) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.Remove(a.path(pod)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("userns: %w", err) // the pod keeps its IDs, because Load would read the record
	}
	_ = os.Remove(a.path(pod) + checkpoint.Temporary) // from an interrupted Allocate
	delete(a.adopted, pod)
	delete(a.of, pod)
	maps.DeleteFunc(a.used, func(_ uint32, owner types.UID) bool { return owner == pod })
	return nil
}

// Retain releases the IDs of every pod that keep rejects; see Release. keep may call methods of a.
// It implements podworker.Retainer.
func (a *Allocator) Retain(_ context.Context, keep func(types.UID) bool) error {
	a.mu.Lock()
	owners := slices.Sorted(maps.Values(a.used))
	a.mu.Unlock()
	var errs []error
	for _, pod := range slices.DeleteFunc(slices.Compact(owners), keep) {
		errs = append(errs, a.Release(pod))
	}
	return errors.Join(errs...)
}

// freeLocked returns a free block. The search starts after the last allocated one, so
// that IDs are not reused immediately.
func (a *Allocator) freeLocked() (uint32, error) {
	for i := range a.blocks {
		b := (a.next + i) % a.blocks
		if _, taken := a.used[b]; !taken {
			return b, nil
		}
	}
	return 0, fmt.Errorf("userns: all %d blocks of IDs are in use", a.blocks)
}

func (a *Allocator) mappings(b uint32) Mappings {
	m := []Mapping{{HostID: uint32(a.cfg.Range.First + int64(b)*int64(a.cfg.PerPod)), Length: a.cfg.PerPod}}
	return Mappings{UIDs: m, GIDs: m}
}

// readLocked reads the record of a pod. The error wraps fs.ErrNotExist if there is
// none.
func (a *Allocator) readLocked(pod types.UID) (uint32, error) {
	text, err := os.ReadFile(a.path(pod))
	if err != nil {
		return 0, fmt.Errorf("userns: %w", err)
	}
	invalid := func(why string) (uint32, error) {
		return 0, fmt.Errorf("userns: %s: %s", a.path(pod), why)
	}
	var m Mappings
	if err := json.Unmarshal(text, &m); err != nil {
		return invalid(err.Error())
	}
	if len(m.UIDs) != 1 || len(m.GIDs) != 1 || m.UIDs[0] != m.GIDs[0] {
		return invalid("expected one mapping of user IDs and the same mapping of group IDs")
	}
	of := m.UIDs[0]
	if int64(of.HostID)+int64(of.Length) == 1<<32 {
		// No pod runs with it: the kernel has refused it.
		return 0, fmt.Errorf("userns: %s: the kernel does not map the ID 2^32-1: %w", a.path(pod), fs.ErrNotExist)
	}
	at := int64(of.HostID) - a.cfg.Range.First
	perPod := int64(a.cfg.PerPod)
	if of.ContainerID != 0 || of.Length != a.cfg.PerPod || at < 0 || at%perPod != 0 || at/perPod >= int64(a.blocks) {
		return invalid(fmt.Sprintf("%d IDs from %d are not a block of the range of %d IDs from %d with %d per pod, which was another one when the pod started: "+
			"restore the range (/etc/subuid and /etc/subgid of the user kubelet, userNamespaces.idsPerPod), or stop the pod and remove this file",
			of.Length, of.HostID, a.cfg.Range.Length, a.cfg.Range.First, perPod))
	}
	b := uint32(at / perPod)
	if other, taken := a.used[b]; taken && other != pod {
		return invalid(fmt.Sprintf("IDs are in use by pod %s", other))
	}
	a.of[pod], a.used[b] = b, pod
	return b, nil
}

// write writes the record atomically and syncs it.
func (a *Allocator) write(pod types.UID, m Mappings) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := a.path(pod)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return checkpoint.Replace(path, text, 0o644)
}

func (a *Allocator) path(pod types.UID) string {
	return filepath.Join(a.cfg.RootDir, "pods", string(pod), "userns")
}

// plainName reports whether a UID is valid as the name of a directory.
func plainName(pod types.UID) bool {
	return pod != "" && pod != "." && pod != ".." && !strings.ContainsAny(string(pod), `/\`)
}
