package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// ledgerDir is the directory of a Ledger below the root directory.
const ledgerDir = "owned_pods"

// LedgerConfig configures a [Ledger].
type LedgerConfig struct {
	// RootDir is the root directory of the node: Dirs.Root. Required.
	RootDir string

	// Runtime lists the containers that mount files of RootDir. If nil, only RootDir
	// is read.
	Runtime internalapi.RuntimeService

	// Exclusive reports that every pod of Runtime belongs to this node.
	Exclusive bool

	// Logger gets containers whose status cannot be read, at the debug level. If nil,
	// they are not logged.
	Logger *slog.Logger
}

// A Ledger records which pods belong to a node, so that the node removes nothing of another
// one that shares its runtime, its directory of logs or its cgroups. A pod belongs to the
// node if its directory in the root directory exists when the ledger is opened, if one of
// its containers mounts files of that directory, or if Own was called for it, by this
// process or an earlier one with the same root directory. Pods of a kubelet with the same
// root directory therefore belong to the node.
//
// The nil *Ledger contains every pod. Safe for concurrent use.
type Ledger struct {
	dir string

	// mu guards the fields below.
	mu   sync.Mutex
	pods map[types.UID]*ledgerEntry
}

type ledgerEntry struct {
	owned int  // the number of calls of Own
	gone  bool // the last call of Prune has found that nothing of the pod exists
}

// OpenLedger reads the ledger of a node and adds the pods that an earlier kubelet has
// started. It returns an error if the root directory cannot be read or written, or if the
// runtime does not list its containers.
func OpenLedger(ctx context.Context, cfg LedgerConfig) (*Ledger, error) {
	if cfg.RootDir == "" {
		return nil, errors.New("cri: LedgerConfig.RootDir is empty")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	root, err := filepath.Abs(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("cri: LedgerConfig.RootDir: %w", err)
	}
	l := &Ledger{dir: filepath.Join(root, ledgerDir), pods: map[types.UID]*ledgerEntry{}}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cri: ledger of pods: %w", err)
	}
	recorded, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("cri: ledger of pods: %w", err)
	}
	for _, e := range recorded {
		l.pods[types.UID(e.Name())] = new(ledgerEntry)
	}
	dirs, err := os.ReadDir(filepath.Join(root, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cri: ledger of pods: %w", err)
	}
	var found []types.UID
	for _, e := range dirs {
		if e.IsDir() {
			found = append(found, types.UID(e.Name()))
		}
	}
	if cfg.Runtime != nil {
		running, err := l.inRuntime(logs.Context(ctx, cfg.Logger), cfg, root)
		if err != nil {
			return nil, err
		}
		found = append(found, running...)
	}
	for _, uid := range found {
		if !l.Owns(uid) {
			if err := l.Own(uid); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// inRuntime returns the pods of the runtime that belong to the node.
func (l *Ledger) inRuntime(ctx context.Context, cfg LedgerConfig, root string) ([]types.UID, error) {
	if cfg.Exclusive {
		sandboxes, err := cfg.Runtime.ListPodSandbox(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("cri: list sandboxes: %w", err)
		}
		var uids []types.UID
		for _, s := range sandboxes {
			if uid := s.GetMetadata().GetUid(); isPathElement(uid) {
				uids = append(uids, types.UID(uid))
			}
		}
		return uids, nil
	}
	roots := []string{root}
	if resolved, err := filepath.EvalSymlinks(root); err == nil && resolved != root {
		roots = append(roots, resolved)
	}
	containers, err := cfg.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("cri: list containers: %w", err)
	}
	found := map[types.UID]bool{}
	for _, c := range containers {
		uid := types.UID(c.GetLabels()[podconfig.LabelPodUID])
		if !isPathElement(string(uid)) || found[uid] || l.Owns(uid) {
			continue
		}
		answer, err := cfg.Runtime.ContainerStatus(ctx, c.GetId(), false)
		if err != nil {
			cfg.Logger.Debug("Failed to read the mounts of a container; its pod may belong to another node", "containerID", c.GetId(), "podUID", uid, "err", err)
			continue
		}
		found[uid] = mountsPodDir(answer.GetStatus().GetMounts(), roots, uid)
	}
	var uids []types.UID
	for uid, ours := range found {
		if ours {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// mountsPodDir reports whether a mount is a file of the directory of the pod in one of the
// root directories. Other files of a root directory are no evidence: pods of drivers mount
// the directories of all pods.
func mountsPodDir(mounts []*runtimeapi.Mount, roots []string, uid types.UID) bool {
	for _, m := range mounts {
		for _, root := range roots {
			if isBelow(filepath.Join(root, "pods", string(uid)), m.GetHostPath()) {
				return true
			}
		}
	}
	return false
}

// Owns reports whether the pod belongs to the node.
func (l *Ledger) Owns(uid types.UID) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods[uid] != nil
}

// Own adds a pod, before anything of it is created. It is idempotent. It returns an error if
// the pod cannot be recorded, or if its UID is no file name.
func (l *Ledger) Own(uid types.UID) error {
	if l == nil {
		return nil
	}
	if !isPathElement(string(uid)) {
		return fmt.Errorf("cri: pod UID %q is not valid in a path", uid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.pods[uid]; e != nil {
		e.owned, e.gone = e.owned+1, false
		return nil
	}
	// It is not synced: after a failure of the machine nothing of the pod runs.
	f, err := os.OpenFile(l.path(uid), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("cri: record that pod %s belongs to this node: %w", uid, err)
	}
	l.pods[uid] = &ledgerEntry{owned: 1}
	return nil
}

// Retain deletes the pods of which nothing exists, as keep reports, and for which the call
// before has found the same. It should be called after each collection of garbage that has
// not failed: keep must be true for a pod that may run, that the runtime lists or that has
// a cgroup. keep may call other methods of the Ledger. It implements podworker.Retainer.
func (l *Ledger) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	before := make(map[types.UID]ledgerEntry, len(l.pods))
	for uid, e := range l.pods {
		before[uid] = *e
	}
	l.mu.Unlock()
	maps.DeleteFunc(before, func(uid types.UID, _ ledgerEntry) bool { return keep(uid) })
	var errs []error
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, e := range l.pods {
		was, ok := before[uid]
		if !ok || was.owned != e.owned { // it exists, or may be created at this moment
			e.gone = false
			continue
		}
		if !was.gone {
			e.gone = true
			continue
		}
		if err := os.Remove(l.path(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cri: ledger of pods: %w", err))
			continue
		}
		delete(l.pods, uid)
	}
	return errors.Join(errs...)
}

func (l *Ledger) path(uid types.UID) string { return filepath.Join(l.dir, string(uid)) }

// podOfLog returns the UID in the name of a directory of logs: <namespace>_<name>_<uid>, or
// the UID alone in an old layout.
func podOfLog(dir string) types.UID {
	return types.UID(dir[strings.LastIndex(dir, "_")+1:])
}
