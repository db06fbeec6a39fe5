package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A Mapping maps Length IDs of a pod, from ContainerID on, to those of the
// machine from HostID on.
type Mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// Mappings are those of a pod's user namespace, as they are recorded.
type Mappings struct {
	UIDs []Mapping `json:"uidMappings"`
	GIDs []Mapping `json:"gidMappings"`
}

// Config configures an [Allocator].
type Config struct {
	// RootDir has a directory pods/<uid> per pod, which the record goes into.
	// Required.
	RootDir string

	// Range of IDs that pods get. The zero value: all above the first 65536.
	Range Range

	// PerPod is how many IDs a pod gets, a multiple of 65536. Zero: 65536.
	PerPod uint32

	// MaxPods that there are at a time, for which the range must be enough.
	// Zero: 110.
	MaxPods int
}

// An Allocator gives out blocks of IDs.
type Allocator struct {
	cfg    Config
	blocks uint32 // in the range

	mu   sync.Mutex // guards the fields below
	of   map[types.UID]uint32
	used map[uint32]types.UID
	next uint32 // where to look for a free block first
}

// New returns an Allocator for cfg, or an error if the range does not do (se-18).
// It touches no file.
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
		cfg: cfg, blocks: uint32(cfg.Range.Length / int64(cfg.PerPod)),
		of: map[types.UID]uint32{}, used: map[uint32]types.UID{},
	}, nil
}

// Load reads the records of all pods that there are (se-19). Call it once, before
// the first Allocate. An error names the file that is not valid.
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

// Allocate returns the mappings of the pod: those that it has, or new ones. It
// writes and syncs a file.
func (a *Allocator) Allocate(pod types.UID) (Mappings, error) {
	if !plainName(pod) {
		return Mappings{}, fmt.Errorf("userns: %q is not the UID of a pod", pod)
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

// Release takes the pod's IDs back. Nothing of the pod may run any more. A pod
// that has none is no error.
func (a *Allocator) Release(pod types.UID) error {
	if !plainName(pod) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.Remove(a.path(pod)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("userns: %w", err) // still its own: a restart would read it again
	}
	_ = os.Remove(a.path(pod) + checkpoint.Temporary) // of an Allocate that was cut short
	if b, ok := a.of[pod]; ok {
		delete(a.of, pod)
		delete(a.used, b)
	}
	return nil
}

// Pods returns the pods that have IDs, in no order: who cleans up releases those
// that do not exist any more.
func (a *Allocator) Pods() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	var pods []types.UID
	for pod := range a.of {
		pods = append(pods, pod)
	}
	return pods
}

// freeLocked returns a block that nobody has: the next one round, so that IDs of
// a pod that is gone are not used again at once.
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

// readLocked takes up the record of a pod. The error is fs.ErrNotExist if there
// is none.
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
		return invalid("there must be one mapping of user IDs, and the same one of group IDs")
	}
	of := m.UIDs[0]
	at := int64(of.HostID) - a.cfg.Range.First
	perPod := int64(a.cfg.PerPod)
	if of.ContainerID != 0 || of.Length != a.cfg.PerPod || at < 0 || at%perPod != 0 || at/perPod >= int64(a.blocks) {
		return invalid(fmt.Sprintf("%d IDs from %d on are not a block of the range", of.Length, of.HostID))
	}
	b := uint32(at / perPod)
	if other, taken := a.used[b]; taken && other != pod {
		return invalid(fmt.Sprintf("pod %s has the same IDs", other))
	}
	a.of[pod], a.used[b] = b, pod
	return b, nil
}

// write makes the record durable, and whole or not there.
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

// plainName reports whether a UID can be the name of a directory.
func plainName(pod types.UID) bool {
	return pod != "" && pod != "." && pod != ".." && !strings.ContainsAny(string(pod), `/\`)
}
